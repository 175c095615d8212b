#!/bin/sh
# As sweepMark.sh, for images without bash: looks for the mark with grep, one process after the other. Prints "done".
i=0
while [ $i -lt 20 ]; do
  i=$((i + 1)); hits=0
  for d in /proc/[0-9]*; do
    p=${d#/proc/}
    case ",$2,$$," in *",$p,"*) continue ;; esac
    read -r s <"$d/stat" || continue
    case "${s##*) }" in Z* | X*) continue ;; esac
    if [ "$1" != '*' ]; then grep -q "SWEBATCH_CMD=$1" "$d/environ" || continue; fi
    kill -9 "$p" && hits=1
  done
  [ $hits = 0 ] && break
done
printf 'done'
