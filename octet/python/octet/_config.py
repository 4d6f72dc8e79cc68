"""Configurations from dicts: each value as TOML text, which the compiled part reads as strictly as a file."""

import json
import os
from typing import Any, Iterator, Mapping, Sequence, Union

from . import _core

Config = Union[None, str, "os.PathLike[str]", Mapping[str, Any]]
"""A configuration: the path of a TOML file, or its keys, nested ({"train": {"steps": 10}}) or dotted ({"train.steps": 10})."""


def toml_text(value: Any) -> str:
    """A value as TOML: text, a number, a truth value, or a list of these or of dicts."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, os.PathLike):
        value = os.fspath(value)
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{key} = {toml_text(each)}" for key, each in value.items()) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(toml_text(each) for each in value) + "]"
    if hasattr(value, "item"):  # a number of NumPy
        value = value.item()
    if isinstance(value, (int, float)):
        return repr(value)
    raise TypeError(f"a configuration has no values of type {type(value).__name__}; give text, a number, a bool or a list")


def assignments(config: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    """Dotted keys with the TOML text of their values. A value None is left out."""
    for key, value in config.items():
        if isinstance(value, Mapping):
            yield from assignments(value, f"{prefix}{key}.")
        elif value is not None:
            yield f"{prefix}{key}", toml_text(value)


def keys_of(config: Config, more: Union[None, Mapping[str, Any]] = None) -> _core.Keys:
    """The keys of a configuration, then those of `more`, which win."""
    own = list(assignments(more or {}))
    if config is None:
        return _core.Keys("", own)
    if isinstance(config, Mapping):
        return _core.Keys("", list(assignments(config)) + own)
    return _core.Keys(os.fspath(config), own)


def texts(value: Union[str, "os.PathLike[str]", Sequence[Union[str, "os.PathLike[str]"]]]) -> list[str]:
    """One path or several as a list."""
    return [os.fspath(value)] if isinstance(value, (str, os.PathLike)) else [os.fspath(each) for each in value]
