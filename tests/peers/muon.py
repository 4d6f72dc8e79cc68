#!/usr/bin/env python3
"""Twenty steps of Muon in double precision, for octet/optim/muon/muon.test.cpp.

Weights and gradients come from formulas in integers that the test computes too, so the file holds results only. Lines of the file:
  # what made it
  orthogonal <rows>x<columns> <index>:<value> ...    newton_schulz() of the matrix of that name
  <name> <shape> <index>:<value> ...                 weights after STEPS steps

Run: /usr/bin/python3 tests/peers/muon.py > tests/golden/muon.txt     (needs numpy)
"""
import numpy as np

STEPS, RATE, DECAY, CLIP, MOMENTUM, RMS = 20, 2e-2, 0.1, 1.0, 0.95, 0.18
SHAPES = {"wide": (12, 20), "tall": (24, 10), "square": (16, 16), "experts": (3, 8, 6), "gate_up": (2, 9, 7)}
SAMPLES = 24


def draw(name, count):
    """As golden.py's."""
    key = 0x811C9DC5
    for byte in name.encode():
        key = (key ^ byte) * 0x01000193 & 0xFFFFFFFF
    mask = np.uint64(0xFFFFFFFF)
    h = (np.arange(count, dtype=np.uint64) * np.uint64(0x9E3779B9) + np.uint64(key)) & mask
    h = (h ^ h >> np.uint64(16)) * np.uint64(0x85EBCA6B) & mask
    h = (h ^ h >> np.uint64(13)) * np.uint64(0xC2B2AE35) & mask
    return h ^ h >> np.uint64(16)


def values(name, shape):
    """Uniform in [-1/4, 1/4) in steps of 2^-17."""
    return ((draw(name, int(np.prod(shape))) >> np.uint64(16)).astype(np.float64) * 2.0**-17 - 0.25).reshape(shape)


def newton_schulz(x):
    x = x / np.linalg.norm(x)
    for a, b, c in [(3.4445, -4.7750, 2.0315)] * 8 + [(2, -1.5, 0.5)] * 2:
        s = x @ x.T
        x = a * x + (b * s + c * s @ s) @ x
    return x


def train():
    weights = {name: values(name, shape) for name, shape in SHAPES.items()}
    momenta = {name: np.zeros(shape) for name, shape in SHAPES.items()}
    for step in range(STEPS):
        gradients = {name: values(f"{name}.{step}", shape) for name, shape in SHAPES.items()}
        norm = np.sqrt(sum((g * g).sum() for g in gradients.values()))
        for name, w in weights.items():
            g = gradients[name] * min(1, CLIP / norm)
            momenta[name] = MOMENTUM * momenta[name] + g  # as published, without the factor 1 - MOMENTUM
            u = MOMENTUM * momenta[name] + g
            matrices = u if u.ndim == 3 else u[None]
            o = np.stack([newton_schulz(m) for m in matrices]).reshape(u.shape)
            w *= 1 - RATE * DECAY
            w -= RATE * RMS * np.sqrt(max(u.shape[-2:])) * o
    return weights


def line(name, x):
    flat = x.reshape(-1)
    places = sorted({int(i * (flat.size - 1) / (SAMPLES - 1)) for i in range(SAMPLES)})
    print(name, "x".join(map(str, x.shape)), *(f"{i}:{flat[i]:.12g}" for i in places))


print(f"# tests/peers/muon.py, numpy {np.__version__}")
line("orthogonal", newton_schulz(values("orthogonal", (9, 14))))
for name, w in train().items():
    line(name, w)
