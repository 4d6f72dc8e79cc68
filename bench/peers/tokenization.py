#!/usr/bin/env python3
"""Measures `octet tokenize` and encode_batch of PyPI `tokenizers` in turn, on the same files and processors.

    python3 bench/peers/tokenization.py OCTET TOKENIZER_FOLDER FILE...

For 1 and 2 processors, each program runs five times in turn; median and range are printed. Octet's time is that of the process: loading the
tokenizer, reading the text, writing the dataset. The package's time is that of encode_batch alone, with the texts in memory. Besides the time,
the seconds of processors are printed, which depend less on other work of the machine.
"""

import os
import pathlib
import resource
import statistics
import subprocess
import sys
import tempfile
import time

TURNS = 5


def spent(who):
    usage = resource.getrusage(who)
    return usage.ru_utime + usage.ru_stime


def package(folder, files):
    """Runs in a process of its own, whose processors are chosen by the caller."""
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(pathlib.Path(folder) / "tokenizer.json"))
    texts = [pathlib.Path(file).read_bytes().decode("utf-8", errors="replace") for file in files]
    wall, cpu = time.monotonic(), spent(resource.RUSAGE_SELF)
    tokenizer.encode_batch(texts)
    print(time.monotonic() - wall, spent(resource.RUSAGE_SELF) - cpu)


def timed(command, processors):
    """Seconds and processor seconds of a process, and what it prints."""
    wall, cpu = time.monotonic(), spent(resource.RUSAGE_CHILDREN)
    out = subprocess.run(command, check=True, capture_output=True, text=True, env={**os.environ, "RAYON_NUM_THREADS": str(processors)},
                         preexec_fn=lambda: os.sched_setaffinity(0, range(processors))).stdout
    return time.monotonic() - wall, spent(resource.RUSAGE_CHILDREN) - cpu, out


def main():
    if sys.argv[1] == "--package":
        return package(sys.argv[2], sys.argv[3:])
    octet, folder, files = sys.argv[1], sys.argv[2], sys.argv[3:]
    size = sum(pathlib.Path(file).stat().st_size for file in files) / 1e6
    inputs = [word for file in files for word in ("--input", file)]
    print(f"{size:.1f} MB in {len(files)} files")
    for processors in (1, 2):
        figures = {}
        for _ in range(TURNS):
            with tempfile.TemporaryDirectory() as out:
                wall, cpu, _ = timed([octet, "tokenize", *inputs, "--model", folder, "--output", out + "/data"], processors)
                figures.setdefault("octet", []).append((wall, cpu))
            printed = timed([sys.executable, __file__, "--package", folder, *files], processors)[2]
            figures.setdefault("tokenizers", []).append(tuple(map(float, printed.split())))
        for name, times in figures.items():
            rates = [sorted(size / t[i] for t in times) for i in (0, 1)]
            wall, cpu = (f"{statistics.median(r):.1f} ({r[0]:.1f} - {r[-1]:.1f})" for r in rates)
            print(f"{processors} processors, {name}: {wall} MB/s, {cpu} MB per processor second")


if __name__ == "__main__":
    main()
