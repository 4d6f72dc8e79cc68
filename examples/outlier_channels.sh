#!/usr/bin/env bash
# Trains a small Llama, gives a copy of it outlier channels (outlier_channels.py), and evaluates both. In BF16 nothing changes; under one scale
# for the whole model, the copy loses its weights. Usage: examples/outlier_channels.sh [OCTET [FOLDER]]. Takes seconds.
set -euo pipefail
sources=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
octet=$(realpath "${1:-$sources/build/cpu/octet}")
mkdir -p "${2:-outlier_channels}" && cd "${2:-outlier_channels}"

"$octet" tokenize --input "$sources/octet/**/*.hpp" --output code --force
rm -rf runs copy
"$octet" train --data code --steps 60 --name base --quiet --set device=cpu --set model.layers=2 --set model.width=128 --set model.heads=4 \
  --set model.kv_heads=2 --set model.hidden=256 --set data.sequence_length=64 --set train.batch=16 --set train.eval_every=0
python3 "$sources/examples/outlier_channels.py" runs/base/weights copy --factor 8192

loss() { "$octet" eval "$@" --data code --sequence 64 --tokens 8192 --device cpu | sed 's/.*loss \([0-9.]*\),.*/\1/'; }
for recipe in bf16 current global; do
  before=$(loss runs/base --recipe $recipe) after=$(loss copy --recipe $recipe)
  echo "$recipe: $before without outliers, $after with them"
  case $recipe in
    bf16) [ "$before" = "$after" ] ;;
    current) awk -v a="$before" -v b="$after" 'BEGIN { exit !(b < 1.02 * a) }' ;;
    global) awk -v a="$before" -v b="$after" 'BEGIN { exit !(b > 1.02 * a) }' ;;
  esac || { echo "$recipe: not as docs/recipes.md says" >&2; exit 1; }
done
