#!/bin/bash
# Removes the future from a repository (every commit, ref and object that HEAD does not reach) and proves that it is gone.
. ./history.sh
check_base
if [ -z "$(leftover)" ] && [ "$(unreachable)" -eq 0 ]; then state=$(fingerprint); say "sealed $state"; fi
g for-each-ref --format='%(refname)' | while IFS= read -r ref; do
  [ "$ref" = "$branch" ] || printf 'option no-deref\ndelete %s\n' "$ref"
done | g update-ref --no-deref --stdin 2>/dev/null || {
  g for-each-ref --format='%(refname)' | while IFS= read -r ref; do [ "$ref" = "$branch" ] || g update-ref --no-deref -d "$ref"; done
}
g config --local --name-only --get-regexp '^(remote|branch)\.' 2>/dev/null | while IFS= read -r key; do
  g config --local --unset-all "$key"
done
g config --local --name-only --get-regexp '^(remote|branch)\.' >/dev/null 2>&1 && fail 'remotes could not be removed from the configuration'
g config --local --unset-all extensions.partialClone 2>/dev/null
if [ -s "$dir/objects/info/alternates" ]; then g repack -a -d -q 2>/dev/null || fail 'objects could not be copied from the alternates'; fi
rm -rf "$dir"/logs "$top"/logs "$dir"/worktrees "$dir"/rebase-merge "$dir"/rebase-apply "$dir"/sequencer "$dir"/remotes "$dir"/branches \
  "$dir"/*_HEAD "$top"/*_HEAD "$dir"/lost-found "$dir"/rr-cache "$dir"/info/refs "$dir"/BISECT_* "$top"/BISECT_* "$dir"/objects/info/alternates "$dir"/objects/info/http-alternates "$dir"/objects/info/commit-graph* "$dir"/objects/pack/multi-pack-index*
rm -f "$dir"/objects/pack/*.keep "$dir"/objects/pack/*.promisor "$dir"/objects/pack/*.bitmap
for pack in "$dir"/objects/pack/*.pack; do if [ -e "$pack" ] && [ ! -e "${pack%.pack}.idx" ]; then rm -f "${pack%.pack}".*; fi; done
g repack -a -d -q 2>"$HOME/errors" || fail "repack: $(head -c 300 "$HOME/errors")"
g prune --expire=now 2>"$HOME/errors" || fail "prune: $(head -c 300 "$HOME/errors")"
rm -rf "$dir"/logs "$top"/logs "$dir"/info/refs "$dir"/objects/info/commit-graph*
left=$(leftover)
[ -z "$left" ] || fail "still there: $left"
count=$(unreachable)
[ "$count" -eq 0 ] || fail "$count unreachable objects are left"
if [ -n "$head" ]; then g cat-file -e "$head^{tree}" || fail 'HEAD was damaged'; fi
state=$(fingerprint)
say "sealed $state"
