#!/usr/bin/env bash
# An image for container tests, made from nothing, and the podman that runs it here.
#
#   podman.sh image   make the image `triage-test:latest`: an empty root that borrows /usr at run time
#   podman.sh words   the words of `podman run ... IMAGE`, one a line
#   podman.sh docker FOLDER   write FOLDER/docker, a docker that is this podman, as distributions have
#                     it, and FOLDER/containers.conf with what this machine needs; the image is its
#                     `sglang-ddtree:latest`, too
#   podman.sh down    remove every container and the image
#
# runc and cgroupfs also work where systemd is not PID 1. No registry is asked for anything.
set -euo pipefail
engine=(podman --root /var/lib/triage-test --runroot /run/triage-test --runtime runc --events-backend file
  --cgroup-manager cgroupfs)
image=localhost/triage-test:latest
repo=$(cd "$(dirname "$0")/../.." && pwd)

image() {
  "${engine[@]}" image exists "$image" && return 0
  local root link
  root=$(mktemp -d)
  mkdir -p "$root"/{etc,tmp,root,usr,proc,sys,dev,run,var/tmp}
  for link in bin sbin lib lib64; do ln -s "usr/$link" "$root/$link"; done
  cp -r /etc/passwd /etc/group /etc/nsswitch.conf /etc/ld.so.cache "$root/etc/"
  tar -C "$root" -c . | "${engine[@]}" import -q - "$image" >/dev/null
  rm -r "$root"
}

words() {
  local files python
  files=$(ulimit -Hn)
  python=$("$repo/.venv/bin/python" -c 'import sys; print(sys.base_prefix)')
  printf '%s\n' "${engine[@]}" run --pull never --ulimit "nofile=$files:$files" --ulimit nproc=4000:4000 \
    --volume /usr:/usr:ro --volume "$python:$python:ro" --volume "$repo:$repo:ro" "$image"
}

docker() {
  local files
  image
  files=$(ulimit -Hn)
  "${engine[@]}" tag "$image" localhost/sglang-ddtree:latest
  # Docker makes the folder of a volume where there is none; this podman does not.
  printf '#!/bin/sh\nmkdir -p /models\nexec podman --root %s --runroot %s "$@"\n' \
    /var/lib/triage-test /run/triage-test >"$1/docker"
  chmod 755 "$1/docker"
  cat >"$1/containers.conf" <<CONF
[containers]
volumes = ["/usr:/usr:ro"]
default_ulimits = ["nofile=$files:$files", "nproc=4000:4000"]
[engine]
runtime = "runc"
cgroup_manager = "cgroupfs"
events_logger = "file"
CONF
}

case ${1:-} in
  image) image ;;
  words) words ;;
  docker) docker "$2" ;;
  down) "${engine[@]}" rm --all --force >/dev/null; "${engine[@]}" rmi --force "$image" localhost/sglang-ddtree:latest >/dev/null 2>&1 || true ;;
  *) sed -n 2,12p "$0"; exit 2 ;;
esac
