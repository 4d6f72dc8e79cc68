#!/usr/bin/env bash
# Eight ranks on two hosts that divide experts: bytes over the cable with and without a limit of ranks per token.
#
#   OCTET_TWO_HOSTS=1 tests/ranks/two_hosts.sh build/cpu/octet FOLDER
#
# The hosts are network namespaces with a cable between them. Needs root, Open MPI and iproute2. FOLDER gets runs and logs.
set -euo pipefail
[ "${OCTET_TWO_HOSTS:-}" = 1 ] || { echo "a campaign of a minute: set OCTET_TWO_HOSTS=1"; exit 0; }
octet=$(realpath "$1") work=$(realpath -m "$2") docs=$(realpath "$(dirname "$0")/../../docs")
if [ "${OCTET_HOSTS:-}" != inside ]; then
  export OCTET_HOSTS=inside
  exec unshare --pid --net --uts --mount --mount-proc --fork --kill-child "$(realpath "$0")" "$octet" "$work"
fi
mkdir -p "$work"
cd "$work"
mount -t tmpfs tmpfs /dev/shm
export work

hostname host1
unshare --uts --net bash -c 'hostname host2; echo $$ > "$work/host2.pid"; exec sleep infinity' &
until [ -s host2.pid ]; do sleep 0.02; done
far=$(cat host2.pid)
ip link add eth0 type veth peer name eth0 netns "$far"
ip link set lo up && ip address add 10.77.0.1/24 dev eth0 && ip link set eth0 up
nsenter -t "$far" -n -u sh -c 'ip link set lo up && ip address add 10.77.0.2/24 dev eth0 && ip link set eth0 up'
# mpirun starts the far processes by it: agent HOST COMMAND...
printf '#!/bin/sh\nshift\nexec nsenter -t %s -n -u sh -c "$*"\n' "$far" > agent
chmod +x agent

# Both ways.
bytes() { ip -s link show eth0 | awk '/^ +[0-9]/ { sum += $1 } END { print sum }'; }

# train NAME STEPS KEYS...: prints the bytes over the cable, both ways.
train() {
  local name=$1 steps=$2 before
  shift 2
  before=$(bytes)
  mpirun --allow-run-as-root -np 8 --host 10.77.0.1:4,10.77.0.2:4 --oversubscribe --mca plm_rsh_agent "$work/agent" --mca btl tcp,self \
    --mca btl_tcp_if_include eth0 --mca oob_tcp_if_include eth0 -x OMP_NUM_THREADS=1 \
    "$octet" train --quiet --name "$name" --set data.path=data --set threads=1 --set model.size=moe-tiny --set model.layers=2 --set recipe.name=bf16 \
    --set model.experts=16 --set model.experts_per_token=4 --set data.sequence_length=256 --set train.batch=4 --set train.eval_every=0 \
    --set train.steps="$steps" --set ranks.data=8 --set ranks.expert=8 --set checkpoint.every=0 --set optim.learning_rate=1e-9 "$@" > "$name.log" 2>&1 || { cat "$name.log"; exit 1; }
  echo $(($(bytes) - before))
}

[ -d data ] || "$octet" tokenize --input "$docs/*.md" --output data > /dev/null
# counted RUN: what all ranks have sent to experts in the traced step.
counted() {
  python3 -c 'import json, sys
events = json.load(open(sys.argv[1]))["traceEvents"]
print(sum(e["args"]["sent_bytes"] for e in events if e["ph"] == "X" and e["name"].startswith("all_to_all")))' "runs/$1/trace.json"
}

limit="--set model.router_groups=8 --set model.router_kept_groups=2"
for way in free limited; do
  keys=$([ $way = limited ] && echo "$limit" || true)
  rm -rf "runs/$way-2" "runs/$way-6"
  few=$(train "$way-2" 2 $keys) many=$(train "$way-6" 6 $keys --trace 1)
  declare "cable_$way=$(((many - few) / 4))" "counted_$way=$(counted "$way-6")"
done
kill "$far"

# Tokens choose by chance, so 4 of 7 rows for other ranks go to the other host. All else that travels is the same in both.
awk -v cable="$cable_free $cable_limited" -v counted="$counted_free $counted_limited" 'BEGIN {
  split(cable, a); split(counted, b)
  printf "bytes per step between the hosts: %d without a limit, %d with two ranks per token\n", a[1], a[2]
  printf "to experts on other ranks, by the counters: %d and %d\n", b[1], b[2]
  ratio = (a[1] - a[2]) / (4 / 7 * (b[1] - b[2]))
  printf "the cable has %.3f of the difference that the counters give\n", ratio
  exit !(a[2] < a[1] && ratio > 0.97 && ratio < 1.05)
}'
