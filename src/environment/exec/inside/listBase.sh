#!/bin/bash
# Prints the processes that make up the container itself; run once before the agent's first command.
unset TMOUT FUNCNEST POSIXLY_CORRECT
. ./sweep.sh
__sb_base
printf '%s' "$__sb_given"
