#!/usr/bin/env python3
"""Copies a Llama-like model and gives it outlier channels that leave its function unchanged.

    python3 examples/outlier_channels.py FOLDER COPY --factor 1024 [--channels 4] [--seed 1]

Large trained models have channels whose values exceed all others by orders of magnitude. This script makes such channels: it
multiplies a few channels of each linear layer's input by a power of two and divides the columns of the layer's weight by it.
The products are the same bits in FP32 and BF16. An 8-bit format with one scale for many values loses what is small beside them.

    input of attn.qkv and mlp.gate_up   the norm's weight is multiplied
    input of attn.out                   rows of v_proj are multiplied
    input of mlp.down                   rows of up_proj are multiplied

FOLDER has config.json (model_type llama) and one model.safetensors in F32.
Needs Python 3.9, no package. docs/recipes.md, "One scale per model", shows what octet eval finds.
"""
import argparse
import array
import json
import math
import pathlib
import random
import shutil
import sys


class Weights:
    """A safetensors file in memory; tensors are changed in place."""

    def __init__(self, path):
        self.data = bytearray(path.read_bytes())
        self.begin = 8 + int.from_bytes(self.data[:8], "little")
        self.header = json.loads(self.data[8 : self.begin])

    def change(self, name, channels, factor, columns):
        """Multiplies rows of a vector or matrix, or its columns, by `factor`."""
        entry = self.header.get(name)
        if entry is None or entry["dtype"] != "F32":
            sys.exit(f"model.safetensors has no F32 tensor {name}")
        first, last = (self.begin + at for at in entry["data_offsets"])
        values = array.array("f", bytes(self.data[first:last]))
        across = entry["shape"][1] if len(entry["shape"]) == 2 else 1
        for c in channels:
            part = slice(c, None, across) if columns else slice(c * across, (c + 1) * across)
            values[part] = array.array("f", (v * factor for v in values[part]))
        self.data[first:last] = values.tobytes()


def add_outliers(weights, config, factor, count, draw):
    head = config.get("head_dim") or config["hidden_size"] // config["num_attention_heads"]
    queries_per_key = config["num_attention_heads"] // config["num_key_value_heads"]
    for layer in range(config["num_hidden_layers"]):
        name = f"model.layers.{layer}."
        for norm, readers in (("input_layernorm", ("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj")),
                              ("post_attention_layernorm", ("mlp.gate_proj", "mlp.up_proj"))):
            channels = draw.sample(range(config["hidden_size"]), count)
            weights.change(f"{name}{norm}.weight", channels, factor, columns=False)
            for reader in readers:
                weights.change(f"{name}{reader}.weight", channels, 1 / factor, columns=True)
        values = draw.sample(range(config["num_key_value_heads"] * head), count)
        weights.change(f"{name}self_attn.v_proj.weight", values, factor, columns=False)
        outputs = [(v // head * queries_per_key + q) * head + v % head for v in values for q in range(queries_per_key)]
        weights.change(f"{name}self_attn.o_proj.weight", outputs, 1 / factor, columns=True)
        inner = draw.sample(range(config["intermediate_size"]), count)
        weights.change(f"{name}mlp.up_proj.weight", inner, factor, columns=False)
        weights.change(f"{name}mlp.down_proj.weight", inner, 1 / factor, columns=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("copy", type=pathlib.Path)
    parser.add_argument("--factor", type=float, required=True, help="a power of two")
    parser.add_argument("--channels", type=int, default=4, help="of each layer's input")
    parser.add_argument("--seed", type=int, default=1, help="of the choice of channels")
    o = parser.parse_args()
    if math.frexp(o.factor)[0] != 0.5 or not 2**-20 <= o.factor <= 2**20:
        sys.exit("--factor is a power of two from 2^-20 to 2^20, so that products stay exact")
    config = json.loads((o.folder / "config.json").read_text())
    if config.get("model_type") != "llama":
        sys.exit(f"{o.folder}/config.json: model_type is {config.get('model_type')!r}, expected 'llama'")
    weights = Weights(o.folder / "model.safetensors")
    add_outliers(weights, config, o.factor, o.channels, random.Random(o.seed))
    shutil.copytree(o.folder, o.copy, ignore=lambda *_: ["model.safetensors"])
    (o.copy / "model.safetensors").write_bytes(weights.data)


if __name__ == "__main__":
    main()
