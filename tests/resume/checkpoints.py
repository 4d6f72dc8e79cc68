#!/usr/bin/env python3
"""Checkpoints of one program that another one resumes: losses, gradient norms and final weights must have the same bits.

  tests/resume/checkpoints.py make OCTET FOLDER [--only PATTERN]   trains runs and keeps a checkpoint from the middle of each
  tests/resume/checkpoints.py check OCTET FOLDER [--only PATTERN]  resumes copies of them, and compares with the runs that never stopped

`make` is given an older program, `check` the one that is to read its checkpoints; FOLDER can be kept and checked again. Runs: every recipe
at optim.level O0 to O3 on one CPU rank, and four recipes on meshes of four CPU ranks. Exit code 1 if one differs.
"""

import argparse
import json
import os
import pathlib
import random
import re
import shutil
import subprocess
import sys

LIMIT = 120  # seconds of a run
STEPS, MIDDLE = 8, 4
COMMON = {"device": "cpu", "threads": 1, "data.path": "data", "model.family": "llama", "model.layers": 2, "model.width": 64, "model.heads": 4,
          "model.kv_heads": 2, "model.hidden": 96, "model.vocabulary": 512, "model.context": 32, "data.sequence_length": 32, "train.batch": 2,
          "train.accumulate": 2, "train.steps": STEPS, "train.eval_every": 3, "train.eval_tokens": 512, "train.health_every": 3,
          "checkpoint.every": MIDDLE, "checkpoint.minutes": 0, "telemetry.tensorboard": False}
RECIPES = ["fp32", "bf16", "fp16", "delayed", "current", "rowwise", "block128", "mxfp8", "global"]
LEVELS = ["O0", "O1", "O2", "O3"]
MESHES = {**{f"zero{stage}": {"ranks.zero": stage} for stage in range(4)}, "tensor2": {"ranks.tensor": 2, "ranks.zero": 1},
          "pipeline2": {"ranks.pipeline": 2, "ranks.zero": 1}, "context2": {"ranks.context": 2, "ranks.zero": 1}}
ON_MESHES = {"bf16": "O0", "block128": "O1", "delayed": "O2", "current": "O3"}
ON_TENSOR_RANKS = {**ON_MESHES, "delayed": "O1", "current": "O0"}  # blocks of moments in 8 bits need wider layers there


def cases():
    """Name, number of ranks, and the configuration of each."""
    for recipe in RECIPES:
        for level in LEVELS:
            yield f"{recipe}-{level}", 1, {"recipe.name": recipe, "optim.level": level}
    for mesh, axes in MESHES.items():
        for recipe, level in (ON_TENSOR_RANKS if "ranks.tensor" in axes else ON_MESHES).items():
            yield f"{mesh}-{recipe}-{level}", 4, {"recipe.name": recipe, "optim.level": level, **axes}


class Run:
    def __init__(self, octet, folder, name, ranks):
        self.octet, self.folder, self.name = octet, folder, name
        self.launch = ["launch", "--device", "cpu", "--ranks", str(ranks)] if ranks > 1 else []

    def octet_says(self, *words):
        """The last line of its errors where it does not end with 0, else ''."""
        environment = dict(os.environ, CUDA_VISIBLE_DEVICES="", OMP_NUM_THREADS="1")
        p = subprocess.run([self.octet, *self.launch, "train", "--quiet", *words], cwd=self.folder, env=environment, capture_output=True,
                           text=True, timeout=LIMIT)
        return "" if p.returncode == 0 else f"exit code {p.returncode}: {(p.stderr.strip().splitlines() or [''])[-1]}"

    def results(self, parent):
        """The bits of every step and evaluation by their text, and the final weights."""
        run = self.folder / parent / self.name
        events = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
        kept = [repr([e["event"], e["step"], e["loss"], e.get("grad_norm")]) for e in events if e["event"] in ("step", "eval")]
        return kept, (run / "weights" / "model.safetensors").read_bytes()

    def make(self, configuration):
        words = [w for key, value in {**COMMON, **configuration}.items()
                 for w in ("--set", f"{key}={value if isinstance(value, str) else json.dumps(value)}")]
        told = self.octet_says("--output", "runs", "--name", self.name, *words)
        return "no run, " + told if told else ""

    def check(self):
        whole, again = self.folder / "runs" / self.name, self.folder / "resumed" / self.name
        if not whole.exists():
            return "there is no such run: make it first"
        shutil.rmtree(again, ignore_errors=True)
        shutil.copytree(whole, again)
        shutil.rmtree(again / "weights")
        shutil.rmtree(again / "checkpoints" / f"step-{STEPS:09}")
        told = self.octet_says("--resume", f"resumed/{self.name}")
        if told:
            return told
        (before, weights), (after, other) = self.results("runs"), self.results("resumed")
        shutil.rmtree(again)
        for a, b in zip(before, after, strict=True):
            if a != b:
                return f"[event, step, loss, gradient norm] was {a}, after it resumed step {MIDDLE} {b}"
        return "" if weights == other else "other weights"


def write_data(octet, folder):
    r = random.Random(1)
    words = ["".join(r.choices("etaoinshrdlucmfw", k=r.randint(2, 9))) for _ in range(800)]
    with open(folder / "text.jsonl", "w") as file:
        for _ in range(1200):
            file.write(json.dumps({"text": " ".join(r.choices(words, k=r.randint(10, 120)))}) + "\n")
    subprocess.run([octet, "tokenize", "--input", "text.jsonl", "--output", "data"], cwd=folder, check=True, stdout=subprocess.DEVNULL,
                   stderr=subprocess.DEVNULL)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("action", choices=["make", "check"])
    parser.add_argument("octet", type=os.path.abspath)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--only", default="", help="names of runs, a regular expression")
    o = parser.parse_args()
    if o.action == "make":
        shutil.rmtree(o.folder, ignore_errors=True)
        o.folder.mkdir(parents=True)
        write_data(o.octet, o.folder)
    count = failed = 0
    for name, ranks, configuration in cases():
        if not re.search(o.only, name):
            continue
        run = Run(o.octet, o.folder, name, ranks)
        why = run.make(configuration) if o.action == "make" else run.check()
        count, failed = count + 1, failed + bool(why)
        if why:
            print(f"FAILED {name}: {why}", flush=True)
    print(f"{o.action}: {count} runs, {failed} failed")
    return int(failed > 0 or count == 0)


if __name__ == "__main__":
    sys.exit(main())
