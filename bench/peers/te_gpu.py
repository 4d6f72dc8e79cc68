#!/usr/bin/env python3
"""Trains the shapes of Octet's GPU benchmarks with Transformer Engine's layers, in its own recipes.

Blocks are te.TransformerLayer; embedding, head, loss and AdamW are those of pytorch_gpu.py. States are BF16. Weights are quantized in the
first micro-batch of a step (is_first_microbatch). `--attention-fp8` adds fp8_dpa, attention in 8 bits, to `delayed` and `current`.
"""

import argparse
import contextlib
import json
import subprocess
import sys

import torch
import transformer_engine
import transformer_engine.pytorch as te
from torch import nn
from transformer_engine.common import recipe as recipes

from decoder import SHAPES
from measure import show, spread
from pytorch_gpu import MICRO_BATCH, TOKENS_PER_STEP, ChunkedLoss


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


def precision(recipe):
    if recipe is None:
        return contextlib.nullcontext()
    return te.autocast(enabled=True, recipe=recipe) if hasattr(te, "autocast") else te.fp8_autocast(enabled=True, fp8_recipe=recipe)


def train(model, shape, recipe, o, batch, accumulate):
    """Seconds of each step after the warm-up."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5, betas=(0.9, 0.95), weight_decay=0.1, fused=True)
    rotations = te.RotaryPositionEmbedding(shape.head_dim, rotary_base=int(shape.rope_theta))(max_seq_len=o.sequence).cuda()
    tokens = torch.randint(shape.vocabulary, (accumulate, batch, o.sequence + 1), device="cuda")
    scale = 1.0 / (accumulate * batch * o.sequence)
    seconds = []
    for _ in range(o.warm_up + o.steps):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        for i, part in enumerate(tokens):
            with precision(recipe):
                hidden = model.hidden(part[:, :-1], rotations, i == 0)
            ChunkedLoss.apply(hidden.flatten(0, 1), model.head.weight, part[:, 1:].flatten(), o.chunk, scale).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0, foreach=True)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        end.record()
        end.synchronize()
        seconds.append(begin.elapsed_time(end) / 1e3)
    return seconds[o.warm_up:]


def measure(name, recipe, o):
    shape = SHAPES[name]
    if o.layers:
        shape = type(shape)(**{**shape.__dict__, "layers": o.layers})
    batch = o.micro_batch or MICRO_BATCH[name]
    accumulate = max(1, (o.tokens_per_step or TOKENS_PER_STEP[name]) // (batch * o.sequence))
    torch.manual_seed(1)
    with torch.device("cuda"):
        model = Decoder(shape)
    torch.cuda.reset_peak_memory_stats()
    seconds = spread(train(model, shape, recipe_of(recipe, o.attention_fp8), o, batch, accumulate))
    return {"model": name, "precision": recipe, "attention": "fp8" if o.attention_fp8 else "bf16", "shape": f"{accumulate}x{batch}x{o.sequence}",
            "layers": shape.layers, "tokens_per_second": accumulate * batch * o.sequence / seconds["seconds"], **seconds,
            "peak_gib": torch.cuda.max_memory_allocated() / 2**30}


def options():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", default="qwen2.5-0.5b", help="of " + ", ".join(MICRO_BATCH))
    parser.add_argument("--precisions", default="bf16,delayed,current,block128")
    parser.add_argument("--layers", type=int, default=0, help="blocks; 0: those of the model")
    parser.add_argument("--attention-fp8", action="store_true")
    parser.add_argument("--sequence", type=int, default=4096)
    parser.add_argument("--micro-batch", type=int, default=0, help="sequences; 0: 4, or 2 for the large models")
    parser.add_argument("--tokens-per-step", type=int, default=0, help="0: 524288, or 131072 for the large models")
    parser.add_argument("--steps", type=int, default=5)
    parser.add_argument("--warm-up", type=int, default=2)
    parser.add_argument("--chunk", type=int, default=4096, help="tokens that the head works on at a time")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    return parser.parse_args()


def main():
    o = options()
    if o.one:
        print(json.dumps(measure(*o.one.split(","), o)))
        return
    rows = []
    for model in o.models.split(","):
        for name in o.precisions.split(","):
            # A process for each, so that memory of one is not the other's.
            child = subprocess.run([sys.executable, __file__, *sys.argv[1:], "--one", f"{model},{name}"], stdout=subprocess.PIPE, text=True)
            if child.returncode:
                print(f"{model} {name}: failed, see above", file=sys.stderr)
                continue
            rows.append(json.loads(child.stdout.splitlines()[-1]))
    show({"peer": "transformer_engine", "version": transformer_engine.__version__, "torch": torch.__version__,
          "device": torch.cuda.get_device_name()}, rows)


if __name__ == "__main__":
    main()
