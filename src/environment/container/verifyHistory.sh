#!/bin/bash
# The same facts again in the container of an attempt: cheap, and enough to see that it is the sealed state.
. ./history.sh
check_base
left=$(leftover)
[ -z "$left" ] || fail "still there: $left"
state=$(fingerprint)
say "sealed $state"
