#!/bin/bash
# Tries each HOST:PORT of TARGETS, the API server as pods know it, and the name servers. Prints those that answer, and `tried` at the end.
[ -n "$BASH_VERSION" ] || { echo 'the image has no bash'; exit 1; }
servers=$(sed -n 's/^nameserver \([0-9a-fA-F.:]*\).*/\1:53/p' /etc/resolv.conf | grep -v '^127\.')
own=
[ -z "$KUBERNETES_SERVICE_HOST" ] || own=$KUBERNETES_SERVICE_HOST:${KUBERNETES_SERVICE_PORT:-443}
for target in $TARGETS $own $servers; do
  host=${target%:*} port=${target##*:}
  (
    # A packet that is dropped has no answer.
    (exec 3<>"/dev/tcp/${host//[\[\]]/}/$port") 2>/dev/null &
    trying=$!
    (sleep 3; kill -9 "$trying") >/dev/null 2>&1 &
    wait "$trying" 2>/dev/null && echo "reached $target"
  ) &
done
wait
echo tried
