#!/bin/bash
# The supervisor: the host's hand in the container, one exec for each stream of output. It passes commands to the keeper (keeper.sh), whose reports go
# to the stderr of the supervisor, and it kills while a command runs. Arguments: the processes that make up the container itself ('' when they have to be
# found), the pid of the keeper, the interpreter. Requests are a letter, nine digits for the length of the payload, the payload:
#   L script     what the keeper runs; only the first supervisor of a container has to bring it
#   R …          a command, passed on with our pid before it
#   Q nonce id   passed on likewise
#   K mark id    kill whatever carries the mark
#   A id         kill everything but the container's own processes and ourselves
#   F id         does anybody else hold our stdout open?
#   P id         what runs that A would kill: how many, and the names of the first
# Answers are `RS id text RS` on stderr.
#
# Choices that are not obvious:
# - a command may kill the supervisor, with `kill -9 -1` for one. The keeper lives on, and another supervisor asks it how the command ended (Q).
# - fd 5 and 7 are second names of stdout and stderr, for the keeper: while bash runs a builtin with a redirection (printf >&4) its fd 1 is
#   something else for a moment.
# - only bash builtins, so that it can kill when no process can be started.
unset TMOUT FUNCNEST
LC_ALL=C
trap '' TERM INT HUP QUIT USR1 USR2 PIPE ALRM
__sb_given=$1 __sb_keeper=$2 __sb_since=''
shift 2
. ./sweep.sh
# The keeper may be on its way still; a pipe on which nobody writes is something to wait on without a program.
__sb_find() {
  local __sb_i
  if [[ -p /proc/$__sb_keeper/fd/9 ]]; then return 0; fi
  exec 8<> <(:)
  for (( __sb_i = 0; __sb_i < 500; __sb_i++ )); do
    [[ -p /proc/$__sb_keeper/fd/9 ]] && break
    read -r -t 0.02 -u 8
  done
  exec 8>&-
}
__sb_find
exec 4>"/proc/$__sb_keeper/fd/9" || exit 3
exec 5>&1 7>&2
{ : >/proc/self/fd/5 2>/proc/self/fd/7; } || exit 3
if [[ $__sb_given ]]; then printf '\036ready %s none keeper\036' "$__sb_given" >&2; else __sb_base; fi
__sb_keep=" ${__sb_given//,/ } $__sb_keeper $$ "
__sb_kill() {
  local __sb_d __sb_pid __sb_group='' __sb_first=''
  if [[ $__sb_since ]]; then
    for __sb_d in /proc/[0-9]*; do
      __sb_pid=${__sb_d#/proc/}
      __sb_stat "$__sb_pid" || continue
      # The leader of the command's process group: the first child of the keeper since then.
      if [[ $__sb_ppid == "$__sb_keeper" && $__sb_pgrp == "$__sb_pid" ]] && (( __sb_start >= __sb_since )); then
        # One that another command left in the same tick carries that one's mark.
        __sb_mark_of "$__sb_pid"
        [[ $__sb_found && $__sb_found != "$1" ]] && continue
        if [[ -z $__sb_first ]] || (( __sb_start < __sb_first )); then __sb_first=$__sb_start __sb_group=$__sb_pid; fi
      fi
    done
  fi
  __sb_sweep "$1" "$__sb_keep" "$__sb_since" "$__sb_group"
}
# The keeper has a shell that waits with it. Of other supervisors there is one for each stream that is held; what holds it is listed itself.
__sb_list() {
  local __sb_d __sb_pid __sb_name
  __sb_count=0 __sb_names=
  for __sb_d in /proc/[0-9]*; do
    __sb_pid=${__sb_d#/proc/}
    [[ $__sb_keep == *" $__sb_pid "* ]] && continue
    __sb_stat "$__sb_pid" || continue
    [[ $__sb_state == [ZX] ]] && continue
    while IFS= read -r -d '' __sb_name; do
      # A look at the disk (blocks.c) may go on for a moment.
      [[ $__sb_name == swebatch-supervisor || $__sb_name == swebatch-keeper || $__sb_name == /blocks ]] && continue 2
    done 2>/dev/null <"$__sb_d/cmdline"
    IFS= read -r __sb_name 2>/dev/null <"$__sb_d/comm" || continue
    if (( __sb_count++ < 20 )); then __sb_names+=" ${__sb_name//[^a-zA-Z0-9_.+-]/?}"; fi
  done
}
while IFS= read -r -N 10 __sb_h; do
  __sb_body=
  # Nothing is made of a request whose connection was cut.
  IFS= read -r -N "$((10#${__sb_h:1}))" __sb_body || break
  case ${__sb_h:0:1} in
    L)
      printf -v __sb_line '%s %s ' "$$" "$__sb_given"
      printf -v __sb_quoted '%q ' "$@"
      __sb_line+=$__sb_quoted
      printf '%s%sI%09d%s' "$__sb_h" "$__sb_body" "${#__sb_line}" "$__sb_line" >&4
      ;;
    R | Q)
      # In ticks since the start of the machine, as /proc tells the starts of processes.
      IFS='. ' read -r __sb_s __sb_c __sb_x </proc/uptime
      if [[ $__sb_h == R* ]]; then __sb_since=$((10#$__sb_s$__sb_c)); fi
      printf '%s%09d%s %s' "${__sb_h:0:1}" "$(( ${#__sb_body} + ${#$} + 1 ))" "$$" "$__sb_body" >&4
      ;;
    K)
      __sb_kill "${__sb_body% *}"
      printf '\036%s %s\036' "${__sb_body#* }" "$__sb_killed" >&2
      ;;
    A)
      __sb_kill '*'
      printf '\036%s %s\036' "$__sb_body" "$__sb_killed" >&2
      ;;
    P)
      __sb_list
      printf '\036%s %s%s\036' "$__sb_body" "$__sb_count" "$__sb_names" >&2
      ;;
    F)
      __sb_held=0
      for __sb_p in /proc/[0-9]*; do
        [[ $__sb_p == "/proc/$$" ]] && continue
        for __sb_fd in "$__sb_p"/fd/*; do
          if [[ $__sb_fd -ef /proc/$$/fd/5 ]]; then __sb_held=1; break 2; fi
        done
      done
      printf '\036%s %s\036' "$__sb_body" "$__sb_held" >&2
      ;;
  esac
done
