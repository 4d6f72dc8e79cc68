#!/usr/bin/env python3
"""Ranks that share one GPU, compared with one rank: every axis of the mesh and stage of ZeRO, with and without overlap; and faults of one rank.

  tests/ranks/one_gpu.py OCTET NCCL_RANKS [--all] [--jobs N] [--only TEXT]
  CUDA_VISIBLE_DEVICES=0,1 tests/ranks/one_gpu.py OCTET NCCL_RANKS --jobs 1    # ranks on GPUs of their own

NCCL takes processes with another NCCL_HOSTID each for ranks on different hosts, so they may have the same GPU and exchange over sockets.
Results are those of ranks on GPUs of their own; times are not. Where CUDA_VISIBLE_DEVICES names several GPUs, ranks take turns at them. Every run is deterministic, so that equal work has equal bits.
Exit code 77: no GPU. --all runs every recipe on every axis.
"""

import argparse
import concurrent.futures
import itertools
import json
import os
import pathlib
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
from faults import faults
from job import MICRO_BATCHES, MODEL, Job, free_port

def jobs(everything):
    recipes = ["fp32", "bf16", "current", "delayed", "block128"]
    few = recipes if everything else ["fp32", "current"]
    out = []

    def add(name, ranks, micro_batches, keys, same_as=None, within=0.0, first=None):
        out.append(Job(name, ranks, [f"train.accumulate={micro_batches}", *keys], same_as, within, first))

    # Sums of gradients in another order: the last bits in FP32. Elsewhere codes differ where a value was near the middle of two.
    def band(recipe):
        return 1e-5 if recipe == "fp32" else 1e-2

    for r in recipes:
        add(f"one-{r}", 1, MICRO_BATCHES, [f"recipe.name={r}"])
    add("one-O3", 1, MICRO_BATCHES, ["recipe.name=current", "optim.level=O3"])
    half = MICRO_BATCHES // 2
    for r, stage in itertools.product(few, range(4)):
        keys = [f"recipe.name={r}", f"ranks.zero={stage}"]
        add(f"data-{stage}-{r}", 2, half, keys, f"one-{r}", band(r))
        add(f"data-{stage}-{r}-in-order", 2, half, [*keys, "comm.overlap=false"], f"data-{stage}-{r}")
    for stage in range(4):
        keys = ["recipe.name=current", "optim.level=O3", "comm.gradients=e4m3", f"ranks.zero={stage}"]
        add(f"O3-{stage}", 2, half, keys, "one-O3", 1e-2)
        add(f"O3-{stage}-in-order", 2, half, [*keys, "comm.overlap=false"], f"O3-{stage}")
    add("offload", 2, half, ["recipe.name=current", "ranks.zero=1", "optim.offload=true"], "data-1-current")
    add("again", 2, half, ["recipe.name=current", "ranks.zero=1"], "data-1-current")
    for r in recipes if everything else ["fp32", "current", "block128"]:
        keys = [f"recipe.name={r}"]
        add(f"tensor-{r}", 2, MICRO_BATCHES, [*keys, "ranks.tensor=2"], f"one-{r}", band(r))
        add(f"context-{r}", 2, MICRO_BATCHES, [*keys, "ranks.context=2"], f"one-{r}", band(r))
        add(f"pipeline-{r}", 2, MICRO_BATCHES, [*keys, "ranks.pipeline=2"], f"one-{r}")
    for r in ["current", "block128"]:
        few_keys = [f"recipe.name={r}", "ranks.tensor=2"]  # tensor ranks that share a GPU wait often: fewer micro-batches
        add(f"tensor-few-{r}", 2, 2, few_keys)
        add(f"tensor-few-{r}-in-order", 2, 2, [*few_keys, "comm.overlap=false"], f"tensor-few-{r}")
        for parts in [["norm"], ["norm", "activation"], ["mlp"], ["block"]] if everything else [["norm", "activation"]]:
            keys = [*few_keys, f"model.recompute={json.dumps(parts)}"]
            name = f"tensor-{'-'.join(parts)}-{r}"
            add(name, 2, 2, keys, f"tensor-few-{r}")
            add(f"{name}-in-order", 2, 2, [*keys, "comm.overlap=false"], name)
    # The forward of a micro-batch and the backward of the one before it in turn: the bits of one after the other.
    def add_turns(name, ranks, keys):
        add(f"tensor-turns-apart-{name}", ranks, 3, ["ranks.tensor=2", *keys])
        add(f"tensor-turns-{name}", ranks, 3, ["ranks.tensor=2", "comm.turns=true", *keys], f"tensor-turns-apart-{name}")

    for r in recipes if everything else ["fp32", "current", "delayed", "block128"]:
        add_turns(r, 2, [f"recipe.name={r}"])
    for name, keys in [("again", ['model.recompute=["norm", "activation"]']), ("O3", ["optim.level=O3"]), ("library", ["comm.peer_memory=false"])]:
        add_turns(name, 2, ["recipe.name=current", *keys])
    add("tensor-turns-in-order", 2, 3, ["recipe.name=current", "ranks.tensor=2", "comm.turns=true", "comm.overlap=false"],
        "tensor-turns-apart-current")
    for stage in range(3):
        add_turns(f"data-{stage}", 4, ["recipe.name=current", "ranks.data=2", f"ranks.zero={stage}"])
    add_turns("experts", 2, ["recipe.name=current", "model.size=moe-tiny", "model.router_loss=0.01", "model.router_balance=layer"])
    for r in ["fp32", "block128"]:
        keys = [f"recipe.name={r}", "model.size=moe-tiny", "model.router_balance=layer", "ranks.expert=2", "ranks.zero=1"]
        add(f"expert-turns-apart-{r}", 2, 3, keys)
        add(f"expert-turns-{r}", 2, 3, [*keys, "comm.turns=true"], f"expert-turns-apart-{r}")
    add("tensor-8-bits", 2, MICRO_BATCHES, ["recipe.name=current", "ranks.tensor=2", "comm.tensor=e4m3"], "one-current", 1e-2)
    coded = ["recipe.name=current", "ranks.tensor=2", "comm.tensor=e4m3"]
    add("tensor-few-8-bits", 2, 2, coded)
    add("tensor-few-8-bits-in-order", 2, 2, [*coded, "comm.overlap=false"], "tensor-few-8-bits")
    add("pipeline-8-bits", 2, MICRO_BATCHES, ["recipe.name=current", "ranks.pipeline=2", "comm.pipeline=e4m3"], "one-current", 1e-2)
    two = ["recipe.name=fp32", "ranks.pipeline=2"]
    add("gpipe", 2, MICRO_BATCHES, [*two, "ranks.pipeline_schedule=gpipe"], "one-fp32")
    for r in ["fp32", "current"]:
        add(f"zero-bubble-{r}", 2, MICRO_BATCHES, [f"recipe.name={r}", "ranks.pipeline=2", "ranks.pipeline_schedule=zero_bubble"], f"one-{r}")
    add("interleaved", 2, MICRO_BATCHES, [*two, "ranks.pipeline_schedule=interleaved", "ranks.pipeline_chunks=2"], "one-fp32")
    # Graphs of a stage have other forms under each schedule: slots, recomputed activations, draws of 8-bit gradients. One rank has one graph
    # per micro-batch. Stages of `interleaved` have other blocks, so squares of gradients are added in another order.
    recomputed = [["norm"], ["mlp", "attention"], ["block"]]
    for schedule in ["gpipe", "1f1b", "interleaved", "zero_bubble"]:
        keys = ["recipe.name=current", "ranks.pipeline=2", f"ranks.pipeline_schedule={schedule}"]
        keys += ["ranks.pipeline_chunks=2"] * (schedule == "interleaved")
        add(f"stages-{schedule}", 2, MICRO_BATCHES, keys, "one-current")
        for parts in recomputed if everything else recomputed[1:2]:
            add(f"stages-{schedule}-{'-'.join(parts)}", 2, MICRO_BATCHES, [*keys, f"model.recompute={json.dumps(parts)}"], "one-current")
        for name, ranks, micro_batches, more, whole in [("O3", 2, MICRO_BATCHES, ["optim.level=O3"], "one-O3"),
                                                        ("data", 4, half, ["ranks.data=2", "ranks.zero=1"], "data-1-current")]:
            same_as = whole if schedule == "gpipe" else f"stages-gpipe-{name}"
            add(f"stages-{schedule}-{name}", ranks, micro_batches, [*keys, *more], same_as, 1e-2 if schedule in ["gpipe", "interleaved"] else 0)
        if schedule in ["1f1b", "zero_bubble"]:
            add(f"stages-{schedule}-data-in-order", 4, half, [*keys, "ranks.data=2", "ranks.zero=1", "comm.overlap=false"],
                f"stages-{schedule}-data")
    for r, stage in itertools.product(few, range(1, 4)):
        keys = [f"recipe.name={r}", "ranks.tensor=2", "ranks.data=2", f"ranks.zero={stage}"]
        add(f"tensor-data-{stage}-{r}", 4, half, keys, f"one-{r}", band(r))
        if stage == 3:
            add(f"tensor-data-{stage}-{r}-in-order", 4, half, [*keys, "comm.overlap=false"], f"tensor-data-{stage}-{r}")
    add("tensor-pipeline", 4, MICRO_BATCHES, ["recipe.name=fp32", "ranks.tensor=2", "ranks.pipeline=2"], "one-fp32", 1e-5)
    add("context-data", 4, half, ["recipe.name=fp32", "ranks.context=2", "ranks.data=2", "ranks.zero=3"], "one-fp32", 1e-5)
    # Sums of a rank's experts are rounded once more, which can change later choices. Sums of attention in another order change the choice of
    # a token between two experts that are nearly equal, and Adam's first updates are as large for the smallest gradients.
    experts = ["model.size=moe-tiny", "model.router_loss=0.01"]
    for r, stage in itertools.product(few, [0, 1, 3]):
        keys = [f"recipe.name={r}", *experts]
        if stage == 0:
            add(f"experts-one-{r}", 1, MICRO_BATCHES, keys)
        add(f"experts-{stage}-{r}", 2, half, [*keys, "ranks.expert=2", f"ranks.zero={stage}"], f"experts-one-{r}",
            1e-4 if r == "fp32" else 5e-2)
    for r in few:
        keys = [f"recipe.name={r}", *experts, "model.router_balance=layer"]
        add(f"experts-layer-one-{r}", 1, MICRO_BATCHES, keys)
        add(f"experts-tensor-{r}", 2, MICRO_BATCHES, [*keys, "ranks.tensor=2"], f"experts-layer-one-{r}", 1e-2 if r == "fp32" else 5e-2,
            1e-5 if r == "fp32" else None)
    # Sums of norms over the heads of both ranks.
    for size, r in itertools.product(["olmo2-tiny", "olmoe-tiny"], few):
        keys = [f"recipe.name={r}", f"model.size={size}"]
        add(f"norms-one-{size}-{r}", 1, MICRO_BATCHES, keys)
        add(f"norms-tensor-{size}-{r}", 2, MICRO_BATCHES, [*keys, "ranks.tensor=2"], f"norms-one-{size}-{r}", 1e-4 if r == "fp32" else 5e-2)
    # Losses of routers over sequences, of which ranks have parts, and over the layers of all stages.
    sequences = ["recipe.name=fp32", *experts, "model.router_balance=sequence"]
    add("experts-sequence-one", 1, MICRO_BATCHES, sequences)
    for axis in ["tensor", "context"]:
        add(f"experts-sequence-{axis}", 2, MICRO_BATCHES, [*sequences, f"ranks.{axis}=2"], "experts-sequence-one", 1e-2, 1e-5)
    for r in few:
        add(f"experts-stages-{r}", 2, MICRO_BATCHES, [f"recipe.name={r}", *experts, "ranks.pipeline=2"], f"experts-one-{r}")
    add("experts-codes", 2, half, ["recipe.name=bf16", *experts, "ranks.expert=2", "comm.experts=e4m3"])
    add("experts-data", 4, half // 2, ["recipe.name=fp32", *experts, "ranks.expert=2", "ranks.zero=1"], "experts-one-fp32", 1e-4)
    for stage in range(1, 4):
        add(f"shard-{stage}", 4, half // 2, ["recipe.name=fp32", f"ranks.zero={stage}", "ranks.shard=2"], "one-fp32", 1e-5)
    # Two passes of dualpipe_v take turns at the exchanges; gradients have the bits of 1f1b.
    turns = [*experts, "model.router_balance=layer", "ranks.data=2", "ranks.expert=2", "ranks.pipeline=2"]
    for r in few:
        add(f"experts-1f1b-{r}", 4, half, [f"recipe.name={r}", *turns, "ranks.pipeline_schedule=1f1b"])
        add(f"experts-dualpipe-{r}", 4, half, [f"recipe.name={r}", *turns, "ranks.pipeline_schedule=dualpipe_v"], f"experts-1f1b-{r}")
    if everything:
        cube = ["ranks.tensor=2", "ranks.data=2", "ranks.pipeline=2", "ranks.zero=1"]
        for r in ["fp32", "current"]:
            add(f"cube-{r}", 8, half, [f"recipe.name={r}", *cube], f"one-{r}", band(r))
    return out


def explain(folder, job, other):
    """What differs from the other run in each step, or the last line of each rank."""
    if job.code == 0 and other and other.losses:
        print("       by step:", *(f"{abs(a - b) / abs(b):.0e}" for a, b in zip(job.losses, other.losses)), flush=True)
    for rank in range(job.ranks if job.code else 0):
        lines = pathlib.Path(folder, f"{job.name}.{rank}.log").read_text(errors="replace").splitlines()
        print(f"       rank {rank}:", *lines[-1:], flush=True)


def table(folder, done):
    """Prints a line per run; returns the number of failed ones."""
    failed, by_name = 0, {j.name: j for j in done}
    for j in done:
        text, other = "", by_name.get(j.same_as)
        good = j.code == 0 and len(j.losses) == 12
        if good and other and len(other.losses) == 12:
            largest = max(abs(a - b) / abs(b) for a, b in zip(j.losses, other.losses))
            begin = abs(j.losses[0] - other.losses[0]) / abs(other.losses[0])
            good = largest <= j.within and (j.first is None or begin <= j.first)
            text = f"{largest:.1e} from {other.name}, at most {j.within:.0e}"
        failed += not good
        print(f"{'ok    ' if good else 'FAILED'} {j.name:28} exit {j.code}, {j.seconds:5.1f} s, loss {(j.losses or [0])[-1]:.7f}  {text}", flush=True)
        if not good:
            explain(folder, j, other)
    return failed


def collectives(program, folder, part):
    port, processes = free_port(), []
    for rank in range(2):
        env = dict(os.environ, CUDA_VISIBLE_DEVICES="0", NCCL_HOSTID=f"{port}.{rank}", NCCL_SOCKET_IFNAME="lo", NCCL_IB_DISABLE="1",
                   RANK=str(rank), WORLD_SIZE="2", MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
        log = open(f"{folder}/nccl-{part}.{rank}.log", "w")
        processes.append(subprocess.Popen([program, part], env=env, stdout=log, stderr=subprocess.STDOUT))
    codes = []
    for p in processes:
        try:
            codes.append(p.wait(40))
        except subprocess.TimeoutExpired:
            p.kill()
            codes.append("timeout")
    print(f"{'FAILED' if any(codes) else 'ok    '} nccl {part}: exit {codes}", flush=True)
    if any(codes):
        print(*pathlib.Path(folder, f"nccl-{part}.0.log").read_text().splitlines()[-2:], sep="\n")
    return int(any(codes))


def main():
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("octet", type=os.path.abspath)
    options.add_argument("nccl_ranks", type=os.path.abspath)
    options.add_argument("--all", action="store_true")
    options.add_argument("--jobs", type=int, default=5)
    options.add_argument("--only", default="", help="runs whose names have one of these texts, divided by commas, and those of one rank")
    options.add_argument("--folder", default="", help="keep runs and logs there")
    o = options.parse_args()
    if not os.path.exists("/dev/nvidia0"):
        print("no NVIDIA GPU here")
        return 77
    with tempfile.TemporaryDirectory() as temporary:
        folder = os.path.abspath(o.folder or temporary)
        os.makedirs(folder, exist_ok=True)
        pathlib.Path(folder, "run.toml").write_text(MODEL)
        subprocess.run([o.octet, "tokenize", "--input", "/usr/include/**/*.h", "--max-mb", "8", "--output", "data", "--force"], cwd=folder,
                       check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        failed = sum(collectives(o.nccl_ranks, folder, part) for part in ([] if o.only else ["check", "lost", "replay"]))
        wanted = [j for j in jobs(o.all) if j.ranks == 1 or any(text in j.name for text in o.only.split(","))]
        with concurrent.futures.ThreadPoolExecutor(o.jobs) as pool:
            list(pool.map(lambda j: j.run(o.octet, folder), wanted))
        failed += table(folder, wanted)
        chosen = [f for f in faults() if not o.only or any(text in f.run for text in o.only.split(","))]
        with concurrent.futures.ThreadPoolExecutor(o.jobs) as pool:
            failed += sum(pool.map(lambda f: f.check(o.octet, folder), chosen))
    print(f"{failed} failed" if failed else "all right")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
