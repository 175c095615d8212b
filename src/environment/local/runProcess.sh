#!/bin/sh
# Runs a command on this machine with stderr joined to stdout, so that their order is the order of writing. Arguments: seconds, or
# nothing for no limit; then the command line. If swebatch is killed nobody is left to stop a command: coreutils' timeout then ends
# its process group, where there is one.
d=$1; shift
if [ -n "$d" ] && command -v timeout >/dev/null; then exec timeout -s KILL "$d" "$@" 2>&1; fi
exec "$@" 2>&1
