#!/usr/bin/env python3
"""Steps of a small model with experts on a CPU: Octet's recipes and PyTorch, in turn, in one run.

    PYTHONPATH=build/cpu/python python bench/peers/experts_cpu.py --rounds 5 --threads 2     (needs torch and numpy)

olmoe-tiny, 4 x 256 tokens: 4 blocks of 8 experts of 256 columns, of which each token uses 2. PyTorch runs a loop over experts and
torch._grouped_mm, in FP32 and with BF16 weights and moments, eager, with fused AdamW. Octet has f32 masters and moments. Each variant is a
process of its own in each round. Its figures are medians of steps after a warm-up, in seconds of the clock and of the processors (user and
system, all threads): on a shared machine the clock also counts the time of others. Ratios are those of one round, and the line of the table
has their median and range over rounds.
"""
import argparse
import json
import os
import pathlib
import random
import statistics
import subprocess
import sys
import tempfile
import time

MODEL, BATCH, SEQUENCE, WARM_UP = "olmoe-tiny", 4, 256, 2
OCTET, TORCH = ("fp32", "bf16", "current", "delayed"), ("fp32 loop", "fp32 grouped", "bf16 loop", "bf16 grouped")


class Steps:
    """Seconds of steps by both clocks."""

    def __init__(self):
        self.marks = []

    def mark(self):
        self.marks.append((time.perf_counter(), time.process_time()))

    def medians(self):
        pairs = list(zip(self.marks, self.marks[1:]))[WARM_UP:]
        return [statistics.median(b[i] - a[i] for a, b in pairs) for i in range(2)]


def run_octet(recipe, steps, threads):
    import octet
    with tempfile.TemporaryDirectory() as folder:
        random.seed(1)
        text = pathlib.Path(folder) / "text.txt"
        text.write_text("".join(chr(random.randrange(32, 127)) for _ in range(40 * BATCH * SEQUENCE)))
        octet.tokenize(str(text), f"{folder}/data")
        os.chdir(folder)  # for the run's folder
        seen = Steps()
        octet.train({"model.size": MODEL, "recipe.name": recipe, "data.path": f"{folder}/data", "data.sequence_length": SEQUENCE,
                     "data.eval_fraction": 0, "train.batch": BATCH, "train.steps": steps + WARM_UP + 1, "train.eval_every": 0,
                     "train.health_every": 1000, "checkpoint.every": 0, "telemetry.tensorboard": False, "optim.beta2": 0.95,
                     "threads": threads, "device": "cpu", "name": "steps"}, lambda step: seen.mark())
    return seen.medians()


def run_torch(variant, steps, threads):
    import torch
    import torch.nn.functional as F

    from decoder import SHAPES, Decoder
    from experts import Experts

    torch.set_num_threads(threads)
    torch.manual_seed(1)
    precision, form = variant.split()
    dtype = torch.bfloat16 if precision == "bf16" else torch.float32
    model = Decoder(SHAPES[MODEL]).to(dtype)
    for block in model.blocks:
        block.experts.forward = (Experts.by_loop if form == "loop" else Experts.forward).__get__(block.experts)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, betas=(0.9, 0.95), weight_decay=0.1, fused=True)
    cos, sin = model.tables(SEQUENCE, "cpu", dtype)
    tokens = torch.randint(SHAPES[MODEL].vocabulary, (BATCH, SEQUENCE + 1))
    seen = Steps()
    for _ in range(steps + WARM_UP + 1):
        logits = model(tokens[:, :-1].contiguous(), cos, sin)
        F.cross_entropy(logits.float().flatten(0, 1), tokens[:, 1:].flatten()).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        seen.mark()
    return seen.medians()


def in_child(kind, variant, arguments):
    done = subprocess.run([sys.executable, __file__, "--child", kind, "--variant", variant, "--steps", str(arguments.steps), "--threads",
                           str(arguments.threads)], check=True, capture_output=True, text=True)
    return json.loads(done.stdout.splitlines()[-1])


def shown(values):
    return f"{statistics.median(values):.3g} ({min(values):.3g} - {max(values):.3g})"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=7)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--octet", default=",".join(OCTET), help="recipes")
    parser.add_argument("--torch", default=",".join(TORCH), help="variants")
    parser.add_argument("--child", choices=("octet", "torch"), help=argparse.SUPPRESS)
    parser.add_argument("--variant", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child:
        print(json.dumps({"octet": run_octet, "torch": run_torch}[arguments.child](arguments.variant, arguments.steps, arguments.threads)))
        return
    variants = [("octet", v) for v in arguments.octet.split(",")] + [("torch", v) for v in arguments.torch.split(",")]
    rounds = []
    for number in range(arguments.rounds):
        # Odd rounds go backwards, so that a slow minute does not always meet the same variant.
        order = variants if number % 2 == 0 else variants[::-1]
        rounds.append({v: in_child(*v, arguments) for v in order})
        print(json.dumps({f"{kind} {name}": times for (kind, name), times in rounds[-1].items()}), flush=True)
    print(f"{arguments.threads} threads, {arguments.rounds} rounds; seconds, and the best of PyTorch over them\nvariant | clock | processors | "
          "best of PyTorch, clock | processors")
    for variant in variants:
        cells = [shown([r[variant][i] for r in rounds]) for i in range(2)]
        for i in range(2):
            cells.append(shown([min(t[i] for (kind, _), t in r.items() if kind == "torch") / r[variant][i] for r in rounds]))
        print(" | ".join([" ".join(variant), *cells]))


if __name__ == "__main__":
    main()
