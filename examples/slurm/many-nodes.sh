#!/bin/bash
# Several nodes, one task per GPU. Usage: sbatch --nodes=4 examples/slurm/many-nodes.sh [RUN_FILE]
#SBATCH --job-name=octet-nodes
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=8
#SBATCH --gpus-per-node=8
#SBATCH --cpus-per-task=12
#SBATCH --exclusive
#SBATCH --mem=0
#SBATCH --wait-all-nodes=1
#SBATCH --time=04:00:00
#SBATCH --signal=USR1@180
#SBATCH --output=%x-%j.out
set -euo pipefail
octet=${OCTET:-octet}
export SRUN_CPUS_PER_TASK=${SLURM_CPUS_PER_TASK:-1}  # srun does not inherit it
file=${1:-examples/distributed-training/fsdp.toml}

# Where rank 0 listens. The port follows from the job's number: two jobs on a node do not meet.
export MASTER_ADDR=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n1)
export NCCL_DEBUG=${NCCL_DEBUG:-WARN}

# Every node by itself: one that lacks a GPU or has a slow link ends the job here.
srun --ntasks="$SLURM_JOB_NUM_NODES" --ntasks-per-node=1 --mpi=none --kill-on-bad-exit=1 \
  "$octet" doctor ${OCTET_PREFLIGHT:---expect-gpus "${SLURM_GPUS_ON_NODE:-0}" --min-allreduce-gbs 200}

srun --kill-on-bad-exit=0 "$octet" train "$file" --name "$SLURM_JOB_NAME-$SLURM_JOB_ID" ${OCTET_ARGUMENTS:-}
