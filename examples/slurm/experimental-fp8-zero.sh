#!/bin/bash
# EXPERIMENTAL: FP8 with ZeRO. Prints first what Octet refuses and where it falls back, for every recipe, stage and key below, and then trains.
# Usage: sbatch --job-name=octet-fp8-zero examples/slurm/experimental-fp8-zero.sh [RUN_FILE]
#        OCTET_RULES=only examples/slurm/experimental-fp8-zero.sh [RUN_FILE]      prints alone, without Slurm and without a GPU
#
# The lines come from `octet plan` with your run file, so they are the rules of the program that trains, not a copy of them.
# Not known:
#   - the loss of FP8 with ZeRO-2 and ZeRO-3 in long runs: tests compare steps and short runs with one rank
#   - its speed on several nodes: Octet was not run on InfiniBand
# Not printed: what recovery refuses while a run trains. An incident of the run names it (docs/health.md).
#SBATCH --job-name=octet-fp8-zero
#SBATCH --nodes=1
#SBATCH --ntasks-per-node=8
#SBATCH --gpus-per-node=8
#SBATCH --cpus-per-task=12
#SBATCH --exclusive
#SBATCH --mem=0
#SBATCH --time=04:00:00
#SBATCH --signal=USR1@180
#SBATCH --output=%x-%j.out
set -uo pipefail
octet=${OCTET:-octet}
export SRUN_CPUS_PER_TASK=${SLURM_CPUS_PER_TASK:-1}  # srun does not inherit it
file=${1:-examples/distributed-training/fsdp.toml}
ranks=${SLURM_NTASKS:-8}

# Keys that the rules of ZeRO look at. "" is the run file as it is.
keys=("" optim.level=O1 optim.level=O2 optim.level=O3 optim.gradients=bf16 optim.gradients=e4m3 optim.gradients=e4m3_tensor
  comm.gradients=bf16 comm.gradients=e4m3 comm.gradients=e4m3_shared comm.gradients=e4m3_prescaled comm.gradients=e4m3_postscaled
  optim.offload=true train.average=0.2 recipe.head=recipe recipe.keep_bf16='["layers.0.*"]' recipe.first=1 recipe.activations=fp8
  ranks.tensor=2 ranks.context=2 ranks.pipeline=2)
recipes=${OCTET_RECIPES:-$("$octet" doctor | sed -n '/^recipes/,$ s/^  \([a-z0-9_]*\) .*/\1/p' | grep -vx 'fp32\|bf16\|fp16')}

# answer RECIPE STAGE KEY: "refused: ..." and the reason; or warnings, how weights travel, which layers are not in FP8, and why.
answer() {
  local data=$ranks set=() out
  case $3 in ranks.*) data=$((ranks > 1 ? ranks / 2 : 1)) ;; esac
  if [ -n "$3" ]; then set=(--set "$3"); fi
  out=$(mktemp)
  # shellcheck disable=SC2086
  if "$octet" plan "$file" ${OCTET_ARGUMENTS:-} --fp8 "$1" --set ranks.data="$data" --set ranks.zero="$2" "${set[@]}" > "$out" 2> "$out.err"; then
    grep '^warning: ' "$out.err" | grep -v "data was not validated"
    # Rows of the plan are in lines of 80 columns: each goes on after many spaces.
    sed -e ':a' -e 'N' -e '$!ba' -e 's/\n      *\([^ ]\)/ \1/g' "$out" |
      sed -n 's/^  \(weights sent between ranks\|weight codes\)  *\([^ ].*\)/\1: \2/p'
  else
    sed 's/^octet: /refused: /' "$out.err" | grep '^refused: '
  fi
  rm -f "$out" "$out.err"
}

echo "FP8 with ZeRO on $ranks ranks, by the rules of octet plan $file"
for stage in 1 2 3; do
  for recipe in $recipes; do
    for key in "${keys[@]}"; do
      text=$(answer "$recipe" "$stage" "$key")
      if [ -z "$key" ]; then plain=$text; elif [ "$text" = "$plain" ]; then continue; fi  # the key changes nothing
      printf '\nZeRO-%s, %s%s\n' "$stage" "$recipe" "${key:+, $key}"
      printf '%s\n' "${text:-nothing is refused, and no weights travel}" | sed 's/^/  /'
    done
  done
done
if [ "${OCTET_RULES:-}" = only ]; then exit; fi

# Continue only on GPUs that are there and exchange tensors at the rate of NVLink: 69 and the reason if not.
srun --ntasks=1 --ntasks-per-node=1 --mpi=none \
  "$octet" doctor ${OCTET_PREFLIGHT:---expect-gpus "${SLURM_GPUS_ON_NODE:-0}" --min-allreduce-gbs 200} || exit
srun --kill-on-bad-exit=0 "$octet" train "$file" --fp8 --name "$SLURM_JOB_NAME-$SLURM_JOB_ID" ${OCTET_ARGUMENTS:-}
