#!/usr/bin/env python3
"""Forward and backward of linear layers and of an MLP at 7B's shapes: octet.torch beside BF16, torchao, torch._scaled_mm and Transformer Engine.

Parameters and activations are BF16. Rows `steps of 1` encode the weights in every forward, as after an optimizer step; `steps of 8` have eight
micro-batches per step, of which octet.torch and Transformer Engine encode weights in the first. Arms take turns, round by round. `gpu_ms`
is the time in kernels alone, as the profiler sees it; `snr_db` compares y and all gradients with those of BF16; `gib` is the most memory of
PyTorch in a step, without x and dy, `outside_gib` that of libraries which do not allocate by PyTorch. Arms that fail, as
where a package is missing, are named and left out. The last lines have the copies to the host that the profiler saw in one forward and backward.
"""

import argparse
import copy
import gc
import time
import traceback

import torch
from torch import nn

try:
    import octet
    import octet.torch
except ImportError:
    octet = None

from measure import show, spread
from pytorch_gpu import make_scaled, make_torchao

WIDTH, HIDDEN = 4096, 11008
ARMS = ("bf16 eager,bf16 compiled,scaled_mm compiled,torchao:tensorwise compiled,torchao:rowwise compiled,octet:current eager,"
        "octet:current compiled,octet:delayed eager,octet:delayed compiled,octet:block128 eager,octet:block128 compiled,te:current eager,"
        "te:delayed eager,te:block128 eager")


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


class Transformer(nn.Module):
    """The layers of a module by Transformer Engine's te.Linear, which compiles only the activation."""

    def __init__(self, module, recipe):
        super().__init__()
        import transformer_engine.pytorch as te
        from te_gpu import in_precision, recipe_of
        self.layers, self.context = nn.ModuleList(), lambda: in_precision(recipe_of(recipe, False))
        for layer in [m for m in module.modules() if type(m) is nn.Linear]:
            own = te.Linear(layer.in_features, layer.out_features, bias=False, params_dtype=layer.weight.dtype)
            with torch.no_grad():
                own.weight.copy_(layer.weight)
            self.layers.append(own)
        self.activation = torch.compile(lambda gate, up: nn.functional.silu(gate) * up, dynamic=False)
        self.first = True  # of the micro-batches of a step

    def forward(self, x):
        with self.context():
            y = [layer(x, is_first_microbatch=self.first) for layer in self.layers[:2]]
            return y[0] if len(y) == 1 else self.layers[2](self.activation(*y), is_first_microbatch=self.first)


def converted(module, kind, recipe, device):
    """The module in a precision, and by which version of what."""
    if kind == "bf16":
        return module, f"PyTorch {torch.__version__}"
    if kind == "scaled_mm":
        return module, make_scaled(module)
    if kind == "torchao":
        return module, make_torchao(module, recipe, emulate=device == "cpu")
    if kind == "te":
        import transformer_engine
        return Transformer(module, recipe), f"Transformer Engine {transformer_engine.__version__}"
    if octet is None:
        raise ImportError("no octet.torch")
    return octet.torch.convert(module, recipe), f"octet {octet.__version__}"


class Arm:
    """A module in one precision, with its input and the gradient of its output."""

    def __init__(self, module, name, x, dy):
        self.name, self.samples, self.device = name, {1: [], 8: []}, x.device.type
        kind, how = name.split()
        kind, _, recipe = kind.partition(":")
        begin = occupied(self.device)
        self.module, self.by = converted(copy.deepcopy(module), kind, recipe, self.device)
        self.run = torch.compile(self.module, dynamic=False) if how == "compiled" else self.module
        self.x, self.dy = x.detach().requires_grad_(), dy
        for _ in range(3):
            self.step(2)
        self.reference = [t.detach().float() for t in self.once()]
        self.clear()
        self.gib, self.outside_gib = self.memory(begin)

    def clear(self):
        self.x.grad = None
        self.module.zero_grad(set_to_none=True)

    def once(self):
        """y and the gradients of x and the weights."""
        self.x.grad = None
        y = self.run(self.x)
        y.backward(self.dy)
        return [y, self.x.grad, *(p.grad for p in self.module.parameters())]

    def step(self, micro_batches):
        end_step()
        self.clear()
        for i in range(micro_batches):
            self.module.first = i == 0
            self.once()

    def memory(self, begin):
        if self.device == "cpu":
            return 0.0, 0.0
        own = occupied(self.device)
        torch.cuda.reset_peak_memory_stats()
        self.step(1)
        peak = torch.cuda.max_memory_allocated() - own[0]
        self.clear()
        return (own[0] - begin[0] + peak) / 2**30, (own[1] - begin[1]) / 2**30

    def snr_db(self, others):
        """The least one of its results, to those of others."""
        ratios = [(r.square().sum() / (a - r).square().sum().clamp(min=1e-30)).log10().item() for a, r in zip(self.reference, others)]
        assert all(r.abs().max() > 0 for r in others) and len(self.reference) == len(others)
        return 10 * min(ratios)


def end_step():
    if octet is not None:
        octet.torch.end_step()


def occupied(device):
    """Bytes that tensors of PyTorch have, and those that it did not allocate."""
    if device == "cpu":
        return 0, 0
    gc.collect()
    torch.cuda.synchronize()
    free, total = torch.cuda.mem_get_info()
    return torch.cuda.memory_allocated(), total - free - torch.cuda.memory_reserved()


def seconds_of(call, count, device):
    if device == "cpu":
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


def profile(arm, count=4):
    """Milliseconds in kernels per step of one micro-batch; copies to the host and waits of the host for the GPU; the longest kernels."""
    from torch.profiler import ProfilerActivity
    with torch.profiler.profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as seen:
        for _ in range(count):
            arm.step(1)
        torch.cuda.synchronize()
    events = seen.key_averages()
    copies = [e.key for e in events if "DtoH" in e.key or e.key in ("cudaStreamSynchronize", "cudaEventSynchronize")]
    kernels = sorted(((e.self_device_time_total / count, e.key[:70]) for e in events if e.device_type == torch.autograd.DeviceType.CUDA), reverse=True)
    return sum(t for t, _ in kernels) / 1e3, copies, [f"{t:.0f} us {k}" for t, k in kernels[:9]]


def arms_of(names, module, x, dy, left):
    arms = []
    for name in names:
        try:
            arms.append(Arm(module, name, x, dy))
        except Exception as error:  # the other rows are worth a run
            traceback.print_exc()
            left[name] = f"{type(error).__name__}: {error}"
    return arms


def rows_of(case, arms, tokens, gpu_ms):
    flops = 6 * tokens * sum(p.numel() for p in arms[0].module.parameters())
    reference = next(arm.reference for arm in arms if arm.name.startswith("bf16"))
    for micro_batches in (1, 8):
        for arm in arms:
            s = spread(arm.samples[micro_batches])
            yield {"case": case, "arm": arm.name, "by": arm.by, "steps of": micro_batches, "ms": 1e3 * s["seconds"], "ms_low": 1e3 * s["seconds_low"],
                   "ms_high": 1e3 * s["seconds_high"], "tflops": flops / s["seconds"] / 1e12, "gpu_ms": gpu_ms.get(arm.name, 0.0),
                   "snr_db": arm.snr_db(reference), "gib": arm.gib, "outside_gib": arm.outside_gib}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tokens", type=int, default=8192)
    parser.add_argument("--cases", default="linear square,linear up,mlp")
    parser.add_argument("--arms", default=ARMS, help="kind[:recipe] eager|compiled, ...; one of bf16 is needed")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--scale", type=int, default=1, help="divides the widths")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--kernels", action="store_true", help="list the kernels that take longest")
    a = parser.parse_args()
    torch.manual_seed(1)
    torch._dynamo.config.recompile_limit = 64  # arms share the code of forward()
    rows, notes, left = [], [], {}
    for case, module in modules(a.scale).items():
        if case not in a.cases.split(","):
            continue
        module = module.to(a.device, torch.bfloat16)
        first, last = (list(module.parameters())[i] for i in (0, -1))
        x = torch.randn(a.tokens, first.shape[1], device=a.device, dtype=torch.bfloat16)
        dy = torch.randn(a.tokens, last.shape[0], device=a.device, dtype=torch.bfloat16) * 1e-3
        arms, gpu_ms = arms_of(a.arms.split(","), module, x, dy, left), {}
        for _ in range(a.rounds):
            for micro_batches in (1, 8):
                for arm in arms:
                    one = seconds_of(lambda: arm.step(micro_batches), 8 // micro_batches + 1, a.device) / micro_batches
                    arm.samples[micro_batches].append(one)
        for arm in arms if a.device == "cuda" else []:
            gpu_ms[arm.name], copies, kernels = profile(arm)
            notes.append(f"{case}, {arm.name}: copies to the host and waits: {copies or 'none'}" + ("; " + "; ".join(kernels) if a.kernels else ""))
        rows += rows_of(case, arms, a.tokens, gpu_ms)
        arms = arm = None
        gc.collect()
        torch.compiler.reset()
    device = torch.cuda.get_device_name() if a.device == "cuda" else "cpu"
    show({"peer": "pytorch", "version": torch.__version__, "device": device, "tokens": a.tokens, "rounds": a.rounds}, rows)
    print("\n".join([*notes, *(f"left out: {name}: {why}" for name, why in left.items())]))


if __name__ == "__main__":
    main()
