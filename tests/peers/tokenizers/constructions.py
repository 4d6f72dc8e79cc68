"""Tokenizers of the constructions in use, trained with PyPI `tokenizers`, and text to try them on."""

import json
import pathlib
import random
import sys
import unicodedata

import tokenizers
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

CONTRACTIONS = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)"
REST = r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
LLAMA_3 = CONTRACTIONS + r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}" + REST
QWEN_2 = CONTRACTIONS + r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}" + REST


def special(content):
    return AddedToken(content, normalized=False, special=True)


def byte_level_trainer(size, tokens):
    return trainers.BpeTrainer(vocab_size=size, special_tokens=tokens, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
                               show_progress=False)


def gpt2(texts, size):
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.train_from_iterator(texts, byte_level_trainer(size, ["<|endoftext|>"]))
    tokenizer.post_processor = processors.ByteLevel(trim_offsets=False)
    return tokenizer, "<|endoftext|>"


def split_then_bytes(pattern):
    return pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(pattern), "isolated"),
                                    pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])


def llama3(texts, size):
    tokenizer = Tokenizer(models.BPE(ignore_merges=True))
    tokenizer.pre_tokenizer = split_then_bytes(LLAMA_3)
    tokenizer.decoder = decoders.ByteLevel()
    begin, end = "<|begin_of_text|>", "<|end_of_text|>"
    tokenizer.train_from_iterator(texts, byte_level_trainer(size, [begin, end]))
    tokenizer.add_special_tokens([special("<|eot_id|>")])
    template = processors.TemplateProcessing(single=f"{begin} $A", special_tokens=[(begin, tokenizer.token_to_id(begin))])
    tokenizer.post_processor = processors.Sequence([processors.ByteLevel(trim_offsets=True), template])
    return tokenizer, end


def qwen2(texts, size):
    tokenizer = Tokenizer(models.BPE())
    tokenizer.normalizer = normalizers.NFC()
    tokenizer.pre_tokenizer = split_then_bytes(QWEN_2)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.train_from_iterator(texts, byte_level_trainer(size, []))
    tokenizer.add_special_tokens([special("<|endoftext|>"), special("<|im_start|>"), special("<|im_end|>")])
    tokenizer.add_tokens([AddedToken("<tool_call>", normalized=False), AddedToken("</tool_call>", normalized=False)])
    tokenizer.post_processor = processors.ByteLevel(trim_offsets=False)
    return tokenizer, "<|endoftext|>"


def mistral(texts, size):
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    tokenizer.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="never")  # for training alone
    fallback = [f"<0x{byte:02X}>" for byte in range(256)]
    trainer = trainers.BpeTrainer(vocab_size=size, special_tokens=["<unk>", "<s>", "</s>", *fallback], limit_alphabet=2000,
                                  show_progress=False)
    tokenizer.train_from_iterator(texts, trainer)
    source = json.loads(tokenizer.to_str())
    source["pre_tokenizer"] = None
    source["added_tokens"] = [token for token in source["added_tokens"] if token["content"] not in fallback]
    tokenizer = Tokenizer.from_str(json.dumps(source))
    tokenizer.post_processor = processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 1)])
    tokenizer.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(),
                                           decoders.Strip(" ", 1, 0)])
    return tokenizer, "</s>"


def metaspace(texts, size):
    """Mistral's newer form: the pre-tokenizer marks the spaces."""
    tokenizer, end = mistral(texts, size)
    source = json.loads(tokenizer.to_str())
    source["normalizer"] = None
    source["pre_tokenizer"] = {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "first", "split": False}
    return Tokenizer.from_str(json.dumps(source)), end


def digits(texts, size):
    """SmolLM2's form: single digits, then the pattern of GPT-2."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True),
                                                       pre_tokenizers.ByteLevel(add_prefix_space=False)])
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.train_from_iterator(texts, byte_level_trainer(size, ["<|endoftext|>"]))
    return tokenizer, "<|endoftext|>"


CONSTRUCTIONS = {"gpt2": gpt2, "llama3": llama3, "qwen2": qwen2, "mistral": mistral, "metaspace": metaspace, "digits": digits}


def save(tokenizer, end, folder):
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer.save(str(folder / "tokenizer.json"))
    (folder / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": "PreTrainedTokenizerFast", "eos_token": end}))


def newer_parts():
    """Characters of compositions that the package does not know."""
    found = set()
    for code in range(0xA0, 0x1FB00):
        parts = unicodedata.normalize("NFD", chr(code)) if unicodedata.category(chr(code)) != "Cs" else chr(code)
        if parts != chr(code) and normalizers.NFD().normalize_str(chr(code)) != parts:
            found.update(chr(code), parts)
    return found


NEWER_PARTS = newer_parts()


def is_newer(code):
    """A mark, or a part of a composed character, that the package's tables of Unicode 9 do not have."""
    if chr(code) in NEWER_PARTS:
        return True
    mark = ("a\u0345" if unicodedata.combining(chr(code)) != 240 else "a\u0301") + chr(code)
    return normalizers.NFC().normalize_str(mark) != unicodedata.normalize("NFC", mark)


# Every assigned character of Unicode 14, of which PCRE2 10.42 has the properties, by blocks of 256.
def blocks():
    found = {}
    for code in range(0xA0, 0x1FB00):
        if unicodedata.category(chr(code)) not in ("Cn", "Cs", "Co") and not is_newer(code):
            found.setdefault(code >> 8, []).append(chr(code))
    return [block for block in found.values() if len(block) >= 16]


BLOCKS = blocks()
ASCII = [chr(code) for code in range(32, 127)]
BLANKS = [" ", " ", " ", "\n", "\n\n", "  ", "\t", "\r\n", "\u00a0", "\u3000", "\u2003 ", " \n", "   \n  ", "\x0b", "\x85", "\u180e"]
PIECES = ["'s", "'RE", "don't", "I'LL", "'ſ", "1234567", "٣٤٥", "x²", "½", "<|endoftext|>", "<|im_start|>", "<s>", "<unk>", "</s>", "<tool_call>",
          "👩‍👩‍👧‍👦", "🇩🇪", "👍🏽", "e\u0301", "\u1100\u1161\u11a8", "한국어", "ﬁ", "Å", "\u0344", "a\u0323\u0307\u0301", "\u2581", "\u2581\u2581x", "<0x41>",
          "\ufeff", "\u200d", "\x00", "\x1c", "\x7f", "\ufffd", "İ", "ς"]


def synthetic(random, size):
    """Words of many scripts, runs of one character, blanks, special tokens and invalid UTF-8: `size` bytes or a few more."""
    out = bytearray()
    while len(out) < size:
        kind = random.random()
        if kind < 0.45:
            block = random.choice(BLOCKS)
            text = "".join(random.choice(block) for _ in range(random.randint(1, 12)))
        elif kind < 0.65:
            text = "".join(random.choice(ASCII) for _ in range(random.randint(1, 16)))
        elif kind < 0.75:
            text = random.choice(PIECES)
        elif kind < 0.751:
            text = random.choice(["a", " ", "\n", "é", "1", "-", "中", "\u0301", "\u2581"]) * random.randint(100, 3000)
        else:
            text = random.choice(BLANKS)
        out += text.encode()
        if random.random() < 0.01:
            out += random.choice([b"\xff", b"\xc3", b"\xe2\x82", b"\xf0\x9f\x98", b"\xed\xa0\x80", b"\xc0\xaf", b"\xf4\x90\x80\x80", b"\x80\x80"])
    return bytes(out)


ROOTS = ["/usr/include", "/usr/share/doc", "/usr/share/perl", "/usr/share/i18n", "/usr/share/cmake-3.25", *sys.path[::-1]]
SUFFIXES = (".h", ".hpp", ".c", ".py", ".pyi", ".txt", ".md", ".rst", ".pl", ".pm", ".pod", ".json", ".html", ".js", ".cmake", ".tcc", "")


def files():
    """Text and code of this machine, in a fixed order."""
    for root in ROOTS:
        if root and pathlib.Path(root).is_dir():
            for path in sorted(pathlib.Path(root).rglob("*")):
                if path.suffix in SUFFIXES and path.is_file() and not path.is_symlink() and 200 < path.stat().st_size < 8_000_000:
                    yield path


def corpus(megabytes, seed):
    """Documents of `megabytes` in all: two thirds from this machine, the rest synthetic; when the machine has no more, from the beginning,
    each line reversed by words."""
    generator = random.Random(seed)
    left = int(megabytes * 1e6)
    again = False
    while left > 0:
        taken = 0
        for path in files():
            document = path.read_bytes()
            if again:
                document = b"\n".join(b" ".join(line.split(b" ")[::-1]) for line in document.split(b"\n"))
            for part in (document, synthetic(generator, len(document) // 2 + 10)):
                left -= len(part)
                taken += len(part)
                yield part
                if left <= 0:
                    return
        if taken == 0:
            for _ in range(20):
                part = synthetic(generator, 50_000)
                left -= len(part)
                yield part
        again = True


def version():
    return tokenizers.__version__
