#!/usr/bin/env python3
"""Runs examples/fine_tune.sh, loads its result in transformers, and compares greedy text. Run by hand, not by the tests.

    python tests/peers/check_fine_tuning.py OCTET

OCTET is the program. Needs torch and transformers. The folders `base` and `tuned`, in which Octet wrote a Qwen2.5 and its tokenizer, must
load without missing, unexpected or misshapen keys, and encode the prompts to the ids that `octet tokenizer encode` gives. For each prompt
the text of 40 tokens must be the one of `octet generate` in FP32.
"""
import pathlib
import subprocess
import sys
import tempfile

import torch
import transformers

PROMPTS = ("The recipe", "octet train --data", "#include <", "A model from Z\u00fcrich, 12 layers:")


def main():
    octet = str(pathlib.Path(sys.argv[1]).resolve())
    example = pathlib.Path(__file__).resolve().parents[2] / "examples/fine_tune.sh"
    transformers.utils.logging.set_verbosity_error()
    failed = 0
    with tempfile.TemporaryDirectory() as place:
        subprocess.run([example, octet, place], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        for name in ("base", "tuned"):
            folder = f"{place}/{name}"
            model, info = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32, output_loading_info=True)
            tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
            wrong = {kind: keys for kind, keys in info.items() if keys}
            for prompt in PROMPTS:
                ids = tokenizer(prompt, return_tensors="pt")["input_ids"]
                ours = subprocess.run([octet, "tokenizer", "encode", "--tokenizer", folder], input=prompt.encode(), capture_output=True, check=True)
                if [int(word) for word in ours.stdout.split()] != ids[0].tolist():
                    wrong[f"ids of {prompt!r}"] = ours.stdout.decode(), ids[0].tolist()
                with torch.no_grad():
                    out = model.generate(ids, attention_mask=torch.ones_like(ids), do_sample=False, max_new_tokens=40)[0]
                theirs = prompt + tokenizer.decode(out[ids.shape[1]:], skip_special_tokens=True) + "\n"
                text = subprocess.run([octet, "generate", folder, "--prompt", prompt, "--recipe", "fp32", "--device", "cpu", "--temperature", "0",
                                       "--tokens", "40"], capture_output=True, check=True).stdout.decode()
                if text != theirs:
                    wrong[f"text after {prompt!r}"] = text, theirs
            print(f"{name}: {wrong or f'all keys, ids and {len(PROMPTS)} texts'}")
            failed |= bool(wrong)
    sys.exit(failed)


if __name__ == "__main__":
    main()
