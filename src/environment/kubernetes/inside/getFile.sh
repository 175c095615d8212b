#!/bin/sh
# Prints the file at PATH, at most BYTES of it. 90: nothing is there. 91: it is no file.
[ -e "$1" ] || exit 90
[ -f "$1" ] || exit 91
exec head -c "$2" -- "$1"
