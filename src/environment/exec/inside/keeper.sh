#!/bin/bash
# The keeper: PID 1 of a container for the length of an attempt. It needs bash and /proc, no other program. It forks one fresh interpreter per
# command, waits for it and tells the end; as PID 1 it cannot be killed from inside, and it reaps orphans. Requests come on fd 9, a pipe that
# supervisor.sh writes to, as `X nnnnnnnnn payload`: a letter, nine digits for the length, the payload (without the blanks).
#   I pid spared interpreter      the first supervisor; processes that make up the container itself; the interpreter, quoted
#   R pid mark nonces cwdBytes cmdBytes mode n k1 k2… \n body
#                                 run; body = cwd + n entries NAME=value + command; nonces = begin,end
#                                 mode 0: as an argument, 1: through a file, 2: for the harness, by bash -p
#   Q pid nonce id                how a command ended whose supervisor was killed
#   L script                      what keeperLoad.sh takes; nothing afterwards
#   E -                           the lifetime is over
# `pid` is the supervisor whose streams are used: /proc/PID/fd/5 for the output, /proc/PID/fd/7 for what is told.
#
# The end of a command is `RS end status oomKills held forksRefused RS` on the supervisor's stderr, which no command is given. On its stdout
# `RS begin RS` and `RS end RS` stand around the command's output, in the order of writing: so the host knows that the output is complete, and
# what comes before or after belongs to no command.
#
# Choices that are not obvious:
# - `-p` (privileged mode) keeps BASH_ENV, CDPATH and imported functions away from the keeper; the command still gets them.
# - job control gives each command its own process group; it is off while we wait, so a stopped child does not end the `wait`.
# - the output is opened anew for the command, because a program that makes its stdout non-blocking (node does) changes the open
#   file description, which our end of the output would share.
# - held=1 says that a process still has the stream open, under whatever number: the host then moves on to a fresh stream, so that the
#   late output of a background process never shows up in the output of another command.
# - variables that change bash itself (TMOUT ends every read after so many seconds) are put aside and given back to each command.
# - stdin is one /dev/null opened at the start: an agent that removed the file still has commands that run.
# - no signal has a handler: bash would leave `wait` for it, and has lost the status of a command that ends in that moment. So the clock
#   kills all but us, which ends the `wait`, and writes to our pipe, which ends the `read`.
# - oom_score_adj is raised so that the memory limit kills the command and not the keeper.
# - every variable is called __sb_*: assigning to a name that the container exports would change the command's environment.
for __sb_f in LC_ALL TMOUT FUNCNEST; do
  if [[ ${!__sb_f+x} ]]; then __sb_saved+=("$__sb_f=${!__sb_f}"); unset "$__sb_f"; fi
done
LC_ALL=C
# 8 is a pipe on which nobody writes: for the clock, which could not reap what makes one.
exec </dev/null >/dev/null 2>&1 6</dev/null 8<> <(:)
__sb_interp=() __sb_first='' __sb_busy='' __sb_ended='' __sb_told=''
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
# file key: the number behind the key, 0 where it cannot be read
__sb_count() {
  local __sb_lines=() __sb_line
  __sb_value=0
  if [[ $1 ]]; then
    mapfile -t __sb_lines <"$1"
    for __sb_line in "${__sb_lines[@]}"; do
      if [[ $__sb_line == "$2 "* ]]; then __sb_value=${__sb_line#* }; fi
    done
  fi
}
# SECONDS may be ahead by almost one. The lifetime is told by a child, which a command may kill; then the next command has another one.
__sb_life=$1 __sb_clock=
__sb_over() {
  if (( __sb_life > 0 && SECONDS > __sb_life )); then trap - EXIT; exit 0; fi
}
__sb_watch() {
  (( __sb_life > 0 )) || return 0
  [[ $__sb_clock ]] && kill -0 "$__sb_clock" && return 0
  {
    trap - EXIT
    exec 5>&- 7>&-
    read -r -t "$(( __sb_life >= SECONDS ? __sb_life - SECONDS + 1 : 1 ))" -u 8
    while :; do
      kill -9 -1
      printf 'E000000001-' >&9
      read -r -t 1 -u 8
    done
  } &
  __sb_clock=$!
}
__sb_tell() {
  __sb_ended=$1 __sb_told=$2 __sb_busy=''
  printf '\036%s %s\036' "$1" "$2" >&7
  printf '\036%s\036' "$1" >&5
}
# A shell that cannot fork ends itself: this one starts anew, with what it has left of its lifetime.
__sb_anew() {
  if [[ $__sb_busy ]]; then __sb_tell "$__sb_busy" nofork; fi
  # shellcheck disable=SC2154 # keeperLoad.sh has read it
  printf 'L%09d%s' "${#__sb_script}" "$__sb_script" >&9
  printf 'I%09d- %s' "$(( ${#__sb_first} + 2 ))" "$__sb_first" >&9
  for __sb_f in "${__sb_saved[@]}"; do export "${__sb_f?}"; done
  exec 5>&- 6>&- 7>&- 8>&-
  # shellcheck disable=SC2154 # keeperLoad.sh has set it
  trap - "${__sb_signals[@]}"
  exec bash -p -c "$BASH_EXECUTION_STRING" "$0" "$(( __sb_life > 0 ? (__sb_life > SECONDS ? __sb_life - SECONDS : 1) : 0 ))"
}
trap __sb_anew EXIT

# 1 where a process that is neither the container's nor the supervisor's has the running command's stream open
__sb_hold() {
  local __sb_pids=(/proc/[0-9]*) __sb_p __sb_fd
  __sb_held=0
  # The keeper, its clock, the supervisor: with nobody else there is nobody to ask.
  (( ${#__sb_pids[@]} > 3 - (__sb_life == 0) )) || return 0
  for __sb_p in "${__sb_pids[@]}"; do
    case ${__sb_p#/proc/} in "$$" | "$__sb_clock" | "$1") continue ;; esac
    for __sb_fd in "$__sb_p"/fd/*; do
      if [[ $__sb_fd -ef /proc/$$/fd/5 ]]; then __sb_held=1; return 0; fi
    done
  done
}
__sb_run() {
  local __sb_pid=$1 __sb_mark=$2 __sb_end=$3 __sb_ncwd=$4 __sb_ncmd=$5 __sb_mode=$6 __sb_at=0 __sb_len __sb_vars=() __sb_cwd __sb_cmd
  local __sb_oom __sb_refused __sb_child __sb_status __sb_var
  shift 7
  # A supervisor that is gone has nobody who waits for it.
  exec 5>"/proc/$__sb_pid/fd/5" 7>"/proc/$__sb_pid/fd/7" || return 0
  printf '\036%s\036' "${__sb_end%,*}" >&5
  __sb_end=${__sb_end#*,}
  __sb_cwd=${__sb_body:0:__sb_ncwd} __sb_at=$__sb_ncwd
  for __sb_len; do
    __sb_vars+=("${__sb_body:__sb_at:__sb_len}")
    (( __sb_at += __sb_len ))
  done
  __sb_cmd=${__sb_body:__sb_at:__sb_ncmd}
  if (( __sb_mode == 1 )); then
    if printf '%s' "$__sb_cmd" >"$__sb_tmp"; then __sb_cmd=". $__sb_tmp"; else
      __sb_tell "$__sb_end" nofile
      return 0
    fi
  fi
  if [[ ! -d $__sb_cwd ]]; then
    __sb_tell "$__sb_end" nocwd
    return 0
  fi
  __sb_count "$__sb_cg" oom_kill
  __sb_oom=$__sb_value
  __sb_count "$__sb_pcg" max
  __sb_refused=$__sb_value __sb_busy=$__sb_end
  __sb_watch
  set -m
  {
    trap - "${__sb_signals[@]}" EXIT
    exec <&6 6<&- 7>&- 8>&- 9>&-
    # Where the stream cannot be opened anew, it is shared.
    exec >"/proc/$$/fd/5" || exec >&5
    exec 2>&1 5>&-
    { printf 800 >/proc/self/oom_score_adj; } 2>&-
    cd -- "$__sb_cwd" || exit 126
    unset OLDPWD SHLVL LC_ALL
    # shellcheck disable=SC2163 # what is exported is NAME=value
    for __sb_var in "${__sb_saved[@]}"; do export "$__sb_var"; done
    export SWEBATCH_CMD=$__sb_mark
    # shellcheck disable=SC2163
    for __sb_var in "${__sb_vars[@]}"; do export "$__sb_var"; done
. ./ownStartup.sh
    if (( __sb_mode == 2 )); then exec bash -p -c "$__sb_cmd"; fi
    exec "${__sb_interp[@]}" "$__sb_cmd"
  } &
  __sb_child=$! __sb_busy=''
  set +m
  wait "$__sb_child"
  __sb_status=$?
  __sb_over
  __sb_hold "$__sb_pid"
  if (( __sb_mode == 1 )); then : >"$__sb_tmp"; rm -f "$__sb_tmp"; fi
  # A counter that could not be read is 0.
  __sb_count "$__sb_cg" oom_kill
  (( __sb_oom = __sb_value > __sb_oom ? __sb_value - __sb_oom : 0 ))
  __sb_count "$__sb_pcg" max
  (( __sb_refused = __sb_value > __sb_refused ? __sb_value - __sb_refused : 0 ))
  __sb_tell "$__sb_end" "$__sb_status $__sb_oom $__sb_held $__sb_refused"
}
while :; do
  IFS= read -r -N 10 -u 9 __sb_h || continue
  [[ $__sb_h == [A-Z][0-9][0-9][0-9][0-9][0-9][0-9][0-9][0-9][0-9] ]] || continue
  __sb_body=
  IFS= read -r -N "$((10#${__sb_h:1}))" -u 9 __sb_body
  __sb_line=${__sb_body%%$'\n'*}
  case ${__sb_h:0:1} in
    E) __sb_over ;;
    I)
      [[ $__sb_first ]] && continue
      __sb_first=${__sb_body#* }
      eval "__sb_interp=(${__sb_first#* })"
      __sb_watch
      __sb_line=${__sb_body%% *}
      if [[ $__sb_line != - ]]; then printf '\036ready %s %s keeper\036' "${__sb_first%% *}${__sb_clock:+,$__sb_clock}" "${__sb_tmp:-none}" >"/proc/$__sb_line/fd/7"; fi
      ;;
    R)
      __sb_body=${__sb_body:${#__sb_line}+1}
      # shellcheck disable=SC2086 # fields of a line
      __sb_run $__sb_line
      exec 5>&- 7>&-
      ;;
    Q)
      # shellcheck disable=SC2086
      set -- $__sb_line
      if [[ $2 == "$__sb_ended" ]]; then printf '\036%s %s\036' "$3" "$__sb_told"; else printf '\036%s none\036' "$3"; fi >"/proc/$1/fd/7"
      ;;
  esac
done
