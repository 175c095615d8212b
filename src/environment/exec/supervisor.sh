#!/bin/bash
# The supervisor: a bash script that lives in the container for the length of an attempt. It needs bash and /proc, no other program.
#
# Two processes. K reads requests from stdin for the whole time, so that it can kill while a command runs; S, fed by K through a
# pipe, forks one fresh interpreter per command, waits for it and tells the end. Requests are a header line and a body of
# counted bytes:
#   R mark nonces bodyBytes cwdBytes cmdBytes mode n k1 k2…   run; body = cwd + n entries NAME=value + command; nonces = begin,end
#                                                         mode 0: as an argument, 1: through a file, 2: for the harness, by bash -p
#   K mark id                                             kill whatever carries the mark
#   A id                                                  kill everything but PID 1, what it started first, and ourselves
# The end of a command is `RS end status oomKills held forksRefused RS` on stderr, which no command is given. On stdout `RS begin RS` and
# `RS end RS` stand around the command's output, in the order of writing: so the host knows that the output is complete, and what comes
# before or after belongs to no command. Answers to K and A go to stderr.
#
# Choices that are not obvious:
# - `-p` (privileged mode) keeps BASH_ENV, CDPATH and imported functions away from the supervisor; the command still gets them.
# - set -m gives each command its own process group; S is a subshell, so a stopped child does not end its `wait`.
# - fd 5 is a second name for our stdout: while bash runs a builtin with a redirection (printf >&4) its fd 1 is something else for
#   a moment, and a command that opened /proc/PID/fd/1 just then would write into the pipe between K and S.
# - it is opened anew per command, because a program that makes its stdout non-blocking (node does) changes the open
#   file description, which later commands would share.
# - held=1 says that a process still has our stdout open, under whatever number: the host then moves on to a fresh stream, so that the
#   late output of a background process never shows up in the output of another command.
# - variables that change bash itself (TMOUT ends every read after so many seconds) are put aside and given back to each command.
# - stdin is one /dev/null opened at the start: an agent that removed the file still has commands that run.
# - oom_score_adj is raised so that the memory limit kills the command and not the supervisor.
# - every variable is called __sb_*: assigning to a name that the container exports would change the command's environment.
set -m
__sb_saved=()
for __sb_f in LC_ALL TMOUT FUNCNEST POSIXLY_CORRECT; do
  if [[ ${!__sb_f+x} ]]; then __sb_saved+=("$__sb_f=${!__sb_f}"); unset "$__sb_f"; fi
done
LC_ALL=C
trap '' TERM INT HUP QUIT USR1 USR2 PIPE
__sb_keep=$1
shift
__sb_interp=("$@")
exec 5>&1 6</dev/null
__sb_out=/proc/$$/fd/5
{ : >"$__sb_out"; } 2>/dev/null || __sb_out=
__sb_cg=
for __sb_f in /sys/fs/cgroup/memory/memory.oom_control /sys/fs/cgroup/memory.events; do
  if { : <"$__sb_f"; } 2>/dev/null; then __sb_cg=$__sb_f; break; fi
done
__sb_tmp=
for __sb_f in /dev/shm /tmp /var/tmp /run; do
  if { : >"$__sb_f/.swebatch.$$"; } 2>/dev/null; then __sb_tmp=$__sb_f/.swebatch.$$; rm -f "$__sb_tmp"; break; fi
done
__sb_pcg=
for __sb_f in /sys/fs/cgroup/pids/pids.events /sys/fs/cgroup/pids.events; do
  if { : <"$__sb_f"; } 2>/dev/null; then __sb_pcg=$__sb_f; break; fi
done
__sb_oom_kills() {
  __sb_oom=0
  local __sb_k __sb_v
  if [[ $__sb_cg ]]; then
    while IFS=' ' read -r __sb_k __sb_v; do
      if [[ $__sb_k == oom_kill ]]; then __sb_oom=$__sb_v; fi
    done 2>/dev/null <"$__sb_cg"
  fi
}
__sb_forks_refused() {
  __sb_nofork=0
  local __sb_k __sb_v
  if [[ $__sb_pcg ]]; then
    while IFS=' ' read -r __sb_k __sb_v; do
      if [[ $__sb_k == max ]]; then __sb_nofork=$__sb_v; fi
    done 2>/dev/null <"$__sb_pcg"
  fi
}
. ./sweep.sh
if [[ $__sb_keep ]]; then __sb_given=$__sb_keep; else __sb_base; fi
__sb_keep=" ${__sb_given//,/ } $$ "
__sb_kill() {
  local __sb_d __sb_pid __sb_self=$__sb_keep __sb_since='' __sb_group=''
  __sb_runner=
  for __sb_d in /proc/[0-9]*; do
    __sb_pid=${__sb_d#/proc/}
    if [[ $__sb_pid != "$BASHPID" ]] && __sb_stat "$__sb_pid" && [[ $__sb_ppid == "$$" && $__sb_state != Z ]]; then
      __sb_self+="$__sb_pid " __sb_runner=$__sb_pid
    fi
  done
  for __sb_d in /proc/[0-9]*; do
    if [[ $__sb_runner ]] && __sb_stat "${__sb_d#/proc/}" && [[ $__sb_ppid == "$__sb_runner" ]]; then
      __sb_since=$__sb_start __sb_group=$__sb_pgrp
    fi
  done
  __sb_sweep "$1" "$__sb_self" "$__sb_since" "$__sb_group"
}
__sb_tell() {
  printf '\036%s %s\036' "$1" "$2" >&2
  printf '\036%s\036' "$1"
}
__sb_serve() {
  local __sb_op __sb_mark __sb_end __sb_total __sb_ncwd __sb_ncmd __sb_file __sb_n __sb_lens __sb_cwd __sb_cmd __sb_len __sb_var
  local __sb_status __sb_held __sb_before __sb_refused __sb_pids __sb_p __sb_fd __sb_vars __sb_child
  __sb_oom_kills
  __sb_before=$__sb_oom
  # A shell that cannot fork ends itself.
  trap '[[ $__sb_busy ]] && __sb_tell "$__sb_busy" nofork' EXIT
  while IFS=' ' read -r __sb_op __sb_mark __sb_end __sb_total __sb_ncwd __sb_ncmd __sb_file __sb_n __sb_lens; do
    printf '\036%s\036' "${__sb_end%,*}"
    __sb_end=${__sb_end#*,}
    __sb_cwd='' __sb_cmd='' __sb_vars=()
    if (( __sb_ncwd )); then IFS= read -r -N "$__sb_ncwd" __sb_cwd; fi
    for __sb_len in $__sb_lens; do
      IFS= read -r -N "$__sb_len" __sb_var
      __sb_vars+=("$__sb_var")
    done
    if (( __sb_ncmd )); then IFS= read -r -N "$__sb_ncmd" __sb_cmd; fi
    if (( __sb_file == 1 )); then
      if printf '%s' "$__sb_cmd" >"$__sb_tmp" 2>/dev/null; then __sb_cmd=". $__sb_tmp"; else
        __sb_tell "$__sb_end" nofile
        continue
      fi
    fi
    if [[ ! -d $__sb_cwd ]]; then
      __sb_tell "$__sb_end" nocwd
      continue
    fi
    __sb_forks_refused
    __sb_refused=$__sb_nofork __sb_busy=$__sb_end
    {
      trap - TERM INT HUP QUIT USR1 USR2 PIPE
      exec <&6 6<&-
      if [[ $__sb_out ]]; then exec >"$__sb_out" 2>&1 5>&-; else exec 2>&1 5>&-; fi
      { printf 800 >/proc/self/oom_score_adj; } 2>&-
      cd -- "$__sb_cwd" || exit 126
      unset OLDPWD SHLVL LC_ALL
      # shellcheck disable=SC2163 # what is exported is NAME=value
      for __sb_var in "${__sb_saved[@]}"; do export "$__sb_var"; done
      export SWEBATCH_CMD=$__sb_mark
      # shellcheck disable=SC2163
      for __sb_var in "${__sb_vars[@]}"; do export "$__sb_var"; done
      if (( __sb_file == 2 )); then exec bash -p -c "$__sb_cmd"; fi
      exec "${__sb_interp[@]}" "$__sb_cmd"
    } &
    __sb_child=$! __sb_busy=''
    wait "$__sb_child"
    __sb_status=$?
    __sb_held=0
    __sb_pids=(/proc/[0-9]*)
    if (( ${#__sb_pids[@]} > 4 )); then
      for __sb_p in "${__sb_pids[@]}"; do
        [[ $__sb_keep == *" ${__sb_p#/proc/} "* || $__sb_p == "/proc/$BASHPID" ]] && continue
        for __sb_fd in "$__sb_p"/fd/*; do
          if [[ $__sb_fd -ef /proc/$$/fd/5 ]]; then __sb_held=1; break 2; fi
        done
      done
    fi
    if (( __sb_file == 1 )); then : >"$__sb_tmp"; rm -f "$__sb_tmp"; fi 2>/dev/null
    __sb_oom_kills
    __sb_forks_refused
    # A counter that could not be read is 0.
    (( __sb_before = __sb_oom > __sb_before ? __sb_oom - __sb_before : 0 ))
    (( __sb_refused = __sb_nofork > __sb_refused ? __sb_nofork - __sb_refused : 0 ))
    __sb_tell "$__sb_end" "$__sb_status $__sb_before $__sb_held $__sb_refused"
    __sb_before=$__sb_oom
  done
}
exec 4> >(__sb_serve)
printf '\036ready %s %s\036' "$__sb_given" "${__sb_tmp:-none}" >&2
while IFS=' ' read -r __sb_op __sb_mark __sb_end __sb_total __sb_rest; do
  case $__sb_op in
    R)
      __sb_body=
      if (( __sb_total )); then IFS= read -r -N "$__sb_total" __sb_body; fi
      printf 'R %s %s %s %s\n%s' "$__sb_mark" "$__sb_end" "$__sb_total" "$__sb_rest" "$__sb_body" >&4 || exit 3
      __sb_body=
      ;;
    K) __sb_kill "$__sb_mark"; printf '\036%s %s\036' "$__sb_end" "$__sb_killed" >&2; [[ $__sb_runner ]] || exit 3 ;;
    A) __sb_kill '*'; printf '\036%s %s\036' "$__sb_mark" "$__sb_killed" >&2; [[ $__sb_runner ]] || exit 3 ;;
  esac
done
