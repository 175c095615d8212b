#!/bin/sh
# shellcheck disable=SC2154
# Runs the function agent_line, which is the agent, and ends as it ends. When the file $stop_file appears the agent gets SIGTERM once: what it does
# then is its own affair, and the host kills it later. A line that is no program itself waits as a shell for those that it has started: then
# these get it, and the rest of the line still runs.
trap : TERM
agent_line &
agent=$!
parent_of() {
  read -r stat <"/proc/$1/stat" || return 1
  stat=${stat##*) }
  stat=${stat#* }
  parent=${stat%% *}
}
name_of() { read -r name <"/proc/$1/comm" || name=''; }
(
  trap - TERM
  while [ ! -e "$stop_file" ]; do sleep 1; done
  name_of $$
  ours=$name
  name_of "$agent"
  told=''
  if [ -n "$name" ] && [ "$name" = "$ours" ]; then
    for folder in /proc/[0-9]*; do
      pid=${folder#/proc/}
      if parent_of "$pid" && [ "$parent" = "$agent" ]; then kill -TERM "$pid" && told=1; fi
    done
  fi
  [ -n "$told" ] || kill -TERM "$agent"
) >/dev/null 2>&1 </dev/null &
watch=$!
wait "$agent"
code=$?
# A signal to this shell ends the wait, and not the agent.
while [ "$code" -gt 128 ] && kill -0 "$agent" 2>/dev/null; do
  wait "$agent"
  code=$?
done
# The shell would say of it that it was killed.
exec 2>/dev/null
kill -KILL "$watch"
exit "$code"
