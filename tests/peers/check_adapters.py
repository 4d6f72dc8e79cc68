#!/usr/bin/env python3
"""Compares logits of adapters between Octet and PEFT, in both directions. Run by hand, not by the tests.

    python tests/peers/check_adapters.py OCTET ADAPTERS

OCTET is the program, ADAPTERS a PEFT folder that it wrote, such as runs/NAME/weights; both run where base_model_name_or_path leads to the
model. In FP32 on the CPU, logits of random tokens must agree within 1e-4 of the largest one:
  - of ADAPTERS in PEFT, and in Octet, which merges them;
  - of `octet export ADAPTERS` in transformers;
  - of other adapters, which PEFT saves.
Needs torch, transformers, peft and safetensors.
"""
import json
import pathlib
import subprocess
import sys
import tempfile

import peft
import safetensors.torch
import torch
import transformers

LARGEST_DIFFERENCE = 1e-4


def octet_logits(octet, folder, ids, place):
    safetensors.torch.save_file({"ids": ids.to(torch.int32)}, place / "ids.safetensors")
    subprocess.run([octet, "eval", folder, "--recipe", "fp32", "--device", "cpu", "--ids", place / "ids.safetensors", "--logits",
                    place / "logits.safetensors"], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return safetensors.torch.load_file(place / "logits.safetensors")["logits"].float()


def compare(name, theirs, ours):
    difference = ((theirs - ours.reshape(theirs.shape)).abs().max() / theirs.abs().max()).item()
    print(f"{name}: largest difference {difference:.2e} of the largest logit")
    return difference <= LARGEST_DIFFERENCE


@torch.no_grad()
def main():
    octet, folder = str(pathlib.Path(sys.argv[1]).resolve()), sys.argv[2]
    transformers.utils.logging.set_verbosity_error()
    base = json.loads(pathlib.Path(folder, "adapter_config.json").read_text())["base_model_name_or_path"]
    load = lambda: transformers.AutoModelForCausalLM.from_pretrained(base, dtype=torch.float32)
    model = peft.PeftModel.from_pretrained(load(), folder).eval()
    plain, ids = load().eval(), torch.randint(0, model.config.vocab_size, (2, 48), generator=torch.Generator().manual_seed(1))
    good = True
    with tempfile.TemporaryDirectory() as temporary:
        place = pathlib.Path(temporary)
        logits = model(ids).logits
        print(f"the adapters change logits by up to {(logits - plain(ids).logits).abs().max() / logits.abs().max():.2e}")
        good &= compare("Octet's adapters", logits, octet_logits(octet, folder, ids, place))
        subprocess.run([octet, "export", folder, "--output", place / "merged", "--dtype", "f32"], check=True, stdout=subprocess.DEVNULL)
        merged = transformers.AutoModelForCausalLM.from_pretrained(place / "merged", dtype=torch.float32).eval()
        good &= compare("the merged folder in transformers", logits, merged(ids).logits)
        torch.manual_seed(2)
        for name, parameter in model.named_parameters():
            if "lora_" in name:
                parameter.normal_(0, 0.1)
        model.save_pretrained(place / "saved")
        good &= compare("PEFT's adapters", model(ids).logits, octet_logits(octet, place / "saved", ids, place))
    sys.exit(not good)


if __name__ == "__main__":
    main()
