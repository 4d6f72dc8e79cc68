#!/usr/bin/env bash
# tests/resume/losses.sh OCTET [PATTERN]: a hash of all losses and gradient norms of short runs, one line each: every recipe and level on
# one CPU rank, and meshes of CPU ranks. Two programs compute the same bits where the outputs are equal. Takes a minute on two cores.
set -uo pipefail
octet=$(realpath "$1") only=${2:-.} dir=$(mktemp -d)
sources=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
trap 'rm -rf "$dir"' EXIT
export OMP_NUM_THREADS=1 OCTET_TOKEN=losses
"$octet" tokenize --input "$sources/docs/*.md" --output "$dir/tokens" > /dev/null || exit 1

keys() { for key in "$@"; do printf -- '--set\n%s\n' "$key"; done; }
mapfile -t common < <(keys device=cpu threads=1 model.size=llama-tiny model.layers=2 model.width=64 model.heads=4 model.kv_heads=2 \
  model.hidden=96 data.sequence_length=32 train.batch=2 train.eval_every=25 train.eval_tokens=512 train.save_weights=false \
  telemetry.tensorboard=false checkpoint.minutes=0 alerts.enabled=false)
one() {  # NAME COMMAND...: trains, and prints the hash
  local name=$1; shift
  [[ $name =~ $only ]] || return 0
  "$@" --data "$dir/tokens" --output "$dir" --quiet "${common[@]}" "${own[@]}" --name "$name" > "$dir/log" 2>&1 ||
    { echo "$name failed: $(tail -1 "$dir/log")"; return 0; }
  echo "$name $(grep -hoE '"(loss|grad_norm|eval_loss)":[^,}]*' "$dir/$name/metrics.jsonl" | md5sum | cut -c1-12)"
}
alone() { mapfile -t own < <(keys train.steps=50 train.accumulate=2 "${@:2}"); one "$1" "$octet" train; }
mesh() { mapfile -t own < <(keys train.steps=20 train.accumulate=4 "${@:3}"); one "$1" "$octet" launch --device cpu --ranks "$2" train; }

for recipe in fp32 bf16 fp16 delayed current rowwise block128 mxfp8 global; do
  for level in O0 O1 O2 O3; do alone "$recipe-$level" recipe.name=$recipe optim.level=$level; done
done
alone recompute-mlp recipe.name=current 'model.recompute=["mlp"]'
alone recompute-block recipe.name=current 'model.recompute=["block"]'
alone on-demand recipe.name=current recipe.weights=on_demand
alone saved-codes recipe.name=current recipe.activations=fp8
alone head recipe.name=current recipe.head=recipe
for recipe in bf16 current delayed; do
  for attention in fp8_forward fp8; do alone "attention-$attention-$recipe" recipe.name=$recipe recipe.attention=$attention; done
done
for recipe in bf16 current delayed block128; do
  for zero in 0 1 2 3; do mesh "data-$zero-$recipe" 2 recipe.name=$recipe ranks.zero=$zero; done
  for axis in tensor context pipeline; do mesh "$axis-$recipe" 2 recipe.name=$recipe ranks.$axis=2; done
done
mesh tensor-attention 2 recipe.name=current recipe.attention=fp8 ranks.tensor=2
mesh zero-bubble 2 recipe.name=current ranks.pipeline=2 ranks.pipeline_schedule=zero_bubble
mesh interleaved 2 recipe.name=current ranks.pipeline=2 ranks.pipeline_schedule=interleaved ranks.pipeline_chunks=2 model.layers=4
for zero in 0 1 2 3; do mesh "O3-$zero" 2 recipe.name=current optim.level=O3 comm.gradients=e4m3 ranks.zero=$zero; done
mesh tensor-data 4 recipe.name=current ranks.tensor=2 ranks.zero=1
mesh pipeline-data 4 recipe.name=block128 ranks.pipeline=2 ranks.zero=1
mesh context-data 4 recipe.name=current ranks.context=2 ranks.zero=3
