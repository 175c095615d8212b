#!/bin/bash
# What a network plugin does that enforces policies, for the test cluster alone: `watch PODS KUBECTL` drops what pods send and are sent, but for
# those whose label leaves them open. A new pod is closed until it is known to be open. `clear PODS` lets everything pass.
set -uo pipefail
chain=SWEBATCH-PODS
clear() {
  local hook
  for hook in INPUT FORWARD; do while iptables -D $hook -j $chain 2>/dev/null; do :; done; done
  iptables -F $chain 2>/dev/null
  iptables -X $chain 2>/dev/null
  return 0
}
clear
[ "$1" = watch ] || exit 0
trap 'clear; exit 0' TERM INT
iptables -N $chain
iptables -A $chain -s "$2" -j DROP
for hook in INPUT FORWARD; do iptables -I $hook -j $chain; done
known=
while :; do
  # Answers to the node's own questions pass, as everywhere in Kubernetes.
  now=$("$3" get pods --all-namespaces -l 'swebatch/network!=none' -o jsonpath='{range .items[*]}{.status.podIP}{"\n"}{end}' 2>/dev/null | grep . | sort -u)
  if [ "$now" != "$known" ]; then
    iptables -F $chain
    for address in $now; do iptables -A $chain -s "$address" -j RETURN; done
    iptables -A $chain -s "$2" -j DROP
    known=$now
  fi
  sleep 0.4
done
