#!/usr/bin/env python3
"""Compares `octet eval --task` with shares that NumPy counts from `octet eval --logits`, on questions for a model of bytes.

Run: python tests/peers/check_task.py OCTET MODEL     (needs numpy; MODEL: a run or folder of a model with the byte tokenizer)
"""
import json
import re
import struct
import subprocess
import sys
import tempfile

import numpy as np

octet, model = sys.argv[1:3]
QUESTIONS = 12


def write_ids(path, ids):
    header = json.dumps({"ids": {"dtype": "I64", "shape": [1, len(ids)], "data_offsets": [0, 8 * len(ids)]}}).encode()
    header += b" " * (-len(header) % 8)
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(header)) + header + np.asarray(ids, "<i8").tobytes())


def read_logits(path):
    data = open(path, "rb").read()
    (size,) = struct.unpack("<Q", data[:8])
    entry = json.loads(data[8 : 8 + size])["logits"]
    begin, end = entry["data_offsets"]
    return np.frombuffer(data[8 + size + begin : 8 + size + end], "<f4").reshape(entry["shape"])[0].astype(np.float64)


def likelihood(folder, context, choice):
    context, whole = context.rstrip(), (context + " " + choice).encode()
    scored = len(whole) - len(context.encode())
    write_ids(f"{folder}/ids.safetensors", list(whole[:-1]))
    subprocess.run([octet, "eval", model, "--recipe", "fp32", "--logits", f"{folder}/l.safetensors", "--ids", f"{folder}/ids.safetensors"],
                   check=True, stdout=subprocess.DEVNULL)
    logits = read_logits(f"{folder}/l.safetensors")
    logits -= logits.max(axis=1, keepdims=True)
    logits -= np.log(np.exp(logits).sum(axis=1, keepdims=True))
    return sum(logits[len(whole) - 1 - scored + t, whole[len(whole) - scored + t]] for t in range(scored))


words = "the of include return value int const text name file line".split()
random = np.random.default_rng(1)
questions = []
for i in range(QUESTIONS):
    choices = [" ".join(random.choice(words, int(random.integers(1, 4)))) + "éx"[i % 2] for _ in range(4)]
    questions.append({"context": " ".join(random.choice(words, 5)) + " " * (i % 2), "choices": choices, "answer": int(random.integers(4))})

with tempfile.TemporaryDirectory() as folder:
    with open(f"{folder}/task.jsonl", "w") as f:
        f.writelines(json.dumps(q) + "\n" for q in questions)
    acc = norm = 0
    for q in questions:
        sums = np.array([likelihood(folder, q["context"], c) for c in q["choices"]])
        acc += int(sums.argmax() == q["answer"])
        norm += int((sums / [len(c) for c in q["choices"]]).argmax() == q["answer"])
    shown = subprocess.run([octet, "eval", model, "--recipe", "fp32", "--task", f"{folder}/task.jsonl"], check=True, capture_output=True,
                           text=True).stdout
found = [float(x) for x in re.findall(r"acc(?:_norm)? ([0-9.]+)", shown)]
wanted = [round(acc / QUESTIONS, 4), round(norm / QUESTIONS, 4)]
print(shown.strip(), "| counted:", wanted)
sys.exit(0 if np.allclose(found, wanted, atol=1e-4) else 1)
