#!/usr/bin/env python3
"""Holds an exported model against transformers: no missing or unexpected key, and the same FP32 loss within 1e-4.

    python tests/peers/check_export.py OCTET FOLDER...

OCTET is the program, each FOLDER a Hugging Face folder that it wrote for the byte tokenizer (a run's `weights`). Needs torch and
transformers; run by hand, not by the tests.
"""
import pathlib
import re
import subprocess
import sys
import tempfile

import torch
from transformers import AutoModelForCausalLM

SEQUENCE, SEPARATOR = 64, 256


def text() -> bytes:
    """Some fixed bytes that look like text: words of a linear congruential generator."""
    state, out = 1, bytearray()
    for _ in range(4096):
        state = (state * 1103515245 + 12345) % 2**31
        out.append(32 if state >> 16 & 7 == 0 else 97 + (state >> 20) % 26)
    return bytes(out)


def octet_loss(octet: str, folder: str, data: bytes) -> float:
    with tempfile.TemporaryDirectory() as place:
        source = pathlib.Path(place, "text.txt")
        source.write_bytes(data)
        subprocess.run([octet, "tokenize", "--input", source, "--output", f"{place}/tokens"], check=True, capture_output=True)
        shown = subprocess.run(
            [octet, "eval", folder, "--data", f"{place}/tokens", "--recipe", "fp32", "--sequence", str(SEQUENCE), "--held-out", "0.5"],
            check=True, capture_output=True, text=True).stdout
    return float(re.search(r"loss ([0-9.]+)", shown).group(1))


def transformers_loss(folder: str, data: bytes) -> float:
    model, info = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32, attn_implementation="eager", output_loading_info=True)
    wrong = {kind: keys for kind, keys in info.items() if keys}
    if wrong:
        sys.exit(f"{folder}: {wrong}")
    ids = list(data) + [SEPARATOR]
    held_out = ids[len(ids) - len(ids) // 2:]  # the second half of the only document
    losses = []
    model.eval()
    with torch.no_grad():
        for begin in range(0, len(held_out) - SEQUENCE, SEQUENCE):
            window = torch.tensor(held_out[begin:begin + SEQUENCE + 1])
            logits = model(window[None, :-1]).logits[0]
            losses.append(torch.nn.functional.cross_entropy(logits, window[1:]).item())
    return sum(losses) / len(losses)


def main() -> None:
    octet, *folders = sys.argv[1:]
    worst = 0.0
    for folder in folders:
        ours, theirs = octet_loss(octet, folder, text()), transformers_loss(folder, text())
        worst = max(worst, abs(ours - theirs))
        print(f"{folder}: octet {ours:.6f}, transformers {theirs:.6f}, difference {abs(ours - theirs):.1e}")
    sys.exit(0 if worst <= 1e-4 else 1)


if __name__ == "__main__":
    main()
