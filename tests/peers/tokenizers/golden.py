#!/usr/bin/env python3
"""Writes tests/golden/tokenizers.jsonl: small tokenizers, and the ids and texts that PyPI `tokenizers` makes with them.

    python3 tests/peers/tokenizers/golden.py > tests/golden/tokenizers.jsonl

The first lines are complete tokenizers ("base"). Each later line changes keys of one ("set") and has cases: a text, its ids without and
with special tokens, and their decoded text.
"""

import json

import tokenizers
from tokenizers import AddedToken, Regex, Tokenizer, models, pre_tokenizers, trainers

TEXT = """The quick brown fox can't jump over 12345 lazy dogs; it's 3.14 o'clock, they'll say "No!" and we've gone home.
    for (int i = 0; i < 10; ++i) { total += values[i]; }   // sum of the values
Änderungen überall: größer, schöner, weiter. Ça va très bien, déjà vu; naïve café.\n\n
Быстрая лиса прыгает через ленивую собаку. 敏捷的棕色狐狸跳过懒狗。 狐狸跳 🙂🙂 👍🏽
the the the values values total jump jumps jumping jumped home homes over under
"""
TEXTS = ["", " ", "Hello world", "  two  spaces   three\n\n\nlines \t tabs", "can't CAN'T they'll 's'S", "1234567 3.14 x²½ ٣٤", "größer Änderungen café cafe\u0301",
         "Быстрая лиса", "狐狸跳过\n狗", "🙂👍🏽 👩‍👩‍👧", "<s>text</s> <mask> a<mask>b  <word>  xwordy word word.", "<|end|><|end|> the <|end|>", "aaaaaaaaaaaaaaaaaa", "▁a ▁ ▁▁b",
         "İSTANBUL Σίσυφος ﬁ Å \u1100\u1161\u11a8 한", "a\u0323\u0307 a\u0307\u0323", "a--b..c!!", "x\u00a0y\u3000z\u180ew\x85v", "\ufffd\x00\x7f end  "]


def bytes_base():
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.train_from_iterator([TEXT] * 3, trainers.BpeTrainer(vocab_size=420, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False))
    return json.loads(tokenizer.to_str())


def characters_base():
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="always")
    fallback = [f"<0x{byte:02X}>" for byte in range(256)]
    trainer = trainers.BpeTrainer(vocab_size=480, special_tokens=["<unk>", "<s>", "</s>", *fallback], show_progress=False)
    tokenizer.train_from_iterator([TEXT.replace("狐", "").replace("🙂", "")] * 3, trainer)
    source = json.loads(tokenizer.to_str())
    source["added_tokens"] = source["added_tokens"][:3]
    return source


def split(pattern, behavior="Isolated", invert=False):
    return {"type": "Split", "pattern": pattern, "behavior": behavior, "invert": invert}


def byte_level(prefix=False, regex=True):
    return {"type": "ByteLevel", "add_prefix_space": prefix, "trim_offsets": True, "use_regex": regex}


def sequence(key, *parts):
    return {"type": "Sequence", key: list(parts)}


def added(first, *tokens):
    return [{"id": first + i, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": False, **token}
            for i, token in enumerate(tokens)]


def metaspace(scheme="always", split_=True):
    return {"type": "Metaspace", "replacement": "▁", "prepend_scheme": scheme, "split": split_}


LLAMA_3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
BYTE_DECODER = {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True}
FALLBACK_DECODER = sequence("decoders", {"type": "Replace", "pattern": {"String": "▁"}, "content": " "}, {"type": "ByteFallback"}, {"type": "Fuse"},
                            {"type": "Strip", "content": " ", "start": 1, "stop": 0})


def variants(size):
    """(base, changed keys); `size`: of each base."""
    b, c = "bytes", "characters"
    yield b, {"pre_tokenizer": byte_level(), "decoder": BYTE_DECODER, "post_processor": byte_level()}
    yield b, {"pre_tokenizer": byte_level(prefix=True), "decoder": BYTE_DECODER}
    yield b, {"pre_tokenizer": sequence("pretokenizers", split({"Regex": LLAMA_3}), byte_level(regex=False)), "decoder": BYTE_DECODER}
    yield b, {"pre_tokenizer": None}
    for individual in (True, False):
        digits = {"type": "Digits", "individual_digits": individual}
        yield b, {"pre_tokenizer": sequence("pretokenizers", digits, byte_level()), "decoder": BYTE_DECODER}
    for behavior in ("Removed", "Isolated", "MergedWithPrevious", "MergedWithNext", "Contiguous"):
        for invert in (False, True):
            for pattern in ({"Regex": r"\p{L}+|-"}, {"String": "a"}, {"Regex": r"[\s\p{N}]|\W(?=\w)"}):
                parts = (split(pattern, behavior, invert), byte_level(regex=False))
                yield b, {"pre_tokenizer": sequence("pretokenizers", *parts)}
    for form in ("NFC", "NFD", "NFKC", "NFKD", "Lowercase"):
        yield b, {"normalizer": {"type": form}, "decoder": BYTE_DECODER}
    strip = {"type": "Strip", "strip_left": True, "strip_right": True}
    replace = {"type": "Replace", "pattern": {"Regex": r"\s{2,}|a(?=b)"}, "content": "__"}
    yield b, {"normalizer": sequence("normalizers", strip, replace, {"type": "Prepend", "prepend": "to "}), "decoder": BYTE_DECODER}
    tokens = ({"content": "<s>", "special": True}, {"content": "</s>", "special": True}, {"content": "<mask>", "lstrip": True, "special": True},
              {"content": "<word>", "rstrip": True}, {"content": "word", "single_word": True}, {"content": "<|end|>", "normalized": True},
              {"content": "end", "normalized": True, "lstrip": True, "rstrip": True, "single_word": True})
    template = {"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": "<s>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}},
                                                         {"SpecialToken": {"id": "</s>", "type_id": 0}}],
                "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 0}}],
                "special_tokens": {"<s>": {"id": "<s>", "ids": [size[b]], "tokens": ["<s>"]}, "</s>": {"id": "</s>", "ids": [size[b] + 1], "tokens": ["</s>"]}}}
    yield b, {"added_tokens": added(size[b], *tokens), "decoder": BYTE_DECODER}
    yield b, {"added_tokens": added(size[b], *tokens), "normalizer": {"type": "Lowercase"}, "decoder": BYTE_DECODER,
              "post_processor": sequence("processors", byte_level(), template)}
    for options in ({}, {"fuse_unk": True}, {"byte_fallback": True}, {"byte_fallback": True, "fuse_unk": True}, {"ignore_merges": True}, {"unk_token": None}):
        for scheme in ("always", "first", "never"):
            for split_ in (True, False) if not options else (scheme == "always",) if scheme != "never" else ():
                yield c, {"model": options, "pre_tokenizer": metaspace(scheme, split_), "decoder": metaspace(scheme, split_)}
        prepend = sequence("normalizers", {"type": "Prepend", "prepend": "▁"}, {"type": "Replace", "pattern": {"String": " "}, "content": "▁"})
        yield c, {"model": options, "pre_tokenizer": None, "normalizer": prepend, "decoder": FALLBACK_DECODER}


def changed(base, change):
    source = dict(base)
    for key, value in change.items():
        source[key] = {**base["model"], **value} if key == "model" else value
    return source


def main():
    bases = {"bytes": bytes_base(), "characters": characters_base()}
    for name, base in bases.items():
        print(json.dumps({"base": name, "version": tokenizers.__version__, "tokenizer": base}, separators=(",", ":")))
    size = {name: len(base["model"]["vocab"]) for name, base in bases.items()}
    for name, change in variants(size):
        tokenizer = Tokenizer.from_str(json.dumps(changed(bases[name], change)))
        cases = []
        for text in TEXTS:
            ids = tokenizer.encode(text, add_special_tokens=False).ids
            whole = tokenizer.encode(text).ids
            case = {"text": text, "ids": ids, "decoded": tokenizer.decode(whole)}
            cases.append({**case, "whole": whole} if whole != ids else case)
        print(json.dumps({"set": name, "change": change, "cases": cases}, separators=(",", ":")))


if __name__ == "__main__":
    main()
