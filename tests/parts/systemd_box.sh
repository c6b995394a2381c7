#!/usr/bin/env bash
# A real systemd as PID 1, in a container over a throw-away overlay of this machine's own root.
#
#   systemd_box.sh up [FOLDER...]   boot it; each FOLDER is bound into it, read-only
#   systemd_box.sh run COMMAND...   run COMMAND in it
#   systemd_box.sh down             end it, unmount, remove
#
# Needs root, systemd-nspawn and dbus-daemon. Its network is a loopback of its own, so that launches in
# it and beside it cannot take each other's ports: its /tmp, where ports are locked, is its own, too.
set -euo pipefail
box=${TRIAGE_BOX:-/run/triage-box}
root=$box/root

leader() {  # the PID 1 of the box, seen from here; nothing if it is not up
  local pid
  pid=$(cat "$box/leader" 2>/dev/null) || return 1
  [[ -e /proc/$pid/stat && $(cut -d')' -f2 "/proc/$pid/stat") != ' Z'* ]] && echo "$pid"
}

inside() { nsenter --target "$(leader)" --mount --uts --ipc --net --pid --cgroup --root --wd -- "$@"; }

up() {
  leader >/dev/null && return 0
  command -v systemd-nspawn >/dev/null || { echo "systemd-nspawn is not installed" >&2; exit 4; }
  mkdir -p "$box/layer" "$root"
  mount -t tmpfs -o mode=755,size=2g triage-box "$box/layer"
  mkdir "$box/layer/upper" "$box/layer/work"
  mount -t overlay triage-box -o "lowerdir=/,upperdir=$box/layer/upper,workdir=$box/layer/work" "$root"
  local etc=$root/etc unit
  rm -f "$etc/machine-id"; systemd-id128 new >"$etc/machine-id"
  # systemd-tmpfiles empties /tmp at boot where tmp.conf says D: never here, also not in a bound folder.
  mkdir -p "$etc/tmpfiles.d" "$etc/systemd/system" "$etc/systemd/journald.conf.d" "$root/var/log/journal"
  ln -sfn /dev/null "$etc/tmpfiles.d/tmp.conf"
  for unit in systemd-tmpfiles-{setup,setup-dev,clean}.service systemd-tmpfiles-clean.timer \
    systemd-{udevd,udev-trigger,resolved,timesyncd,remount-fs}.service console-getty.service getty.target \
    apt-daily.timer apt-daily-upgrade.timer man-db.timer logrotate.timer e2scrub_all.timer \
    fstrim.timer dpkg-db-backup.timer; do
    ln -sfn /dev/null "$etc/systemd/system/$unit"
  done
  for unit in tmpfiles.d/tmp.conf systemd/system/systemd-tmpfiles-setup.service; do
    [[ $(readlink "$etc/$unit") == /dev/null ]] || { echo "$unit is not masked" >&2; exit 1; }
  done
  cat >"$etc/systemd/system/box.target" <<'UNIT'
[Unit]
Requires=basic.target dbus.socket systemd-journald.service
After=basic.target dbus.socket systemd-journald.service
AllowIsolate=yes
UNIT
  local binds=() folder
  for folder in "$@"; do binds+=("--bind-ro=$folder"); done
  SYSTEMD_NSPAWN_UNIFIED_HIERARCHY=1 setsid systemd-nspawn --quiet --directory="$root" --machine=triage-box \
    --private-network --register=no --keep-unit --console=pipe --kill-signal=SIGRTMIN+3 --resolv-conf=off --timezone=off \
    --link-journal=no "${binds[@]}" --boot -- --unit=box.target </dev/null >"$box/boot.log" 2>&1 &
  echo $! >"$box/nspawn"
  local tries state=none
  for tries in $(seq 200); do
    pgrep -P "$(cat "$box/nspawn")" | head -n1 >"$box/leader" || true
    if [[ -s $box/leader ]]; then state=$(inside systemctl is-system-running 2>/dev/null || true); fi
    case $state in running | degraded) echo "box: $state"; return 0 ;; esac
    sleep 0.1
  done
  echo "the box did not boot ($state)" >&2; tail -n 20 "$box/boot.log" >&2; exit 1
}

down() {
  local pid tries nspawn h c
  if pid=$(leader); then
    kill -SIGRTMIN+3 "$pid" || true
    for tries in $(seq 40); do leader >/dev/null || break; sleep 0.05; done
    if leader >/dev/null; then kill -9 "$pid" || true; fi
  fi
  if nspawn=$(cat "$box/nspawn" 2>/dev/null); then
    for tries in $(seq 60); do
      [[ -e /proc/$nspawn/stat && $(cut -d')' -f2 "/proc/$nspawn/stat") != ' Z'* ]] || break
      sleep 0.05
    done
  fi
  for h in unified systemd; do for c in payload supervisor; do
    if [[ -d /sys/fs/cgroup/$h/$c ]]; then find "/sys/fs/cgroup/$h/$c" -depth -type d -exec rmdir {} + 2>/dev/null || true; fi
  done; done
  umount "$root" 2>/dev/null || true
  umount "$box/layer" 2>/dev/null || true
  rm -f "$box/leader" "$box/nspawn"
}

case ${1:-} in
  up) shift; up "$@" ;;
  run) shift; leader >/dev/null || { echo "the box is not up" >&2; exit 3; }; inside "$@" ;;
  down) down ;;
  *) sed -n 2,8p "$0"; exit 2 ;;
esac
