#!/bin/bash
# Writes $P/patch and prints lines: `warn TEXT`, `size N`, `files N` (too much to make a patch of), `big BYTES PATH`, `check ok|bad TEXT`,
# `same` when nothing changed, `lost` when no patch can be made. The check applies the patch to the start tree's index and compares tree
# ids, which is stricter than `git apply --check`.
. ./privateGit.sh
[ -d "$W" ] || { echo "warn the working directory $W is gone: everything in it counts as deleted"; mkdir -p "$W"; }
# fuse-overlayfs lists nothing in a folder that was removed and made again, and still finds the image's files there by their names.
if list=$(ls -A "$W" 2>/dev/null) && [ -z "$list" ]; then
  W=$P/nothing
  rm -rf "$W"
  mkdir "$W" || exit 92
  export GIT_WORK_TREE=$W
fi
cd "$W" || exit 92
if ! git cat-file -e "$START" 2>/dev/null; then
  # The agent removed our store. The repository may still have the start tree.
  rm -rf "$P/git"; mkdir -p "$P/home"
  git init -q --template= "$P/git" >/dev/null 2>&1 || git init -q >/dev/null
  mkdir -p "$P/git/info" "$P/git/objects/info"
  printf '* !diff -text -eol -filter -ident -working-tree-encoding -export-subst\n' >"$P/git/info/attributes"
  git config core.bare false; git config core.autocrlf false; git config gc.auto 0
  printf '%s\n' "$W/.git/objects" >"$P/git/objects/info/alternates"
  git cat-file -e "$START" 2>/dev/null || { echo 'warn the start snapshot was deleted and the repository no longer has its tree'; echo lost; exit 0; }
  echo 'warn the start snapshot was deleted; it was rebuilt from the repository'
  git read-tree "$START"
else
  cp -p "$P/start.index" "$P/git/index" 2>/dev/null || git read-tree "$START"
fi
rm -f "$P/git/index.lock" "$P/patch"
cp "$P/git/info/exclude" "$P/exclude.start" 2>/dev/null || : >"$P/exclude.start"
# What the agent leaves for itself is no work where it is new.
printf '%s' "$BESIDE" >>"$P/git/info/exclude"
# Nested repositories are listed with a slash at the end; adding them would record a link and lose the files.
git ls-files -o --exclude-standard -z >"$P/others" 2>/dev/null
while IFS= read -r -d '' path; do
  case $path in
    */)
      printf 'warn embedded repository %q left out\n' "${path%/}"
      exclude_line "$path" >>"$P/git/info/exclude"
      ;;
  esac
done <"$P/others"
# A tracked file that became a FIFO or socket cannot be added: it counts as deleted.
git ls-files -m -z >"$P/modified" 2>/dev/null
while IFS= read -r -d '' path; do
  if [ -p "$W/$path" ] || [ -S "$W/$path" ] || [ -b "$W/$path" ] || [ -c "$W/$path" ]; then
    printf 'warn special file %q left out\n' "$path"
    git update-index --force-remove -- "$path"
    exclude_line "$path" >>"$P/git/info/exclude"
  fi
done <"$P/modified"
# What git would have to read, compress and hold in memory is measured first: a core dump or a data set makes no patch.
total=0 names=() big=()
measure() {
  local i=0 bytes
  while IFS= read -r bytes; do
    total=$((total + bytes))
    [ "$bytes" -lt "$((MAX / 10))" ] || big+=("$bytes ${names[i]}")
    i=$((i + 1))
  done < <(stat -c %s -- "${names[@]}" 2>/dev/null)
  names=()
}
while IFS= read -r -d '' path; do
  if [ -f "$path" ] && [ ! -L "$path" ]; then names+=("$path"); fi
  [ "${#names[@]}" -lt 500 ] || measure
done < <(cat "$P/others" "$P/modified")
[ "${#names[@]}" -eq 0 ] || measure
if [ "$total" -gt "$((MAX * 50))" ]; then
  printf 'files %s\n' "$total"
  for path in "${big[@]}"; do printf 'big %s %q\n' "${path%% *}" "${path#* }"; done
  cp "$P/exclude.start" "$P/git/info/exclude"
  exit 0
fi
git add -A --ignore-errors . 2>"$P/errors"
added=$?
if [ "$added" -ne 0 ]; then
  while IFS= read -r line; do
    case $line in error:* | fatal:*) printf 'warn git: %s\n' "$line" ;; esac
    # A file that may not be read was not part of the start tree either. What could not be stored is work that would be lost in silence.
    case $line in *'insert into database'* | *'No space left'* | *'quota exceeded'* | *'Input/output error'* | *'Cannot allocate memory'* | *'ut of memory'*) added=128 ;; esac
  done <"$P/errors"
  if [ "$added" -ge 128 ]; then echo 'warn the changed files could not all be stored'; echo lost; exit 0; fi
fi
# Links to commits of nested repositories or submodules never belong in a patch: back to what they were.
git diff-index --cached --raw -z --no-renames "$START" -- >"$P/raw"
while IFS= read -r -d '' meta && IFS= read -r -d '' path; do
  # shellcheck disable=SC2086 # fields of a line
  set -- ${meta#:}
  if [ "$1" = 160000 ] || [ "$2" = 160000 ]; then
    printf 'warn change of the nested repository %q left out\n' "$path"
    if [ "$1" = 000000 ]; then git update-index --force-remove -- "$path"
    else printf '%s %s\t%s\0' "$1" "$3" "$path" | git update-index -z --index-info; fi
  fi
done <"$P/raw"
# A library that is loaded into every program may print before it.
end=$(git write-tree) || { echo lost; exit 0; }
end=${end##*$'\n'}
cp "$P/exclude.start" "$P/git/info/exclude"
if [ "$end" = "$START" ]; then echo same; exit 0; fi
git diff-index -p --cached --binary --full-index --no-ext-diff --no-textconv --no-color --no-renames --src-prefix=a/ --dst-prefix=b/ --output="$P/patch" "$START" -- || { echo lost; exit 0; }
size=$(wc -c <"$P/patch")
size=${size##*[!0-9]}
printf 'size %s\n' "$size"
if [ "$size" -gt "$MAX" ]; then
  git diff-index --cached --raw -z --no-renames "$START" -- >"$P/raw"
  while IFS= read -r -d '' meta && IFS= read -r -d '' path; do
    # shellcheck disable=SC2086 # fields of a line
    set -- ${meta#:}
    case $5 in D) continue ;; esac
    printf 'big %s %q\n' "$(git cat-file -s "$4" 2>/dev/null || echo 0)" "$path"
  done <"$P/raw"
  exit 0
fi
export GIT_INDEX_FILE=$P/check.index
rm -f "$GIT_INDEX_FILE" "$GIT_INDEX_FILE.lock"
if ! { git read-tree "$START" && git apply --cached --whitespace=nowarn --binary "$P/patch" >"$P/errors" 2>&1; }; then printf 'check bad %s\n' "$(head -c 300 "$P/errors" | tr '\n' ' ')"; exit 0; fi
again=$(git write-tree)
if [ "${again##*$'\n'}" = "$end" ]; then echo 'check ok'; else echo 'check bad the patch does not give the captured tree'; fi
rm -f "$P/check.index"
