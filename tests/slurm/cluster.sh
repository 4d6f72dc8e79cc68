#!/usr/bin/env bash
# A Slurm of two nodes on this machine, for the time of one command: cluster.sh FOLDER COMMAND...
# Every node has a host name, a network and a folder for temporary files of its own. All processes are in one process namespace, which ends with
# this script, also when it is killed. Needs root, Debian's slurm-wlm, munge and iproute2. FOLDER gets configuration, state and logs.
set -euo pipefail
work=$1
if [ "${OCTET_CLUSTER:-}" != inside ]; then
  OCTET_CLUSTER=inside exec unshare --pid --net --uts --mount-proc --fork --kill-child "$0" "$@"
fi
shift

configure() {
  mkdir -p "$work"/{state,logs,munge,tmp-node1,tmp-node2,spool-node1,spool-node2}
  chmod 711 "$work/munge"
  (umask 077; head -c 128 /dev/urandom > "$work/munge/key")
  cat > "$work/slurm.conf" <<E
ClusterName=octet
SlurmctldHost=node1(10.77.0.1)
AuthType=auth/munge
CredType=cred/munge
AuthInfo=socket=$work/munge/socket
SlurmUser=root
SlurmdUser=root
StateSaveLocation=$work/state
SlurmdSpoolDir=$work/spool-%n
SlurmctldPidFile=$work/slurmctld.pid
SlurmdPidFile=$work/slurmd-%n.pid
SlurmctldLogFile=$work/logs/slurmctld.log
SlurmdLogFile=$work/logs/slurmd-%n.log
TmpFS=$work/tmp-node1
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerParameters=batch_sched_delay=0,sched_min_interval=0,sched_interval=1
SlurmdParameters=config_overrides
DebugFlags=NO_CONF_HASH
NodeName=node1 NodeAddr=10.77.0.1 CPUs=16
NodeName=node2 NodeAddr=10.77.0.2 CPUs=16
PartitionName=main Nodes=ALL Default=YES State=UP
E
  sed "s/tmp-node1/tmp-node2/" "$work/slurm.conf" > "$work/node2.conf"
}

# node2 is at the other end of a cable.
start_node2() {
  export work
  unshare --uts --net bash -c '
    hostname node2
    echo $$ > "$work/node2.pid"
    until ip link show eth0 > /dev/null 2>&1; do sleep 0.02; done
    ip link set lo up
    ip address add 10.77.0.2/24 dev eth0
    ip link set eth0 up
    exec slurmd -D -f "$work/node2.conf"' > "$work/logs/node2" 2>&1 &
  until [ -s "$work/node2.pid" ]; do sleep 0.02; done
  ip link add eth0 type veth peer name eth0 netns "$(cat "$work/node2.pid")"
  ip address add 10.77.0.1/24 dev eth0
  ip link set eth0 up
}

rm -rf "$work"
configure
export SLURM_CONF=$work/slurm.conf
printf '127.0.0.1 localhost\n10.77.0.1 node1\n10.77.0.2 node2\n' > "$work/hosts"
mount --make-rprivate /
mount --bind "$work/hosts" /etc/hosts
hostname node1
ip link set lo up
munged -F --key-file="$work/munge/key" --socket="$work/munge/socket" --pid-file="$work/munge/pid" --log-file="$work/munge/log" \
  --seed-file="$work/munge/seed" > "$work/logs/munged" 2>&1 &
start_node2
until [ -S "$work/munge/socket" ]; do sleep 0.02; done
slurmctld -D -c > "$work/logs/controller" 2>&1 &
slurmd -D > "$work/logs/node1" 2>&1 &
for try in $(seq 400); do
  [ "$(sinfo --noheader --states=idle --format=%D 2> /dev/null)" = 2 ] && break
  if [ "$try" = 400 ]; then echo "the nodes of Slurm are not up after 20 seconds" >&2; tail -n 5 "$work"/logs/* >&2; exit 1; fi
  sleep 0.05
done
"$@"
