#!/usr/bin/env python3
"""Holds exported GGUF files against PyPI `gguf` and llama.cpp, for small models that are trained here.

    python tests/peers/check_gguf.py OCTET FOLDER [--values] [NAME...]

OCTET is the program; FOLDER gets text, models and files. Each case is a family with a tokenizer: `octet tokenizer train` makes those of
byte-level constructions, PyPI `tokenizers` that with marks for spaces (left out without the package). Needs numpy, gguf and
llama-cpp-python, which compiles in minutes; run by hand, not by the tests. With --values it does the first alone, without that package. Per
case:

    values      tensors have the names of `gguf`'s tables; F16 and Q8_0 tensors, decoded by `gguf`, are those of the folder in F32, rounded as `gguf` rounds
    tokens      llama.cpp and octet encode the same text with the same ids
    logits      of F16, largest difference to octet in FP32 at most 1e-2; of Q8_0 it is printed
    greedy      32 most likely tokens after a prompt are the same
"""
import json
import pathlib
import shutil
import subprocess
import sys

import gguf
import numpy as np

HERE = pathlib.Path(__file__).resolve().parent
PROMPT = "The loss of a run, which began in 2024 with 1234567 tokens, isn't"
TEXT = PROMPT + "\n\n    for (int i = 0; i < 10; ++i) {\n\tx[i] += 3.14159;\r\n}  // caf\u00e9 \u4f60\u597d, d\u00e9j\u00e0-vu   end"
# name: family, digits of the tokenizer or its construction, tied
CASES = {"llama-byte": ("llama", "byte", "no"), "llama-3": ("llama", "3", "no"), "qwen2-1": ("qwen2", "1", "yes"),
         "qwen3-1": ("qwen3", "1", "no"), "llama-any": ("llama", "any", "yes"), "llama-smollm": ("llama", "digits", "no"),
         "llama-mistral": ("llama", "mistral", "no"), "mistral": ("mistral", "mistral", "no"), "smollm3": ("smollm3", "3", "yes"),
         "granite": ("granite", "any", "yes"), "olmo2": ("olmo2", "3", "no"), "phi3": ("phi3", "any", "no"), "gemma3": ("gemma3_text", "any", "yes")}
MORE = {"smollm3": dict(layers=4), "gemma3": dict(layers=7)}  # a layer without rotations, and one without a window


def run(*command):
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{command}: {done.stderr[-1000:]}")
    return done.stdout


def safetensors(path):
    data = pathlib.Path(path).read_bytes()
    size = int.from_bytes(data[:8], "little")
    out = {}
    for name, t in json.loads(data[8:8 + size]).items():
        if name != "__metadata__":
            begin, end = t["data_offsets"]
            kind = {"F32": np.float32, "I64": np.int64}[t["dtype"]]
            out[name] = np.frombuffer(data[8 + size + begin:8 + size + end], kind).reshape(t["shape"])
    return out


def write_ids(path, ids):
    raw = np.array([ids], np.int64).tobytes()
    header = json.dumps({"ids": {"dtype": "I64", "shape": [1, len(ids)], "data_offsets": [0, len(raw)]}}).encode()
    header += b" " * (-len(header) % 8)
    path.write_bytes(len(header).to_bytes(8, "little") + header + raw)


def make_tokenizer(octet, kind, text, place):
    if kind in ("1", "3", "any"):
        run(octet, "tokenizer", "train", "--input", text, "--vocabulary", 600, "--digits", kind, "--output", place / "tokenizer.json", "--force")
        return True
    sys.path.insert(0, str(HERE / "tokenizers"))
    try:
        import constructions
    except ImportError:
        return False
    tokenizer, end = constructions.CONSTRUCTIONS[kind]([text.read_text()], 900 if kind == "mistral" else 600)
    constructions.save(tokenizer, end, place)
    return True


def make_model(octet, folder, name):
    family, kind, tied = CASES[name]
    place = folder / name
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    text = folder / "text.txt"
    tokenizer = []
    if kind != "byte":
        if not make_tokenizer(octet, kind, text, place / "tokenizer"):
            return None
        tokenizer = ["--tokenizer", place / "tokenizer"]
    run(octet, "tokenize", "--input", text, "--output", place / "data", *tokenizer)
    keys = {"family": family, "layers": 2, "width": 64, "heads": 4, "kv_heads": 2, "hidden": 160, "context": 256, "tied": tied}
    keys |= MORE.get(name, {})
    if kind != "byte":
        keys["vocabulary"] = 640 if kind != "mistral" else 960  # beyond the tokenizer: both have padding
    sets = [part for key, value in keys.items() for part in ("--set", f"model.{key}={value}")]
    run(octet, "train", "--data", place / "data", "--steps", 60, "--quiet", "--set", "device=cpu", "--set", "data.sequence_length=64", "--set",
        "train.batch=8", "--set", "optim.learning_rate=5e-3", "--output", place, "--name", "run", *sets)
    for form in ("f32", "gguf-f16", "gguf-q8_0"):
        run(octet, "export", place / "run", "--dtype", form, "--output", place / ("hf" if form == "f32" else form[5:] + ".gguf"))
    return place


def map_of(reader):
    """Names of a folder's tensors in a file of its architecture, by `gguf`."""
    name = bytes(reader.fields["general.architecture"].parts[-1]).decode()
    architecture = next(a for a, n in gguf.MODEL_ARCH_NAMES.items() if n == name)
    return gguf.get_tensor_name_map(architecture, 16)


def check_values(place, family):
    heads = {"q": 4, "k": 2}
    source = safetensors(place / "hf" / "model.safetensors")
    for form in ("f16", "q8_0"):
        reader = gguf.GGUFReader(place / f"{form}.gguf")
        tensors, names = {t.name: t for t in reader.tensors}, map_of(reader)
        assert len(tensors) == len(source), (sorted(tensors), sorted(source))
        for name, values in source.items():
            t = tensors[names.get_name(name, (".weight", ".bias"))]
            if family == "gemma3_text" and name.endswith("norm.weight"):
                values = values + np.float32(1)
            for part, n in heads.items():  # as convert_hf_to_gguf.py does for a Llama
                if family in ("llama", "mistral", "smollm3", "granite") and f".{part}_proj.weight" in name:
                    values = values.reshape(n, 2, -1, values.shape[1]).swapaxes(1, 2).reshape(values.shape)
            wanted = values if values.ndim == 1 else gguf.dequantize(gguf.quantize(values, t.tensor_type), t.tensor_type)
            assert np.array_equal(gguf.dequantize(t.data, t.tensor_type).reshape(values.shape), wanted), (form, name)
    return len(source)


def check(octet, folder, name, values_alone):
    place = make_model(octet, folder, name)
    if place is None:
        return print(f"{name}: not run, no package tokenizers")
    family, kind, _ = CASES[name]
    tensors = check_values(place, family)
    if values_alone:
        return print(f"{name}: {tensors} tensors equal")
    import llama_cpp
    tokenizer = "byte" if kind == "byte" else place / "hf"
    (place / "text.txt").write_text(TEXT, newline="")
    ours = [int(x) for x in run(octet, "tokenizer", "encode", "--tokenizer", tokenizer, "--input", place / "text.txt").split()]
    results = {}
    for form in ("f16", "q8_0"):
        llm = llama_cpp.Llama(str(place / f"{form}.gguf"), n_ctx=256, logits_all=True, verbose=False, n_threads=2)
        ids = llm.tokenize(TEXT.encode(), add_bos=False, special=False)
        begin = llm.tokenize(b"", add_bos=True)
        same_ids = ids == ours or begin + ids == ours
        write_ids(place / "ids.safetensors", ours)
        run(octet, "eval", place / "hf", "--recipe", "fp32", "--device", "cpu", "--ids", place / "ids.safetensors", "--logits", place / "logits.safetensors")
        wanted = safetensors(place / "logits.safetensors")["logits"][0]
        llm.eval(ours)
        off = float(np.abs(np.array(llm.scores[:len(ours)]) - wanted).max())
        prompt = llm.tokenize(PROMPT.encode(), add_bos=True)
        llm.reset()
        llm.eval(prompt)
        greedy = []
        for _ in range(32):
            greedy.append(int(np.argmax(llm.scores[llm.n_tokens - 1])))
            llm.eval(greedy[-1:])
        shown = run(octet, "generate", place / "hf", "--recipe", "fp32", "--device", "cpu", "--temperature", 0, "--tokens", 32, "--prompt", PROMPT,
                    "--as", "ids")
        wanted_ids = [int(x) for x in shown.split()][-32:]
        n = min(len(greedy), len(wanted_ids))
        results[form] = (same_ids, off, greedy[:n] == wanted_ids[:n])
    f16, q8 = results["f16"], results["q8_0"]
    good = f16[0] and f16[1] <= 1e-2 and f16[2]
    print(f"{name}: {tensors} tensors equal; ids {'equal' if f16[0] else 'DIFFER'}; logits of F16 within {f16[1]:.1e}, of Q8_0 {q8[1]:.1e} "
          f"(spread {wanted.max() - wanted.min():.1f}); greedy {'equal' if f16[2] else 'DIFFERS'}, Q8_0 {'equal' if q8[2] else 'differs'}")
    return good


def main():
    octet, folder, *names = [word for word in sys.argv[1:] if word != "--values"]
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    text = "".join(p.read_text() for p in sorted((HERE.parent.parent / "docs").glob("*.md")))
    (folder / "text.txt").write_text(text[:600_000])
    good = [check(pathlib.Path(octet).resolve(), folder, name, "--values" in sys.argv) for name in names or CASES]
    sys.exit(1 if False in good else 0)


if __name__ == "__main__":
    main()
