#!/bin/sh
# Runs one command by plain exec. Arguments: working directory, then the command line. The command's stderr is joined to its stdout here,
# because Docker's two frame types lose the order. Our own stderr, which the command does not get, first tells the pid of this wrapper and
# later the end. Only then a nonce comes on stdin, and goes out on stdout as a fence behind the output: a background child that keeps
# the stream open does not delay the end, and no command could know the fence. The host compares the status with the exit code of
# this wrapper, which the engine tells.
_sb_d=$1; shift
printf '\036pid %s\036' $$ >&2
# status, then the frame
_sb_end() {
  printf '\036end %s\036' "$2" >&2
  IFS= read -r _sb_n || exit 1
  printf '\036%s\036' "$_sb_n"
  exit "$1"
}
[ -d "$_sb_d" ] || _sb_end 126 nocwd
cd -- "$_sb_d" || exit 126
_sb_c=
for _sb_f in /sys/fs/cgroup/memory/memory.oom_control /sys/fs/cgroup/memory.events; do [ -r $_sb_f ] && _sb_c=$_sb_f && break; done
_sb_q=
for _sb_f in /sys/fs/cgroup/pids/pids.events /sys/fs/cgroup/pids.events; do [ -r $_sb_f ] && _sb_q=$_sb_f && break; done
_sb_counters() {
  _sb_o=0; _sb_p=0
  [ -z "$_sb_c" ] || while read -r _sb_k _sb_v; do [ "$_sb_k" = oom_kill ] && _sb_o=$_sb_v; done <$_sb_c
  [ -z "$_sb_q" ] || while read -r _sb_k _sb_v; do [ "$_sb_k" = max ] && _sb_p=$_sb_v; done <$_sb_q
  return 0
}
_sb_counters; _sb_b=$_sb_o; _sb_r=$_sb_p
# A shell that cannot fork ends itself.
trap '_sb_counters; [ "$_sb_p" -gt "$_sb_r" ] || exit 1; _sb_end 126 nofork' EXIT
(
  unset OLDPWD SHLVL
. ./ownStartup.sh
  printf 800 >/proc/self/oom_score_adj
  exec "$@" </dev/null 2>&1
) 2>/dev/null
_sb_s=$?
trap - EXIT
_sb_counters
_sb_end $_sb_s "$_sb_s $((_sb_o > _sb_b ? _sb_o - _sb_b : 0)) 0 $((_sb_p > _sb_r ? _sb_p - _sb_r : 0))"
