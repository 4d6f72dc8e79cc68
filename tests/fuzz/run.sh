#!/usr/bin/env bash
# run.sh PROGRAM FOLDER TARGET: fuzzes in FOLDER/TARGET for 2 seconds from a fixed seed, so a fresh clone tries the same inputs each time.
# With OCTET_FUZZ_SECONDS set, it runs for that long with other inputs each time. Inputs that break the reader are stored in found/ there.
set -euo pipefail
program=$1 folder=$2 target=$3 seconds=${OCTET_FUZZ_SECONDS:-2} seed=${OCTET_FUZZ_SECONDS:+0}
mkdir -p "$folder/$target/corpus" "$folder/$target/found"
cd "$folder/$target"
exec "$program" -seed="${seed:-1}" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=1024 -print_final_stats=1 -verbosity=0 \
  -artifact_prefix="$PWD/found/" corpus "$folder/seeds/$target"
