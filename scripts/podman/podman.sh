#!/bin/bash
# Podman beside the Docker engine of this machine, for tests: `up` starts a rootful and a rootless service with sockets, storage and images of their own,
# `down` ends both and removes what they kept. As root on Debian or Ubuntu; `up` installs what is missing.
set -euo pipefail
cache=${SWEBATCH_PODMAN:-/var/tmp/swebatch-podman}
user=swebatch-podman
images=(swebatch-test/base:1)

say() { echo "podman: $*" >&2; }

packages() {
  local missing=() name
  for name in podman uidmap slirp4netns fuse-overlayfs; do
    dpkg -s "$name" >/dev/null 2>&1 || missing+=("$name")
  done
  [ ${#missing[@]} -gt 0 ] || return 0
  if ! command -v apt-get >/dev/null; then
    say "install ${missing[*]} first: this script installs packages on Debian and Ubuntu only"
    exit 2
  fi
  say "installs ${missing[*]}"
  DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "${missing[@]}" >/dev/null
}

# Podman gives containers its own limits of files and processes, and each start fails where it may not raise them so far.
settings() {
  cat >"$1/containers.conf" <<CONFIG
[containers]
keyring = false
default_ulimits = ["nofile=$(ulimit -Hn):$(ulimit -Hn)", "nproc=4096:4096"]
[engine]
cgroup_manager = "cgroupfs"
events_logger = "file"
CONFIG
}

# as rootful|rootless ARGUMENTS…: Podman with storage of its own.
as() (
  local folder=$cache/$1 name=$1
  shift
  local own=(env "CONTAINERS_CONF=$folder/containers.conf" "XDG_RUNTIME_DIR=$folder/runtime" "HOME=$folder")
  # Without a driver that is named it copies whole images for each container of a user.
  local podman=(podman --root "$folder/storage" --runroot "$folder/run" --storage-driver overlay)
  [ "$name" = rootful ] || podman+=(--storage-opt overlay.mount_program=/usr/bin/fuse-overlayfs)
  podman+=("$@")
  # Its monitors write files of theirs where it stands.
  cd "$folder"
  if [ "$name" = rootful ]; then
    "${own[@]}" "${podman[@]}"
  else
    runuser -u "$user" -- "${own[@]}" "${podman[@]}"
  fi
)

answers() { curl -sf --max-time 5 --unix-socket "$1" http://engine/_ping >/dev/null; }

service() {
  local folder=$cache/$1
  if answers "$folder/podman.sock"; then return 0; fi
  mkdir -p "$folder/runtime"
  settings "$folder"
  [ "$1" = rootful ] || chown -R "$user:" "$folder"
  (as "$1" system service --time=0 "unix://$folder/podman.sock" >"$cache/$1.log" 2>&1 </dev/null &)
  local tries
  for tries in $(seq 100); do
    if answers "$folder/podman.sock"; then
      say "$1 answers after $tries looks at $folder/podman.sock"
      return 0
    fi
    sleep 0.1
  done
  say "$1 does not answer; the end of $cache/$1.log:"
  tail -5 "$cache/$1.log" >&2
  exit 1
}

load() {
  local image
  for image in "${images[@]}"; do
    if as "$1" image exists "localhost/$image" || as "$1" image exists "docker.io/$image"; then continue; fi
    say "loads $image into the $1 one"
    docker save "$image" | as "$1" load -q >/dev/null
  done
}

up() {
  [ "$(id -u)" = 0 ] || { say "run this as root: it makes a user for the rootless service"; exit 2; }
  packages
  id "$user" >/dev/null 2>&1 || useradd --create-home --shell /usr/sbin/nologin "$user"
  mkdir -p "$cache"
  chmod 755 "$cache"
  local name
  for name in rootful rootless; do
    service "$name"
    load "$name"
  done
}

down() {
  local name
  for name in rootful rootless; do
    [ -d "$cache/$name" ] || continue
    as "$name" rm --all --force --time 0 >/dev/null 2>&1 || true
    pkill -f "^podman --root $cache/$name/storage " || true
    as "$name" system reset --force >/dev/null 2>&1 || true
  done
  # Podman mounts the folder of the layers onto itself.
  umount "$cache"/*/storage/overlay 2>/dev/null || true
  rm -rf "$cache"
  ! id "$user" >/dev/null 2>&1 || userdel --remove "$user" 2>/dev/null || true
}

case ${1:-} in
  up) up ;;
  down) down ;;
  *)
    say "up or down"
    exit 2
    ;;
esac
