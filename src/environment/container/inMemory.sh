#!/bin/sh
# Prints what lies in memory of the container, which no image of it has: `PATH` of the first thing in each tmpfs, at most five. Of /dev and what the
# engine mounts there itself only files count. What is ours (.swebatch.*) is nobody's work.
n=0
while read -r line && [ $n -lt 5 ]; do
  set -f
  # shellcheck disable=SC2086 # fields of a line
  set -- $line
  set +f
  type=${line#* - }
  case ${type%% *} in tmpfs | ramfs) ;; *) continue ;; esac
  case $5 in
    /proc/* | /sys/*) continue ;;
    /dev) found=$(find /dev -xdev -type f ! -name '.swebatch.*' 2>/dev/null | head -n 1) ;;
    *) found=$(find "$5" -xdev ! -path "$5" ! -name '.swebatch.*' 2>/dev/null | head -n 1) ;;
  esac
  [ -z "$found" ] || { printf '%s\n' "$found"; n=$((n + 1)); }
done </proc/self/mountinfo
