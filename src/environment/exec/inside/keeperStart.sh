#!/bin/sh
# The first process of a container. Arguments: lifetime in whole seconds (0: none), and what bash runs to be the keeper (keeper.sh says what that is),
# '' where no supervisor will come; then what is to be in /etc/hosts and /etc/resolv.conf, if anything (noNetwork.ts says when).
# No signal from inside ends the first process unless it has a handler for it, so a command that kills all it can does not end the container.
# Without bash or supervisor this shell stays: it reaps orphans and ends with the lifetime. Whoever kills its `sleep` only makes it start another one.
# Of a container that starts again: whoever worked there may have left something else than a file.
put() { if [ -f "$1" ] || [ ! -e "$1" ]; then printf '%s' "$2" >"$1"; fi; }
if [ "$#" -gt 2 ]; then { put /etc/hosts "$3"; put /etc/resolv.conf "$4"; } 2>/dev/null; fi
if [ "$2" ]; then
  case "$(bash -p -c 'echo $BASH_VERSINFO' 2>/dev/null)" in
    [4-9] | [1-9][0-9]) exec bash -p -c "$2" "$0" "$1" ;;
  esac
fi
trap '' HUP INT QUIT TERM USR1 USR2 PIPE ALRM
l=86400
# A shell that cannot fork ends itself.
trap 'exec sleep "$l"' EXIT
read -r u _ </proc/uptime
e=$((${u%.*} + $1))
while :; do
  if [ "$1" -gt 0 ]; then
    read -r u _ </proc/uptime
    l=$((e - ${u%.*}))
    if [ "$l" -le 0 ]; then trap - EXIT; exit 0; fi
  fi
  sleep "$l" &
  wait $!
done
