#!/usr/bin/env bash
# Fine-tunes a Hugging Face folder on JSON lines, in BF16 and in FP8, and writes the folder of the FP8 model:
#   1. makes a folder to begin with: a tokenizer and a small Qwen2.5, trained on C++ (Octet's sources);
#   2. converts a text as JSON lines (Octet's pages) to the folder's tokens;
#   3. trains on from the folder (model.init) in BF16 and in FP8;
#   4. evaluates the folder and both results on held-out pages, and exports the FP8 model with its tokenizer;
#   5. generates the same text from the run and from the export.
# For your own folder, begin with step 2. docs/fine-tuning.md explains each step.
# Usage: examples/fine_tune.sh [OCTET [FOLDER]]: the program (build/cpu/octet) and a folder for what it makes (fine_tune). Takes seconds.
set -euo pipefail
sources=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
octet=$(realpath "${1:-$sources/build/cpu/octet}")
mkdir -p "${2:-fine_tune}" && cd "${2:-fine_tune}"
rm -rf runs base tuned made

loop="--set data.sequence_length=64 --set train.batch=16 --set train.eval_every=0 --set data.eval_fraction=0.2 --set device=cpu"
loss() { "$octet" eval "$@" --data pages --sequence 64 --held-out 0.2 --device cpu 2>/dev/null | sed -n 's/.*loss \([0-9.]*\),.*/\1/p'; }

# 1. A folder to begin with.
"$octet" tokenizer train --input "$sources/octet/**/*.cpp" --input "$sources/docs/*.md" --vocabulary 1024 --digits 1 \
  --output made/tokenizer.json
"$octet" tokenize --input "$sources/octet/**/*.cpp" --tokenizer made --output code --force
"$octet" train --data code --steps 60 --name base --set optim.learning_rate=3e-3 --set model.family=qwen2 --set model.layers=2 \
  --set model.width=128 --set model.heads=4 --set model.kv_heads=2 --set model.hidden=256 --set model.vocabulary=1024 $loop
"$octet" export runs/base --output base --dtype bf16

# 2. One paragraph of the pages per line: {"text": "..."}.
cat "$sources"/docs/*.md "$sources"/*.md | sed 's/\\/\\\\/g; s/"/\\"/g; s/\t/\\t/g' |
  awk -v RS= '{ gsub(/\n/, "\\n"); print "{\"text\": \"" $0 "\"}" }' > pages.jsonl
"$octet" tokenize --input pages.jsonl --model base --output pages --force

# 3. A third of the rate, a longer warm-up, and no decay of weights that are good already. Only weights are taken from the folder: moments
# and scales begin anew.
for precision in bf16 current; do
  "$octet" train --data pages --fp8 $precision --steps 40 --name $precision --set model.init=base --set optim.learning_rate=1e-3 \
    --set optim.schedule.warmup=0.1 --set optim.weight_decay=0 $loop
done

# 4. Lower is better.
before=$(loss base) bf16=$(loss runs/bf16) fp8=$(loss runs/current --recipe current)
echo "loss on held-out pages: $before before, $bf16 after fine-tuning in BF16, $fp8 in FP8"
awk -v a="$before" -v b="$bf16" -v c="$fp8" 'BEGIN { exit !(b < a - 0.4 && c < 1.02 * b && b < 1.02 * c) }'
"$octet" export runs/current --output tuned
cmp base/tokenizer.json tuned/tokenizer.json

# 5. Both have the type of the folder that the training began from.
text() { "$octet" generate "$1" --prompt "The recipe" --temperature 0 --tokens 30 --device cpu; }
text tuned
[ "$(text tuned)" = "$(text runs/current/weights)" ]
