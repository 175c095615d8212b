#!/bin/bash
# A cluster of one node on this machine, for tests: `up`, `down`, `enforce on|off`, `api stop|start`. As root, beside the Docker engine that runs
# already: the kubelet drives that. Everything that it writes is under the cache; pods have a bridge and addresses of their own.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
cache=${SWEBATCH_KUBERNETES:-$HOME/.cache/swebatch/kubernetes}
run=$cache/run
bin=$cache/bin
address=10.243.0.1
pods=10.244.7.0/24
port=26443
pause=swebatch-test/pause:1
export KUBECONFIG=$run/admin.kubeconfig

say() { echo "cluster: $*" >&2; }
kubectl() { "$bin/kubectl" "$@"; }

certificates() {
  [ ! -e "$run/pki/api.crt" ] || return 0
  mkdir -p "$run/pki"
  cd "$run/pki"
  openssl req -x509 -newkey rsa:2048 -nodes -days 365 -subj /CN=swebatch-test -keyout ca.key -out ca.crt 2>/dev/null
  printf 'subjectAltName=IP:%s,IP:127.0.0.1,IP:10.96.0.1,DNS:kubernetes.default.svc\n' "$address" >san
  issue() {
    openssl req -newkey rsa:2048 -nodes -subj "$2" -keyout "$1.key" -out "$1.csr" 2>/dev/null
    openssl x509 -req -in "$1.csr" -CA ca.crt -CAkey ca.key -CAcreateserial -days 365 -extfile san -out "$1.crt" 2>/dev/null
  }
  issue api /CN=swebatch-api
  issue kubelet /CN=swebatch-kubelet
  openssl genrsa -out accounts.key 2048 2>/dev/null
  openssl rsa -in accounts.key -pubout -out accounts.pub 2>/dev/null
  # The runner has the rights of docs/kubernetes, the stranger has none.
  for user in admin runner stranger; do
    token=$(openssl rand -hex 16)
    group=
    [ $user != admin ] || group=,system:masters
    echo "$token,$user,$user$group" >>tokens.csv
    cat >"$run/$user.kubeconfig" <<CONFIG
apiVersion: v1
kind: Config
clusters: [{name: test, cluster: {server: "https://$address:$port", certificate-authority: "$run/pki/ca.crt"}}]
users: [{name: $user, user: {token: $token}}]
contexts: [{name: $user, context: {cluster: test, user: $user, namespace: swebatch}}]
current-context: $user
CONFIG
  done
}

# start NAME PROGRAM ARGUMENTS…: in the background, with a log and a file that holds its pid.
start() {
  local name=$1
  shift
  if [ -e "$run/$name.pid" ] && kill -0 "$(cat "$run/$name.pid")" 2>/dev/null; then return 0; fi
  setsid nohup "$@" >>"$run/$name.log" 2>&1 </dev/null &
  echo $! >"$run/$name.pid"
}

stop() {
  local name pid
  for name in "$@"; do
    [ -e "$run/$name.pid" ] || continue
    pid=$(cat "$run/$name.pid")
    kill "$pid" 2>/dev/null || true
    for _ in $(seq 100); do kill -0 "$pid" 2>/dev/null || break; sleep 0.1; done
    kill -9 "$pid" 2>/dev/null || true
    rm -f "$run/$name.pid"
  done
}

# await SECONDS COMMAND…
await() {
  local end=$((SECONDS + $1))
  shift
  until "$@" >/dev/null 2>&1; do
    [ $SECONDS -lt $end ] || { say "gave up waiting for: $*"; return 1; }
    sleep 0.3
  done
}

pause_image() {
  docker image inspect $pause >/dev/null 2>&1 && return 0
  local folder
  folder=$(mktemp -d)
  cat >"$folder/main.go" <<'GO'
package main

import ("os"; "os/signal"; "syscall")

func main() {
	end := make(chan os.Signal, 1)
	signal.Notify(end, syscall.SIGTERM, syscall.SIGINT)
	<-end
}
GO
  (cd "$folder" && GO111MODULE=off CGO_ENABLED=0 GOCACHE=$cache/gocache go build -o pause main.go && tar -cf - pause) |
    docker import --change 'ENTRYPOINT ["/pause"]' - $pause >/dev/null
  rm -rf "$folder"
}

network() {
  ip link show swebatch-node >/dev/null 2>&1 || ip link add swebatch-node type bridge
  ip addr replace $address/32 dev swebatch-node
  ip link set swebatch-node up
  mkdir -p "$run/cni"
  cat >"$run/cni/10-pods.conf" <<CNI
{"cniVersion": "0.3.1", "name": "swebatch-pods", "type": "bridge", "bridge": "swebatch-pods", "isGateway": true,
 "ipam": {"type": "host-local", "subnet": "$pods", "dataDir": "$run/addresses", "routes": [{"dst": "0.0.0.0/0"}]}}
CNI
}

api() {
  start kube-apiserver "$bin/kube-apiserver" --etcd-servers=http://127.0.0.1:23790 --bind-address=$address --secure-port=$port \
    --advertise-address=$address --tls-cert-file="$run/pki/api.crt" --tls-private-key-file="$run/pki/api.key" \
    --service-cluster-ip-range=10.96.0.0/24 --authorization-mode=RBAC --token-auth-file="$run/pki/tokens.csv" \
    --service-account-issuer=https://swebatch.test --service-account-signing-key-file="$run/pki/accounts.key" \
    --service-account-key-file="$run/pki/accounts.pub" --kubelet-client-certificate="$run/pki/api.crt" \
    --kubelet-client-key="$run/pki/api.key" --kubelet-certificate-authority="$run/pki/ca.crt" --kubelet-preferred-address-types=InternalIP --cert-dir="$run/pki"
  await 90 kubectl get --raw /readyz
}

enforce() {
  if [ "$1" = off ]; then
    stop enforce
    "$here/enforcePolicy.sh" clear $pods
  else
    start enforce "$here/enforcePolicy.sh" watch $pods "$bin/kubectl"
  fi
}

up() {
  "$here/build.sh" >&2
  dpkg -s containernetworking-plugins >/dev/null 2>&1 ||
    DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends containernetworking-plugins >&2
  mkdir -p "$run"
  certificates
  pause_image
  network
  start etcd etcd --data-dir "$run/etcd" --listen-client-urls http://127.0.0.1:23790 --advertise-client-urls http://127.0.0.1:23790 \
    --listen-peer-urls http://127.0.0.1:23791 --initial-advertise-peer-urls http://127.0.0.1:23791 --initial-cluster default=http://127.0.0.1:23791
  api
  start kube-controller-manager "$bin/kube-controller-manager" --kubeconfig="$KUBECONFIG" --leader-elect=false --port=0 \
    --service-account-private-key-file="$run/pki/accounts.key" --root-ca-file="$run/pki/ca.crt" --cert-dir="$run/pki" \
    --use-service-account-credentials=false --node-monitor-grace-period=16s --pod-eviction-timeout=10s
  start kube-scheduler "$bin/kube-scheduler" --kubeconfig="$KUBECONFIG" --leader-elect=false --port=0 --cert-dir="$run/pki"
  start kubelet "$bin/kubelet" --kubeconfig="$KUBECONFIG" --hostname-override=node --node-ip=$address --address=$address \
    --root-dir="$run/kubelet" --cert-dir="$run/pki" --tls-cert-file="$run/pki/kubelet.crt" --tls-private-key-file="$run/pki/kubelet.key" \
    --client-ca-file="$run/pki/ca.crt" --anonymous-auth=false --authorization-mode=AlwaysAllow --cgroup-driver=cgroupfs \
    --fail-swap-on=false --pod-infra-container-image=$pause --image-gc-high-threshold=100 --network-plugin=cni \
    --cni-conf-dir="$run/cni" --cni-bin-dir=/usr/lib/cni --cni-cache-dir="$run/cni-cache" --max-pods=240 --pod-max-pids=512 \
    --eviction-hard= --healthz-port=0 --read-only-port=0 --serialize-image-pulls=false --housekeeping-interval=5s \
    --kube-api-qps=50 --kube-api-burst=100 --container-runtime=docker --cluster-dns=10.96.0.10 --cluster-domain=cluster.local
  await 120 kubectl wait --for=condition=Ready node/node --timeout=1s
  kubectl apply -f "$here/../../docs/kubernetes/setup/" >&2
  kubectl -n swebatch create rolebinding runner --role=swebatch --user=runner --dry-run=client -o yaml | kubectl apply -f - >&2
  await 60 kubectl -n swebatch get serviceaccount default
  enforce on
  say "up; export KUBECONFIG=$run/runner.kubeconfig"
}

down() {
  if [ -e "$run/kube-apiserver.pid" ]; then
    timeout 30 "$bin/kubectl" delete pods --all --all-namespaces --force --grace-period=0 >/dev/null 2>&1 || true
    sleep 3
  fi
  stop enforce kubelet kube-scheduler kube-controller-manager kube-apiserver etcd
  "$here/enforcePolicy.sh" clear $pods
  # What is left is named by the kubelet, and no container of anybody else.
  docker ps -aq --filter label=io.kubernetes.pod.name | xargs -r docker rm -f >/dev/null
  grep -o " $run/kubelet[^ ]*" /proc/mounts | xargs -r umount 2>/dev/null || true
  ip link del swebatch-pods 2>/dev/null || true
  ip link del swebatch-node 2>/dev/null || true
  # The plugin of the loopback takes that of this machine down where the process of a pod is gone and its number has another owner.
  ip link set lo up
  rm -rf "$run"
  say down
}

case ${1:-} in
  up) up ;;
  down) down ;;
  enforce) enforce "$2" ;;
  api) if [ "$2" = stop ]; then stop kube-apiserver; else api; fi ;;
  *) echo "usage: $0 up | down | enforce on|off | api stop|start" >&2; exit 2 ;;
esac
