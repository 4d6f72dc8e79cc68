#!/bin/bash
# A run that survives its time limit and preemption: it is saved, queued again, and resumed. Usage: sbatch examples/slurm/preemptible.sh [RUN_FILE]
#   - 180 seconds before the end Slurm sends USR1 to all tasks (not to this script: there is no "B:"). Preemption sends TERM.
#   - Octet finishes the micro-batch, saves and ends with exit code 75.
#   - The job is queued again after 75, and after 76 (a rank was lost) or 137 (one was killed) if the run has a newer checkpoint than at
#     its start. An error of the configuration or the data makes none, so it does not return to the queue.
#   - One job of this name runs at a time.
#SBATCH --job-name=octet-preemptible
#SBATCH --nodes=1
#SBATCH --ntasks-per-node=8
#SBATCH --gpus-per-node=8
#SBATCH --cpus-per-task=12
#SBATCH --time=04:00:00
#SBATCH --signal=USR1@180
#SBATCH --requeue
#SBATCH --dependency=singleton
#SBATCH --open-mode=append
#SBATCH --output=%x-%j.out
set -uo pipefail
octet=${OCTET:-octet}
export SRUN_CPUS_PER_TASK=${SLURM_CPUS_PER_TASK:-1}  # srun does not inherit it
file=${1:-examples/distributed-training/zero1.toml}
most_restarts=${OCTET_RESTARTS:-20}
run=runs/$SLURM_JOB_NAME-$SLURM_JOB_ID
export MASTER_ADDR=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n1)

newest() { ls "$run/checkpoints" 2> /dev/null | grep '^step-' | sort | tail -n 1; }
before=$(newest)
resume=()
if [ -e "$run/config.toml" ]; then resume=(--resume "$run"); fi
srun --kill-on-bad-exit=0 "$octet" train "$file" --name "$(basename "$run")" "${resume[@]}" ${OCTET_ARGUMENTS:-}
code=$?

again=no
if [ $code = 75 ]; then again=yes; fi
if [[ $code = 76 || $code = 137 ]] && [ "$(newest)" != "$before" ]; then again=yes; fi
if [ $again = yes ] && [ "${SLURM_RESTART_COUNT:-0}" -lt "$most_restarts" ]; then
  echo "exit code $code: queued again, restart $((${SLURM_RESTART_COUNT:-0} + 1)) of at most $most_restarts"
  scontrol requeue "$SLURM_JOB_ID"
  sleep 60  # Slurm ends this script
fi
exit "$code"
