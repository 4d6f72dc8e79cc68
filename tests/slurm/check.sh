#!/usr/bin/env bash
# Submits every script of examples/slurm to a Slurm of two nodes that cluster.sh makes, with CPU ranks and a tiny model.
# Usage: check.sh OCTET FOLDER. Exit code 77 and the reason if this machine cannot run Slurm; with CI=true that is a failure.
set -euo pipefail
octet=$(realpath "$1")
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
sources=$(cd "$here/../.." && pwd)
mkdir -p "$2"
folder=$(realpath "$2")

# Run files of one node.
stages=(ddp zero1 zero2 fsdp)

skip() {
  echo "SKIPPED: $1"
  if [ "${CI:-}" = true ]; then exit 1; fi
  exit 77
}
fail() { echo "FAILED: $1" >&2; exit 1; }

require_slurm() {
  if [ "$(id -u)" != 0 ]; then skip "a Slurm for the test needs root"; fi
  local program
  for program in slurmctld slurmd munged srun unshare ip; do
    command -v "$program" > /dev/null || skip "$program is missing: apt-get install slurm-wlm munge iproute2"
  done
  unshare --pid --net --uts --mount-proc --fork ip link add eth0 type veth peer name eth1 || skip "no network namespaces here"
  [ -e "$(dirname "$octet")/liboctet_mpi.so" ] || skip "octet was built without MPI, over which CPU ranks of srun exchange tensors"
}

make_data() {
  local i k
  mkdir -p text
  for i in 0 1 2 3; do for k in $(seq 150); do echo "document $i counts to $((k * k))"; done > "text/$i.txt"; done
  "$octet" tokenize --input 'text/*.txt' --output data/tokens --force 2> tokenize.log || fail "$(cat tokenize.log)"
}

# What a node without GPUs and a test of seconds need besides the scripts. srun starts MPI by PMIx.
tiny="--set device=cpu --set threads=1 --set model.size=llama-tiny --set model.layers=1 --set model.width=64 --set model.heads=4
  --set model.kv_heads=2 --set model.hidden=96 --set data.sequence_length=32 --set data.eval_fraction=0.25 --set train.batch=2
  --set train.steps=20 --set ranks.limit_seconds=10"
export OCTET=$octet OCTET_ARGUMENTS=$tiny OCTET_PREFLIGHT="--expect-gpus 0 --cpu --min-allreduce-gbs 0.00001" SLURM_MPI_TYPE=pmix
export OMP_NUM_THREADS=1 CUDA_VISIBLE_DEVICES=

# submit SCRIPT JOB_NAME OPTIONS... -- ARGUMENTS: prints the job's number. Nodes have no GPUs, so none are asked for.
submit() {
  local script=$1 name=$2 options=()
  shift 2
  while [ "$1" != -- ]; do options+=("$1"); shift; done
  shift
  sbatch --parsable --job-name="$name" --gpus-per-node=0 --cpus-per-task=1 --mem=0 --time=30 --oversubscribe "${options[@]}" "$script" "$@"
}
state() { scontrol show job --oneliner "$1" | grep -o "JobState=[A-Z]*\|ExitCode=[0-9]*\|Restarts=[0-9]*" | tr '\n' ' '; }
# wait_for SECONDS COMMAND...
wait_for() {
  local until=$((SECONDS + $1))
  shift
  until "$@"; do
    if [ $SECONDS -ge $until ]; then return 1; fi
    sleep 0.1
  done
}
ended() { [[ $(state "$1") == *COMPLETED* || $(state "$1") == *FAILED* || $(state "$1") == *CANCELLED* || $(state "$1") == *TIMEOUT* ]]; }
has_steps() { grep -qs '"event":"step"' "$1/metrics.jsonl"; }
is_queued_again() { [[ $(state "$1") == *PENDING*Restarts=1* ]]; }
contents() { cat "$1-"*.out 2> /dev/null; }

# expect NAME JOB TEXT...: the job has ended well and printed these.
expect() {
  local name=$1 job=$2 text
  shift 2
  wait_for 60 ended "$job" || fail "$name has not ended: $(state "$job"); $(squeue); $(contents "$name")"
  [[ $(state "$job") == *COMPLETED* ]] || fail "$name: $(state "$job"): $(contents "$name")"
  for text in "$@"; do contents "$name" | grep -q -- "$text" || fail "$name does not say '$text': $(contents "$name")"; done
  echo "$name: $(state "$job")"
}

# write_timed RUN_FILE SECONDS: timed.toml, the same run with a limit of time.
write_timed() { sed "s/^steps = .*/&\nmax_seconds = $2/" "$1" > timed.toml; }

submit_all() {
  local scripts=$sources/examples/slurm files=$sources/examples/distributed-training single nodes requeued spare rules stage
  local -A node
  single=$(submit "$scripts/single-gpu.sh" single --ntasks-per-node=1 -- "$files/single.toml")
  for stage in "${stages[@]}"; do
    node[$stage]=$(submit "$scripts/one-node.sh" "$stage" --ntasks-per-node=2 -- "$files/$stage.toml")
  done
  nodes=$(submit "$scripts/many-nodes.sh" nodes --nodes=2 --ntasks-per-node=2 -- "$files/ddp.toml")
  rules=$(OCTET_RECIPES=current submit "$scripts/experimental-fp8-zero.sh" rules --ntasks-per-node=2 -- "$files/zero1.toml")
  expect single "$single" "all steps done: 20 steps"
  for stage in "${!node[@]}"; do
    expect "$stage" "${node[$stage]}" "bus bandwidth of a sum in bf16 over 2 ranks" "2 ranks over mpi" "all steps done: 20 steps"
  done
  expect nodes "$nodes" "4 ranks over mpi" "all steps done: 20 steps"
  expect rules "$rules" "ZeRO-3, current" "refused: " "2 ranks over mpi" "all steps done: 20 steps"

  spare=$(submit "$scripts/experimental-spare-node.sh" spare --nodes=2 --ntasks-per-node=2 -- "$files/ddp.toml")
  # On a busy machine seconds pass until the signal is sent, so only the signal ends the first part.
  OCTET_ARGUMENTS="$tiny --set train.steps=0 --set checkpoint.every=1000"
  write_timed "$files/ddp.toml" 600
  requeued=$(submit "$scripts/preemptible.sh" preemptible --ntasks-per-node=2 -- timed.toml)
  wait_for 30 has_steps "runs/preemptible-$requeued" || fail "preemptible does not train: $(contents preemptible)"
  scancel --signal=USR1 "$requeued"
  wait_for 30 is_queued_again "$requeued" || fail "preemptible is not queued again: $(state "$requeued"); $(contents preemptible)"
  write_timed "$files/ddp.toml" 1
  sleep 2  # slurmd refuses a job that starts in the second in which it was ended
  scontrol update jobid="$requeued" starttime=now  # not after Slurm's two minutes
  expect spare "$spare" "attempt 1 on node" "2 ranks over mpi" "all steps done: 20 steps"
  expect preemptible "$requeued" "stopped by a signal" "exit code 75: queued again, restart 1 of" "resumes after step" "time is up: "
  [[ $(state "$requeued") == *Restarts=1* ]] || fail "preemptible was not queued again: $(state "$requeued")"
}

if [ "${OCTET_CLUSTER:-}" = inside ]; then
  submit_all
  exit
fi
require_slurm
cd "$folder"
rm -rf runs ./*.out
make_data
exec timeout --signal=KILL 150 "$here/cluster.sh" "$folder/cluster" "$here/check.sh" "$octet" "$folder"
