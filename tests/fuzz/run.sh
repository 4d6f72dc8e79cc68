#!/usr/bin/env bash
# run.sh PROGRAM FOLDER TARGET: fuzzes for a minute in FOLDER/TARGET, in a fresh clone with the same inputs each time; with
# OCTET_FUZZ_SECONDS set, for that long and with other inputs each time. What breaks the reader is left in its folder found/.
set -euo pipefail
program=$1 folder=$2 target=$3
mkdir -p "$folder/$target/corpus" "$folder/$target/found"
cd "$folder/$target"
exec "$program" -seed="$([ -n "${OCTET_FUZZ_SECONDS:-}" ] && echo 0 || echo 1)" -max_total_time="${OCTET_FUZZ_SECONDS:-60}" -timeout=10 -rss_limit_mb=1024 -print_final_stats=1 -verbosity=0 \
  -artifact_prefix="$PWD/found/" corpus "$folder/seeds/$target"
