#!/bin/bash
# Prints the start tree's id. Paths ignored at the start stay ignored, whatever the agent does to .gitignore.
. ./privateGit.sh
set -e
rm -rf "$P/git"
mkdir -p "$P/git"
cd "$W"
repo=$(env -u GIT_DIR -u GIT_WORK_TREE GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=safe.directory GIT_CONFIG_VALUE_0='*' git rev-parse --git-common-dir 2>/dev/null) || repo=
if [ -z "$repo" ] && [ -d .git ]; then repo=.git; fi
if [ -n "$repo" ]; then repo=$(cd "$repo" && pwd -P); fi
git init -q --template= "$P/git" >/dev/null 2>&1 || git init -q >/dev/null
mkdir -p "$P/git/info" "$P/git/objects/info"
printf '* !diff -text -eol -filter -ident -working-tree-encoding -export-subst\n' >"$P/git/info/attributes"
printf '[core]\n\tbare = false\n\tfileMode = true\n\tautocrlf = false\n\tsafecrlf = false\n\tquotePath = true\n\tlooseCompression = 1\n[gc]\n\tauto = 0\n' >>"$P/git/config"
: >"$P/git/info/exclude"
head=
if [ -n "$repo" ]; then
  if [ -f "$repo/info/exclude" ]; then cat "$repo/info/exclude" >"$P/git/info/exclude"; fi
  printf '%s\n' "$repo/objects" >"$P/git/objects/info/alternates"
  head=$(GIT_DIR=$repo git rev-parse -q --verify HEAD 2>/dev/null) || head=
fi
if [ -n "$head" ] && git read-tree "$head" 2>/dev/null; then :; fi
git ls-files -o -i --exclude-standard --directory -z >"$P/ignored"
while IFS= read -r -d '' path; do
  case $path in *$'\n'*) continue ;; esac
  exclude_line "$path"
done <"$P/ignored" >>"$P/git/info/exclude"
rm -f "$P/ignored"
git add -A --ignore-errors . 2>"$P/errors" || [ $? -lt 130 ] || { echo 'git add was killed'; exit 1; }
tree=$(git write-tree)
# Everything the start tree needs moves into our own store, so that it outlives the repository's.
git rev-list --objects --no-object-names "$tree" >"$P/list" 2>/dev/null || { git ls-tree -r -t "$tree" | while read -r _ type id _; do [ "$type" = commit ] || echo "$id"; done; echo "$tree"; } >"$P/list"
git pack-objects -q "$P/git/objects/pack/pack" <"$P/list" >/dev/null
rm -f "$P/git/objects/info/alternates" "$P/list"
git prune-packed -q
# With its time: git tells by it which files may have changed within the second in which they were read.
cp -p "$P/git/index" "$P/start.index" 2>/dev/null || :
git cat-file -e "$tree"
printf 'folder %s\ntree %s\n' "$P" "$tree"
