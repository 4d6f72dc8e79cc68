#!/usr/bin/env python3
"""Trains the shapes of Octet's GPU benchmarks with PyTorch: compiled blocks, cuDNN attention, fused AdamW, chunked cross-entropy.

BF16 weights, gradients and moments. Experts are `torch._grouped_mm` in BF16 (experts.py), with balanced or natural loads. FP8: every linear layer of the blocks by torchao's tensorwise recipe where torchao can be imported,
otherwise by `ScaledLinear` below, which scales every tensor by its own maximum just as that does; the output says which.
"""

import argparse
import dataclasses
import json
import subprocess
import sys

import torch
import torch.nn.functional as F
import torch.utils.checkpoint
from torch import nn

from decoder import SHAPES, Decoder
from measure import show, spread

MICRO_BATCH = {"qwen2.5-0.5b": 4, "qwen2.5-1.5b": 4, "qwen2.5-7b": 2, "llama-3-8b": 2, "olmoe-1b-7b": 2}
TOKENS_PER_STEP = {"qwen2.5-0.5b": 524288, "qwen2.5-1.5b": 524288, "qwen2.5-7b": 131072, "llama-3-8b": 131072, "olmoe-1b-7b": 32768}
E4M3, E5M2 = torch.float8_e4m3fn, torch.float8_e5m2


def to_fp8(x, dtype):
    """Codes of x and the factor that undoes their scale, from the tensor's own maximum."""
    most = torch.finfo(dtype).max
    scale = most / x.abs().max().float().clamp(min=1e-12)
    return (x.float() * scale).clamp(-most, most).to(dtype), scale.reciprocal()


def columns_first(x):
    """The same matrix stored by columns, as the second operand must be."""
    return x.t().contiguous().t()


class ScaledProduct(torch.autograd.Function):
    """y = x W^T with both operands in E4M3; gradients from dy in E5M2."""

    @staticmethod
    def forward(ctx, x, w):
        (x8, xs), (w8, ws) = to_fp8(x, E4M3), to_fp8(w, E4M3)
        ctx.save_for_backward(x8, xs, w8, ws)
        return torch._scaled_mm(x8, w8.t(), scale_a=xs, scale_b=ws, out_dtype=torch.bfloat16, use_fast_accum=True)

    @staticmethod
    def backward(ctx, dy):
        x8, xs, w8, ws = ctx.saved_tensors
        d8, ds = to_fp8(dy.contiguous(), E5M2)
        dx = torch._scaled_mm(d8, columns_first(w8), scale_a=ds, scale_b=ws, out_dtype=torch.bfloat16, use_fast_accum=False)
        dw = torch._scaled_mm(d8.t().contiguous(), columns_first(x8), scale_a=ds, scale_b=xs, out_dtype=torch.bfloat16, use_fast_accum=False)
        return dx, dw


class ScaledLinear(nn.Linear):
    def forward(self, x):
        y = ScaledProduct.apply(x.reshape(-1, x.shape[-1]), self.weight).reshape(*x.shape[:-1], self.out_features)
        return y if self.bias is None else y + self.bias


def make_torchao(blocks, recipe="tensorwise", emulate=False):
    """Turns the blocks' linear layers into torchao's; returns what by. emulate: on devices without 8-bit products."""
    from torchao import __version__
    from torchao.float8 import Float8LinearConfig, convert_to_float8_training
    config = Float8LinearConfig.from_recipe_name(recipe)
    convert_to_float8_training(blocks, config=dataclasses.replace(config, emulate=True) if emulate else config)
    return f"torchao {__version__} {recipe}"


def make_scaled(blocks):
    """Turns the blocks' linear layers into `ScaledLinear`; returns what by."""
    for module in blocks.modules():
        if type(module) is nn.Linear:
            module.__class__ = ScaledLinear
    return "torch._scaled_mm, dynamic tensorwise scaling of our own"


def make_fp8(blocks):
    """By torchao where it can be imported."""
    try:
        return make_torchao(blocks)
    except ImportError:
        return make_scaled(blocks)


@torch.compile(dynamic=False)
def loss_and_gradient(logits, targets, scale):
    """Sum of the losses, and scale times its gradient by the logits."""
    x = logits.float()
    lse = x.logsumexp(-1, keepdim=True)
    at = targets[:, None]
    p = (x - lse).exp()
    return (lse - x.gather(1, at)).sum(), ((p - torch.zeros_like(p).scatter(1, at, 1.0)) * scale).to(logits.dtype)


class ChunkedLoss(torch.autograd.Function):
    """Mean cross-entropy of h [T, D] by a head [V, D], by chunks, so that logits never exist whole; gradients are made on the way."""

    @staticmethod
    def forward(ctx, h, weight, targets, chunk, scale):
        dh, dw = torch.empty_like(h), torch.zeros_like(weight)
        loss = torch.zeros((), device=h.device, dtype=torch.float32)
        for i in range(0, h.shape[0], chunk):
            part = h[i:i + chunk]
            one, d = loss_and_gradient(part @ weight.t(), targets[i:i + chunk], scale)
            loss += one
            torch.mm(d, weight, out=dh[i:i + chunk])
            dw.addmm_(d.t(), part)
        ctx.save_for_backward(dh, dw)
        return loss * scale

    @staticmethod
    def backward(ctx, _):
        dh, dw = ctx.saved_tensors  # of the loss itself, which is the root
        return dh, dw, None, None, None


def native_gqa(shape, sequence):
    """Whether the chosen attention takes grouped heads as they are."""
    def heads(n):
        return torch.randn(1, n, sequence, shape.head_dim, device="cuda", dtype=torch.bfloat16, requires_grad=True)
    try:
        F.scaled_dot_product_attention(heads(shape.heads), heads(shape.kv_heads), heads(shape.kv_heads), is_causal=True, enable_gqa=True).sum().backward()
        return True
    except RuntimeError:
        return False


def choose_attention(backend):
    torch.backends.cuda.enable_cudnn_sdp(backend == "cudnn")
    torch.backends.cuda.enable_flash_sdp(backend == "flash")
    torch.backends.cuda.enable_mem_efficient_sdp(False)
    torch.backends.cuda.enable_math_sdp(False)


def sizes(name, arguments):
    """Sequences of a micro-batch, and micro-batches of a step."""
    batch = arguments.micro_batch or MICRO_BATCH[name]
    return batch, max(1, (arguments.tokens_per_step or TOKENS_PER_STEP[name]) // (batch * arguments.sequence))


def train(model, arguments, vocabulary, batch, accumulate, hidden):
    """Seconds of each step after the warm-up. hidden(tokens, first): what the head reads; first: of a step's first micro-batch."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5, betas=(0.9, 0.95), weight_decay=0.1, fused=True)
    tokens = torch.randint(vocabulary, (accumulate, batch, arguments.sequence + 1), device="cuda")
    scale = 1.0 / (accumulate * batch * arguments.sequence)
    seconds = []
    for _ in range(arguments.warm_up + arguments.steps):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        for i, part in enumerate(tokens):
            x = hidden(part[:, :-1], i == 0).flatten(0, 1)
            ChunkedLoss.apply(x, model.head.weight, part[:, 1:].flatten(), arguments.chunk, scale).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0, foreach=True)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        end.record()
        end.synchronize()
        seconds.append(begin.elapsed_time(end) / 1e3)
    return seconds[arguments.warm_up:]


def speed(seconds, arguments, batch, accumulate):
    """The columns of a row that follow from the seconds of steps."""
    s = spread(seconds)
    return {"tokens_per_second": accumulate * batch * arguments.sequence / s["seconds"], **s, "peak_gib": torch.cuda.max_memory_allocated() / 2**30}


def measure(name, precision, arguments):
    shape, (batch, accumulate) = SHAPES[name], sizes(name, arguments)
    if shape.experts and precision == "fp8":
        raise SystemExit(f"{name}: its experts are measured in bf16 alone")
    torch.manual_seed(1)
    choose_attention(arguments.attention)
    grouped = native_gqa(shape, arguments.sequence)
    with torch.device("cuda"):
        model = Decoder(shape).bfloat16()
    for block in model.blocks:
        block.native_gqa = grouped
        if shape.experts:
            block.experts.balanced = arguments.routing == "balanced"
    by = make_fp8(model.blocks) if precision == "fp8" else "bf16"
    for block in model.blocks:
        block.compile(dynamic=False)
    torch.cuda.reset_peak_memory_stats()
    cos, sin = model.tables(arguments.sequence, "cuda", torch.bfloat16)
    seconds = train(model, arguments, shape.vocabulary, batch, accumulate, lambda tokens, _: model.hidden(tokens, cos, sin, arguments.recompute))
    return {"model": name, "precision": precision, "by": by, "shape": f"{accumulate}x{batch}x{arguments.sequence}",
            "attention": arguments.attention + ("" if grouped else ", keys and values repeated"), **routing_of(model, shape, arguments), **speed(seconds, arguments, batch, accumulate)}


def routing_of(model, shape, arguments):
    """The columns of a row that only models with experts have: the fullest expert's load by the mean, of the layer where that is largest."""
    if not shape.experts:
        return {}
    fullest = max(float(block.experts.loads.max() / block.experts.loads.float().mean()) for block in model.blocks)
    return {"routing": arguments.routing, "fullest": fullest}


def options(description, precisions):
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--models", default="qwen2.5-0.5b", help="of " + ", ".join(MICRO_BATCH))
    parser.add_argument("--precisions", default=precisions)
    parser.add_argument("--sequence", type=int, default=4096)
    parser.add_argument("--micro-batch", type=int, default=0, help="sequences; 0: 4, or 2 for the large models")
    parser.add_argument("--tokens-per-step", type=int, default=0, help="0: 524288, or 131072 for the large models")
    parser.add_argument("--steps", type=int, default=5)
    parser.add_argument("--warm-up", type=int, default=2)
    parser.add_argument("--chunk", type=int, default=4096, help="tokens that the head works on at a time")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    return parser


def run(measure, arguments, facts):
    """measure(model, precision, arguments) of each, in a process of its own, so that neither memory nor compiled code of one is the other's."""
    if arguments.one:
        print(json.dumps(measure(*arguments.one.split(","), arguments)))
        return
    rows = []
    for model in arguments.models.split(","):
        for precision in arguments.precisions.split(","):
            child = subprocess.run([sys.executable, *sys.argv, "--one", f"{model},{precision}"], stdout=subprocess.PIPE, text=True)
            if child.returncode:
                raise SystemExit(f"{model} {precision}: failed, see above")
            rows.append(json.loads(child.stdout.splitlines()[-1]))
    show({**facts, "device": torch.cuda.get_device_name()}, rows)


def main():
    parser = options(__doc__.splitlines()[0], "bf16,fp8")
    parser.add_argument("--attention", choices=("cudnn", "flash"), default="cudnn")
    parser.add_argument("--routing", choices=("balanced", "natural"), default="balanced",
                        help="of experts: equal loads, or the choices of first weights")
    parser.add_argument("--recompute", action="store_true", help="keep only each block's input for backward")
    run(measure, parser.parse_args(), {"peer": "pytorch", "version": torch.__version__, "cudnn": torch.backends.cudnn.version()})


if __name__ == "__main__":
    main()
