#!/usr/bin/env python3
"""Random configurations of tiny runs on CPU ranks: each is refused with exit code 2, diverges (90), or trains and resumes bit for bit.

  tests/configurations/check.py OCTET FOLDER [--first SEED] [--count N]

A configuration is a function of its seed. Half of them have a learning rate at which the loss diverges or steps are skipped.
OCTET_CONFIGURATIONS=1000 sets the number; a failure prints the command. After a run, all checkpoints but the first are removed and the run
is resumed: losses and gradient norms of all steps, and the final weights, must be those of the whole run.
"""

import argparse
import collections
import json
import os
import pathlib
import random
import shutil
import subprocess
import sys

DONE, REFUSED, DIVERGED = 0, 2, 90  # docs/errors.md
LIMIT = 120  # seconds of a run
STORAGES = ["f32", "bf16", "e4m3", "e4m3_tensor"]

# key: (probability, values)
OPTIONAL = {
    "recipe.format": (0.1, ["hybrid", "e4m3"]), "recipe.scale": (0.3, ["power_of_two", "f32"]),
    "recipe.history": (0.3, [1, 4, 16]), "recipe.algorithm": (0.3, ["max", "most_recent"]),
    "recipe.weights": (0.2, ["on_demand"]), "recipe.head": (0.2, ["recipe"]), "recipe.activations": (0.3, ["fp8"]),
    "recipe.first": (0.2, [1]), "recipe.keep_bf16": (0.2, [["layers.*.mlp.down"], ["layers.1.*"]]),
    "model.recompute": (0.4, [["norm"], ["norm", "activation"], ["mlp"], ["attention"], ["mlp", "attention"], ["block"]]),
    "data.document_mask": (0.2, [True]), "train.average": (0.1, [0.5]), "train.health_every": (0.4, [1, 2]), "train.sample_every": (0.15, [3]),
    "optim.schedule.warmup": (0.5, [0]), "optim.schedule.kind": (0.2, ["constant", "linear", "wsd"]), "optim.max_grad_norm": (0.2, [0]),
    "optim.level": (0.6, ["O1", "O2", "O3"]), "optim.master": (0.2, ["f32", "bf16", "f16", "bf16_nearest", "e4m3_tensor"]),
    "optim.gradients": (0.2, STORAGES), "optim.coded_ends": (0.3, [True]), "optim.m": (0.2, [*STORAGES, "e4m3_expanded"]),
    "optim.v": (0.2, ["f32", "bf16", "f16", "e4m3_expanded", "e4m3_root", "e4m3_tensor"]),
    "loss_scale.mode": (0.3, ["static", "dynamic", "off"]), "loss_scale.start": (0.2, [1024, 16777216]),
    "comm.gradients": (0.5, ["f32", "bf16", "e4m3", "e4m3_shared", "e4m3_prescaled", "e4m3_postscaled"]),
    "comm.tensor": (0.3, ["e4m3"]), "comm.pipeline": (0.3, ["e4m3"]), "comm.mu_growth": (0.2, ["below_threshold"]),
    "comm.overlap": (0.3, [False]), "recovery.patience": (0.2, [1]),
}


def model(r):
    family = r.choice(["llama", "qwen2", "qwen3", "gpt2"])
    return {"model.family": family, "model.layers": r.choice([2, 2, 3, 4]), "model.width": r.choice([64, 64, 128]), "model.heads": 4,
            "model.kv_heads": 4 if family == "gpt2" else r.choice([1, 2, 4]), "model.hidden": r.choice([128, 256]),
            "model.vocabulary": 512, "model.context": 64, "model.tied": r.choice(["yes", "no"])}


def ranks(r):
    axes = dict.fromkeys(["ranks.data", "ranks.tensor", "ranks.context", "ranks.pipeline"], 1)
    for _ in range(r.choice([0, 1, 1, 1, 2, 2])):
        axes[r.choice(list(axes))] *= 2
    staged = axes["ranks.pipeline"] > 1
    axes["ranks.zero"] = r.choice([0, 1]) if staged else r.choice([0, 1, 2, 3])
    if staged:
        axes["ranks.pipeline_schedule"] = r.choice(["gpipe", "1f1b", "interleaved", "zero_bubble", "dualpipe_v"])
        if axes["ranks.pipeline_schedule"] == "interleaved":
            axes |= {"ranks.pipeline_chunks": 2, "model.layers": 4}
        if axes["ranks.pipeline_schedule"] == "dualpipe_v":
            axes["model.layers"] = 4
        axes["train.accumulate"] = 4
    return axes


def configuration(seed):
    r = random.Random(seed)
    c = {"device": "cpu", "threads": 1, "data.path": "data", "optim.allow_unsafe": True, **model(r)}
    c["recipe.name"] = r.choice(["fp32", "bf16", "fp16", "delayed", "current", "rowwise", "block128", "mxfp8", "global"])
    c |= {"data.sequence_length": r.choice([32, 64]), "train.batch": r.choice([1, 2]), "train.accumulate": r.choice([1, 2, 4]),
          "train.steps": 6, "train.eval_every": r.choice([0, 2, 4]), "train.eval_tokens": 512, "train.max_skipped": r.choice([3, 10]),
          "checkpoint.every": r.choice([2, 3]), "checkpoint.keep": 9, "optim.learning_rate": r.choice([1e-3, 1e-3, 1e-2, 1e4, 1e30])}
    c |= {key: r.choice(values) for key, (share, values) in OPTIONAL.items() if r.random() < share}
    c |= r.choice([{}, {}, {"recovery.mode": "advise"}, {"recovery.mode": "act"}, {"alerts.enabled": False}])
    c |= ranks(r)
    if c["ranks.tensor"] * c["ranks.context"] > 1 and c["recipe.name"] == "fp16":  # which is refused
        c["recipe.name"] = "bf16"
    if c["ranks.tensor"] > 1 and r.random() < 0.4:
        c |= {"comm.turns": True, "model.tied": "no"}
    if c["recipe.name"] not in ("fp32", "bf16", "fp16") and r.random() < 0.3:
        c |= {"recipe.final": r.choice(["bf16", "bf16_forward"]), "recipe.final_share": 0.5}
    return c


def options(c):
    return [word for key, value in c.items() for word in ("--set", f"{key}={value if isinstance(value, str) else json.dumps(value)}")]


class Trial:
    def __init__(self, octet, folder, seed):
        self.octet, self.folder, self.seed = octet, folder, seed
        self.words = ["train", "--quiet", "--output", f"runs/{seed}", "--name", "run", *options(configuration(seed))]
        self.run = folder / "runs" / str(seed) / "run"

    def octet_says(self, *words):
        """Exit code, or None for a run that hangs, and the last line of its errors."""
        environment = dict(os.environ, CUDA_VISIBLE_DEVICES="")
        try:
            p = subprocess.run([self.octet, *words], cwd=self.folder, env=environment, capture_output=True, text=True, timeout=LIMIT)
        except subprocess.TimeoutExpired:
            return None, "it hangs"
        return p.returncode, (p.stderr.strip().splitlines() or [""])[-1]

    def steps(self):
        events = [json.loads(line) for line in (self.run / "metrics.jsonl").read_text().splitlines()]
        return [repr((e["step"], e["loss"], e["grad_norm"], e["skipped"])) for e in events if e["event"] == "step"]

    def weights(self):
        return (self.run / "weights" / "model.safetensors").read_bytes()

    def fails(self):
        """How it ended, and what was wrong or ''."""
        code, told = self.octet_says(*self.words)
        if code in (REFUSED, DIVERGED):
            return {REFUSED: "refused", DIVERGED: "diverged"}[code], ""
        if code != DONE:
            return "trained", f"exit code {code}: {told}"
        steps, weights = self.steps(), self.weights()
        checkpoints = sorted((self.run / "checkpoints").glob("step-*"))
        for later in checkpoints[1:]:
            shutil.rmtree(later)
        code, told = self.octet_says("train", "--quiet", "--resume", f"runs/{self.seed}/run")
        if code != DONE:
            return "resumed", f"exit code {code} when it resumes {checkpoints[0].name}: {told}"
        for whole, again in zip(steps, self.steps(), strict=True):
            if whole != again:
                return "resumed", f"(step, loss, gradient norm, skipped) was {whole}, after it resumed {checkpoints[0].name} {again}"
        return "resumed", "" if weights == self.weights() else "other weights after it resumed"


def write_text(folder):
    r = random.Random(1)
    words = ["".join(r.choices("etaoinshrdlucmfw", k=r.randint(2, 9))) for _ in range(800)]
    with open(folder / "text.jsonl", "w") as file:
        for _ in range(1200):
            file.write(json.dumps({"text": " ".join(r.choices(words, k=r.randint(10, 120)))}) + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("octet", type=os.path.abspath)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--count", type=int, default=int(os.environ.get("OCTET_CONFIGURATIONS", "16")))
    o = parser.parse_args()
    shutil.rmtree(o.folder, ignore_errors=True)
    o.folder.mkdir(parents=True)
    write_text(o.folder)
    subprocess.run([o.octet, "tokenize", "--input", "text.jsonl", "--output", "data"], cwd=o.folder, check=True, stdout=subprocess.DEVNULL,
                   stderr=subprocess.DEVNULL)
    ends, failed = collections.Counter(), 0
    for seed in range(o.first, o.first + o.count):
        trial = Trial(o.octet, o.folder, seed)
        end, why = trial.fails()
        ends[end] += 1
        shutil.rmtree(trial.run.parent, ignore_errors=True)
        if why:
            failed += 1
            print(f"FAILED seed {seed}: {why}\n  octet {' '.join(repr(w) if '[' in w else w for w in trial.words)}", flush=True)
    print(f"{o.count} configurations: " + ", ".join(f"{n} {end}" for end, n in sorted(ends.items())) + f"; {failed} failed")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
