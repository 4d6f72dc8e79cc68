#!/bin/bash
# One GPU. Usage: sbatch examples/slurm/single-gpu.sh [RUN_FILE]
#SBATCH --job-name=octet-single
#SBATCH --nodes=1
#SBATCH --ntasks-per-node=1
#SBATCH --gpus-per-node=1
#SBATCH --cpus-per-task=8
#SBATCH --time=04:00:00
#SBATCH --signal=USR1@180
#SBATCH --output=%x-%j.out
set -euo pipefail
octet=${OCTET:-octet}
export SRUN_CPUS_PER_TASK=${SLURM_CPUS_PER_TASK:-1}  # srun does not inherit it
file=${1:-examples/distributed-training/single.toml}

"$octet" doctor ${OCTET_PREFLIGHT:---expect-gpus 1}
srun "$octet" train "$file" --name "$SLURM_JOB_NAME-$SLURM_JOB_ID" ${OCTET_ARGUMENTS:-}
