#!/usr/bin/env bash
# Measures the cable between the two nodes of cluster.sh by `octet bench --calibrate` on two ranks of each node, and compares it with the
# rate to which the cable is limited. Usage, by hand and as root: network.sh OCTET FOLDER
set -euo pipefail
octet=$(realpath "$1")
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
mkdir -p "$2"
folder=$(realpath "$2")
limit_mbit=400
fail() { echo "FAILED: $1" >&2; exit 1; }

limited() { tc qdisc add dev eth0 root tbf rate "${limit_mbit}mbit" burst 256kb latency 100ms; }

if [ "${OCTET_CLUSTER:-}" != inside ]; then
  command -v tc > /dev/null || fail "tc is missing: apt-get install iproute2"
  exec timeout --signal=KILL 150 "$here/cluster.sh" "$folder/cluster" "$here/network.sh" "$octet" "$folder"
fi
limited
export -f limited
export limit_mbit
nsenter --net --target "$(cat "$folder/cluster/node2.pid")" bash -c limited
cd "$folder"
MASTER_ADDR=node1 CUDA_VISIBLE_DEVICES='' OMP_NUM_THREADS=1 SLURM_MPI_TYPE=pmix OMPI_MCA_btl_vader_single_copy_mechanism=none \
  srun --nodes=2 --ntasks-per-node=2 "$octet" bench --device cpu --calibrate cluster.toml --tokens 128 --repeat 3 | tee calibrate.log
grep -q "GB/s per rank, .* GB/s per node of 2" calibrate.log || fail "the network's rate is not named per rank and per node"
awk -v limit="$limit_mbit" '$1 == "network_gbs" {
  node = 2 * $3 * 8000; print "network_gbs of a node:", node, "Mbit/s of", limit; ok = node > 0.6 * limit && node < 1.1 * limit }
  END { exit !ok }' cluster.toml || fail "the cable has $limit_mbit Mbit/s"
"$octet" plan --gpus 4 --machine cluster.toml | grep "per GPU"
