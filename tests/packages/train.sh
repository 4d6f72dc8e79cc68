#!/usr/bin/env bash
# Trains a small model with the program `octet` in the folder $1, and prints the losses of its steps and its last evaluation.
set -euo pipefail
mkdir -p "$1"
cd "$1"
rm -rf runs data text.txt
for i in $(seq 3000); do echo "line $i of $((i * 7919 % 1000)) and $((i * i % 97))"; done > text.txt
octet tokenize --input text.txt --output data > /dev/null 2>&1
octet train --data data --steps 5 --fp8 --name small --quiet --set model.layers=2 --set model.width=64 --set model.heads=4 \
  --set model.kv_heads=2 --set model.hidden=128 --set data.sequence_length=64 --set data.eval_fraction=0 --set threads=2 \
  --set device=cpu > /dev/null
sed -n 's/.*"step":\([0-9]*\).*"loss":\([0-9.]*\).*/\1 \2/p' runs/small/metrics.jsonl
