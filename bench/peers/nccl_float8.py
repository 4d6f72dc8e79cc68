#!/usr/bin/env python3
"""NCCL's own sum of E4M3 codes with one shared scale, beside its sum of BF16: time and error, on all GPUs of this machine.

  bench/peers/nccl_float8.py [--mib 16,256,1024]

x of each GPU is normal. The scale is the least power of two that leaves room for the sum of all maxima, so no sum saturates
(FP8-LM, section 2.1, with mu = 1 / ranks). NCCL adds codes pair by pair and rounds each sum to E4M3. "coded" includes the maximum, the
encoding and the decoding; "codes" is ncclAllReduce alone. The error is that of the sum relative to the sum in FP64, root mean square.
Medians of 15 sums, with quartiles. Needs PyTorch with CUDA, and NCCL 2.24 or later.
"""

import argparse
import ctypes
import statistics

import torch

BF16, E4M3, SUM = 9, 10, 0  # ncclDataType_t, ncclRedOp_t


class Ranks:
    """One NCCL communicator per GPU, all in this process."""

    def __init__(self, library):
        self.nccl, self.size = ctypes.CDLL(library), torch.cuda.device_count()
        self.comms = (ctypes.c_void_p * self.size)()
        self.call("ncclCommInitAll", self.comms, self.size, (ctypes.c_int * self.size)(*range(self.size)))

    def call(self, name, *arguments):
        result = getattr(self.nccl, name)(*arguments)
        if result != 0:
            raise SystemExit(f"{name}: NCCL's error {result}")

    def all_reduce(self, tensors, dtype):
        self.call("ncclGroupStart")
        for r, x in enumerate(tensors):
            with torch.cuda.device(r):
                at, queue = ctypes.c_void_p(x.data_ptr()), ctypes.c_void_p(torch.cuda.current_stream(r).cuda_stream)
                self.call("ncclAllReduce", at, at, ctypes.c_size_t(x.numel()), dtype, SUM, ctypes.c_void_p(self.comms[r]), queue)
        self.call("ncclGroupEnd")


def each(ranks, function):
    out = []
    for r in range(ranks.size):
        with torch.cuda.device(r):
            out.append(function(r))
    return out


def milliseconds(ranks, function, samples=15, warm=5):
    times = []
    for i in range(warm + samples):
        each(ranks, torch.cuda.synchronize)
        marks = each(ranks, lambda r: [torch.cuda.Event(enable_timing=True) for _ in range(2)])
        each(ranks, lambda r: marks[r][0].record())
        function()
        each(ranks, lambda r: marks[r][1].record())
        each(ranks, torch.cuda.synchronize)
        if i >= warm:
            times.append(max(a.elapsed_time(b) for a, b in marks))
    low, middle, high = statistics.quantiles(times, n=4)
    return middle, low, high


def shared_scale(ranks, x):
    tops = [t.abs().max().float() for t in x]
    top = torch.stack([t.to("cuda:0") for t in tops]).max()
    scale = torch.exp2(torch.floor(torch.log2(448.0 / (top * ranks.size))))
    return [scale.to(f"cuda:{r}") for r in range(ranks.size)]


def encoded(x, scales):
    return [(t * s.to(t.dtype)).to(torch.float8_e4m3fn) for t, s in zip(x, scales)]


def error_of(x, sums):
    exact = sum(t.to("cuda:0").double() for t in x)
    return ((sums.double() - exact).pow(2).mean() / exact.pow(2).mean()).sqrt().item()


def measure(ranks, mib):
    x = each(ranks, lambda r: torch.randn(mib << 19, device="cuda", dtype=torch.bfloat16) * 1e-3)
    scales = shared_scale(ranks, x)
    codes, plain = encoded(x, scales), [t.clone() for t in x]
    ranks.all_reduce(codes, E4M3), ranks.all_reduce(plain, BF16)
    few = slice(0, 1 << 22)
    errors = [error_of([t[few] for t in x], (codes[0][few].float() / scales[0])), error_of([t[few] for t in x], plain[0][few])]

    def coded():
        ends = encoded(x, shared_scale(ranks, x))
        ranks.all_reduce(ends, E4M3)
        return [t.to(torch.bfloat16) / s.to(torch.bfloat16) for t, s in zip(ends, scales)]

    codes = encoded(x, scales)  # sums of sums saturate: times do not depend on it
    return [("BF16", milliseconds(ranks, lambda: ranks.all_reduce(plain, BF16)), errors[1]),
            ("codes", milliseconds(ranks, lambda: ranks.all_reduce(codes, E4M3)), errors[0]),
            ("coded", milliseconds(ranks, coded), errors[0])]


def library():
    import nvidia.nccl
    return list(nvidia.nccl.__path__)[0] + "/lib/libnccl.so.2"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mib", default="16,256,1024", help="MiB of BF16 per tensor")
    ranks = Ranks(library())
    torch.manual_seed(1)
    for mib in map(int, parser.parse_args().mib.split(",")):
        for name, (middle, low, high), error in measure(ranks, mib):
            print(f"{mib} MiB {name}: {middle:.3f} ms ({low:.3f}-{high:.3f}), relative error {100 * error:.2f}%", flush=True)


if __name__ == "__main__":
    main()
