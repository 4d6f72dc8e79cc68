#!/usr/bin/env python3
"""Tokens per second of transformers on a CPU, beside `octet generate` (docs/generate.md).

Usage: generate.py FOLDER DTYPE RUNS [--make]; DTYPE is bfloat16 or float32. --make writes a Llama of 135M parameters with random weights to
FOLDER first. Needs torch and transformers.
"""
import statistics
import sys
import time

import torch
from transformers import LlamaConfig, LlamaForCausalLM


def make(folder):
    torch.manual_seed(0)
    LlamaForCausalLM(LlamaConfig(vocab_size=49152, hidden_size=576, intermediate_size=1536, num_hidden_layers=30, num_attention_heads=9,
                                 num_key_value_heads=3, max_position_embeddings=2048, tie_word_embeddings=True, bos_token_id=None,
                                 eos_token_id=None, rms_norm_eps=1e-5)).save_pretrained(folder)


def main(folder, dtype, runs):
    torch.set_num_threads(2)
    model = LlamaForCausalLM.from_pretrained(folder, dtype=getattr(torch, dtype)).eval()
    ids, rates = torch.arange(20, 36)[None], []
    with torch.no_grad():
        for _ in range(runs):
            begin = time.perf_counter()
            model.generate(ids, max_new_tokens=100, min_new_tokens=100, do_sample=False)
            rates.append(100 / (time.perf_counter() - begin))
    print(f"{dtype}: {statistics.median(rates):.1f} tokens/s ({min(rates):.1f} to {max(rates):.1f}, {runs} runs)")


if __name__ == "__main__":
    if "--make" in sys.argv:
        make(sys.argv[1])
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
