#!/bin/bash
# EXPERIMENTAL: restarts inside one allocation, with a spare node, instead of a new place in the queue.
# Usage: sbatch --nodes=5 examples/slurm/experimental-spare-node.sh [RUN_FILE]   4 nodes train, 1 is the spare
#
# Known: the check of nodes and a first attempt run with CPU ranks on two hosts (tests/slurm).
# Not known:
#   - whether a second attempt works after a real node failed: --no-kill keeps the allocation, but Slurm may not start steps in it
#   - how it behaves when a GPU falls off the bus: the driver may leave processes that SIGKILL does not end, and srun then waits for them
#   - whether a restart is faster than a new place in the queue: that depends on the cluster's load
#   - how NCCL over InfiniBand reacts to a switch that fails: Octet was not run on InfiniBand
#   - NCCL's settings that suit your network: none are set here
#SBATCH --job-name=octet-spare
#SBATCH --nodes=3
#SBATCH --ntasks-per-node=8
#SBATCH --gpus-per-node=8
#SBATCH --cpus-per-task=12
#SBATCH --exclusive
#SBATCH --mem=0
#SBATCH --no-kill
#SBATCH --time=04:00:00
#SBATCH --signal=USR1@180
#SBATCH --output=%x-%j.out
set -uo pipefail
octet=${OCTET:-octet}
export SRUN_CPUS_PER_TASK=${SLURM_CPUS_PER_TASK:-1}  # srun does not inherit it
file=${1:-examples/distributed-training/fsdp.toml}
wanted=$((SLURM_JOB_NUM_NODES - 1))
tasks=${SLURM_NTASKS_PER_NODE:-1}
run=runs/$SLURM_JOB_NAME-$SLURM_JOB_ID

# The nodes that pass the check, one line each.
good_nodes() {
  local node
  for node in $(scontrol show hostnames "$SLURM_JOB_NODELIST"); do
    if srun --nodes=1 --ntasks=1 --ntasks-per-node=1 --nodelist="$node" --mpi=none \
      "$octet" doctor ${OCTET_PREFLIGHT:---expect-gpus "${SLURM_GPUS_ON_NODE:-0}" --min-allreduce-gbs 200} > /dev/null; then echo "$node"; fi
  done
}

for attempt in 1 2 3; do
  mapfile -t nodes < <(good_nodes | head -n "$wanted")
  if [ ${#nodes[@]} -lt "$wanted" ]; then echo "only ${#nodes[@]} of $wanted nodes pass the check" >&2; exit 69; fi
  export MASTER_ADDR=${nodes[0]}
  resume=()
  if [ -e "$run/config.toml" ]; then resume=(--resume "$run"); fi
  echo "attempt $attempt on ${nodes[*]}"
  srun --nodes="$wanted" --ntasks=$((wanted * tasks)) --nodelist="$(IFS=,; echo "${nodes[*]}")" --kill-on-bad-exit=0 \
    "$octet" train "$file" --name "$(basename "$run")" "${resume[@]}" ${OCTET_ARGUMENTS:-}
  code=$?
  case $code in 76 | 137) continue ;; esac
  break
done
exit "$code"
