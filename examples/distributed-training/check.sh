#!/usr/bin/env bash
# Runs every command of a page in this folder, on small sizes and two CPU ranks, and checks that the files which it names were written.
# Usage: examples/distributed-training/check.sh PAGE [OCTET [FOLDER]]: a page such as fp8-train, the program (build/cpu/octet), and a folder
# for files. Takes seconds.
set -euo pipefail
sources=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
page=$sources/examples/distributed-training/$1.md
program=$(realpath "${2:-$sources/build/cpu/octet}")
rm -rf "${3:-$1}" && mkdir -p "${3:-$1}" && cd "${3:-$1}"
ln -s "$sources/examples" examples && ln -s "$sources/docs" docs
octet() { "$program" "$@"; }

model="--set model.layers=1 --set model.width=64 --set model.heads=4 --set model.kv_heads=2 --set model.hidden=96"
run="--set device=cpu --set data.sequence_length=32 --set train.batch=1 --set train.accumulate=1 --set model.size=llama-tiny $model"
small() {  # COMMAND: the same on small sizes
  local command
  command=$(sed -E 's/octet launch (bench|compare)/octet launch --device cpu --ranks 2 \1/; s/--(model|seeds|steps) [^ ]+//g;
                    s/--bytes [^ ]+/--bytes 4K,512K/; s/--quality-ranks [^ ]+/--quality-ranks 2/; s/(tp-attention) --ranks 4/\1 --ranks 2/; s/ *#.*//' <<< "$1")
  case $command in
    *"bench allreduce --topology"*) command+=" --repeat 1 --sample-ms 0.05" ;;
    *"bench allreduce"*)
      [[ $command == *--quality-ranks* ]] || command+=" --quality-ranks 2"
      command+=" --repeat 1 --sample-ms 0.05" ;;
    *"bench tp-attention"*) command+=" --tokens 32 --sequence 16 --repeat 1 $model --set model.kv_heads=2" ;;
    *"bench scaling"* | *"bench step"*) command+=" --tokens 32 --sequence 16 --repeat 1 $model" ;;
    *" compare "*) command+=" --steps 3 --seeds 1 --set train.eval_tokens=256 --set train.eval_every=0 --set checkpoint.minutes=0 $run" ;;
    *"octet plan "*) command+=" $run" ;;
  esac
  echo "$command"
}

# The lines of blocks of shell code, each with its continued lines.
commands=$(awk '/^```sh/ { code = 1; next } /^```/ { code = 0 } code' "$page" | sed -e ':a' -e '/\\$/N; s/\\\n */ /; ta' | grep '^octet ')
[ -n "$commands" ] || { echo "$page has no commands" >&2; exit 1; }
while read -r line; do
  command=$(small "$line")
  echo "+ $command"
  eval "$command" < /dev/null
  for option in --svg --json --trace; do
    file=$(sed -nE "s/.*$option ([^ ]+).*/\1/p" <<< "$command")
    [ -z "$file" ] || [ -s "$file" ] || { echo "$file was not written" >&2; exit 1; }
  done
done <<< "$commands"
