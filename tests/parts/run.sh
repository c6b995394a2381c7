#!/usr/bin/env bash
# Tests the launch targets against the real parts of this machine: `run.sh install` fetches what is
# missing (Debian packages, as root), `run.sh` starts each part, runs its tests and ends it.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
repo=$(cd "$here/../.." && pwd)
packages=(systemd systemd-container dbus podman runc conmon netavark slurm-wlm munge)

if [[ ${1:-} == install ]]; then
  missing=()
  for package in "${packages[@]}"; do
    dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q 'ok installed' || missing+=("$package")
  done
  if [[ ${#missing[@]} -gt 0 ]]; then
    export DEBIAN_FRONTEND=noninteractive
    apt-get update -qq
    apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
  fi
  exit 0
fi

cd "$repo"
export TRIAGE_SLURM=${TRIAGE_SLURM:-/run/triage-slurm} TRIAGE_BOX=${TRIAGE_BOX:-/run/triage-box}
export TRIAGE_PARTS=${TRIAGE_PARTS:-process systemd container slurm}
tidy() { "$here/systemd_box.sh" down || true; "$here/slurm.sh" down || true; "$here/podman.sh" down || true; }
trap tidy EXIT
pytest=(.venv/bin/python -m pytest -m parts tests/parts -q -p no:cacheprovider)

"$here/podman.sh" image
"$here/slurm.sh" up
SLURM_CONF=$TRIAGE_SLURM/slurm.conf "${pytest[@]}" -k "not systemd" "$@"
"$here/systemd_box.sh" up "$repo"
"$here/systemd_box.sh" run env --chdir="$repo" TRIAGE_PARTS=systemd PYTHONDONTWRITEBYTECODE=1 \
  "${pytest[@]}" -k systemd "$@"
