#!/usr/bin/env python3
"""Holds an exported FP8 folder against other programs on a GPU: logits within 1% of their spread.

    octet eval FOLDER --recipe block128 --set recipe.scale=f32 --ids IDS --logits LOGITS
    python tests/peers/check_fp8.py FOLDER LOGITS

FOLDER is a Llama in the form fp8-block128, as `octet export` writes it. LOGITS has `logits` and the `ids` that they are of. Two programs
compute them again:

    transformers    its FP8 integration, where it is installed and its kernels are
    torch           this file: safetensors by hand, activations quantized to 1x128 as servers do (amax / 448), torch's FP8 GEMM with block
                    scales, and beside it the same products of decoded codes in FP32

Needs torch and a GPU of compute capability 9.0; run by hand, not by the tests. Each line has the largest and the root mean square
difference, divided by the spread (largest minus smallest logit). `--ids IDS` with LENGTH writes such ids first:

    python tests/peers/check_fp8.py --ids IDS LENGTH VOCABULARY
"""
import json
import math
import pathlib
import struct
import sys

import torch
import torch.nn.functional as F

DTYPES = {"F32": torch.float32, "BF16": torch.bfloat16, "I64": torch.int64, "F8_E4M3": torch.float8_e4m3fn}
LIMIT = 0.01


def read_safetensors(path):
    data = pathlib.Path(path).read_bytes()
    size = struct.unpack("<Q", data[:8])[0]
    out = {}
    for name, entry in json.loads(data[8:8 + size]).items():
        if name == "__metadata__":
            continue
        begin, end = entry["data_offsets"]
        piece = torch.frombuffer(bytearray(data[8 + size + begin:8 + size + end]), dtype=DTYPES[entry["dtype"]])
        out[name] = piece.reshape(entry["shape"])
    return out


def write_ids(path, length, vocabulary):
    ids = torch.randint(0, vocabulary, (2, length), generator=torch.Generator().manual_seed(1))
    raw = ids.numpy().tobytes()
    header = json.dumps({"ids": {"dtype": "I64", "shape": list(ids.shape), "data_offsets": [0, len(raw)]}}).encode()
    header += b" " * (-len(header) % 8)
    pathlib.Path(path).write_bytes(struct.pack("<Q", len(header)) + header + raw)


def quantize_rows(x):
    """[T, K] -> codes and scales of 128 values, as vLLM's and transformers' kernels make them."""
    blocks = x.float().reshape(x.shape[0], -1, 128)
    scale = blocks.abs().amax(-1).clamp(min=1e-12) / 448
    codes = (blocks / scale[..., None]).clamp(-448, 448).to(torch.float8_e4m3fn)
    return codes.reshape(x.shape), scale


def product_in_fp8(x, codes, scales):
    a, a_scale = quantize_rows(x)
    # [T, K/128] with rows innermost; [K/128, N/128] with K innermost.
    return torch._scaled_mm(a, codes.t(), scale_a=a_scale.t().contiguous().t(), scale_b=padded(scales).t(), out_dtype=torch.bfloat16)


def padded(scales):
    """cuBLASLt reads rows of scales of a multiple of 4."""
    rows, columns = scales.shape
    out = torch.zeros(rows, (columns + 3) // 4 * 4, device=scales.device)
    out[:, :columns] = scales
    return out[:, :columns]


def product_decoded(x, codes, scales):
    a, a_scale = quantize_rows(x)
    left = a.float() * a_scale.repeat_interleave(128, 1)
    wide = scales.repeat_interleave(128, 0)[:codes.shape[0]].repeat_interleave(128, 1)[:, :codes.shape[1]]
    return (left @ (codes.float() * wide).t()).to(torch.bfloat16)


class Llama:
    def __init__(self, folder, product):
        self.config = json.loads(pathlib.Path(folder, "config.json").read_text())
        self.w = {k: v.cuda() for k, v in read_safetensors(pathlib.Path(folder, "model.safetensors")).items()}
        self.product = product

    def linear(self, name, x):
        w = self.w[name + ".weight"]
        if w.dtype == torch.float8_e4m3fn:
            return self.product(x, w, self.w[name + ".weight_scale_inv"])
        return x @ w.t()

    def norm(self, name, x):
        y = x.float()
        y = y * torch.rsqrt(y.pow(2).mean(-1, keepdim=True) + self.config["rms_norm_eps"])
        return (y * self.w[name + ".weight"].float()).to(torch.bfloat16)

    def rotate(self, x):
        d = x.shape[-1]
        inverse = self.config["rope_theta"] ** (-torch.arange(0, d, 2, device="cuda", dtype=torch.float64) / d)
        angle = torch.arange(x.shape[0], device="cuda", dtype=torch.float64)[:, None] * inverse
        c, s = (torch.cat([f(angle)] * 2, -1)[:, None].float() for f in (torch.cos, torch.sin))
        y = x.float()
        turned = torch.cat([-y[..., d // 2:], y[..., :d // 2]], -1)
        return (y * c + turned * s).to(torch.bfloat16)

    def logits(self, ids):
        c = self.config
        heads, kv = c["num_attention_heads"], c["num_key_value_heads"]
        d = c.get("head_dim") or c["hidden_size"] // heads
        x = self.w["model.embed_tokens.weight"][ids]
        for i in range(c["num_hidden_layers"]):
            p = f"model.layers.{i}."
            h = self.norm(p + "input_layernorm", x)
            q, k, v = (self.linear(p + f"self_attn.{n}_proj", h).reshape(len(ids), -1, d) for n in "qkv")
            q, k = self.rotate(q), self.rotate(k)
            k, v = (t.repeat_interleave(heads // kv, 1) for t in (k, v))
            a = F.scaled_dot_product_attention(*(t.transpose(0, 1)[None] for t in (q, k, v)), is_causal=True, scale=1 / math.sqrt(d))
            x = x + self.linear(p + "self_attn.o_proj", a[0].transpose(0, 1).reshape(len(ids), -1))
            h = self.norm(p + "post_attention_layernorm", x)
            x = x + self.linear(p + "mlp.down_proj", F.silu(self.linear(p + "mlp.gate_proj", h)) * self.linear(p + "mlp.up_proj", h))
        h = self.norm("model.norm", x)
        head = self.w.get("lm_head.weight", self.w["model.embed_tokens.weight"])
        return (h @ head.t()).float()


def of_transformers(folder, rows):
    import transformers
    from transformers import AutoModelForCausalLM
    print("transformers", transformers.__version__)
    model = AutoModelForCausalLM.from_pretrained(folder, device_map="cuda")
    print("  layers:", type(model.model.layers[0].mlp.down_proj).__name__, model.model.layers[0].mlp.down_proj.weight.dtype)
    with torch.no_grad():
        return [model(r[None].cuda()).logits[0].float() for r in rows]


def main():
    if sys.argv[1] == "--ids":
        return write_ids(sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
    folder, path = sys.argv[1:]
    stored = read_safetensors(path)
    ours, rows = stored["logits"].cuda(), stored["ids"]
    spread = (ours.max() - ours.min()).item()
    programs = {"torch, FP8 GEMM": lambda: [Llama(folder, product_in_fp8).logits(r.cuda()) for r in rows],
                "torch, decoded codes": lambda: [Llama(folder, product_decoded).logits(r.cuda()) for r in rows],
                "transformers": lambda: of_transformers(folder, rows)}
    worst, compared = 0.0, 0
    print(f"spread of logits {spread:.3f}, standard deviation {ours.std().item():.3f}")
    for name, run in programs.items():
        try:
            with torch.no_grad():
                theirs = torch.stack(run())
        except Exception as e:  # each program is optional
            print(f"{name}: not run: {type(e).__name__}: {str(e)[:300]}")
            continue
        off = (theirs - ours) / spread
        compared += 1
        worst = max(worst, off.pow(2).mean().sqrt().item())
        same = (theirs.argmax(-1) == ours.argmax(-1)).float().mean().item()
        print(f"{name}: rms {100 * off.pow(2).mean().sqrt().item():.3f}%, largest {100 * off.abs().max().item():.3f}% of the spread; "
              f"same first token {100 * same:.1f}%")
    sys.exit(0 if compared and worst <= LIMIT else 1)


if __name__ == "__main__":
    main()
