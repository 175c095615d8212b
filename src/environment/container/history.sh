#!/bin/bash
# What removes and what verifies the history of a repository share: variables and functions. Run by `bash -p` with W (work tree) and BASE
# (commit the task starts from, or empty). The scripts print one of
#   absent REASON | failed REASON | sealed FINGERPRINT
# and `note TEXT` lines, or nothing where a program was killed before it had said what is there, as when memory runs out: then nothing is known.
# The image's own hooks, file monitor and aliases are kept out with -c; GIT_* of the environment is dropped.
if [ -z "$BASH_VERSION" ]; then
  if command -v git >/dev/null 2>&1; then echo 'failed the image has git but no bash to seal it with'; else echo 'absent the image has no git'; fi
  exit 0
fi
export LC_ALL=C
# shellcheck disable=SC2086 # names of variables
unset ${!GIT_@} BASH_ENV ENV LD_PRELOAD TMOUT FUNCNEST POSIXLY_CORRECT
command -v git >/dev/null 2>&1 || { echo 'absent the image has no git'; exit 0; }
cd "$W" 2>/dev/null || { echo "absent there is no folder $W"; exit 0; }
# Ownership checks: the environment serves git from 2.31, a HOME of our own the versions before.
HOME=$(mktemp -d 2>/dev/null || echo /tmp/.swebatch-home.$$); mkdir -p "$HOME"; export HOME
trap 'rm -rf "$HOME"' EXIT
printf '[safe]\n\tdirectory = *\n' >"$HOME/.gitconfig"
export GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=safe.directory GIT_CONFIG_VALUE_0='*' GIT_OPTIONAL_LOCKS=0 GIT_TERMINAL_PROMPT=0 GIT_NO_REPLACE_OBJECTS=1
# A program that closes its pipe early ends the one before it with 141, and a usage that an old git does not know is 129.
lived() { case $1 in 13[4-79] | 143) : >"$HOME/killed" ;; esac; return "$1"; }
g() { git -c core.hooksPath=/dev/null -c core.fsmonitor=false -c gc.auto=0 -c core.pager=cat -c core.commitGraph=false -c log.showSignature=false "$@"; lived $?; }
sorted() { sort -u; lived $?; }
say() { if [ -e "$HOME/killed" ]; then echo 'a program was killed'; exit 137; fi; echo "$*"; exit 0; }
fail() { say "failed $*"; }
dir=$(g rev-parse --git-common-dir 2>/dev/null) || say "absent $W is not a git repository"
dir=$(cd "$dir" && pwd -P)
top=$(g rev-parse --git-dir) && top=$(cd "$top" && pwd -P)
head=$(g rev-parse -q --verify HEAD 2>/dev/null) || head=
branch=$(g symbolic-ref -q HEAD) || branch=

# What can be seen from outside: refs, remotes, logs, heads, alternates. Prints the first thing that should not be there.
leftover() {
  local ref f
  while IFS= read -r ref; do
    if [ -n "$ref" ] && [ "$ref" != "$branch" ]; then echo "ref $ref"; return; fi
  done < <(g for-each-ref --format='%(refname)')
  ref=$(g remote); if [ -n "$ref" ]; then echo "remote $ref"; return; fi
  for f in "$dir"/logs "$top"/logs "$dir"/worktrees/* "$dir"/objects/info/alternates "$dir"/objects/info/http-alternates "$dir"/objects/info/commit-graph* \
    "$dir"/objects/pack/multi-pack-index* "$dir"/rebase-merge "$dir"/rebase-apply "$dir"/sequencer "$dir"/remotes/* "$dir"/branches/* "$dir"/*_HEAD "$top"/*_HEAD \
    "$dir"/lost-found "$dir"/rr-cache "$dir"/info/refs "$dir"/BISECT_* "$top"/BISECT_*; do
    if [ -e "$f" ]; then echo "$f"; return; fi
  done
}
# Every object in the store must be reachable from HEAD, its branch or the index.
unreachable() {
  comm -23 <(g cat-file --batch-all-objects --batch-check='%(objectname)' | sorted) \
    <(g rev-list --objects --indexed-objects --all ${head:+HEAD} 2>/dev/null | cut -d' ' -f1 | sorted) | wc -l
}
fingerprint() {
  { echo "$head $branch"; g for-each-ref --format='%(refname) %(objectname)'; ls "$dir/objects/pack"; g count-objects -v; } 2>&1 | sha256sum | cut -d' ' -f1
}
# HEAD may be the base commit, or one commit after it that the image's builder made.
check_base() {
  local ahead subject
  [ -n "$BASE" ] && [ -n "$head" ] || return 0
  if ! g cat-file -e "$BASE^{commit}" 2>/dev/null; then echo "note the base commit $BASE is not in the repository; HEAD is taken as the base"; return 0; fi
  g merge-base --is-ancestor "$BASE" "$head" || fail "HEAD is not the base commit $BASE nor a descendant of it"
  ahead=$(g rev-list --count "$BASE..$head")
  [ "$ahead" -eq 0 ] && return 0
  subject=$(g log -1 --format='%an %ae %s' "$head")
  case $subject in *[sS][wW][eE]-[bB]ench* | *[sS][wW][eE][bB]ench* | *SWE-bench*) ;; *) fail "HEAD is $ahead commits after the base commit ($subject)" ;; esac
  [ "$ahead" -eq 1 ] || fail "HEAD is $ahead commits after the base commit"
  echo "note HEAD is the image builder's commit on top of the base commit"
}
