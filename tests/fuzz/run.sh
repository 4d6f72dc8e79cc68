#!/usr/bin/env bash
# run.sh PROGRAM FOLDER TARGET: fuzzes for OCTET_FUZZ_SECONDS (60) in FOLDER/TARGET. What breaks the reader is left in its folder found/.
set -euo pipefail
program=$1 folder=$2 target=$3
mkdir -p "$folder/$target/corpus" "$folder/$target/found"
cd "$folder/$target"
exec "$program" -max_total_time="${OCTET_FUZZ_SECONDS:-60}" -timeout=10 -rss_limit_mb=1024 -print_final_stats=1 -verbosity=0 \
  -artifact_prefix="$PWD/found/" corpus "$folder/seeds/$target"
