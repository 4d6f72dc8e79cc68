#!/usr/bin/env python3
"""Twenty steps of LoRA as PEFT takes them on tiny models of transformers, for octet/train/step/lora.test.cpp.

Models, tokens and the optimizer are golden.py's; the base has golden.py's weights, and adapters begin from its start(), those of B an eighth
of it. All is computed in FP64 with eager attention. Lines of the file, for each model:
  # what made it
  model <family, whose tests/golden/<family>.txt has the base>
  peft <adapter_config.json, as PEFT writes it>
  losses <loss> ...                                       of STEPS steps of AdamW
  logits <largest magnitude> <index>:<value> ...          after them, of the batch, [rows, length, vocabulary]
  <tensor of adapter_model.safetensors> <shape> <L2 norm> <sum> <largest magnitude> <index>:<value> ...     after them

Run: python tests/peers/lora.py > tests/golden/lora.txt     (needs torch, transformers, peft and numpy; stored: torch 2.15, transformers 5.24, peft 0.21)
"""
import json
import tempfile

import numpy as np
import peft
import torch
import transformers

import golden

LAYERS = ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]
CASES = [  # family, rank, alpha, target_modules
    ("llama", 4, 8, LAYERS),
    ("qwen3", 3, 7, ["q_proj", "v_proj", "down_proj"]),
    ("gpt2", 4, 4, ["c_attn", "c_proj", "c_fc"]),
    ("qwen3_moe", 2, 8, ["q_proj", "k_proj", "v_proj", "o_proj"]),
]


def tensor_name(name):
    """As adapter_model.safetensors has it."""
    return name.replace(".default.weight", ".weight")


def base_of(family):
    model = getattr(golden, family)()
    if hasattr(model, "set_experts_implementation"):
        model.set_experts_implementation("eager")  # others do not multiply in FP64
    with torch.no_grad():
        for name, parameter, part in golden.tensors_of_files(model):
            values = part(parameter)
            values.copy_(golden.start(name, tuple(values.shape)))
    return model.eval()


def written_config(model):
    with tempfile.TemporaryDirectory() as folder:
        model.save_pretrained(folder)
        with open(folder + "/adapter_config.json") as file:
            return json.load(file) | dict(base_model_name_or_path="model")


def train(model, stream):
    """The losses of all steps, and the logits after them."""
    trained = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.AdamW(trained, lr=golden.RATE * 10, betas=golden.BETAS, eps=golden.EPS, weight_decay=golden.DECAY)
    losses = []
    for _ in range(golden.STEPS):
        optimizer.zero_grad()
        _, loss, minimized = golden.loss_of(model.base_model.model, stream)
        minimized.backward()
        torch.nn.utils.clip_grad_norm_(trained, golden.CLIP)
        optimizer.step()
        losses.append(loss.item())
    with torch.no_grad():
        return losses, golden.loss_of(model.base_model.model, stream)[0]


def case(family, rank, alpha, targets):
    model = peft.get_peft_model(base_of(family), peft.LoraConfig(r=rank, lora_alpha=alpha, target_modules=targets, task_type="CAUSAL_LM")).eval()
    adapters = [(tensor_name(name), p) for name, p in model.named_parameters() if p.requires_grad]
    with torch.no_grad():
        for name, p in adapters:
            p.copy_(golden.start(name, tuple(p.shape)) / (8 if "lora_B" in name else 1))
    model = model.to(torch.float64)
    adapters = [(tensor_name(name), p) for name, p in model.named_parameters() if p.requires_grad]
    count = golden.ROWS * (golden.LENGTH + 1)
    stream = torch.from_numpy((golden.draw("tokens", count) % np.uint64(golden.VOCABULARY)).astype(np.int64)).reshape(golden.ROWS, -1)
    losses, logits = train(model, stream)
    flat = logits.reshape(-1).numpy()
    places = sorted(set(int(i) % flat.size for i in golden.draw("logits samples", 4 * golden.SAMPLES)))
    print(f"# tests/peers/lora.py: {family}, PEFT {peft.__version__}, transformers {transformers.__version__}, torch {torch.__version__}, in FP64 on the CPU")
    print("model", family)
    print("peft", json.dumps(written_config(model)))
    print("losses", " ".join(f"{x:.12g}" for x in losses))
    print(f"logits {abs(flat).max():.12g} {golden.pairs(flat, places)}")
    for name, p in adapters:
        print(golden.line(name, p.detach()))


if __name__ == "__main__":
    torch.set_num_threads(1)
    for arguments in CASES:
        case(*arguments)
