#!/usr/bin/env bash
# Tests the launch targets against the real parts of this machine:
#
#   run.sh install        fetch what is missing (Debian packages, as root)
#   run.sh                start each part, run its tests and a part of the torture table, end it
#   run.sh torture-full   the whole torture table, written to docs/torture.md (about 40 minutes)
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

torture=(.venv/bin/python tests/parts/torture.py)
in_box() {  # each command in the box, where nothing can be written to this folder
  "$here/systemd_box.sh" run env --chdir="$repo" TRIAGE_PARTS=systemd PYTHONDONTWRITEBYTECODE=1 "$@"
}

"$here/podman.sh" image
if [[ ${1:-} == torture-full ]]; then
  cells=$(mktemp)
  "$here/systemd_box.sh" up "$repo"
  in_box "${torture[@]}" --full --targets systemd --json | tee "$cells" || true
  "$here/systemd_box.sh" down
  "$here/slurm.sh" up
  SLURM_CONF=$TRIAGE_SLURM/slurm.conf "${torture[@]}" --full --targets process,container,slurm \
    --cells "$cells" --table docs/torture.md
  exit
fi
"$here/slurm.sh" up
SLURM_CONF=$TRIAGE_SLURM/slurm.conf "${pytest[@]}" -k "not systemd" "$@"
SLURM_CONF=$TRIAGE_SLURM/slurm.conf "${torture[@]}" --targets process,container,slurm
"$here/systemd_box.sh" up "$repo"
in_box "${pytest[@]}" -k systemd "$@"
in_box "${torture[@]}" --targets systemd
