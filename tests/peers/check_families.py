#!/usr/bin/env python3
"""Random Hugging Face folders of every family, from transformers to Octet and back. A campaign run by hand, not by the tests.

    python tests/peers/check_families.py OCTET [--only NAME...] [--greedy] [--keep FOLDER]

OCTET is the program. Needs torch and transformers. For each form of model, with --greedy the third alone:
  - logits: `octet eval --logits` in FP32 against transformers in FP64, within 1e-5 of the largest logit;
  - training: the losses of 20 steps of AdamW in FP32 against PyTorch in FP64, within 1e-6 (of the loss, where that is above 1). A step's
    batch is the whole text, so the order of samples does not matter;
  - greedy text: 40 tokens of `octet generate` after each of PROMPTS, and the end of the text, as transformers' generate(). Both have a
    cache of keys, and most texts grow to several windows of the forms that have some. Prompts side by side have the same texts;
  - back: the run's `weights`, an export in BF16 and an export of a checkpoint load in transformers without missing, unexpected or misshapen
    keys; config.json has the values that it came with, except for dtype; generation_config.json and tokenizer files are unchanged;
  - a new model of the same shape, made from keys alone, loads in transformers too.
"""
import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

import safetensors.torch
import torch
import transformers

from golden import BETAS, CLIP, DECAY, EPS, RATE, STEPS, training

SEQUENCE, VOCABULARY, SEPARATOR, BYTES = 48, 259, 256, 1100
PROMPTS = ("the", "a longer prompt, with a number 12", "x", "\u00e9\u00e8", "a prompt of more tokens than a window has")
LLAMA = dict(hidden_size=96, num_hidden_layers=3, num_attention_heads=6, num_key_value_heads=2, intermediate_size=160, vocab_size=VOCABULARY,
             max_position_embeddings=96, bos_token_id=257, eos_token_id=[256, 258], pad_token_id=258)


def rope(theta, **more):
    return dict(rope_type="default", rope_theta=theta) | more


LLAMA3 = rope(500000.0, rope_type="llama3", factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0, original_max_position_embeddings=32)


def llama(**keys):
    return transformers.LlamaForCausalLM(transformers.LlamaConfig(**(LLAMA | keys)))


def qwen2(**keys):
    return transformers.Qwen2ForCausalLM(transformers.Qwen2Config(**(LLAMA | dict(rope_parameters=rope(1e6)) | keys)))


def qwen3(**keys):
    return transformers.Qwen3ForCausalLM(transformers.Qwen3Config(**(LLAMA | dict(rope_parameters=rope(1e6)) | keys)))


def gpt2(**keys):
    return transformers.GPT2LMHeadModel(
        transformers.GPT2Config(n_embd=96, n_layer=3, n_head=6, vocab_size=VOCABULARY, n_positions=96, bos_token_id=256, eos_token_id=256, **keys))


DEEPSEEK = LLAMA | dict(num_key_value_heads=6, kv_lora_rank=32, qk_nope_head_dim=16, qk_rope_head_dim=8, v_head_dim=12, first_k_dense_replace=1,
                        n_routed_experts=8, num_experts_per_tok=3, moe_intermediate_size=48, tie_word_embeddings=False)
DEEPSEEK_KEYS = ("kv_heads=6 head_width=24 latent_rank=32 rotary_width=8 value_width=12 experts=8 experts_per_token=3 expert_hidden=48 dense_layers=1 "
                 "norm_eps=1e-6 router_loss=0 ")
YARN = rope(10000.0, rope_type="yarn", factor=4.0, original_max_position_embeddings=24, beta_fast=8, beta_slow=1)
YARN_KEYS = "rope_scaling=yarn rope_factor=4 rope_original_context=24 rope_high_frequency=8 "


def deepseek_v2(**keys):
    return transformers.DeepseekV2ForCausalLM(transformers.DeepseekV2Config(**(DEEPSEEK | dict(rope_parameters=rope(10000.0)) | keys)))


def deepseek_v3(**keys):
    return transformers.DeepseekV3ForCausalLM(transformers.DeepseekV3Config(**(DEEPSEEK | dict(rope_parameters=rope(10000.0)) | keys)))


def mistral(**keys):
    return transformers.MistralForCausalLM(transformers.MistralConfig(**(LLAMA | dict(rope_parameters=rope(1e6), sliding_window=None) | keys)))


def smollm3(**keys):
    return transformers.SmolLM3ForCausalLM(
        transformers.SmolLM3Config(**(LLAMA | dict(num_hidden_layers=4, rope_parameters=rope(5e6), no_rope_layer_interval=4) | keys)))


def granite(**keys):
    factors = dict(embedding_multiplier=12.0, residual_multiplier=0.22, logits_scaling=8.0, attention_multiplier=0.015625)
    return transformers.GraniteForCausalLM(
        transformers.GraniteConfig(**(LLAMA | factors | dict(rope_parameters=rope(10000.0), tie_word_embeddings=True) | keys)))


def olmo2(**keys):
    return transformers.Olmo2ForCausalLM(transformers.Olmo2Config(**(LLAMA | dict(rope_parameters=rope(500000.0)) | keys)))


def phi3(**keys):
    return transformers.Phi3ForCausalLM(
        transformers.Phi3Config(**(LLAMA | dict(rope_parameters=rope(10000.0, partial_rotary_factor=1.0), original_max_position_embeddings=96,
                                                sliding_window=20) | keys)))


def gemma3(**keys):
    both = dict(sliding_attention=rope(10000.0), full_attention=rope(1e6))
    types = ["sliding_attention" if (i + 1) % 6 else "full_attention" for i in range(7)]
    return transformers.Gemma3ForCausalLM(
        transformers.Gemma3TextConfig(**(LLAMA | dict(num_hidden_layers=7, head_dim=24, rope_parameters=both, sliding_window=20,
                                                      layer_types=types, query_pre_attn_scalar=24) | keys)))


# A form: the model, the keys that describe it to Octet, and how its folder is saved.
FORMS = {
    "llama2": (lambda: llama(num_key_value_heads=6, rope_parameters=rope(10000.0), rms_norm_eps=1e-5),
               "family=llama kv_heads=6 rope_theta=10000 norm_eps=1e-5"),
    "llama3": (lambda: llama(rope_parameters=rope(500000.0), rms_norm_eps=1e-5), "family=llama rope_theta=500000 norm_eps=1e-5"),
    "llama3.1": (lambda: llama(rope_parameters=LLAMA3, rms_norm_eps=1e-5),
                 "family=llama rope_theta=500000 rope_scaling=llama3 rope_original_context=32"),
    "llama3.2": (lambda: llama(rope_parameters=LLAMA3 | dict(factor=32.0), head_dim=24, tie_word_embeddings=True),
                 "family=llama head_width=24 rope_theta=500000 rope_scaling=llama3 rope_factor=32 rope_original_context=32 tied=yes norm_eps=1e-6"),
    "smollm2": (lambda: llama(num_attention_heads=3, num_key_value_heads=1, rope_parameters=rope(100000.0), tie_word_embeddings=True),
                "family=llama heads=3 kv_heads=1 rope_theta=100000 tied=yes norm_eps=1e-6"),
    "tinyllama": (lambda: llama(rope_parameters=rope(10000.0), rms_norm_eps=1e-5), "size=tinyllama-1.1b"),
    "llama-bias": (lambda: llama(rope_parameters=rope(10000.0), rms_norm_eps=1e-5, attention_bias=True, mlp_bias=True),
                   "family=llama rope_theta=10000 norm_eps=1e-5"),
    "qwen3-bias": (lambda: qwen3(head_dim=40, tie_word_embeddings=False, attention_bias=True), "family=qwen3 head_width=40 tied=no"),
    "granite-bias": (lambda: granite(rms_norm_eps=1e-5, attention_bias=True, mlp_bias=True), "family=granite"),
    "smollm3-bias": (lambda: smollm3(tie_word_embeddings=True, attention_bias=True, mlp_bias=True), "family=smollm3 layers=4"),
    "olmo2-bias": (lambda: olmo2(attention_bias=True), "family=olmo2 norm_eps=1e-5"),
    "gemma3-bias": (lambda: gemma3(attention_bias=True), "family=gemma3_text layers=7 head_width=24"),
    "qwen2": (lambda: qwen2(tie_word_embeddings=False), "family=qwen2 tied=no"),
    "qwen2.5": (lambda: qwen2(tie_word_embeddings=True), "family=qwen2"),
    "qwen3": (lambda: qwen3(head_dim=40, tie_word_embeddings=False), "family=qwen3 head_width=40 tied=no"),
    "qwen3-tied": (lambda: qwen3(head_dim=16, tie_word_embeddings=True), "family=qwen3 head_width=16"),
    "qwen3-shards": (lambda: qwen3(head_dim=32, tie_word_embeddings=False), "family=qwen3 head_width=32 tied=no",
                     dict(dtype=torch.bfloat16, max_shard_size="100KB")),
    "llama-yarn": (lambda: llama(rope_parameters=YARN, rms_norm_eps=1e-5), "family=llama rope_theta=10000 norm_eps=1e-5 " + YARN_KEYS),
    "qwen3-linear": (lambda: qwen3(head_dim=32, tie_word_embeddings=False, rope_parameters=rope(1e6, rope_type="linear", factor=2.0)),
                     "family=qwen3 head_width=32 tied=no rope_scaling=linear rope_factor=2"),
    "deepseek-v2-lite": (lambda: deepseek_v2(q_lora_rank=None, n_shared_experts=2, rope_parameters=YARN | dict(mscale=0.7, mscale_all_dim=0.7)),
                         "family=deepseek_v2 shared_experts=2 " + DEEPSEEK_KEYS + YARN_KEYS + "rope_mscale=0.7 rope_mscale_all_dim=0.7"),
    "deepseek-v2": (lambda: deepseek_v2(q_lora_rank=40, n_shared_experts=1, topk_method="group_limited_greedy", n_group=4, topk_group=2,
                                        routed_scaling_factor=1.5),
                    "family=deepseek_v2 query_rank=40 shared_experts=1 router_groups=4 router_kept_groups=2 router_scaling=1.5 " + DEEPSEEK_KEYS),
    "deepseek-v3": (lambda: deepseek_v3(q_lora_rank=40, n_shared_experts=1, n_group=4, topk_group=2,
                                        rope_parameters=YARN | dict(mscale=1.0, mscale_all_dim=0.5)),
                    "family=deepseek_v3 query_rank=40 shared_experts=1 " + DEEPSEEK_KEYS + YARN_KEYS + "rope_mscale=1 rope_mscale_all_dim=0.5"),
    "moonlight": (lambda: deepseek_v3(q_lora_rank=None, n_shared_experts=2, n_group=1, topk_group=1, routed_scaling_factor=2.446),
                  "family=deepseek_v3 query_rank=0 shared_experts=2 router_groups=1 router_kept_groups=1 router_scaling=2.446 " + DEEPSEEK_KEYS,
                  dict(dtype=torch.bfloat16)),
    "mistral": (lambda: mistral(head_dim=24, rms_norm_eps=1e-5), "family=mistral head_width=24"),
    "mistral-window": (lambda: mistral(sliding_window=20, rms_norm_eps=1e-5), "family=mistral"),
    "smollm3": (lambda: smollm3(tie_word_embeddings=True), "family=smollm3 layers=4"),
    "granite": (lambda: granite(rms_norm_eps=1e-5), "family=granite"),
    "olmo2": (lambda: olmo2(num_key_value_heads=6), "family=olmo2 kv_heads=6 norm_eps=1e-5"),
    "olmo2-groups": (lambda: olmo2(), "family=olmo2 norm_eps=1e-5"),
    "phi3": (lambda: phi3(), "family=phi3"),
    "gemma3": (lambda: gemma3(), "family=gemma3_text layers=7 head_width=24"),
    "gemma3-shards": (lambda: gemma3(head_dim=32, query_pre_attn_scalar=20), "family=gemma3_text layers=7 head_width=32",
                      dict(dtype=torch.bfloat16, max_shard_size="100KB")),
    "gpt2": (lambda: gpt2(), "family=gpt2 heads=6 kv_heads=6 hidden=384"),
}


def text():
    """Words of a linear congruential generator, with the byte tokenizer's separator at the end."""
    state, out = 1, []
    for _ in range(BYTES):
        state = (state * 1103515245 + 12345) % 2**31
        out.append(32 if state >> 16 & 7 == 0 else 97 + (state >> 20) % 26)
    return out


def byte_tokenizer():
    """A tokenizer.json whose ids are bytes, with three special tokens: GPT-2's characters for bytes, and no merges."""
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [b for b in range(256) if b not in printable]
    characters = {b: chr(b) for b in printable} | {b: chr(256 + i) for i, b in enumerate(others)}
    part = dict(type="ByteLevel", add_prefix_space=False, trim_offsets=False, use_regex=False)
    special = [dict(id=256 + i, content=f"<|{i}|>", single_word=False, lstrip=False, rstrip=False, normalized=False, special=True)
               for i in range(3)]
    return dict(version="1.0", truncation=None, padding=None, added_tokens=special, normalizer=None, pre_tokenizer=part,
                post_processor=None, decoder=part,
                model=dict(type="BPE", dropout=None, unk_token=None, continuing_subword_prefix=None, end_of_word_suffix=None, fuse_unk=False,
                           byte_fallback=False, ignore_merges=False, vocab={characters[b]: b for b in range(256)}, merges=[]))


class Form:
    def __init__(self, octet, name, place):
        self.octet, self.name, self.place = octet, name, place
        self.make, self.keys, *saved = FORMS[name]
        self.saved = saved[0] if saved else {}
        self.dtype = str(self.saved.get("dtype", torch.float32)).split(".")[1]
        self.folder = place / "model"
        self.ids = text() + [SEPARATOR]

    def run(self, *arguments):
        done = subprocess.run([self.octet, *map(str, arguments)], cwd=self.place, capture_output=True, text=True)
        if done.returncode != 0:
            raise SystemExit(f"{self.name}: octet {' '.join(map(str, arguments))}: {done.stderr}")
        return done.stdout

    def write(self):
        torch.manual_seed(sum(map(ord, self.name)))
        model = self.make()
        with torch.no_grad():
            for parameter in model.parameters():  # also norms and biases, which begin as ones and zeros
                parameter.add_(0.05 * torch.randn_like(parameter))
            for name, buffer in model.named_buffers():
                if name.endswith("e_score_correction_bias"):
                    buffer.add_(0.1 * torch.randn_like(buffer))
        model.to(self.saved.get("dtype", torch.float32)).save_pretrained(self.folder, max_shard_size=self.saved.get("max_shard_size", "5GB"))
        (self.folder / "tokenizer.json").write_text(json.dumps(byte_tokenizer()))
        (self.folder / "tokenizer_config.json").write_text(json.dumps(dict(tokenizer_class="PreTrainedTokenizerFast", eos_token="<|0|>")))
        for name in ("special_tokens_map.json", "chat_template.jinja"):
            (self.folder / name).write_text(json.dumps({"of": self.name}))
        model = transformers.AutoModelForCausalLM.from_pretrained(self.folder, dtype=torch.float64, attn_implementation="eager").eval()
        if hasattr(model, "set_experts_implementation"):
            model.set_experts_implementation("eager")  # others do not multiply in FP64
        return model

    def windows(self):
        count = (len(self.ids) - 1) // SEQUENCE
        return torch.tensor([self.ids[i * SEQUENCE:i * SEQUENCE + SEQUENCE + 1] for i in range(count)])

    def logits(self, model):
        ids = self.windows()[:, :-1].contiguous()
        safetensors.torch.save_file({"ids": ids}, self.place / "ids.safetensors")
        self.run("eval", self.folder, "--recipe", "fp32", "--device", "cpu", "--logits", "logits.safetensors", "--ids", "ids.safetensors")
        ours = safetensors.torch.load_file(self.place / "logits.safetensors")["logits"].double()
        with torch.no_grad():
            theirs = model(input_ids=ids).logits
        return ((ours - theirs).abs().max() / theirs.abs().max()).item()

    def train(self, rows, *more):
        (self.place / "text.txt").write_bytes(bytes(self.ids[:-1]))
        self.run("tokenize", "--input", "text.txt", "--model", "model", "--output", "data", "--force")
        settings = dict(device="cpu")
        settings |= {"recipe.name": "fp32", "data.sequence_length": SEQUENCE, "data.eval_fraction": 0, "train.batch": rows}
        settings |= {"optim.learning_rate": RATE, "optim.beta1": BETAS[0], "optim.beta2": BETAS[1], "optim.eps": EPS}
        settings |= {"optim.weight_decay": DECAY, "optim.max_grad_norm": CLIP, "optim.schedule.kind": "constant", "optim.schedule.warmup": 0}
        sets = [word for key, value in settings.items() for word in ("--set", f"{key}={value}")]
        self.run("train", "--data", "data", *sets, *more)

    def greedy(self, model):
        """The number of prompts whose texts differ from transformers', alone or side by side."""
        different = 0
        options = ("--recipe", "fp32", "--device", "cpu", "--temperature", 0, "--tokens", 40)
        for prompt in PROMPTS:
            ours = self.run("generate", self.folder, "--prompt", prompt, *options, "--as", "ids")
            ids = torch.tensor([list(prompt.encode())])
            with torch.no_grad():
                theirs = model.generate(ids, attention_mask=torch.ones_like(ids), do_sample=False, max_new_tokens=40)[0, ids.shape[1]:].tolist()
            ends = model.generation_config.eos_token_id
            if theirs[-1] in (ends if isinstance(ends, list) else [ends]):
                theirs.pop()
            different += [int(word) for word in ours.split()] != theirs
        (self.place / "prompts.jsonl").write_text("".join(json.dumps({"prompt": p}) + "\n" for p in PROMPTS))
        alone, together = (self.run("generate", self.folder, "--prompts", "prompts.jsonl", "--batch", n, *options).splitlines() for n in (1, 3))
        return different + sum(a != b for a, b in zip(alone, together, strict=True))

    def losses(self, model):
        windows = self.windows()
        self.train(len(windows), "--steps", STEPS, "--name", "tuned", "--set", "model.init=model", "--set", "checkpoint.every=10")
        lines = (self.place / "runs/tuned/metrics.jsonl").read_text().splitlines()
        ours = [e["loss"] for e in map(json.loads, lines) if e["event"] == "step"]
        theirs = training(model, windows)[1]
        assert len(ours) == len(theirs) == STEPS
        return max(abs(a - b) / max(1.0, b) for a, b in zip(ours, theirs))

    def loads(self, folder, dtype, same):
        _, info = transformers.AutoModelForCausalLM.from_pretrained(folder, output_loading_info=True)
        wrong = {kind: sorted(map(str, keys)) for kind, keys in info.items() if keys}
        if same:
            before, after = (json.loads((f / "config.json").read_text()) for f in (self.folder, folder))
            if after.pop("dtype") != dtype or before.pop("dtype") != self.dtype or before != after:
                wrong["config.json"] = {k: (before.get(k), after.get(k)) for k in before | after if before.get(k) != after.get(k)}
            for file in self.folder.iterdir():
                if ".safetensors" not in file.name and file.name != "config.json" and file.read_bytes() != (folder / file.name).read_bytes():
                    wrong[file.name] = "differs"
        return wrong

    def back(self):
        self.run("export", "runs/tuned", "--output", "bf16", "--dtype", "bf16")
        self.run("export", "runs/tuned", "--step", "10", "--output", "step10")
        shape = "layers=3 width=96 heads=6 kv_heads=2 hidden=160 context=96 " if "gpt2" not in self.name else "layers=3 width=96 context=96 "
        keys = dict(word.split("=") for word in (shape + f"vocabulary={VOCABULARY} " + self.keys).split())
        self.train(2, "--steps", 1, "--name", "new", *[w for k, v in keys.items() for w in ("--set", f"model.{k}={v}")])
        wrong = {name: self.loads(self.place / folder, dtype, same) for name, folder, dtype, same in (
            ("weights", "runs/tuned/weights", self.dtype, True), ("bf16", "bf16", "bfloat16", True), ("step 10", "step10", self.dtype, True),
            ("new", "runs/new/weights", "float32", False))}
        theirs, ours = (transformers.AutoConfig.from_pretrained(f) for f in (self.folder, self.place / "runs/new/weights"))
        for key in ("hidden_size", "num_attention_heads", "vocab_size", "max_position_embeddings", "tie_word_embeddings", "rope_parameters",
                    "head_dim", "rms_norm_eps", "num_key_value_heads", "intermediate_size", "layer_norm_epsilon"):
            a, b = getattr(theirs, key, None), getattr(ours, key, None)
            a, b = ({k: v for k, v in x.items() if v is not None} if isinstance(x, dict) else x for x in (a, b))
            if a != b and not (key == "head_dim" and a is None):
                wrong["new"][key] = (a, b)
        return {name: what for name, what in wrong.items() if what}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("octet")
    parser.add_argument("--only", choices=FORMS, nargs="+")
    parser.add_argument("--greedy", action="store_true", help="greedy text alone")
    parser.add_argument("--keep", help="a folder for what is made")
    options = parser.parse_args()
    octet, failed = str(pathlib.Path(options.octet).resolve()), False
    transformers.utils.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    for name in options.only or FORMS:
        with tempfile.TemporaryDirectory() as temporary:
            place = pathlib.Path(options.keep or temporary) / name
            place.mkdir(parents=True)
            form = Form(octet, name, place)
            model = form.write()
            if options.greedy:
                greedy = form.greedy(model)
                failed = failed or greedy > 0
                print(f"{name:12} greedy texts that differ {greedy}", flush=True)
                continue
            logits, greedy, losses, wrong = form.logits(model), form.greedy(model), form.losses(model), form.back()
            # As in golden.test.cpp: a factor of embedded tokens multiplies what errors of their weights do to the loss.
            factor = max(1.0, model.config.hidden_size**0.5 if name.startswith("gemma3") else getattr(model.config, "embedding_multiplier", 1.0))
            good = logits <= 1e-5 and losses <= 1e-6 * factor and greedy == 0 and not wrong
            failed = failed or not good
            print(f"{name:12} logits {logits:.1e}, losses {losses:.1e}, greedy texts that differ {greedy}, {wrong or 'all keys'}: {'good' if good else 'FAILED'}", flush=True)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
