#!/bin/sh
# Writes SIZE bytes of stdin to a file: PATH SIZE MODE. The input does not end, so they are counted. What stood there is replaced.
folder=$(dirname -- "$1")
mkdir -p -- "$folder" || exit 1
[ ! -d "$1" ] || { echo "$1 is a folder" >&2; exit 1; }
part="$folder/.swebatch.$$"
head -c "$2" >"$part" && chmod "$3" "$part" && mv -f -- "$part" "$1" && exit 0
rm -f -- "$part"
exit 1
