#!/usr/bin/env python3
"""Trains the shapes of Octet's GPU benchmarks with Transformer Engine's layers, in its own recipes.

Blocks are te.TransformerLayer; embedding, head, loss and AdamW are those of pytorch_gpu.py. States are BF16. Weights are quantized in the
first micro-batch of a step (is_first_microbatch). `--attention-fp8` adds fp8_dpa, attention in 8 bits, to `delayed` and `current`.
"""

import contextlib
import dataclasses

import torch
import transformer_engine
import transformer_engine.pytorch as te
from torch import nn
from transformer_engine.common import recipe as recipes

from decoder import SHAPES
from pytorch_gpu import options, run, sizes, speed, train


def recipe_of(name, attention):
    if name == "bf16":
        return None
    return {"delayed": lambda: recipes.DelayedScaling(fp8_dpa=attention), "current": lambda: recipes.Float8CurrentScaling(fp8_dpa=attention),
            "block128": recipes.Float8BlockScaling}[name]()


class Decoder(nn.Module):
    def __init__(self, s):
        super().__init__()
        self.embedding = nn.Embedding(s.vocabulary, s.width, dtype=torch.bfloat16)
        self.blocks = nn.ModuleList(
            te.TransformerLayer(s.width, s.hidden, s.heads, num_gqa_groups=s.kv_heads, kv_channels=s.head_dim, layernorm_epsilon=1e-6,
                                hidden_dropout=0.0, attention_dropout=0.0, normalization="RMSNorm", activation="swiglu", bias=False,
                                fuse_qkv_params=True, attn_input_format="bshd", self_attn_mask_type="causal", params_dtype=torch.bfloat16,
                                layer_number=i + 1) for i in range(s.layers))
        self.norm = te.RMSNorm(s.width, eps=1e-6, dtype=torch.bfloat16)
        self.head = self.embedding if s.tied else nn.Linear(s.width, s.vocabulary, bias=False, dtype=torch.bfloat16)
        nn.init.normal_(self.embedding.weight, std=0.02)
        nn.init.normal_(self.head.weight, std=0.02)

    def hidden(self, tokens, rotations, first):
        x = self.embedding(tokens)
        for block in self.blocks:
            x = block(x, rotary_pos_emb=rotations, is_first_microbatch=first)
        return self.norm(x)


def in_precision(recipe):
    if recipe is None:
        return contextlib.nullcontext()
    return te.autocast(enabled=True, recipe=recipe) if hasattr(te, "autocast") else te.fp8_autocast(enabled=True, fp8_recipe=recipe)


def measure(name, precision, o):
    shape, (batch, accumulate) = SHAPES[name], sizes(name, o)
    if o.layers:
        shape = dataclasses.replace(shape, layers=o.layers)
    torch.manual_seed(1)
    with torch.device("cuda"):
        model = Decoder(shape)
    torch.cuda.reset_peak_memory_stats()
    rotations = te.RotaryPositionEmbedding(shape.head_dim, rotary_base=int(shape.rope_theta))(max_seq_len=o.sequence).cuda()
    recipe = recipe_of(precision, o.attention_fp8)

    def hidden(tokens, first):
        with in_precision(recipe):
            return model.hidden(tokens, rotations, first)

    seconds = train(model, o, shape.vocabulary, batch, accumulate, hidden)
    return {"model": name, "precision": precision, "attention": "fp8" if o.attention_fp8 else "bf16", "shape": f"{accumulate}x{batch}x{o.sequence}",
            "layers": shape.layers, **speed(seconds, o, batch, accumulate)}


def main():
    parser = options(__doc__.splitlines()[0], "bf16,delayed,current,block128")
    parser.add_argument("--layers", type=int, default=0, help="blocks; 0: those of the model")
    parser.add_argument("--attention-fp8", action="store_true")
    run(measure, parser.parse_args(), {"peer": "transformer_engine", "version": transformer_engine.__version__, "torch": torch.__version__})


if __name__ == "__main__":
    main()
