#!/usr/bin/env python3
"""Twenty steps of LoRA as PEFT takes them on tiny models of transformers, for octet/train/step/lora.test.cpp.

Models, tokens and the optimizer are golden.py's; the base has golden.py's weights, and adapters begin from its start(), those of B an eighth
of it. All is computed in FP64 with eager attention. PEFT's dropout keeps its formula and place, and gets the masks of ops::Dropout with seed
SEED. Lines of the file, for each case:
  # what made it
  model <name of the case> <family, whose tests/golden/<family>.txt has the base>
  peft <adapter_config.json, as PEFT writes it>
  dropout <probability>                                   if not 0
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
SEED = 1
CASES = [  # name, family, rank, alpha, target_modules, dropout, target_parameters
    ("llama", "llama", 4, 8, LAYERS, 0.0),
    ("qwen3", "qwen3", 3, 7, ["q_proj", "v_proj", "down_proj"], 0.0),
    ("gpt2", "gpt2", 4, 4, ["c_attn", "c_proj", "c_fc"], 0.0),
    ("qwen3_moe", "qwen3_moe", 2, 8, ["q_proj", "k_proj", "v_proj", "o_proj"], 0.0),
    ("llama_dropout", "llama", 4, 8, LAYERS, 0.125),
    ("qwen3_moe_experts", "qwen3_moe", 2, 8, ["q_proj"], 0.0, ["mlp.experts.gate_up_proj", "mlp.experts.down_proj"]),
]
OCTET_LAYERS = dict(q_proj="attn.qkv", k_proj="attn.qkv", v_proj="attn.qkv", o_proj="attn.out", gate_proj="mlp.gate_up", up_proj="mlp.gate_up",
                    down_proj="mlp.down")


def philox(key, low, high):
    """Philox4x32-10 (Salmon et al. 2011) of counters with these halves of 64 bits: words [4, ...]."""
    mask, shift = np.uint64(0xFFFFFFFF), np.uint64(32)
    c = [low & mask, low >> shift, high & mask, high >> shift]
    k = [np.uint64(key & 0xFFFFFFFF), np.uint64(key >> 32)]
    for _ in range(10):
        p0, p1 = np.uint64(0xD2511F53) * c[0], np.uint64(0xCD9E8D57) * c[2]
        c = [p1 >> shift ^ c[1] ^ k[0], p1 & mask, p0 >> shift ^ c[3] ^ k[1], p0 & mask]
        k = [k[0] + np.uint64(0x9E3779B9) & mask, k[1] + np.uint64(0xBB67AE85) & mask]
    return np.stack(c)


class Masked(torch.nn.Module):
    """torch.nn.Dropout with the masks of an Octet layer, one for each forward."""

    def __init__(self, layer, p):
        super().__init__()
        self.key, self.p, self.update = 0xCBF29CE484222325, p, 0
        for byte in (layer + ".dropout").encode():
            self.key = (self.key ^ byte) * 0x100000001B3 & 2**64 - 1

    def forward(self, x):
        if not self.training:
            return x
        rows, width = x.numel() // x.shape[-1], x.shape[-1]
        tokens, quads = np.arange(rows, dtype=np.uint64)[:, None], np.arange((width + 3) // 4, dtype=np.uint64)[None, :]
        words = philox(self.key ^ SEED, *np.broadcast_arrays(tokens, np.uint64(self.update << 24) | quads))
        self.update += 1
        kept = words.transpose(1, 2, 0).reshape(rows, -1)[:, :width] >= self.p * 2**32
        return x * torch.from_numpy(kept).reshape(x.shape) / (1 - self.p)


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
    masks = [m.train() for m in model.modules() if isinstance(m, Masked)]  # nothing else drops
    for _ in range(golden.STEPS):
        optimizer.zero_grad()
        _, loss, minimized = golden.loss_of(model.base_model.model, stream)
        minimized.backward()
        torch.nn.utils.clip_grad_norm_(trained, golden.CLIP)
        optimizer.step()
        losses.append(loss.item())
    for mask in masks:
        mask.eval()
    with torch.no_grad():
        return losses, golden.loss_of(model.base_model.model, stream)[0]


def set_masks(model, p):
    for name, module in model.named_modules():
        if hasattr(module, "lora_dropout"):
            block, _, kind = name.split(".layers.")[1].split(".")
            module.lora_dropout["default"] = Masked(f"layers.{block}.{OCTET_LAYERS[kind]}", p)


def case(title, family, rank, alpha, targets, dropout, parameters=None):
    model = peft.get_peft_model(base_of(family), peft.LoraConfig(r=rank, lora_alpha=alpha, target_modules=targets, task_type="CAUSAL_LM",
                                                                  target_parameters=parameters)).eval()
    adapters = [(tensor_name(name), p) for name, p in model.named_parameters() if p.requires_grad]
    with torch.no_grad():
        for name, p in adapters:
            p.copy_(golden.start(name, tuple(p.shape)) / (8 if "lora_B" in name else 1))
    model = model.to(torch.float64)
    adapters = [(tensor_name(name), p) for name, p in model.named_parameters() if p.requires_grad]
    count = golden.ROWS * (golden.LENGTH + 1)
    stream = torch.from_numpy((golden.draw("tokens", count) % np.uint64(golden.VOCABULARY)).astype(np.int64)).reshape(golden.ROWS, -1)
    if dropout > 0:
        set_masks(model, dropout)
    losses, logits = train(model, stream)
    flat = logits.reshape(-1).numpy()
    places = sorted(set(int(i) % flat.size for i in golden.draw("logits samples", 4 * golden.SAMPLES)))
    print(f"# tests/peers/lora.py: {family}, PEFT {peft.__version__}, transformers {transformers.__version__}, torch {torch.__version__}, in FP64 on the CPU")
    print("model", title, family)
    print("peft", json.dumps(written_config(model)))
    if dropout > 0:
        print("dropout", dropout)
    print("losses", " ".join(f"{x:.12g}" for x in losses))
    print(f"logits {abs(flat).max():.12g} {golden.pairs(flat, places)}")
    for name, p in adapters:
        print(golden.line(name, p.detach()))


if __name__ == "__main__":
    torch.set_num_threads(1)
    for arguments in CASES:
        case(*arguments)
