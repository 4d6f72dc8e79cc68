#!/bin/bash
# The GPUs of one node: data parallel, ZeRO-1, ZeRO-2 or ZeRO-3 (FSDP), as the run file says.
# Usage: sbatch --job-name=octet-zero1 examples/slurm/one-node.sh examples/distributed-training/zero1.toml
#SBATCH --job-name=octet-ddp
#SBATCH --nodes=1
#SBATCH --ntasks-per-node=8
#SBATCH --gpus-per-node=8
#SBATCH --cpus-per-task=12
#SBATCH --exclusive
#SBATCH --mem=0
#SBATCH --time=04:00:00
#SBATCH --signal=USR1@180
#SBATCH --output=%x-%j.out
set -euo pipefail
octet=${OCTET:-octet}
export SRUN_CPUS_PER_TASK=${SLURM_CPUS_PER_TASK:-1}  # srun does not inherit it
file=${1:-examples/distributed-training/ddp.toml}

# All GPUs are there and exchange tensors at the rate of NVLink: 69 and the reason if not.
srun --ntasks=1 --ntasks-per-node=1 --mpi=none \
  "$octet" doctor ${OCTET_PREFLIGHT:---expect-gpus "${SLURM_GPUS_ON_NODE:-0}" --min-allreduce-gbs 200}

# One task per GPU. Exit code 75 (saved after USR1) is no reason to kill the other tasks; those of a lost rank end by themselves with 76.
srun --kill-on-bad-exit=0 "$octet" train "$file" --name "$SLURM_JOB_NAME-$SLURM_JOB_ID" ${OCTET_ARGUMENTS:-}
