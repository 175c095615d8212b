#!/bin/sh
# Prints the processor's name, then those of the given paths that are there.
uname -m
for path; do [ ! -e "$path" ] || echo "$path"; done
