"""A trained model: logits, text, evaluations, and its weights."""

import math
import os
from dataclasses import dataclass
from typing import Any, Optional, Sequence, Union

import numpy as np
from numpy.typing import ArrayLike, NDArray

from . import _core
from ._errors import ConfigError


@dataclass(frozen=True)
class Evaluation:
    """The loss of a model on text."""

    loss: float  # mean cross-entropy [nats per token]
    tokens: int

    @property
    def perplexity(self) -> float:
        return math.exp(self.loss)


class Model:
    """A model in one precision, ready to compute. Calls of several threads come one after another."""

    def __init__(self, model: _core.OpenModel):
        if not isinstance(model, _core.OpenModel):
            raise TypeError(f"octet.Model({model!r}): a folder is opened by octet.Model.open(folder)")
        self._model = model

    @classmethod
    def open(cls, folder: Union[str, "os.PathLike[str]"], *, recipe: str = "bf16", sequence: int = 0, step: int = -1, device: str = "auto",
             head: str = "bf16", residual: bool = False, threads: int = 0) -> "Model":
        """Opens a Hugging Face folder, a run's folder or a checkpoint.

        recipe: precision of the linear layers, also one that the model was not trained with.
        sequence: longest sequence [tokens]; 0: that of the model, at most 2048.
        step: of a run: the checkpoint of this step; -1: the newest.
        device: "auto" (the GPU where there is one), "cpu" or "gpu". threads: of a CPU; 0: one per processor.
        head: "bf16" or "recipe", precision of the projection to the vocabulary. residual: quantize the residual stream, too.
        """
        return cls(_core.open_model(os.fspath(folder), step, recipe, head, residual, device, threads, sequence))

    @property
    def vocabulary(self) -> int:
        """Number of token ids."""
        return self._model.vocabulary

    @property
    def max_sequence(self) -> int:
        """Tokens that the model takes at most."""
        return self._model.max_sequence

    @property
    def sequence(self) -> int:
        """Longest sequence for which it was opened [tokens]."""
        return self._model.sequence

    @property
    def empty_context(self) -> Optional[int]:
        """The id in place of an empty text before another one: the tokenizer's begin token, or else its end token."""
        return self._model.empty_context

    def logits(self, ids: ArrayLike) -> NDArray[np.float32]:
        """Logits after each token: ids [length] or [rows, length] -> float32 [length, vocabulary] or [rows, length, vocabulary]."""
        given = np.asarray(ids)
        rows = np.ascontiguousarray(np.atleast_2d(given), dtype=np.int32)
        out = self._model.logits(rows)
        return out[0] if given.ndim == 1 else out

    def generate(self, prompt: Union[str, Sequence[int], Sequence[str], Sequence[Sequence[int]]], *, tokens: int = 200,
                 temperature: float = 0.8, top_k: int = 40, top_p: float = 1.0, seed: int = 1, repetition_penalty: float = 1.0,
                 stop: Union[str, Sequence[str]] = (), cache: str = "values") -> Any:
        """Continues a text, and returns the continuation: text after text, a list of ids after ids. A list of prompts is continued side by
        side, and gives a list of continuations.

        temperature 0: the most likely token. repetition_penalty: above 1, tokens that the text has are less likely.
        stop: strings before which a text ends; ids include the token that completes one.
        cache: "values" or "e4m3", how keys and values of earlier tokens are stored.
        """
        if cache not in ("values", "e4m3"):
            raise ConfigError(f'generate: cache must be "values" or "e4m3", got {cache!r}')
        one = isinstance(prompt, str) or all(not isinstance(p, str) and np.ndim(p) == 0 for p in prompt)
        prompts, stops = [prompt] if one else list(prompt), [stop] if isinstance(stop, str) else list(stop)
        texts = [self.encode(p, document=True) if isinstance(p, str) else [int(i) for i in p] for p in prompts]
        ids = self._model.generate(texts, tokens, temperature, top_k, top_p, seed, repetition_penalty, stops, cache == "e4m3")
        out = [self._until(i, stops) if isinstance(p, str) else i for p, i in zip(prompts, ids)]
        return out[0] if one else out

    def _until(self, ids: Sequence[int], stops: Sequence[str]) -> str:
        text = self.decode(ids)
        return text[:min([at for at in map(text.find, stops) if at >= 0], default=len(text))]

    def evaluate(self, data: Union[None, str, "os.PathLike[str]"] = None, *, recipe: Optional[str] = None, sequence: Optional[int] = None,
                 batch: int = 4, tokens: Optional[int] = None, held_out: Optional[float] = None, all: bool = False,
                 document_mask: Optional[bool] = None, calibration: int = 4) -> Evaluation:
        """Mean loss on a token folder. Arguments that are None have the values of the run in whose folder the model is.

        recipe: another precision than that in which the model was opened, read from the folder again.
        sequence: tokens per sequence; batch: sequences at once; tokens: to evaluate on, 0: all.
        held_out: share of the documents, chosen by a hash of their number; all: every document.
        calibration: batches that initialize scales with a history.
        """
        options = {"--sequence": sequence, "--tokens": tokens, "--held-out": held_out, "--document-mask": document_mask}
        given = [name for name, value in options.items() if value is not None]
        text = _core.eval_set("" if data is None else os.fspath(data), 256 if sequence is None else sequence, batch, tokens or 0,
                              0.01 if held_out is None else held_out, all, bool(document_mask))
        return Evaluation(*self._model.evaluate(text, given, recipe or "", calibration))

    def parameters(self) -> dict[str, Any]:
        """Weights by path, such as "layers.0.attn.qkv.weight": views of the model's own memory, float32, without a copy. On a CPU they are
        NumPy arrays, which have DLPack and the buffer protocol; on a GPU objects with DLPack. Changes take effect in the next call."""
        return self._model.parameters()

    def encode(self, text: str, *, document: bool = False) -> list[int]:
        """Token ids of a text. document: as the begin of one, with the tokens that come before its text."""
        return self._model.encode(text.encode(), document)

    def decode(self, ids: Sequence[int]) -> str:
        """The text of token ids. Bytes that are no UTF-8 become U+FFFD."""
        return self._model.decode([int(i) for i in ids]).decode(errors="replace")
