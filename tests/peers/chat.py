#!/usr/bin/env python3
"""Conversations as chat templates of Hugging Face write them, for octet/models/chat_template.test.cpp.

Jinja runs as in transformers' apply_chat_template: sandboxed, with trim_blocks and lstrip_blocks. Each line of the output is an object:
  template   the name of the form in Octet
  checksum   XXH3-128 of the template without blanks at its end
  messages   the conversation
  text       what the template writes, without add_generation_prompt

Run: python tests/peers/chat.py FOLDER > tests/golden/chat.jsonl     (needs jinja2 and xxhash; stored: jinja2 3.1)
FOLDER has the templates: chatml.jinja, qwen2.jinja, qwen2.5.jinja, qwen3.jinja, qwen3_2507.jinja and llama3.jinja, the chat_template of
the models' tokenizer_config.json (those of Qwen2.5, Qwen3 and Llama 3 are also in huggingface/trl, trl/chat_templates).
"""
import json
import pathlib
import sys

import xxhash
from jinja2.sandbox import ImmutableSandboxedEnvironment

FORMS = {"chatml": "chatml", "qwen2": "qwen2", "qwen2.5": "qwen2.5", "qwen3": "qwen3", "qwen3_2507": "chatml", "llama3": "llama3"}


def chat(*turns):
    roles = {"s": "system", "u": "user", "a": "assistant"}
    return [{"role": roles[role], "content": content} for role, content in turns]


CONVERSATIONS = [
    chat(("u", "Hi"), ("a", "Hello!")),
    chat(("s", "Be brief."), ("u", "What is 2 + 2?"), ("a", "4"), ("u", "And 3 + 3?"), ("a", "6")),
    chat(("u", "  blanks\n around \t"), ("a", "\n\nleading lines\n")),
    chat(("u", "Zürich, 日本, 🚀\u00a0"), ("a", "\u3000ñ \"quotes\" <tags> & {{ braces }} {% no %}")),
    chat(("u", "Think."), ("a", "<think>\nfirst\nsecond\n</think>\n\nthe answer")),
    chat(("u", "Think."), ("a", "<think>early</think>one"), ("u", "Again."), ("a", "<think>\n\n</think>\n\ntwo")),
    chat(("u", "a"), ("a", "b"), ("a", "c")),
    chat(("u", "a"), ("a", "<think>x</think>b"), ("a", "c")),
    chat(("u", "a"), ("s", "in between"), ("a", "b")),
    chat(("s", ""), ("u", ""), ("a", "")),
    chat(("u", "a"), ("a", "b"), ("u", "<tool_response>\nx\n</tool_response>"), ("a", "c")),
    chat(("u", "a"), ("a", "</think>tail"), ("u", "q")),
    chat(("a", "<think>\n\n\nspaced\n\n\n</think>\n\n\n\nout")),
]

environment = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True)
for name, form in FORMS.items():
    source = (pathlib.Path(sys.argv[1]) / f"{name}.jinja").read_text()
    template = environment.from_string(source)
    checksum = xxhash.xxh3_128_hexdigest(source.rstrip(" \t\n\r\f\v\x1c\x1d\x1e\x1f").encode())
    for messages in CONVERSATIONS:
        text = template.render(messages=messages, tools=None, bos_token="<|begin_of_text|>", add_generation_prompt=False)
        print(json.dumps({"template": form, "checksum": checksum, "messages": messages, "text": text}, ensure_ascii=False))
