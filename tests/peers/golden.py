#!/usr/bin/env python3
"""Loss, gradients and a short training of tiny language models as PyTorch computes them, for octet/train/step/golden.test.cpp.

Writes <folder>/llama.txt, smollm2.txt, qwen2.txt, qwen3.txt, gpt2.txt, qwen3_moe.txt, olmoe.txt and mixtral.txt: transformers' own models on
the CPU with eager attention. Models with experts have their auxiliary loss in gradients and training, and not in the stored losses. In
transformers, an expert's matrices are parts of one tensor; names, starts and gradients here are those of the files.
Gradients are in FP32; logits and losses of the training in FP64. Weights and tokens come from a formula in integers that the test computes
too, so the files hold results only. Lines of a file:
  # what made it
  config <the model's config.json>
  tokens <rows> <length>
  loss <mean cross-entropy of the next token>
  logits <largest magnitude> <index>:<value> ...      of the first batch, [rows, length, vocabulary], in FP64
  losses <loss> ...                                   of STEPS steps of AdamW on that batch, in FP64
  <parameter> <shape, as 61x64> <L2 norm> <sum> <largest magnitude> <index>:<value> ...     one line a gradient

Run: python tests/peers/golden.py tests/golden     (needs torch, transformers and numpy; stored: torch 2.15, transformers 5.23)
"""
import json
import math
import pathlib
import sys

import numpy as np
import torch
import transformers

ROWS, LENGTH, VOCABULARY, SAMPLES = 2, 32, 61, 8
STEPS, RATE, BETAS, EPS, DECAY, CLIP = 20, 1e-3, (0.9, 0.95), 1e-8, 0.1, 1.0
SIZES = dict(hidden_size=64, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2, intermediate_size=96, vocab_size=VOCABULARY,
             max_position_embeddings=64, bos_token_id=None, eos_token_id=None, attn_implementation="eager")


def draw(name, count):
    """The first `count` words of 32 bits that belong to a name: FNV-1a of the name, Weyl steps, MurmurHash3's last mixing."""
    key = 0x811C9DC5
    for byte in name.encode():
        key = (key ^ byte) * 0x01000193 & 0xFFFFFFFF
    mask = np.uint64(0xFFFFFFFF)
    h = (np.arange(count, dtype=np.uint64) * np.uint64(0x9E3779B9) + np.uint64(key)) & mask
    h = (h ^ h >> np.uint64(16)) * np.uint64(0x85EBCA6B) & mask
    h = (h ^ h >> np.uint64(13)) * np.uint64(0xC2B2AE35) & mask
    return h ^ h >> np.uint64(16)


def start(name, shape):
    """Uniform in [-1/4, 1/4) in steps of 2^-17, which FP32 holds exactly; around 1 for the weight of a norm."""
    values = (draw(name, math.prod(shape)) >> np.uint64(16)).astype(np.float64) * 2.0**-17 - 0.25
    if len(shape) == 1 and name.endswith(".weight"):
        values += 1
    return torch.from_numpy(values.astype(np.float32)).reshape(shape)


def llama():
    # Wavelengths of 16 positions and more are stretched, so that 32 positions show all three ranges of the scaled rotation.
    rope = dict(rope_type="llama3", rope_theta=10000.0, factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0, original_max_position_embeddings=16)
    return transformers.LlamaForCausalLM(
        transformers.LlamaConfig(**SIZES, head_dim=16, rms_norm_eps=1e-3, rope_parameters=rope, tie_word_embeddings=False))


def smollm2():
    rope = dict(rope_type="default", rope_theta=100000.0)
    return transformers.LlamaForCausalLM(transformers.LlamaConfig(**SIZES, rms_norm_eps=1e-5, rope_parameters=rope, tie_word_embeddings=True))


def qwen2():
    rope = dict(rope_type="default", rope_theta=1000.0)
    return transformers.Qwen2ForCausalLM(transformers.Qwen2Config(**SIZES, rms_norm_eps=1e-4, rope_parameters=rope, tie_word_embeddings=True))


def qwen3():
    # Heads of 24 columns, which do not follow from 64 columns and 4 heads.
    rope = dict(rope_type="default", rope_theta=1000.0)
    return transformers.Qwen3ForCausalLM(
        transformers.Qwen3Config(**SIZES, head_dim=24, rms_norm_eps=1e-3, rope_parameters=rope, tie_word_embeddings=False))


def gpt2():
    return transformers.GPT2LMHeadModel(
        transformers.GPT2Config(n_embd=64, n_layer=2, n_head=4, n_inner=96, vocab_size=VOCABULARY, n_positions=64, layer_norm_epsilon=1e-3,
                                bos_token_id=None, eos_token_id=None, attn_implementation="eager"))


def line(name, grad):
    flat = grad.reshape(-1).numpy().astype(np.float64)
    places = sorted(set(int(i) % flat.size for i in draw(name + " samples", SAMPLES)))
    numbers = [np.linalg.norm(flat), flat.sum(), np.abs(flat).max()]
    return " ".join([name, "x".join(map(str, grad.shape)), *(f"{x:.9g}" for x in numbers), *(f"{i}:{flat[i]:.9g}" for i in places)])


def pairs(flat, places):
    return " ".join(f"{i}:{flat[i]:.12g}" for i in places)


def loss_of(model, stream):
    logits = model(input_ids=stream[:, :-1]).logits
    return logits, torch.nn.functional.cross_entropy(logits.reshape(-1, logits.shape[-1]), stream[:, 1:].reshape(-1))


def training(model, stream, steps=STEPS):
    """The logits before the first step and the loss of each, all in FP64; matrices decay, vectors do not."""
    model = model.to(torch.float64)
    matrices = [p for p in model.parameters() if p.ndim > 1]
    vectors = [p for p in model.parameters() if p.ndim == 1]
    optimizer = torch.optim.AdamW([dict(params=matrices, weight_decay=DECAY), dict(params=vectors, weight_decay=0.0)], lr=RATE, betas=BETAS,
                                  eps=EPS)
    first, losses = None, []
    for _ in range(steps):
        optimizer.zero_grad()
        logits, loss = loss_of(model, stream)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), CLIP)
        optimizer.step()
        first = logits.detach() if first is None else first
        losses.append(loss.item())
    return first, losses


def golden(model):
    model = model.to(torch.float32).eval()  # eval: no dropout
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            parameter.copy_(start(name, tuple(parameter.shape)))
    stream = torch.from_numpy((draw("tokens", ROWS * (LENGTH + 1)) % np.uint64(VOCABULARY)).astype(np.int64)).reshape(ROWS, LENGTH + 1)
    _, loss = loss_of(model, stream)
    loss.backward()
    made = (f"# tests/peers/golden.py: {type(model).__name__} of transformers {transformers.__version__}, torch {torch.__version__}, "
            "gradients in FP32, logits and losses in FP64, on the CPU")
    lines = [made, "config " + json.dumps(model.config.to_dict()), f"tokens {ROWS} {LENGTH}", f"loss {loss.item():.9g}"]
    gradients = [line(name, p.grad) for name, p in model.named_parameters()]
    logits, losses = training(model, stream)
    flat = logits.reshape(-1).numpy()
    places = sorted(set(int(i) % flat.size for i in draw("logits samples", 4 * SAMPLES)))
    lines.append(f"logits {abs(flat).max():.12g} {pairs(flat, places)}")
    lines.append("losses " + " ".join(f"{x:.12g}" for x in losses))
    return lines + gradients


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: golden.py <folder for llama.txt, smollm2.txt, qwen2.txt, qwen3.txt and gpt2.txt>")
    torch.set_num_threads(1)
    for family in (llama, smollm2, qwen2, qwen3, gpt2):
        path = pathlib.Path(sys.argv[1]) / (family.__name__ + ".txt")
        path.write_text("\n".join(golden(family())) + "\n")
