#!/usr/bin/env python3
"""Compares the ids of `octet tokenize` with those of PyPI `tokenizers`, for tokenizers of the constructions in use that are trained here.

    python3 tests/peers/tokenizers/check.py OCTET FOLDER [--megabytes 20] [--only NAME] [--venv VENV]

OCTET is the program; FOLDER gets tokenizers, text and datasets. The text is code and prose of this machine, and synthetic text of all scripts
with invalid UTF-8, long runs and special tokens. With --venv, the package is installed from PyPI into that virtual environment if this
Python has none. Exit code 77: there is no package and none can be had.
"""

import argparse
import os
import pathlib
import shutil
import struct
import subprocess
import sys
import time

UNAVAILABLE = 77


def run_in(venv):
    """This script again, by a Python that has the package."""
    python = venv / "bin" / "python"
    done = venv / "installed"
    if not done.exists():
        for command in ([sys.executable, "-m", "venv", str(venv)],
                        [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--only-binary=:all:", "--timeout", "20",
                         "--retries", "1", "tokenizers==0.23.*", "numpy<3"]):
            try:
                outcome = subprocess.run(command, capture_output=True, text=True, timeout=240)
            except subprocess.TimeoutExpired:
                outcome = None
            if outcome is None or outcome.returncode != 0:
                print("SKIPPED: no tokenizers package:", " ".join(command), outcome.stderr[-500:] if outcome else "takes too long")
                sys.exit(UNAVAILABLE)
        done.touch()
    os.execv(python, [str(python), *sys.argv])


def stream_of(folder):
    """All ids of a dataset."""
    import numpy

    parts = []
    for shard in sorted(folder.glob("shard-*.tok")):
        with open(shard, "rb") as file:
            width, tokens, _ = struct.unpack_from("<IQQ", file.read(256), 12)
            parts.append(numpy.fromfile(file, dtype={2: "<u2", 4: "<u4"}[width], count=tokens))
    return numpy.concatenate(parts).astype(numpy.int64)


def compare(name, tokenizer, end, paths, ids):
    """The first difference between the dataset's ids and the package's, or None; and the seconds of the package."""
    import numpy

    separator, at, seconds = tokenizer.token_to_id(end), 0, 0.0
    for start in range(0, len(paths), 256):
        texts = [path.read_bytes().decode("utf-8", errors="replace") for path in paths[start:start + 256]]
        before = time.monotonic()
        encoded = tokenizer.encode_batch(texts)
        seconds += time.monotonic() - before
        for path, one in zip(paths[start:start + 256], encoded):
            wanted = numpy.array(one.ids + [separator], dtype=numpy.int64)
            got = ids[at:at + len(wanted)]
            if not numpy.array_equal(got, wanted):
                least = min(len(got), len(wanted))
                place = int(numpy.argmax(got[:least] != wanted[:least])) if (got[:least] != wanted[:least]).any() else least
                return (f"{name}: {path}: token {place} is {got[place:place + 8].tolist()}, it must be {wanted[place:place + 8].tolist()}: "
                        f"{tokenizer.decode(wanted[max(0, place - 8):place + 8].tolist(), skip_special_tokens=False)!r}"), seconds
            at += len(wanted)
    return (None if at == len(ids) else f"{name}: {len(ids)} ids, {at} are expected"), seconds


def check_decoding(octet, folder, tokenizer, paths):
    """Decodes the beginning of some documents with both."""
    for path in paths[:: max(1, len(paths) // 12)]:
        ids = tokenizer.encode(path.read_bytes()[:4000].decode("utf-8", errors="replace")).ids
        command = [octet, "tokenizer", "decode", "--tokenizer", str(folder)]
        got = subprocess.run(command, input=" ".join(map(str, ids)).encode(), capture_output=True, check=True).stdout
        if got.decode("utf-8") != tokenizer.decode(ids):
            return f"{folder.name}: {path}: decoded text differs"
    return None


def check_training(octet, folder, paths):
    """Trains on some documents with both: vocabulary and merges must be equal."""
    import json

    import constructions
    from tokenizers import Tokenizer, models

    size, taken, total = 1500, [], 0
    for path in paths:
        if total < 1_000_000 and b"\0" not in path.read_bytes():  # a text, as training takes them
            taken.append(path)
            total += path.stat().st_size
    inputs = [word for path in taken for word in ("--input", str(path))]
    command = [octet, "tokenizer", "train", *inputs, "--vocabulary", str(size + 1), "--least-count", "1", "--force", "--output",
               str(folder / "tokenizer.json")]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = constructions.split_then_bytes(constructions.LLAMA_3)
    texts = [path.read_bytes().decode("utf-8", errors="replace") for path in taken]
    tokenizer.train_from_iterator(texts, constructions.byte_level_trainer(size, []))
    wanted, got = json.loads(tokenizer.to_str())["model"], json.loads((folder / "tokenizer.json").read_text())["model"]
    for key in ("vocab", "merges"):
        if wanted[key] != got[key]:
            return f"{key} differ"
    reread = Tokenizer.from_file(str(folder / "tokenizer.json"))
    command = [octet, "tokenizer", "encode", "--tokenizer", str(folder), "--input", str(taken[0])]
    ids = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return None if [int(one) for one in ids.split()] == reread.encode(texts[0]).ids else "ids differ"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("octet")
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--megabytes", type=float, default=20)
    parser.add_argument("--only", action="append")
    parser.add_argument("--vocabulary", type=int, default=8000)
    parser.add_argument("--venv", type=pathlib.Path)
    options = parser.parse_args()
    try:
        import numpy  # noqa: F401
        import tokenizers  # noqa: F401
    except ImportError:
        if options.venv is None or sys.prefix != sys.base_prefix:
            print("SKIPPED: this Python has no tokenizers and numpy")
            sys.exit(UNAVAILABLE)
        run_in(options.venv)
    sys.path.insert(0, str(pathlib.Path(__file__).parent))
    import constructions

    octet = os.path.abspath(options.octet)
    text = options.folder / "text"
    shutil.rmtree(text, ignore_errors=True)
    text.mkdir(parents=True)
    paths = []
    for number, document in enumerate(constructions.corpus(options.megabytes, 17)):
        paths.append(text / f"{number:07}.txt")
        paths[-1].write_bytes(document)
    sample = [path.read_bytes().decode("utf-8", errors="replace") for path in paths[:: max(1, len(paths) // 150)]]
    sample = [one[:20_000] for one in sample]
    size = sum(path.stat().st_size for path in paths)
    failed = []
    for name, make in constructions.CONSTRUCTIONS.items():
        if options.only and name not in options.only:
            continue
        folder, data = options.folder / name, options.folder / f"{name}-data"
        tokenizer, end = make(sample, options.vocabulary)
        constructions.save(tokenizer, end, folder)
        before = time.monotonic()
        subprocess.run([octet, "tokenize", "--input", str(text / "*.txt"), "--model", str(folder), "--output", str(data), "--force", "--any-bytes"], check=True,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        octet_seconds = time.monotonic() - before
        difference, seconds = compare(name, tokenizer, end, paths, stream_of(data))
        difference = difference or check_decoding(octet, folder, tokenizer, paths)
        print(f"{name}: {size / 1e6:.1f} MB, octet {size / 1e6 / octet_seconds:.1f} MB/s, tokenizers {constructions.version()} "
              f"{size / 1e6 / max(seconds, 1e-9):.1f} MB/s: {difference or 'equal ids'}", flush=True)
        if difference:
            failed.append(name)
    difference = check_training(octet, options.folder / "trained", paths)
    print(f"octet tokenizer train: {difference or 'equal vocabulary and merges'}", flush=True)
    sys.exit(1 if failed or difference else 0)


if __name__ == "__main__":
    main()
