#!/usr/bin/env python3
"""Trains a small model on the pages of a folder, shows its losses, stops when it is good enough, and lets it write.

Usage: train.py [PATTERN [STEPS]]. With --wandb or --trackio the losses also go there, if that package is installed.
"""
import logging
import sys

import octet


def show(step):
    if step.step % 10 == 1:
        print(f"step {step.step:4}  loss {step.loss:.4f}  {step.tokens_per_second:,.0f} tokens/s")


def good_enough(step):
    return step.loss < 1.5


def logger(package):
    """A callback that logs to Weights & Biases or trackio, whose interfaces agree."""
    module = __import__(package)
    module.init(project="octet")
    return lambda step: module.log({"loss": step.loss, "grad_norm": step.grad_norm, "learning_rate": step.learning_rate}, step=step.step)


def main(pattern="docs/*.md", steps="60"):
    logging.basicConfig(level=logging.WARNING)
    tokens = octet.tokenize(pattern, "data/pages", force=True)
    print(f"{tokens.documents} documents, {tokens.tokens:,} tokens")
    config = {
        "model": {"layers": 2, "width": 128, "heads": 4, "kv_heads": 2, "hidden": 256},
        "data": {"path": tokens.folder, "sequence_length": 128},
        "train": {"steps": int(steps), "batch": 8},
        "optim": {"learning_rate": 3e-3},
    }
    plan = octet.plan(config)
    print(f"{plan.parameters:,} parameters, {plan.memory_bytes / 2**20:.0f} MiB")
    callbacks = [show, good_enough] + [logger(package) for package in ("wandb", "trackio") if f"--{package}" in sys.argv]
    outcome = octet.train(config, callbacks, set={"recipe.name": "current", "name": "pages"})
    print(outcome)
    model = octet.Model.open(outcome.folder)
    for recipe in ("bf16", "current"):
        print(f"{recipe}: {model.evaluate(recipe=recipe).loss:.4f} nats per token")
    print(model.generate("The recipe ", tokens=60))


if __name__ == "__main__":
    main(*[word for word in sys.argv[1:] if not word.startswith("--")])
