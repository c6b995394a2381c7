#!/usr/bin/env bash
# An image for container tests, made from nothing, and the podman that runs it here.
#
#   podman.sh image   make the image `triage-test:latest`: an empty root that borrows /usr at run time
#   podman.sh words   the words of `podman run ... IMAGE`, one a line
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

case ${1:-} in
  image) image ;;
  words) words ;;
  down) "${engine[@]}" rm --all --force >/dev/null; "${engine[@]}" rmi --force "$image" >/dev/null 2>&1 || true ;;
  *) sed -n 2,9p "$0"; exit 2 ;;
esac
