#!/usr/bin/env bash
# Tests the launch targets against the real parts of this machine:
#
#   run.sh install        fetch what is missing (Debian packages, as root)
#   run.sh                start each part, run its tests and a part of the torture table, end it
#   run.sh torture-full [SECTION...]   the whole torture table, or some sections of it, written to
#                         docs/torture.md (about 40 minutes; what is in .torture.jsonl is not played
#                         again, so that it can be made in several sittings; JOBS=2 cells at a time)
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

torture=(.venv/bin/python tests/parts/torture.py --jobs "${JOBS:-2}")
cells=$repo/.torture.jsonl
in_box() {  # each command in the box, where nothing can be written to this folder
  "$here/systemd_box.sh" run env --chdir="$repo" TRIAGE_PARTS=systemd PYTHONDONTWRITEBYTECODE=1 "$@"
}
own_group() {  # whether a control group of version 2 can be made on this machine
  .venv/bin/python -c 'import sys; from triage.launch.cgroups import make
made = make("triage-tried"); sys.exit(made if isinstance(made, str) else not made.remove())'
}
in_a_group() {  # in the box a service may make groups below its own
  in_box systemd-run --quiet --pipe --wait --collect -p Delegate=yes --working-directory="$repo" \
    --setenv=PYTHONDONTWRITEBYTECODE=1 "$repo/.venv/bin/python" "${@:2}"
}
full() {  # one section
  case $1 in
    systemd | process-in-box)
      "$here/systemd_box.sh" up "$repo"
      "$here/systemd_box.sh" run sh -c 'cat >/run/cells' <"$cells"
      if [[ $1 == systemd ]]; then
        in_box "${torture[@]}" --full --sections systemd --cells /run/cells || failed=1
      else
        in_a_group "${torture[@]}" --full --sections process --cells /run/cells || failed=1
      fi
      "$here/systemd_box.sh" run cat /run/cells >"$cells.new"
      mv "$cells.new" "$cells"
      "$here/systemd_box.sh" down ;;
    process) if own_group; then play process; else full process-in-box; fi ;;
    slurm) "$here/slurm.sh" up; SLURM_CONF=$TRIAGE_SLURM/slurm.conf play slurm; "$here/slurm.sh" down ;;
    *) play "$1" ;;
  esac
}
play() { "${torture[@]}" --full --sections "$1" --cells "$cells" || failed=1; }

"$here/podman.sh" image
if [[ ${1:-} == torture-full ]]; then
  shift
  [[ $# -gt 0 ]] || set -- process process-by-process systemd container slurm
  touch "$cells"
  failed=0
  for section in "$@"; do full "$section"; done
  "${torture[@]}" --full --sections '' --cells "$cells" --table docs/torture.md
  exit $failed
fi
# Three lanes at the same time, as most of what they do is to wait; each line says of which it is.
# With `set -m` a lane takes Ctrl-C like any command: what runs in the background else ignores it,
# and so would every triage that a test interrupts.
slurm_lane() {
  "$here/slurm.sh" up
  "${pytest[@]}" -k slurm "$@"
  "${torture[@]}" --sections slurm
}
host_lane() {
  "${pytest[@]}" -k "not systemd and not slurm" "$@"
  "${torture[@]}" --sections process-by-process,container
}
box_lane() {
  "$here/systemd_box.sh" up "$repo"
  in_box "${pytest[@]}" -k systemd "$@"
  in_box "${torture[@]}" --sections systemd
  if [[ $grouped == 1 ]]; then "${torture[@]}" --sections process; else in_a_group "${torture[@]}" --sections process; fi
}
export SLURM_CONF=$TRIAGE_SLURM/slurm.conf
if own_group; then grouped=1; else grouped=0; fi
set -m
lanes=()
for lane in slurm host box; do
  (set -e; "${lane}_lane" "$@" </dev/null 2>&1 | sed -u "s/^/$lane: /") &
  lanes+=($!)
done
end_lanes() { for pid in "${lanes[@]}"; do kill -- "-$pid" 2>/dev/null || true; done; }
trap 'end_lanes; tidy' EXIT
failed=0
for pid in "${lanes[@]}"; do wait "$pid" || failed=1; done
lanes=()
echo "parts: $([[ $failed == 0 ]] && echo ok || echo failed), $SECONDS s"
exit "$failed"
