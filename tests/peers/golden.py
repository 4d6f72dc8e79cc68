#!/usr/bin/env python3
"""Loss and gradients of four tiny language models as PyTorch computes them, for octet/train/step/golden.test.cpp.

Writes <folder>/llama.txt, qwen2.txt, qwen3.txt and gpt2.txt: transformers' own models on the CPU, in FP32, with eager attention. Weights and tokens
come from a formula in integers that the test computes too, so the files hold results only. Lines of a file:
  # what made it
  config <the model's config.json>
  tokens <rows> <length>
  loss <mean cross-entropy of the next token>
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


def golden(model):
    model = model.to(torch.float32).eval()  # eval: no dropout
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            parameter.copy_(start(name, tuple(parameter.shape)))
    stream = torch.from_numpy((draw("tokens", ROWS * (LENGTH + 1)) % np.uint64(VOCABULARY)).astype(np.int64)).reshape(ROWS, LENGTH + 1)
    logits = model(input_ids=stream[:, :-1]).logits
    loss = torch.nn.functional.cross_entropy(logits.reshape(-1, VOCABULARY), stream[:, 1:].reshape(-1))
    loss.backward()
    made = f"# tests/peers/golden.py: {type(model).__name__} of transformers {transformers.__version__}, torch {torch.__version__}, FP32 on the CPU"
    return [made, "config " + json.dumps(model.config.to_dict()), f"tokens {ROWS} {LENGTH}", f"loss {loss.item():.9g}",
            *(line(name, p.grad) for name, p in model.named_parameters())]


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: golden.py <folder for llama.txt, qwen2.txt, qwen3.txt and gpt2.txt>")
    torch.set_num_threads(1)
    for family in (llama, qwen2, qwen3, gpt2):
        path = pathlib.Path(sys.argv[1]) / (family.__name__ + ".txt")
        path.write_text("\n".join(golden(family())) + "\n")
