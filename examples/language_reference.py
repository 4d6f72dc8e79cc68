#!/usr/bin/env python3
"""Writes Python's language reference, which every Python has for help(), as JSON lines of up to about 1,500 characters.

    python3 examples/language_reference.py > reference.jsonl

A text to evaluate on without a network. docs/recipes.md, "One scale per model: a pretrained model", has the figures for Python 3.11.7.
"""
import json

from pydoc_data import topics

ENOUGH = 1500

for name in sorted(topics.topics):
    part = ""
    for paragraph in topics.topics[name].split("\n\n"):
        part += paragraph + "\n\n"
        if len(part) > ENOUGH:
            print(json.dumps({"text": part}))
            part = ""
    if part:
        print(json.dumps({"text": part}))
