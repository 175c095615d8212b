#!/bin/bash
# A git repository of our own outside the work tree, for the snapshot of the start tree and the diff against it: none of the image's or
# the agent's git configuration, hooks, index, refs or objects is trusted, and a deleted .git changes nothing. Run by `bash -p` with
# W (work tree), P (private folder, or '' and a name N to find one), START (tree), MAX (bytes), BESIDE (lines of info/exclude); it needs git and coreutils.
# - GIT_* of the environment could redirect or reconfigure git: dropped.
# - An explicit GIT_DIR that we own skips the ownership check; HOME and XDG point to nothing, so user configuration is not read (also by
#   git before 2.32, which knows no GIT_CONFIG_GLOBAL).
# - info/attributes outranks every .gitattributes of the tree: no line-ending conversion, no filters, no "-diff".
[ -n "$BASH_VERSION" ] || exit 90
export LC_ALL=C
# shellcheck disable=SC2086 # names of variables
unset ${!GIT_@} BASH_ENV ENV LD_PRELOAD TMOUT FUNCNEST POSIXLY_CORRECT
command -v git >/dev/null 2>&1 || { echo nogit; exit 90; }
if [ -z "$P" ]; then
  for d in /var/lib /var/tmp /tmp /dev/shm; do if mkdir "$d/.swebatch.$N" 2>/dev/null; then P=$d/.swebatch.$N; break; fi; done
fi
[ -n "$P" ] || { echo 'no folder can be written to'; exit 91; }
mkdir -p "$P/home" 2>/dev/null || { echo "cannot write $P"; exit 91; }
export HOME=$P/home XDG_CONFIG_HOME=$P/home GIT_CONFIG_NOSYSTEM=1 GIT_ATTR_NOSYSTEM=1 GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_SYSTEM=/dev/null
export GIT_DIR=$P/git GIT_WORK_TREE=$W GIT_OPTIONAL_LOCKS=0 GIT_TERMINAL_PROMPT=0 GIT_PAGER=cat GIT_NO_REPLACE_OBJECTS=1 GIT_LITERAL_PATHSPECS=1
# A line for info/exclude that means this path and no other.
exclude_line() {
  local path=${1%/}
  path=${path//\\/\\\\}; path=${path//\*/\\*}; path=${path//\?/\\?}; path=${path//[/\\[}; path=${path// /\\ }
  printf '/%s\n' "$path"
}
