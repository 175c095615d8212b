#!/bin/bash
# Builds the programs of a small cluster once, from Debian's source package of Kubernetes, and keeps them outside of the repository. Takes
# half an hour on two busy cores, and nothing when they are there. As root on Debian 12: it installs Debian's Go and etcd.
set -euo pipefail
cache=${SWEBATCH_KUBERNETES:-$HOME/.cache/swebatch/kubernetes}
programs=(kube-apiserver kube-controller-manager kube-scheduler kubelet kubectl)
missing=()
for program in "${programs[@]}"; do [ -x "$cache/bin/$program" ] || missing+=("$program"); done
if [ ${#missing[@]} -eq 0 ]; then
  echo "the programs are in $cache/bin"
  exit 0
fi
mkdir -p "$cache/bin" "$cache/source" "$cache/apt/lists/partial"

packages=(golang-go etcd-server etcd-client conntrack make rsync dpkg-dev)
dpkg -s "${packages[@]}" >/dev/null 2>&1 || DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "${packages[@]}"
# Another etcd than ours is not wanted on this machine.
systemctl disable --now etcd >/dev/null 2>&1 || true

# Sources need a list of their own, at the machine's own mirror: its lists stay as they are.
if [ ! -d "$cache/source/tree" ]; then
  list=$cache/apt/sources.list
  # shellcheck disable=SC2016 # names of apt's, not of the shell's
  read -r mirror release < <(apt-get indextargets --format '$(REPO_URI) $(CODENAME)' 'Created-By: Packages' 'Component: main')
  echo "deb-src [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $mirror $release main" >"$list"
  options=(-o "Dir::Etc::sourcelist=$list" -o Dir::Etc::sourceparts=- -o "Dir::State::lists=$cache/apt/lists" -o APT::Sandbox::User=root)
  apt-get "${options[@]}" update
  (cd "$cache/source" && apt-get "${options[@]}" source --download-only kubernetes)
  rm -rf "$cache/source/new"
  dpkg-source -x "$cache"/source/kubernetes_*.dsc "$cache/source/new"
  mv "$cache/source/new" "$cache/source/tree"
fi

# A machine that is a container itself may not protect processes from the memory killer, and the kubelet asks for that: here nothing is protected.
sed -i 's/\(defaultSandboxOOMAdj  *int *= *\)-998/\10/' "$cache/source/tree/pkg/kubelet/dockershim/docker_sandbox.go"
sed -i 's/\(guaranteedOOMScoreAdj  *int *= *\)-99[78]/\10/' "$cache/source/tree/pkg/kubelet/qos/policy.go"

# The build wants its tree under a GOPATH, and no modules.
cd "$cache/source/tree"
mkdir -p .go/src/k8s.io
[ -L .go/src/k8s.io/kubernetes ] || ln -s ../../.. .go/src/k8s.io/kubernetes
export GOPATH=$PWD/.go GO111MODULE=off CGO_ENABLED=0 GOFLAGS=${GOFLAGS:--p=2} GOCACHE=$cache/gocache
cd .go/src/k8s.io/kubernetes
[ -e "$cache/source/generated" ] || { nice -n 19 make generated_files && touch "$cache/source/generated"; }
for program in "${missing[@]}"; do
  nice -n 19 hack/make-rules/build.sh "cmd/$program"
  cp "_output/bin/$program" "$cache/bin/$program.new"
  mv "$cache/bin/$program.new" "$cache/bin/$program"
  echo "built $program"
done
