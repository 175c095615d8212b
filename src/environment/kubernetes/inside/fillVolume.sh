#!/bin/sh
# Copies what the image has at FROM into the volume at TO, for each FROM TO that is given, where that is still empty: engines do so by themselves.
while [ $# -gt 1 ]; do
  if [ -d "$1" ] && [ -z "$(ls -A -- "$2")" ]; then
    cp -a -- "$1/." "$2/" || exit 1
  fi
  shift 2
done
