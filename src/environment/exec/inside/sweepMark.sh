#!/bin/bash
# Kills what carries a mark. Arguments: mark, processes to spare, pid of the command's wrapper ('' for none). Prints how many it killed.
unset TMOUT FUNCNEST POSIXLY_CORRECT
LC_ALL=C
. ./sweep.sh
__sb_start='' __sb_pgrp=''
if [[ $3 ]]; then __sb_stat "$3"; fi
__sb_sweep "$1" " ${2//,/ } $$ " "$__sb_start" "$__sb_pgrp"
printf '%s' "$__sb_killed"
