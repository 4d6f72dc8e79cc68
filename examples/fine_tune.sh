#!/usr/bin/env bash
# Fine-tunes a model from a Hugging Face folder in FP8, at a lower learning rate, and evaluates it before and after:
#   1. trains a small model in BF16 on C++ (Octet's sources), and exports it as a Hugging Face folder;
#   2. trains on from that folder (model.init) in FP8 on English (Octet's pages);
#   3. evaluates both models on held-out pages, the tuned one also without FP8.
# For another model, such as Qwen2.5-0.5B, begin with step 2: name its folder, and tokenize with its tokenizer.
# Usage: examples/fine_tune.sh [OCTET [FOLDER]]: the program (build/cpu/octet) and a folder for what it makes (fine_tune). Takes seconds.
set -euo pipefail
sources=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
octet=$(realpath "${1:-$sources/build/cpu/octet}")
mkdir -p "${2:-fine_tune}" && cd "${2:-fine_tune}"

# The model to begin with: a Llama of half a million parameters that reads bytes.
model="--set model.size=llama-tiny --set model.layers=2 --set model.width=128 --set model.heads=4 --set model.kv_heads=2 --set model.hidden=256"
loop="--set data.sequence_length=64 --set train.batch=16 --set train.eval_every=0 --set data.eval_fraction=0.2"
loss() { "$octet" eval "$@" --data pages --sequence 64 --held-out 0.2 --device cpu | sed 's/.*loss \([0-9.]*\),.*/\1/'; }

"$octet" tokenize --input "$sources/octet/**/*.cpp" --output code --force
"$octet" tokenize --input "$sources/docs/*.md" --input "$sources/*.md" --output pages --force

# 1. A model to begin with.
rm -rf runs
"$octet" train --data code --steps 100 --name base --set device=cpu --set optim.learning_rate=3e-3 $model $loop
"$octet" export runs/base --output base --dtype bf16
before=$(loss base)

# 2. A third of the rate, a longer warm-up, and no decay of weights that are good already. Only weights are taken from the folder: moments
# and scales begin anew.
"$octet" train --data pages --fp8 current --steps 50 --name tuned --set device=cpu --set model.init=base --set optim.learning_rate=1e-3 \
  --set optim.schedule.warmup=0.1 --set optim.weight_decay=0 $loop

# 3. Lower is better. In so few steps random weights come less than half as far; and FP8 and BF16 read the same weights.
after=$(loss runs/tuned --recipe current) bf16=$(loss runs/tuned --recipe bf16)
echo "loss on held-out pages: $before before, $after after fine-tuning in FP8, $bf16 of the same weights in BF16"
awk -v a="$before" -v b="$after" -v c="$bf16" 'BEGIN { exit !(b < a - 0.4 && b < 1.02 * c && c < 1.02 * b) }'
