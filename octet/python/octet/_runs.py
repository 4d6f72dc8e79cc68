"""Functions that train, compare, plan and tokenize."""

import os
from typing import Any, Callable, Mapping, Optional, Sequence, Union

from . import _core
from ._config import Config, keys_of, texts

Callback = Callable[[_core.Step], Optional[bool]]
"""Called after each optimizer step. True stops the run, which saves its state; None and False continue."""


def train(config: Config = None, callbacks: Union[Callback, Sequence[Callback]] = (), *, resume: Union[None, str, "os.PathLike[str]"] = None,
          set: Optional[Mapping[str, Any]] = None) -> _core.Outcome:
    """Trains a model and returns how the run ended. The run's folder has the files that `octet train` writes.

    config: keys as a dict, or the path of a TOML file (docs/configuration.md); with `resume` changes of the stored configuration.
    callbacks: one or several; each is called in the calling thread after every step. If one raises, the run saves its state and stops,
        and the exception follows. Of several ranks the first one calls them.
    resume: folder of a run that was stopped; it continues bit for bit.
    set: keys that win over those of `config`.

    Ctrl-C stops the run after the micro-batch in progress; its state is saved, and KeyboardInterrupt follows.
    Raises ConfigError, DataError, IoError, DeviceError or DivergedError.
    """
    calls = (callbacks,) if callable(callbacks) else tuple(callbacks)

    def each(step: _core.Step) -> bool:
        stops = [bool(call(step)) for call in calls]
        return any(stops)

    return _core.train(keys_of(config, set), "" if resume is None else os.fspath(resume), each)


def compare(config: Config = None, *, recipes: Optional[Sequence[str]] = None, arms: Sequence[str] = (), baseline: str = "bf16", seeds: int = 1,
            twins: int = 1, tolerance: float = 0.005, resume: Union[None, str, "os.PathLike[str]"] = None,
            set: Optional[Mapping[str, Any]] = None) -> _core.Comparison:
    """Trains several configurations from the same weights on the same data, and judges the differences of their losses.

    recipes: arms that differ from the baseline by recipe alone; None: those that `octet compare` has.
    arms: others, "name: key=value, key=value".
    seeds: runs per arm; twins: of the baseline per seed; tolerance: of the gap in loss, 0.005 is 0.5%.
    resume: folder of a comparison that was stopped; it continues with its own options.
    """
    return _core.compare(keys_of(config, set), None if recipes is None else list(recipes), list(arms), baseline, seeds, twins, tolerance,
                         "" if resume is None else os.fspath(resume))


def plan(config: Config = None, *, set: Optional[Mapping[str, Any]] = None) -> _core.Plan:
    """Estimates memory and work of a run, and decides the precision of each layer, without training. Needs no data."""
    return _core.plan(keys_of(config, set))


def tokenize(inputs: Union[str, Sequence[str]], output: Union[str, "os.PathLike[str]"], *, tokenizer: Union[str, "os.PathLike[str]"] = "byte",
             end_of_document: str = "", max_bytes: int = 0, field: str = "text", skip_bad_lines: bool = False, any_bytes: bool = False,
             force: bool = False) -> _core.Tokens:
    """Converts text files and JSON lines to a token folder.

    inputs: files or patterns (*, ?, ** for any folders); .gz and .zst are decompressed.
    tokenizer: a tokenizer.json, a folder that has one, or "byte": one token per byte.
    max_bytes: stop before the file that would pass this many bytes of text; 0: all.
    force: replace an existing token folder.
    """
    return _core.tokenize(texts(inputs), os.fspath(output), os.fspath(tokenizer), end_of_document, max_bytes, field, skip_bad_lines, any_bytes,
                          force)
