"""Codes of linear layers in PyTorch's memory, and the products of these."""

import atexit
import contextlib
import functools
import itertools
import json
import weakref
from dataclasses import dataclass
from typing import Any, Mapping, Optional, Union

import torch

from . import _core
from ._config import assignments
from ._errors import ConfigError
from ._torch_operand import Layouts, Operand

DEVICES = ("cpu", "cuda")
_NOTHING = contextlib.nullcontext()


@dataclass(frozen=True)
class Recipe:
    """A scaling recipe and its options, as the section `recipe` of a configuration has them."""

    key: str  # JSON: all options with their TOML texts
    name: str
    keeps_state: bool  # of each operand, from step to step
    needs_maximum: bool  # one scale of a tensor follows from its own maximum

    @property
    def options(self) -> list[tuple[str, str]]:
        return [(name, text) for name, text in json.loads(self.key)]

    @classmethod
    @functools.lru_cache(maxsize=None)
    def from_key(cls, key: str) -> "Recipe":
        options = json.loads(key)
        return cls(key, json.loads(dict(options).get("name", '"current"')), _core.keeps_state(options), _core.needs_maximum(options))

    @classmethod
    def of(cls, given: Union[str, Mapping[str, Any], "Recipe"]) -> "Recipe":
        """A name, or a dict with `name` and options: {"name": "current", "format": "e4m3"}. Raises ConfigError."""
        if isinstance(given, Recipe):
            return given
        options = {"name": given} if isinstance(given, str) else dict(given)
        return cls.from_key(json.dumps(list(assignments(options))))

    def unfit(self, rows: int, columns: int) -> str:
        """Why a weight [rows, columns] cannot have this recipe's codes; "" if it can."""
        return _core.unfit(self.options, rows, columns)


class Changes:
    """Counts optimizer steps, after which codes of weights that train are stale."""

    steps = 0


class Coder:
    """The codes of one linear layer under one recipe, and the state of its quantizers. It follows the layer from device to device."""

    _ids = itertools.count(1)
    by_id: "weakref.WeakValueDictionary[int, Coder]" = weakref.WeakValueDictionary()
    stateful: "list[weakref.ref[Coder]]" = []  # in the order of their first use, which ranks share
    _shared: "dict[tuple[str, torch.device], Coder]" = {}
    _spare: "dict[Any, list[Any]]" = {}  # compiled parts whose coder is gone, by device and recipe: their tables are never freed

    def __init__(self, recipe: Recipe):
        self._codec: Any = None
        self.recipe, number = recipe, next(self._ids)
        # A tensor on the CPU, since a number would be a constant of compiled code, which blocks of a model then could not share.
        self.number = torch.tensor(number)
        self.by_id[number] = self
        self.recorded = False  # maxima of the current step
        self._keeps_codes = True
        self.steps = 0  # ends of steps
        self._device: Optional[torch.device] = None
        self._weight: tuple[Any, Any] = (None, None)
        self._stored: dict[str, torch.Tensor] = {}

    def on(self, device: torch.device) -> "Coder":
        """Itself, with its compiled part on that device."""
        if self._codec is None or device != self._device:
            stored = self.state()
            self._give_back()
            self._open(device)
            if self.recipe.keeps_state and not any(one() is self for one in self.stateful):
                self.stateful.append(weakref.ref(self, self.stateful.remove))
            if stored:
                self.load(stored)
        return self

    def _open(self, device: torch.device) -> None:
        spare = self._spare.get((device, self.recipe))
        if spare:
            self._codec = spare.pop()
            self._codec.reset(queue_of(device))
        else:
            self._codec = _core.LinearCodec(queue_of(device), device.type, device.index or 0, self.recipe.options)
        self._device, self._weight, self._layouts = device, (None, None), Layouts(self._codec, device)

    @classmethod
    def of(cls, number: torch.Tensor) -> "Coder":
        return cls.by_id[int(number)]

    @classmethod
    def shared(cls, recipe: Recipe, device: torch.device) -> "Coder":
        """One of all layers under the recipe, for inputs in compiled code: for shapes of their codes, and for these where no state is kept."""
        found = cls._shared.get((recipe.key, device))
        if found is None:
            found = cls._shared[recipe.key, device] = cls(recipe)
            found._open(device)
        return found

    def _give_back(self) -> None:
        if self._codec is not None:
            self._spare.setdefault((self._device, self.recipe), []).append(self._codec)

    def __del__(self) -> None:
        self._give_back()

    def state(self) -> dict[str, torch.Tensor]:
        """Copies of what is kept from step to step: {} for recipes without state."""
        if self._codec is None:
            return self._stored
        return {name: torch.from_dlpack(array).clone() for name, array in self._codec.state().items()}

    def load(self, state: Mapping[str, torch.Tensor]) -> None:
        """Takes what state() gave. Raises ConfigError if the options of the recipe differ."""
        if self._codec is None:
            self._stored = dict(state)
            return
        for name, array in self._codec.state().items():
            own = torch.from_dlpack(array)
            if name not in state or state[name].shape != own.shape:
                found = tuple(state[name].shape) if name in state else "nothing"
                raise ConfigError(f"recipe {self.recipe.name}: the stored {name} must be {tuple(own.shape)}, got {found}; give the recipe "
                                  "the options that it was saved with")
            own.copy_(state[name])
        self._codec.settle()
        self._weight = (None, None)

    def keep_codes(self, keeps: bool) -> None:
        """Whether codes of the weight are kept until it changes. One that ranks gather changes without a sign, in equal memory."""
        self._keeps_codes, self._weight = keeps, (None, None)

    def maxima(self) -> list[torch.Tensor]:
        """Views of the maxima of this step, float32 [1] each."""
        return [torch.from_dlpack(array) for array in self._codec.maxima()]

    def end_step(self) -> None:
        """Makes the next scales from the maxima of this step."""
        self._codec.end_step(queue_of(self._device))
        self.recorded, self._weight = False, (None, None)
        self.steps += 1

    def layout(self, rows: int, columns: int, dtype: torch.dtype, keep: bool) -> Any:
        """The layout of the codes of an input [rows, columns], and its parts: shape, dtype, whether it is of the columns."""
        return self._layouts.of("x", rows, columns, dtype, True, keep)

    def memory(self, operand: str, rows: int, columns: int, dtype: torch.dtype, by_columns: bool) -> Operand:
        return self._layouts.memory(operand, rows, columns, dtype, True, by_columns)

    def encode(self, x: torch.Tensor, keep: bool, records: bool, maximum: Optional[torch.Tensor]) -> Operand:
        """The codes of x [T, in]; with `keep` those that the weight's gradient reads, too."""
        values = matrix(x, x.dtype)
        operand = self.memory("x", *values.shape, x.dtype, keep)
        self._codec.encode(queue_of(self._device), values.data_ptr(), operand.layout, operand.addresses, address(maximum), records)
        return operand

    def weight(self, weight: torch.Tensor, columns: bool) -> tuple[Operand, Optional[torch.Tensor]]:
        """The codes of the weight [out, in], `columns` for the input's gradient, and the values of which they are to be made: None where
        they are those of an earlier call, since codes are made once per change of the weight."""
        version = None if weight.is_inference() else weight._version
        changes = Changes.steps if weight.requires_grad else 0
        key = weight.data_ptr(), version, changes, weight.dtype
        if self._keeps_codes and version is not None and self._weight[0] in ((key, True), (key, columns)):
            return self._weight[1], None
        self._weight = (None, None)
        operand = self.memory("w", *weight.shape, weight.dtype, columns)
        if self._keeps_codes:
            self._weight = ((key, columns), operand)
        return operand, weight.detach().contiguous()

    def multiply(self, x: Operand, values: Optional[torch.Tensor], rows: int, dtype: torch.dtype, weight: torch.Tensor,
                 bias: Optional[torch.Tensor], backward: bool, records: bool) -> torch.Tensor:
        """y [rows, out]. values: of x, where its codes are to be made; backward: the input's gradient will be asked for."""
        w, of_weight = self.weight(weight, backward)
        y = torch.empty(rows, weight.shape[0], dtype=dtype, device=self._device)
        added = None if bias is None else bias.detach().float().contiguous()
        self._codec.forward(queue_of(self._device), address(values), x.layout, x.addresses, address(of_weight), w.layout, w.addresses,
                            address(added), y.data_ptr(), records)
        return y

    def gradients(self, dy: torch.Tensor, kept: list[torch.Tensor], weight: torch.Tensor, wanted: tuple[bool, bool, bool], records: bool,
                  maximum: Optional[torch.Tensor] = None) -> list[Optional[torch.Tensor]]:
        """dx [rows, in], dw and db of dy [..., out], as far as they are wanted. kept: the codes of x by columns."""
        (dx, dw, db), device = wanted, self._device
        values = matrix(dy, dy.dtype)
        rows, out, width = values.shape[0], *weight.shape
        w, of_weight = self.weight(weight, True) if dx else (None, None)
        x = self._layouts.of("x", rows, width, dy.dtype, False, True)[0] if dw else None
        made = [torch.empty(rows, width, dtype=dy.dtype, device=device) if dx else None,
                torch.empty(out, width, dtype=weight.dtype, device=device) if dw else None,
                torch.empty(out, dtype=torch.float32, device=device) if db else None]
        self._codec.backward(queue_of(device), values.data_ptr(), rows, out, name_of(dy.dtype), address(maximum),
                             x, [t.data_ptr() for t in kept] if dw else [], address(of_weight), w and w.layout, w.addresses if w else [],
                             address(made[0]), address(made[1]), name_of(weight.dtype), address(made[2]), records)
        return made


def _end() -> None:
    Coder._spare.clear()
    Coder._shared.clear()


atexit.register(_end)


def name_of(dtype: torch.dtype) -> str:
    return "bfloat16" if dtype is torch.bfloat16 else "float32" if dtype is torch.float32 else str(dtype).removeprefix("torch.")


def address(tensor: Optional[torch.Tensor]) -> int:
    return 0 if tensor is None else tensor.data_ptr()


def queue_of(device: Optional[torch.device]) -> int:
    """The current queue of PyTorch on the device."""
    return 0 if device is None or device.type == "cpu" else torch._C._cuda_getCurrentRawStream(device.index)


def device_guard(device: torch.device) -> Any:
    return _NOTHING if device.type == "cpu" or device.index == torch._C._cuda_getDevice() else torch.cuda.device(device)


def padded(tokens: int, device: torch.device) -> int:
    """Rows of x and dy: on a GPU a multiple of 32, since its 8-bit GEMMs sum over them in the weight's gradient."""
    return -tokens // 32 * -32 if device.type == "cuda" else tokens


def matrix(x: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """x as contiguous [T, n] of that type, with rows of zeros up to padded()."""
    x = x.detach().reshape(-1, x.shape[-1]).to(dtype).contiguous()
    rows = padded(x.shape[0], x.device)
    return x if x.shape[0] == rows else torch.nn.functional.pad(x, (0, 0, 0, rows - x.shape[0]))
