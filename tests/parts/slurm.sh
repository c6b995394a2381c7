#!/usr/bin/env bash
# A Slurm cluster of two nodes with eight GPUs each, all on this machine; the GPUs are null devices.
#
#   slurm.sh up     start munged, slurmctld and two slurmd; then: export SLURM_CONF=FOLDER/slurm.conf
#   slurm.sh down   cancel what runs and stop them
#
# FOLDER is $TRIAGE_SLURM, by default /run/triage-slurm. Needs root, slurm-wlm and munge.
set -euo pipefail
home=${TRIAGE_SLURM:-/run/triage-slurm}
export SLURM_CONF=$home/slurm.conf

live() { [[ -s $1 && -e /proc/$(cat "$1")/stat && $(cut -d')' -f2 "/proc/$(cat "$1")/stat") != ' Z'* ]]; }

up() {
  command -v slurmctld slurmd munged >/dev/null || { echo "slurm-wlm and munge are not installed" >&2; exit 4; }
  if live "$home/slurmctld.pid"; then return 0; fi
  mkdir -p "$home"/{state,dev,log}
  cd "$home"
  if [[ ! -s munge.key ]]; then head -c 128 /dev/urandom >munge.key; chmod 600 munge.key; fi
  munged --force --key-file="$home/munge.key" --socket="$home/munge.socket" --pid-file="$home/munged.pid" \
    --log-file="$home/log/munged.log" --seed-file="$home/munge.seed"
  local gpu node host
  for gpu in {0..7}; do [[ -e dev/nvidia$gpu ]] || mknod "dev/nvidia$gpu" c 1 3; done
  host=$(hostname -s)
  cat >slurm.conf <<CONF
ClusterName=triage
SlurmctldHost=$host(127.0.0.1)
SlurmctldPort=16917
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket=$home/munge.socket
StateSaveLocation=$home/state
SlurmdSpoolDir=$home/spool-%n
SlurmctldPidFile=$home/slurmctld.pid
SlurmdPidFile=$home/slurmd-%n.pid
SlurmctldLogFile=$home/log/slurmctld.log
SlurmdLogFile=$home/log/slurmd-%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU_Memory
SchedulerParameters=sched_interval=1,sched_min_interval=0,bf_interval=1,batch_sched_delay=0
MpiDefault=none
ReturnToService=2
KillWait=2
MinJobAge=300
DefMemPerNode=1000
GresTypes=gpu
SlurmdParameters=config_overrides
PropagateResourceLimits=NONE
LaunchParameters=enable_nss_slurm
NodeName=n1 NodeHostname=$host NodeAddr=127.0.0.2 Port=17101 CPUs=16 Sockets=2 CoresPerSocket=8 ThreadsPerCore=1 RealMemory=20000 Gres=gpu:b300:8
NodeName=n2 NodeHostname=$host NodeAddr=127.0.0.3 Port=17102 CPUs=16 Sockets=2 CoresPerSocket=8 ThreadsPerCore=1 RealMemory=20000 Gres=gpu:b300:8
PartitionName=gpu Nodes=ALL Default=YES MaxTime=INFINITE State=UP OverSubscribe=FORCE:4
CONF
  echo "Name=gpu Type=b300 File=$home/dev/nvidia[0-7]" >gres.conf
  slurmctld -c -i 2>>log/slurmctld.err || slurmctld -c
  for node in n1 n2; do mkdir -p "spool-$node"; slurmd -c -N "$node"; done
  local tries
  for tries in $(seq 100); do
    [[ $(timeout 5 sinfo -h -t idle -o %D 2>/dev/null) == 2 ]] && { echo "slurm: 2 nodes idle"; return 0; }
    sleep 0.1
  done
  echo "the nodes did not come up" >&2; timeout 5 sinfo >&2; exit 1
}

down() {
  [[ -d $home ]] || return 0
  local file pid tries jobs
  jobs=$(timeout 5 squeue -h -o %A 2>/dev/null | sort -u || true)
  if [[ -n $jobs ]]; then timeout 10 scancel --signal=KILL --full $jobs 2>/dev/null || true; fi
  for file in "$home"/slurmd-n*.pid "$home/slurmctld.pid" "$home/munged.pid"; do
    live "$file" || continue
    pid=$(cat "$file"); kill "$pid" || true
    for tries in $(seq 50); do live "$file" || break; sleep 0.1; done
    if live "$file"; then kill -9 "$pid" || true; fi
  done
  rm -f "$home"/*.pid
}

case ${1:-} in
  up) up ;;
  down) down ;;
  *) sed -n 2,8p "$0"; exit 2 ;;
esac
