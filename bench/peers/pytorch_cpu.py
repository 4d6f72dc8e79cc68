#!/usr/bin/env python3
"""Trains the shapes of Octet's CPU benchmarks with PyTorch: eager and compiled; FP32, BF16 autocast and BF16 weights.

Run it right before and after `octet bench step` on the same machine, with nothing else running. docs/benchmarks.md says how.
"""

import argparse
import contextlib
import json
import os
import platform
import resource
import time

import torch
import torch.nn.functional as F

from decoder import SHAPES, Decoder
from measure import show, spread

CASES = {"demo": ("llama-tiny", 4, 256), "4x64": ("gpt2-124m", 4, 64), "4x512": ("gpt2-124m", 4, 512), "experts": ("olmoe-tiny", 4, 256)}
PRECISIONS = ("fp32", "autocast", "bf16")


def train(case, precision, compiled, steps, warm_up):
    """Seconds of each step after the warm-up."""
    name, batch, sequence = CASES[case]
    torch.manual_seed(1)
    dtype = torch.bfloat16 if precision == "bf16" else torch.float32
    model = Decoder(SHAPES[name]).to(dtype)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, betas=(0.9, 0.95), weight_decay=0.1, fused=True)
    cos, sin = model.tables(sequence, "cpu", dtype)
    tokens = torch.randint(SHAPES[name].vocabulary, (batch, sequence + 1))
    context = torch.autocast("cpu", torch.bfloat16) if precision == "autocast" else contextlib.nullcontext()

    def loss_of(x, y):
        with context:
            logits = model(x, cos, sin)
        return F.cross_entropy(logits.float().flatten(0, 1), y.flatten())

    loss_of = torch.compile(loss_of, dynamic=False) if compiled else loss_of
    seconds = []
    for _ in range(warm_up + steps):
        start = time.perf_counter()
        loss_of(tokens[:, :-1].contiguous(), tokens[:, 1:].contiguous()).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        seconds.append(time.perf_counter() - start)
    return seconds[warm_up:]


def measure(case, precision, compiled, arguments):
    name, batch, sequence = CASES[case]
    seconds = spread(train(case, precision, compiled, arguments.steps, arguments.warm_up))
    return {"model": name, "shape": f"{batch}x{sequence}", "variant": precision + (" compiled" if compiled else " eager"),
            "tokens_per_second": batch * sequence / seconds["seconds"], **seconds,
            "peak_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cases", default="demo,4x64,4x512", help="of " + ", ".join(CASES))
    parser.add_argument("--precisions", default=",".join(PRECISIONS))
    parser.add_argument("--modes", default="eager,compiled")
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--warm-up", type=int, default=3)
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    rows = []
    for case in arguments.cases.split(","):
        for precision in arguments.precisions.split(","):
            for mode in arguments.modes.split(","):
                # A process for each, so that peak memory is that of one variant alone.
                reader, writer = os.pipe()
                if (child := os.fork()) == 0:
                    os.write(writer, json.dumps(measure(case, precision, mode == "compiled", arguments)).encode())
                    os._exit(0)
                os.close(writer)
                with os.fdopen(reader) as pipe:
                    text = pipe.read()
                os.waitpid(child, 0)
                if not text:
                    raise SystemExit(f"{case} {precision} {mode}: failed, see above")
                rows.append(json.loads(text))
    show({"peer": "pytorch", "version": torch.__version__, "device": platform.processor() or platform.machine(), "threads": arguments.threads}, rows)


if __name__ == "__main__":
    main()
