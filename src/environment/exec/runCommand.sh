#!/bin/sh
# Runs one command by plain exec. Arguments: end nonce, working directory, then the command line. stderr is joined inside, because
# Docker's two frame types lose the order. The end mark follows on the same pipe, so a background child that keeps the stream open does
# not delay the end. The first thing printed on stderr is the pid of this wrapper.
_sb_n=$1; _sb_d=$2; shift 2
printf '\036pid %s\036' $$ >&2
if [ ! -d "$_sb_d" ]; then printf '\036%s nocwd\036' "$_sb_n"; exit 0; fi
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
(
  unset OLDPWD SHLVL
  printf 800 >/proc/self/oom_score_adj
  exec "$@" </dev/null 2>&1
) 2>/dev/null
_sb_s=$?
_sb_counters
printf '\036%s %s %s 0 %s\036' "$_sb_n" "$_sb_s" $((_sb_o - _sb_b)) $((_sb_p - _sb_r))
