#!/bin/sh
# Prints whether there is a bash, and the number of the user that this runs as, where the kernel says it.
[ "$(bash -p -c "printf yes" 2>/dev/null)" = yes ] && printf yes || printf no
while read -r name number _; do [ "$name" = Uid: ] && printf ' %s' "$number"; done </proc/self/status
:
