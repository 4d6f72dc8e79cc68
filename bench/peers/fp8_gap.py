#!/usr/bin/env python3
"""Trains the demo model with PyTorch in BF16 and in FP8 on the same batches, and prints the mean losses of parts of the run.

The FP8 arm multiplies with torch._scaled_mm: per-tensor scales from the tensor's own maximum, E4M3 for x and w, E5M2 for gradients, in all
linear layers but the head. Operands named by --stochastic are rounded stochastically: up with the probability of the distance from the
lower code. A twin of BF16 begins with weights changed in their last bit. Needs a GPU that multiplies FP8.
"""

import argparse
import math
import struct

import torch
import torch.nn.functional as F

from decoder import SHAPES, Decoder

BATCH, SEQUENCE = 4, 256


def read_tokens(path):
    """The ids of one shard: docs/token-format.md."""
    data = open(path, "rb").read()
    size, count = struct.unpack_from("<I", data, 12)[0], struct.unpack_from("<Q", data, 16)[0]
    dtype = torch.uint16 if size == 2 else torch.int32
    return torch.frombuffer(bytearray(data[256:256 + size * count]), dtype=dtype).long()


MANTISSA = {torch.float8_e4m3fn: 3, torch.float8_e5m2: 2}
LEAST_EXPONENT = {torch.float8_e4m3fn: -6, torch.float8_e5m2: -14}  # of a normal number
STOCHASTIC = set()  # operands: "x", "w", "dy"


def on_grid(x, dtype):
    """One of the two neighbours of x among the values of dtype, at random, with the mean x."""
    exponent = torch.frexp(x)[1].sub(1).clamp(min=LEAST_EXPONENT[dtype])
    step = torch.ldexp(torch.ones_like(x), exponent - MANTISSA[dtype])
    most = torch.finfo(dtype).max
    return ((x / step + torch.rand_like(x)).floor() * step).clamp(-most, most)


def quantized(x, dtype, operand):
    """Codes of x and the descale, f32 [1]."""
    scale = torch.finfo(dtype).max / x.abs().amax().float().clamp(min=1e-12)
    scaled = x.float() * scale
    return (on_grid(scaled, dtype) if operand in STOCHASTIC else scaled).to(dtype), scale.reciprocal()


class Fp8Product(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, w):
        x8, sx = quantized(x, torch.float8_e4m3fn, "x")
        w8, sw = quantized(w, torch.float8_e4m3fn, "w")
        ctx.save_for_backward(x8, sx, w8, sw)
        return torch._scaled_mm(x8, w8.t(), scale_a=sx, scale_b=sw, out_dtype=torch.bfloat16, use_fast_accum=True)

    @staticmethod
    def backward(ctx, dy):
        x8, sx, w8, sw = ctx.saved_tensors
        d8, sd = quantized(dy, torch.float8_e5m2, "dy")
        columns = lambda t: t.t().contiguous().t()
        dx = torch._scaled_mm(d8, columns(w8), scale_a=sd, scale_b=sw, out_dtype=torch.bfloat16)
        dw = torch._scaled_mm(d8.t().contiguous(), columns(x8), scale_a=sd, scale_b=sx, out_dtype=torch.float32)
        return dx, dw


class Fp8Linear(torch.nn.Linear):
    def forward(self, x):
        flat = x.flatten(0, -2).to(torch.bfloat16)
        return Fp8Product.apply(flat, self.weight).view(*x.shape[:-1], -1)


def rate(step, steps, most):
    """Linear warm-up of a tenth, then a cosine to 0."""
    warm_up = steps // 10
    return most * (step + 1) / warm_up if step < warm_up else most * (1 + math.cos(math.pi * (step - warm_up) / (steps - warm_up))) / 2


def train(arm, seed, steps, tokens, learning_rate):
    torch.manual_seed(seed)
    model = Decoder(SHAPES["llama-tiny"]).cuda()
    if arm == "twin":
        for p in model.parameters():
            p.data = torch.nextafter(p.data, torch.ones_like(p))
    if arm == "fp8":
        for block in model.blocks:
            for layer in (block.qkv, block.out, block.mlp_in, block.mlp_out):
                layer.__class__ = Fp8Linear
    lr = torch.tensor(learning_rate, device="cuda")
    optimizer = torch.optim.AdamW(model.parameters(), lr=lr, betas=(0.9, 0.95), weight_decay=0.1, fused=True, capturable=True)
    cos, sin = model.tables(SEQUENCE, "cuda", torch.float32)
    rows = (len(tokens) - 1) // SEQUENCE
    x = torch.zeros(BATCH, SEQUENCE, dtype=torch.long, device="cuda")
    y, out = torch.zeros_like(x), torch.zeros((), device="cuda")

    def step():
        with torch.autocast("cuda", torch.bfloat16, cache_enabled=False):
            logits = model(x, cos, sin)
        loss = F.cross_entropy(logits.float().flatten(0, 1), y.flatten())
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=False)
        out.copy_(loss.detach())

    order = torch.Generator().manual_seed(seed)
    losses, samples, graph = [], [], None
    side = torch.cuda.Stream()
    for i in range(steps):
        if len(samples) < BATCH:
            samples += torch.randperm(rows, generator=order).tolist()
        batch, samples = samples[:BATCH], samples[BATCH:]
        ids = torch.stack([tokens[r * SEQUENCE:r * SEQUENCE + SEQUENCE + 1] for r in batch]).cuda()
        x.copy_(ids[:, :-1]), y.copy_(ids[:, 1:]), lr.fill_(rate(i, steps, learning_rate))
        if i < 3:
            with torch.cuda.stream(side):
                side.wait_stream(torch.cuda.current_stream())
                step()
            torch.cuda.current_stream().wait_stream(side)
        elif graph is None:
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                step()
            graph.replay()
        else:
            graph.replay()
        losses.append(out.clone())
    return torch.stack(losses).cpu()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("shard", help="file of octet tokenize")
    parser.add_argument("--arm", choices=("bf16", "twin", "fp8"), default="bf16")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--steps", type=int, default=4200)
    parser.add_argument("--learning-rate", type=float, default=1e-3)
    parser.add_argument("--stochastic", nargs="*", choices=("x", "w", "dy"), default=[], help="operands of fp8 to round stochastically")
    a = parser.parse_args()
    STOCHASTIC.update(a.stochastic)
    losses = train(a.arm, a.seed, a.steps, read_tokens(a.shard), a.learning_rate)
    parts = [(round(k * a.steps / 7), round((k + 1) * a.steps / 7)) for k in range(7)]
    print(a.arm, "".join(sorted(a.stochastic)) or "-", a.seed, " ".join(f"{losses[b:e].mean():.5f}" for b, e in parts))


if __name__ == "__main__":
    main()
