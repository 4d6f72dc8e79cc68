#!/usr/bin/env python3
"""Forward and backward of a linear layer and of an MLP at 7B's shapes: octet.torch beside compiled BF16 and compiled FP8 of PyTorch.

FP8 of PyTorch is torchao's tensorwise recipe where torchao can be imported, otherwise `ScaledLinear` of pytorch_gpu.py; the output says
which. Parameters and activations are BF16. `steps of 1` encodes the weights in every forward, as after an optimizer step; `steps of 8`
has eight micro-batches per step, of which octet.torch encodes weights in the first. Arms take turns, round by round. The last lines have
the copies to the host that the profiler saw in one forward and backward.
"""

import argparse
import copy
import gc
import statistics

import torch
from torch import nn

import octet
import octet.torch
from measure import show
from pytorch_gpu import make_fp8

WIDTH, HIDDEN = 4096, 11008


class Mlp(nn.Module):
    def __init__(self, width, hidden):
        super().__init__()
        self.gate, self.up, self.down = nn.Linear(width, hidden, bias=False), nn.Linear(width, hidden, bias=False), nn.Linear(hidden, width, bias=False)

    def forward(self, x):
        return self.down(nn.functional.silu(self.gate(x)) * self.up(x))


def modules(scale):
    width, hidden = WIDTH // scale, HIDDEN // scale
    return {"linear square": nn.Sequential(nn.Linear(width, width, bias=False)), "linear up": nn.Sequential(nn.Linear(width, hidden, bias=False)),
            "mlp": Mlp(width, hidden)}


class Arm:
    """A module in one precision, with its input and the gradient of its output."""

    def __init__(self, module, name, tokens, device, compiled):
        self.name, self.by = name, "PyTorch"
        if name == "fp8 peer":
            self.by = make_fp8(module)
        elif name != "bf16":
            octet.torch.convert(module, name)
            self.by = f"octet {octet.__version__}"
        self.module, self.samples = module, {}
        self.run = torch.compile(module, dynamic=False) if compiled else module
        self.how = "compiled" if compiled else "eager"
        first = next(module.parameters())
        self.x = torch.randn(tokens, first.shape[1], device=device, dtype=torch.bfloat16, requires_grad=True)
        self.dy = torch.randn(tokens, [p.shape[0] for p in module.parameters()][-1], device=device, dtype=torch.bfloat16) * 1e-3

    def once(self):
        self.x.grad = None
        self.run(self.x).backward(self.dy)

    def step(self, micro_batches):
        octet.torch.end_step()
        self.module.zero_grad(set_to_none=True)
        for _ in range(micro_batches):
            self.once()


def seconds_of(call, count, device):
    if device == "cpu":
        import time
        begin = time.perf_counter()
        for _ in range(count):
            call()
        return (time.perf_counter() - begin) / count
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    begin.record()
    for _ in range(count):
        call()
    end.record()
    end.synchronize()
    return begin.elapsed_time(end) / 1e3 / count


def host_copies(arm):
    """Names of copies to the host, and of waits of the host for the GPU, in a forward and a backward, and the kernels that take longest."""
    from torch.profiler import ProfilerActivity, profile
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as seen:
        arm.step(1)
        torch.cuda.synchronize()
    names = [event.key for event in seen.key_averages() for _ in range(event.count)]
    copies = [n for n in names if "DtoH" in n or n in ("cudaStreamSynchronize", "cudaEventSynchronize")]
    kernels = sorted(((e.self_device_time_total, e.key[:70]) for e in seen.key_averages() if e.self_device_time_total > 0), reverse=True)[:7]
    return copies, [f"{t:.0f} us {k}" for t, k in kernels]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tokens", type=int, default=8192)
    parser.add_argument("--cases", default="linear square,linear up,mlp")
    parser.add_argument("--recipes", default="current,delayed,block128")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--scale", type=int, default=1, help="divides the widths")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--eager", action="store_true", help="compile nothing, where there is no C compiler")
    parser.add_argument("--kernels", action="store_true", help="list the kernels that take longest")
    a = parser.parse_args()
    torch.manual_seed(1)
    rows, notes = [], []
    for case, module in modules(a.scale).items():
        if case not in a.cases.split(","):
            continue
        module = module.to(a.device, torch.bfloat16)
        new = lambda name, compiled: Arm(copy.deepcopy(module), name, a.tokens, a.device, compiled and not a.eager)
        arms = [new("bf16", True), new("fp8 peer", True)] + [new(recipe, case == "mlp") for recipe in a.recipes.split(",")]
        for arm in arms:
            for _ in range(3):
                arm.step(2)
        for _ in range(a.rounds):
            for micro_batches in (1, 8):
                for arm in arms:
                    time = seconds_of(lambda: arm.step(micro_batches), 8 // micro_batches + 1, a.device) / micro_batches
                    arm.samples.setdefault(micro_batches, []).append(time)
        flops = 6 * a.tokens * sum(p.numel() for p in module.parameters())
        for micro_batches in (1, 8):
            peer = statistics.median(arms[1].samples[micro_batches])
            for arm in arms:
                s = arm.samples[micro_batches]
                rows.append({"case": case, "arm": arm.name, "by": f"{arm.by}, {arm.how}", "steps of": micro_batches, "ms": 1e3 * statistics.median(s),
                             "ms_low": 1e3 * min(s), "ms_high": 1e3 * max(s), "tflops": flops / statistics.median(s) / 1e12,
                             "to_peer": peer / statistics.median(s)})
        if a.device == "cuda":
            for arm in arms:
                copies, kernels = host_copies(arm)
                notes.append(f"{case} {arm.name}: copies to the host and waits: {copies or 'none'}" + ("; " + "; ".join(kernels) if a.kernels else ""))
        del arms, arm
        gc.collect()
    device = torch.cuda.get_device_name() if a.device == "cuda" else "cpu"
    show({"peer": "pytorch", "version": torch.__version__, "device": device, "tokens": a.tokens}, rows)
    print("\n".join(notes))


if __name__ == "__main__":
    main()
