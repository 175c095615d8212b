#!/bin/sh
# Prints whether there is a bash, the number of the user that this runs as, where the kernel says it, and the processes that make up the container.
# Argument: listBase.sh, for bash.
b=$(bash -p -c "printf yes" 2>/dev/null)
[ "$b" = yes ] || b=no
printf '%s' "$b"
while read -r name number _; do [ "$name" = Uid: ] && printf ' %s' "$number"; done </proc/self/status
printf ' '
[ "$b" = no ] || exec bash -p -c "$1"
. ./listBasePosix.sh
