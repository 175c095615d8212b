#!/bin/bash
# All that `ps` shows of the supervisor: its script comes on stdin.
unset POSIXLY_CORRECT
IFS= read -r -N 10 -t 1000 __sb_h
IFS= read -r -N "$((10#${__sb_h:1}))" -t 1000 __sb_script
eval "$__sb_script"
