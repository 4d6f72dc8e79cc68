#!/usr/bin/env python3
"""Loss, gradients and a short training of tiny language models as PyTorch computes them, for octet/train/step/golden.test.cpp.

Writes <folder>/llama.txt, smollm2.txt, qwen2.txt, qwen3.txt, gpt2.txt, qwen3_moe.txt, olmoe.txt, olmoe_clip.txt, mixtral.txt,
deepseek_v2.txt, deepseek_v3.txt, deepseek_v3_mtp.txt, mistral.txt, smollm3.txt, granite.txt, olmo2.txt, phi3.txt, gemma3.txt, llama_bias.txt,
qwen3_bias.txt and olmoe_bias.txt: transformers' own models on the CPU with eager attention. Models with experts have their auxiliary loss in gradients and
training, and not in the stored losses; DeepSeek's have none there. In transformers, an expert's matrices are parts of one tensor; names,
starts and gradients here are those of the files. deepseek_v3_mtp has two layers of multi-token prediction, by the formulas below: their
losses are in gradients and training, and not in the stored losses of the next token. The biases of routers begin as other tensors do and have no gradient: they stand as zeros.
Gradients are in FP32; logits and losses of the training in FP64. Weights and tokens come from a formula in integers that the test computes
too, so the files hold results only. Lines of a file:
  # what made it
  config <the model's config.json>
  tokens <rows> <length>
  loss <mean cross-entropy of the next token>
  logits <largest magnitude> <index>:<value> ...      of the first batch, [rows, length, vocabulary], in FP64
  losses <loss> ...                                   of STEPS steps of AdamW on that batch, in FP64
  further <depth> <factor> <loss> ...                 of multi-token prediction: the mean cross-entropy of further tokens in these steps, in FP64
  <parameter> <shape, as 61x64> <L2 norm> <sum> <largest magnitude> <index>:<value> ...     one line a gradient

Run: python tests/peers/golden.py tests/golden [family ...]     (needs torch, transformers and numpy; stored: torch 2.15, transformers 5.23; of models
with experts and those after them transformers 5.24)
"""
import json
import math
import pathlib
import sys

import numpy as np
import torch
import transformers

ROWS, LENGTH, VOCABULARY, SAMPLES = 2, 32, 61, 8
STEPS, RATE, BETAS, EPS, DECAY, CLIP = 20, 1e-3, (0.9, 0.95), 1e-8, 0.1, 1.0
MTP_FACTOR = 0.3
SIZES = dict(hidden_size=64, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2, intermediate_size=96, vocab_size=VOCABULARY,
             max_position_embeddings=64, bos_token_id=None, eos_token_id=None, attn_implementation="eager")


def draw(name, count):
    """The first `count` words of 32 bits that belong to a name: FNV-1a of the name, Weyl steps, MurmurHash3's last mixing."""
    key = 0x811C9DC5
    for byte in name.encode():
        key = (key ^ byte) * 0x01000193 & 0xFFFFFFFF
    mask = np.uint64(0xFFFFFFFF)
    h = (np.arange(count, dtype=np.uint64) * np.uint64(0x9E3779B9) + np.uint64(key)) & mask
    h = (h ^ h >> np.uint64(16)) * np.uint64(0x85EBCA6B) & mask
    h = (h ^ h >> np.uint64(13)) * np.uint64(0xC2B2AE35) & mask
    return h ^ h >> np.uint64(16)


def start(name, shape):
    """Uniform in [-1/4, 1/4) in steps of 2^-17, which FP32 holds exactly; around 1 for the weight of a norm."""
    values = (draw(name, math.prod(shape)) >> np.uint64(16)).astype(np.float64) * 2.0**-17 - 0.25
    if len(shape) == 1 and name.endswith(".weight"):
        values += 1
    return torch.from_numpy(values.astype(np.float32)).reshape(shape)


def llama():
    # Wavelengths of 16 positions and more are stretched, so that 32 positions show all three ranges of the scaled rotation.
    rope = dict(rope_type="llama3", rope_theta=10000.0, factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0, original_max_position_embeddings=16)
    return transformers.LlamaForCausalLM(
        transformers.LlamaConfig(**SIZES, head_dim=16, rms_norm_eps=1e-3, rope_parameters=rope, tie_word_embeddings=False))


def smollm2():
    rope = dict(rope_type="default", rope_theta=100000.0)
    return transformers.LlamaForCausalLM(transformers.LlamaConfig(**SIZES, rms_norm_eps=1e-5, rope_parameters=rope, tie_word_embeddings=True))


def llama_bias():
    # Biases of all linear layers of blocks, and rotations by YaRN.
    return transformers.LlamaForCausalLM(
        transformers.LlamaConfig(**SIZES, rms_norm_eps=1e-3, rope_parameters=YARN, tie_word_embeddings=False, attention_bias=True, mlp_bias=True))


def qwen3_bias():
    rope = dict(rope_type="linear", rope_theta=1000.0, factor=4.0)
    return transformers.Qwen3ForCausalLM(
        transformers.Qwen3Config(**SIZES, head_dim=24, rms_norm_eps=1e-3, rope_parameters=rope, tie_word_embeddings=False, attention_bias=True))


def olmoe_bias():
    rope = dict(rope_type="default", rope_theta=1000.0)
    sizes = SIZES | dict(num_key_value_heads=4, intermediate_size=32)
    return transformers.OlmoeForCausalLM(
        transformers.OlmoeConfig(**sizes, **EXPERTS, rms_norm_eps=1e-4, rope_parameters=rope, tie_word_embeddings=False, num_experts=8,
                                 norm_topk_prob=False, attention_bias=True))


def qwen2():
    rope = dict(rope_type="default", rope_theta=1000.0)
    return transformers.Qwen2ForCausalLM(transformers.Qwen2Config(**SIZES, rms_norm_eps=1e-4, rope_parameters=rope, tie_word_embeddings=True))


def qwen3():
    # Heads of 24 columns, which do not follow from 64 columns and 4 heads.
    rope = dict(rope_type="default", rope_theta=1000.0)
    return transformers.Qwen3ForCausalLM(
        transformers.Qwen3Config(**SIZES, head_dim=24, rms_norm_eps=1e-3, rope_parameters=rope, tie_word_embeddings=False))


EXPERTS = dict(num_experts_per_tok=2, router_aux_loss_coef=0.01)


def qwen3_moe():
    # A dense block between two with experts.
    rope = dict(rope_type="default", rope_theta=1000.0)
    sizes = SIZES | dict(num_hidden_layers=3)
    return transformers.Qwen3MoeForCausalLM(
        transformers.Qwen3MoeConfig(**sizes, **EXPERTS, head_dim=24, rms_norm_eps=1e-3, rope_parameters=rope, tie_word_embeddings=False,
                                    num_experts=8, moe_intermediate_size=32, norm_topk_prob=True, mlp_only_layers=[1], decoder_sparse_step=1))


def olmoe():
    rope = dict(rope_type="default", rope_theta=1000.0)
    sizes = SIZES | dict(num_key_value_heads=4, intermediate_size=32)
    return transformers.OlmoeForCausalLM(
        transformers.OlmoeConfig(**sizes, **EXPERTS, rms_norm_eps=1e-4, rope_parameters=rope, tie_word_embeddings=False, num_experts=8,
                                 norm_topk_prob=False))


def olmoe_clip():
    # A limit that 1 to 3 of 100 queries, keys and values exceed. Where more are near it, one within FP32's error of it has no gradient in FP32 and
    # one in FP64, and losses part.
    rope = dict(rope_type="default", rope_theta=1000.0)
    sizes = SIZES | dict(num_key_value_heads=4, intermediate_size=32)
    return transformers.OlmoeForCausalLM(
        transformers.OlmoeConfig(**sizes, **EXPERTS, rms_norm_eps=1e-4, rope_parameters=rope, tie_word_embeddings=False, num_experts=8,
                                 norm_topk_prob=True, clip_qkv=2.5))


def mixtral():
    rope = dict(rope_type="default", rope_theta=1000.0)
    sizes = SIZES | dict(intermediate_size=48)
    return transformers.MixtralForCausalLM(
        transformers.MixtralConfig(**sizes, **EXPERTS, rms_norm_eps=1e-4, rope_parameters=rope, tie_word_embeddings=False, num_local_experts=4))


# YaRN from 16 positions on, so that 32 show all its ranges; both factors of scores and of rotations differ from 1.
YARN = dict(rope_type="yarn", rope_theta=100.0, factor=4.0, original_max_position_embeddings=16, beta_fast=4, beta_slow=1, mscale=1.0,
            mscale_all_dim=0.5)
DEEPSEEK = SIZES | dict(num_hidden_layers=2, num_key_value_heads=4, first_k_dense_replace=1, n_routed_experts=8, num_experts_per_tok=3,
                        moe_intermediate_size=32, rms_norm_eps=1e-3, tie_word_embeddings=False, rope_parameters=YARN, kv_lora_rank=24,
                        qk_nope_head_dim=12, qk_rope_head_dim=8, v_head_dim=16, n_group=4, topk_group=2)


def deepseek_v2():
    # Queries without a latent, as V2-Lite; groups of experts, as V2.
    return transformers.DeepseekV2ForCausalLM(
        transformers.DeepseekV2Config(**DEEPSEEK, q_lora_rank=None, n_shared_experts=2, topk_method="group_limited_greedy",
                                      routed_scaling_factor=1.5))


def deepseek_v3():
    return transformers.DeepseekV3ForCausalLM(
        transformers.DeepseekV3Config(**DEEPSEEK, q_lora_rank=40, n_shared_experts=1, norm_topk_prob=True, routed_scaling_factor=2.5))


class PredictedAhead(torch.nn.Module):
    """The norm of a layer of multi-token prediction before the model's head, under the name that files have."""

    def __init__(self, norm):
        super().__init__()
        self.norm = norm


def deepseek_v3_mtp():
    # Layers of multi-token prediction are blocks behind the last one, which transformers' own forward leaves out.
    model = deepseek_v3()
    config = model.config
    config.num_nextn_predict_layers = 2
    block, norm = type(model.model.layers[-1]), type(model.model.norm)
    for k in range(config.num_nextn_predict_layers):
        layer = block(config, config.num_hidden_layers + k)
        layer.enorm, layer.hnorm = (norm(config.hidden_size, eps=config.rms_norm_eps) for _ in range(2))
        layer.eh_proj = torch.nn.Linear(2 * config.hidden_size, config.hidden_size, bias=False)
        layer.shared_head = PredictedAhead(norm(config.hidden_size, eps=config.rms_norm_eps))
        model.model.layers.append(layer)
    return model


def losses_ahead(model, stream):
    """The summed cross-entropy of the tokens that each layer of multi-token prediction predicts, and their number. DeepSeek-AI 2024, "DeepSeek-V3
    Technical Report", equations 21 to 24: h is what the head reads at the depth before."""
    if model.config.model_type != "deepseek_v3" or len(model.model.layers) == model.config.num_hidden_layers:
        return []
    tokens, length = stream[:, :-1], stream.shape[1] - 1
    h = model.model(input_ids=tokens).last_hidden_state
    places = torch.arange(length).unsqueeze(0)
    later = torch.full((length, length), torch.finfo(h.dtype).min, dtype=h.dtype).triu(1)[None, None]
    rotations = model.model.rotary_emb(h, position_ids=places)
    out = []
    for k, layer in enumerate(model.model.layers[model.config.num_hidden_layers:], start=1):
        ahead = torch.cat([tokens[:, k:], tokens[:, :k]], 1)  # the last k places count nowhere, and no other reads them
        x = layer.eh_proj(torch.cat([layer.enorm(model.model.embed_tokens(ahead)), layer.hnorm(h)], -1))
        y = layer(x, attention_mask=later, position_ids=places, position_embeddings=rotations)
        h = layer.shared_head.norm(y[0] if isinstance(y, tuple) else y)
        logits, targets = model.lm_head(h)[:, :length - k], stream[:, k + 1:]
        out.append((torch.nn.functional.cross_entropy(logits.flatten(0, 1), targets.flatten(), reduction="sum"), targets.numel()))
    return out


def mistral():
    # A window of 10 tokens, so that rows of both sequences lose keys.
    rope = dict(rope_type="default", rope_theta=1000.0)
    return transformers.MistralForCausalLM(
        transformers.MistralConfig(**SIZES, head_dim=24, rms_norm_eps=1e-3, rope_parameters=rope, tie_word_embeddings=False, sliding_window=10))


def smollm3():
    # Layers with rotations before and after one without.
    rope = dict(rope_type="default", rope_theta=1000.0)
    sizes = SIZES | dict(num_hidden_layers=3)
    return transformers.SmolLM3ForCausalLM(
        transformers.SmolLM3Config(**sizes, rms_norm_eps=1e-3, rope_parameters=rope, tie_word_embeddings=True, no_rope_layer_interval=2,
                                   no_rope_layers=[1, 0, 1], pad_token_id=None))


def granite():
    rope = dict(rope_type="default", rope_theta=1000.0)
    return transformers.GraniteForCausalLM(
        transformers.GraniteConfig(**SIZES, rms_norm_eps=1e-3, rope_parameters=rope, tie_word_embeddings=True, embedding_multiplier=3.0,
                                   logits_scaling=1.75, residual_multiplier=0.4, attention_multiplier=0.1))


def olmo2():
    rope = dict(rope_type="default", rope_theta=1000.0)
    return transformers.Olmo2ForCausalLM(
        transformers.Olmo2Config(**SIZES, rms_norm_eps=1e-3, rope_parameters=rope, tie_word_embeddings=False, pad_token_id=None))


def phi3():
    rope = dict(rope_type="default", rope_theta=1000.0, partial_rotary_factor=1.0)
    return transformers.Phi3ForCausalLM(
        transformers.Phi3Config(**SIZES, rms_norm_eps=1e-3, rope_parameters=rope, tie_word_embeddings=False, pad_token_id=None,
                                original_max_position_embeddings=64, sliding_window=9))


def gemma3():
    # Layers with a window of 7 tokens around one without, each with its own rotations. Queries and keys have norms with weights of about 2, so
    # scores are divided by more than a head's width asks for: sharper ones would make FP32's own noise larger than the test's bound.
    rope = dict(sliding_attention=dict(rope_type="default", rope_theta=100.0),
                full_attention=dict(rope_type="linear", factor=2.0, rope_theta=1000.0))
    sizes = SIZES | dict(num_hidden_layers=3, num_key_value_heads=1)
    return transformers.Gemma3ForCausalLM(
        transformers.Gemma3TextConfig(**sizes, head_dim=24, rms_norm_eps=1e-3, rope_parameters=rope, query_pre_attn_scalar=300, pad_token_id=None,
                                      sliding_window=7, layer_types=["sliding_attention", "full_attention", "sliding_attention"]))


def gpt2():
    return transformers.GPT2LMHeadModel(
        transformers.GPT2Config(n_embd=64, n_layer=2, n_head=4, n_inner=96, vocab_size=VOCABULARY, n_positions=64, layer_norm_epsilon=1e-3,
                                bos_token_id=None, eos_token_id=None, attn_implementation="eager"))


def tensors_of_files(model):
    """Every tensor that a folder of the model has: its name there, its parameter, and the part of that which it is."""
    mixtral_names = type(model).__name__.startswith("Mixtral")
    for name, parameter in model.named_parameters():
        if mixtral_names:
            name = name.replace(".mlp.", ".block_sparse_moe.")
        gate, up, down = ("w1", "w3", "w2") if mixtral_names else ("gate_proj", "up_proj", "down_proj")
        if name.endswith(".experts.gate_up_proj"):
            half = parameter.shape[1] // 2
            for e in range(parameter.shape[0]):
                yield f"{name[:-13]}.{e}.{gate}.weight", parameter, lambda t, e=e: t[e, :half]
                yield f"{name[:-13]}.{e}.{up}.weight", parameter, lambda t, e=e: t[e, half:]
        elif name.endswith(".experts.down_proj"):
            for e in range(parameter.shape[0]):
                yield f"{name[:-10]}.{e}.{down}.weight", parameter, lambda t, e=e: t[e]
        else:
            yield name, parameter, lambda t: t
    for name, buffer in model.named_buffers():
        if name.endswith(".e_score_correction_bias"):
            yield name, buffer, lambda t: t


def balance_loss(model, outputs):
    """transformers' auxiliary loss, times its coefficient; 0 without experts."""
    logits = getattr(outputs, "router_logits", None)
    if not logits:
        return 0.0
    config, module = model.config, sys.modules[type(model).__module__]
    experts = getattr(config, "num_experts", None) or config.num_local_experts
    return config.router_aux_loss_coef * module.load_balancing_loss_func(logits, experts, config.num_experts_per_tok)


def line(name, grad):
    flat = grad.reshape(-1).numpy().astype(np.float64)
    places = sorted(set(int(i) % flat.size for i in draw(name + " samples", SAMPLES)))
    numbers = [np.linalg.norm(flat), flat.sum(), np.abs(flat).max()]
    return " ".join([name, "x".join(map(str, grad.shape)), *(f"{x:.9g}" for x in numbers), *(f"{i}:{flat[i]:.9g}" for i in places)])


def pairs(flat, places):
    return " ".join(f"{i}:{flat[i]:.12g}" for i in places)


def loss_of(model, stream):
    """Logits, the mean cross-entropy, and what is minimized."""
    more = dict(output_router_logits=True) if hasattr(model.config, "router_aux_loss_coef") else {}
    outputs = model(input_ids=stream[:, :-1], **more)
    logits = outputs.logits
    loss = torch.nn.functional.cross_entropy(logits.reshape(-1, logits.shape[-1]), stream[:, 1:].reshape(-1))
    # The loss of each depth is a sum divided by the number of all tokens.
    ahead = losses_ahead(model, stream)
    further = sum(s for s, _ in ahead) / (max(len(ahead), 1) * stream[:, 1:].numel())
    return logits, loss, loss + balance_loss(model, outputs) + MTP_FACTOR * further


def training(model, stream, steps=STEPS):
    """The logits before the first step, and the losses of the next and of further tokens in each, all in FP64; matrices decay, vectors do not."""
    model = model.to(torch.float64)
    matrices = [p for p in model.parameters() if p.ndim > 1]
    vectors = [p for p in model.parameters() if p.ndim == 1]
    optimizer = torch.optim.AdamW([dict(params=matrices, weight_decay=DECAY), dict(params=vectors, weight_decay=0.0)], lr=RATE, betas=BETAS,
                                  eps=EPS)
    first, losses, further = None, [], []
    for _ in range(steps):
        optimizer.zero_grad()
        logits, loss, minimized = loss_of(model, stream)
        with torch.no_grad():
            ahead = losses_ahead(model, stream)
        minimized.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), CLIP)
        optimizer.step()
        first = logits.detach() if first is None else first
        losses.append(loss.item())
        further.append(sum(s.item() for s, _ in ahead) / max(sum(n for _, n in ahead), 1))  # a mean over places that have such a token
    return first, losses, further


def golden(model):
    if hasattr(model, "set_experts_implementation"):
        model.set_experts_implementation("eager")  # others do not multiply in FP64
    model = model.to(torch.float32).eval()  # eval: no dropout
    with torch.no_grad():
        for name, parameter, part in tensors_of_files(model):
            values = part(parameter)
            values.copy_(start(name, tuple(values.shape)))
    stream = torch.from_numpy((draw("tokens", ROWS * (LENGTH + 1)) % np.uint64(VOCABULARY)).astype(np.int64)).reshape(ROWS, LENGTH + 1)
    _, loss, minimized = loss_of(model, stream)
    minimized.backward()
    made = (f"# tests/peers/golden.py: {type(model).__name__} of transformers {transformers.__version__}, torch {torch.__version__}, "
            "gradients in FP32, logits and losses in FP64, on the CPU")
    lines = [made, "config " + json.dumps(model.config.to_dict()), f"tokens {ROWS} {LENGTH}", f"loss {loss.item():.9g}"]
    gradients = [line(name, part(p.grad if p.grad is not None else torch.zeros_like(p))) for name, p, part in tensors_of_files(model)]
    logits, losses, further = training(model, stream)
    flat = logits.reshape(-1).numpy()
    places = sorted(set(int(i) % flat.size for i in draw("logits samples", 4 * SAMPLES)))
    lines.append(f"logits {abs(flat).max():.12g} {pairs(flat, places)}")
    lines.append("losses " + " ".join(f"{x:.12g}" for x in losses))
    if any(further):
        lines.append(f"further {model.config.num_nextn_predict_layers} {MTP_FACTOR} " + " ".join(f"{x:.12g}" for x in further))
    return lines + gradients


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit("usage: golden.py <folder for the files>  [family ...]")
    torch.set_num_threads(1)
    families = (llama, smollm2, qwen2, qwen3, gpt2, qwen3_moe, olmoe, olmoe_clip, mixtral, deepseek_v2, deepseek_v3, deepseek_v3_mtp, mistral,
                smollm3, granite, olmo2, phi3, gemma3, llama_bias, qwen3_bias, olmoe_bias)
    for family in (f for f in families if f.__name__ in sys.argv[2:] or len(sys.argv) == 2):
        path = pathlib.Path(sys.argv[1]) / (family.__name__ + ".txt")
        path.write_text("\n".join(golden(family())) + "\n")
