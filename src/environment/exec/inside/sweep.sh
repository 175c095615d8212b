#!/bin/bash
# Finds and kills processes, for the supervisor and for plain exec. Only bash builtins, so it works when no process can be started.
__sb_stat() {
  local __sb_line
  IFS= read -r __sb_line 2>/dev/null <"/proc/$1/stat" || return 1
  set -f
  # shellcheck disable=SC2086 # fields of a line
  set -- ${__sb_line##*') '}
  set +f
  __sb_state=$1 __sb_ppid=$2 __sb_pgrp=$3 __sb_start=${20}
}
__sb_mark_of() {
  local __sb_e
  __sb_found=
  while IFS= read -r -d '' __sb_e; do
    case $__sb_e in SWEBATCH_CMD=*) __sb_found=${__sb_e#*=}; return 0 ;; esac
  done 2>/dev/null <"/proc/$1/environ"
}
# mark self since group: stops all that match until none is left running (a fork bomb cannot outrun that), then kills them.
# A process without a mark emptied its environment; it belongs to this command if it started after it.
__sb_sweep() {
  local __sb_pid __sb_d __sb_hits __sb_pass __sb_sig=STOP
  __sb_killed=0
  for (( __sb_pass = 0; __sb_pass < 60; __sb_pass++ )); do
    __sb_hits=0
    for __sb_d in /proc/[0-9]*; do
      __sb_pid=${__sb_d#/proc/}
      [[ $2 == *" $__sb_pid "* || $__sb_pid == "$BASHPID" ]] && continue
      __sb_stat "$__sb_pid" || continue
      [[ $__sb_state == [ZX] ]] && continue
      [[ $__sb_sig == STOP && $__sb_state == T ]] && continue
      if [[ $1 != '*' && $__sb_pgrp != "$4" ]]; then
        __sb_mark_of "$__sb_pid"
        if [[ $__sb_found ]]; then
          [[ $__sb_found == "$1" ]] || continue
        else
          # shellcheck disable=SC2015 # both sides lead to continue
          [[ $3 ]] && (( __sb_start >= $3 )) || continue
        fi
      fi
      if kill -s "$__sb_sig" "$__sb_pid" 2>/dev/null; then
        (( __sb_hits++ ))
        if [[ $__sb_sig == KILL ]]; then (( __sb_killed++ )); fi
      fi
    done
    if [[ $__sb_sig == STOP ]]; then
      if (( __sb_hits == 0 || __sb_pass >= 25 )); then __sb_sig=KILL; fi
    elif (( __sb_hits == 0 )); then
      break
    fi
  done
}
# The processes that make up the container itself: PID 1 and what it started before the agent did anything.
__sb_base() {
  local __sb_f
  __sb_given=1
  for __sb_f in /proc/[0-9]*; do
    if __sb_stat "${__sb_f#/proc/}" && [[ $__sb_ppid == 1 ]]; then __sb_given+=",${__sb_f#/proc/}"; fi
  done
}
