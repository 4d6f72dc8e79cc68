"""Codes of linear layers in PyTorch's memory, and the two operators that multiply them."""

import atexit
import contextlib
import itertools
import json
import weakref
from dataclasses import dataclass
from typing import Any, Mapping, Optional, Union

import torch

from . import _core
from ._config import assignments
from ._errors import ConfigError

DEVICES = ("cpu", "cuda")


@dataclass(frozen=True)
class Recipe:
    """A scaling recipe and its options, as the section `recipe` of a configuration has them."""

    key: str  # JSON: all options with their TOML texts
    name: str

    @property
    def options(self) -> list[tuple[str, str]]:
        return [(name, text) for name, text in json.loads(self.key)]

    @classmethod
    def from_key(cls, key: str) -> "Recipe":
        return cls(key, json.loads(dict(json.loads(key)).get("name", '"current"')))

    @classmethod
    def of(cls, given: Union[str, Mapping[str, Any], "Recipe"]) -> "Recipe":
        """A name, or a dict with `name` and options: {"name": "current", "format": "e4m3"}. Raises ConfigError."""
        if isinstance(given, Recipe):
            return given
        options = {"name": given} if isinstance(given, str) else dict(given)
        recipe = cls.from_key(json.dumps(list(assignments(options))))
        recipe.unfit(0, 0)
        return recipe

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
    like: "dict[str, dict[torch.device, Coder]]" = {}  # a coder of each recipe and device, for the shapes of codes
    _spare: "dict[Any, list[Any]]" = {}  # compiled parts whose coder is gone, by device and recipe: their tables are never freed

    def __init__(self, recipe: Recipe):
        self._codec: Any = None
        self.recipe, number = recipe, next(self._ids)
        # A tensor on the CPU, since a number would be a constant of compiled code, which blocks of a model then could not share.
        self.number = torch.tensor(number)
        self.by_id[number] = self
        self.like.setdefault(recipe.key, {})
        self.recorded = False  # maxima of the current step
        self._keeps_codes = True
        self.steps = 0  # ends of steps
        self._device: Optional[torch.device] = None
        self._parts: dict[Any, list[tuple[list[int], torch.dtype, bool]]] = {}
        self._weight: tuple[Any, Any] = (None, None)
        self._stored: dict[str, torch.Tensor] = {}

    def on(self, device: torch.device) -> Any:
        """The compiled part on that device."""
        if self._codec is None or device != self._device:
            stored = self.state()
            self._give_back()
            spare = self._spare.get((device, self.recipe))
            if spare:
                self._codec = spare.pop()
                self._codec.reset(queue_of(device))
            else:
                self._codec = self._new_codec(device)
            self._device, self._weight, self._parts = device, (None, None), {}
            if self._codec.maxima() and not any(one() is self for one in self.stateful):
                self.stateful.append(weakref.ref(self, self.stateful.remove))
            if stored:
                self.load(stored)
        return self._codec

    def _new_codec(self, device: torch.device) -> Any:
        return _core.LinearCodec(queue_of(device), device.type, device.index or 0, self.recipe.options)

    @classmethod
    def of(cls, number: torch.Tensor) -> "Coder":
        return cls.by_id[int(number)]

    @classmethod
    def shapes(cls, recipe: str, device: torch.device) -> "Coder":
        """One for parts() alone, of any layer under the recipe."""
        found = cls.like[recipe]
        if device not in found:
            one = found[device] = cls(Recipe.from_key(recipe))
            one._device, one._codec = device, one._new_codec(device)
        return found[device]

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

    def codes(self, operand: str, shape: tuple[int, int], dtype: torch.dtype, rows: bool, columns: bool) -> tuple[Any, list[torch.Tensor]]:
        """Memory for the codes of values [shape], and those of its tensors that have the columns."""
        wanted = self.parts(operand, shape, dtype, rows, columns)
        memory = [torch.empty(size, dtype=kind, device=self._device) for size, kind, _ in wanted]
        return (_core.Codes(shape, name_of(dtype), rows, columns, memory), [m for m, part in zip(memory, wanted) if part[2]])

    def parts(self, operand: str, shape: tuple[int, int], dtype: torch.dtype, rows: bool, columns: bool) -> Any:
        key = operand, shape, dtype, rows, columns
        if key not in self._parts:
            if len(self._parts) >= 64:  # of sequences of many lengths
                self._parts.clear()
            like = _core.Codes(shape, name_of(dtype), rows, columns, [])
            self._parts[key] = [(size, getattr(torch, kind), of_columns) for size, kind, of_columns in self._codec.parts(operand, like)]
        return self._parts[key]

    def weight(self, weight: torch.Tensor, columns: bool, records: bool) -> Any:
        """The codes of the weight [out, in], which are encoded once per change of it: `columns` for the input's gradient."""
        version = None if weight.is_inference() else weight._version
        changes = Changes.steps if weight.requires_grad else 0
        key = weight.data_ptr(), version, changes, weight.dtype
        if self._keeps_codes and version is not None and self._weight[0] in ((key, True), (key, columns)):
            return self._weight[1]
        self._weight = (None, None)
        codes, _ = self.codes("w", tuple(weight.shape), weight.dtype, True, columns)
        self._codec.encode_weight(queue_of(self._device), weight.detach().contiguous(), codes, records)
        if self._keeps_codes:
            self._weight = ((key, columns), codes)
        return codes


atexit.register(Coder._spare.clear)


def name_of(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


def queue_of(device: Optional[torch.device]) -> int:
    """The current queue of PyTorch on the device."""
    return 0 if device is None or device.type == "cpu" else torch.cuda.current_stream(device).cuda_stream


def device_guard(device: torch.device) -> Any:
    return torch.cuda.device(device) if device.type == "cuda" else contextlib.nullcontext()


def padded(tokens: int, device: torch.device) -> int:
    """Rows of x and dy: on a GPU a multiple of 32, since its 8-bit GEMMs sum over them in the weight's gradient."""
    return -tokens // 32 * -32 if device.type == "cuda" else tokens


def with_rows(x: torch.Tensor, rows: int) -> torch.Tensor:
    """x [T, n] for DLPack, with rows of zeros up to that number."""
    x = x.detach().contiguous()
    return x if x.shape[0] == rows else torch.nn.functional.pad(x, (0, 0, 0, rows - x.shape[0]))


@torch.library.custom_op("octet::linear_forward", mutates_args=())
def linear_forward(x: torch.Tensor, weight: torch.Tensor, bias: Optional[torch.Tensor], coder: torch.Tensor, recipe: str, keep: bool,
                   backward: bool, records: bool) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """y [T, out] = x [T, in] weight^T + bias in x's dtype, and, with `keep`, the codes of x that the weight's gradient reads, with their
    factors: uint8 and float32 on a GPU, else empty. backward: the input's gradient will be asked for. coder: its number; recipe: the key of its recipe."""
    own = Coder.of(coder)
    with device_guard(x.device):
        codec, rows = own.on(x.device), padded(x.shape[0], x.device)
        own.recorded |= records
        w = own.weight(weight, backward, records)
        codes, kept = own.codes("x", (rows, x.shape[1]), x.dtype, True, keep)
        y = torch.empty(rows, weight.shape[0], dtype=x.dtype, device=x.device)
        added = None if bias is None else bias.detach().float().contiguous()
        codec.forward(queue_of(x.device), with_rows(x, rows), codes, w, added, y, records)
    kept += [torch.empty(0, dtype=torch.float32, device=x.device) for _ in range(2 - len(kept))]
    return y[:x.shape[0]], kept[0], kept[1]


@linear_forward.register_fake
def _(x, weight, bias, coder, recipe, keep, backward, records):
    own = Coder.shapes(recipe, x.device)
    shape = padded(int(x.shape[0]), x.device), int(x.shape[1])
    kept = [x.new_empty(size, dtype=kind) for size, kind, of_columns in own.parts("x", shape, x.dtype, True, keep) if of_columns]
    kept += [x.new_empty(0, dtype=torch.float32) for _ in range(2 - len(kept))]
    return x.new_empty(x.shape[0], weight.shape[0]), kept[0], kept[1]


@torch.library.custom_op("octet::linear_backward", mutates_args=())
def linear_backward(dy: torch.Tensor, codes: torch.Tensor, factors: torch.Tensor, weight: torch.Tensor, coder: torch.Tensor, dx: bool,
                    dw: bool, db: bool, records: bool) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """dx [T, in] = dy [T, out] weight in dy's dtype, dw [out, in] = dy^T x in weight's, and db [out] = sum of dy in float32, as far as they
    are asked for; else empty. codes, factors: of x, from linear_forward."""
    own = Coder.of(coder)
    with device_guard(dy.device):
        codec, rows = own.on(dy.device), padded(dy.shape[0], dy.device)
        own.recorded |= records
        new = lambda wanted, *shape, dtype: torch.empty(shape if wanted else 0, dtype=dtype, device=dy.device)
        out = (new(dx, rows, weight.shape[1], dtype=dy.dtype), new(dw, *weight.shape, dtype=weight.dtype),
               new(db, weight.shape[0], dtype=torch.float32))
        w = own.weight(weight, True, records) if dx else None
        x = None
        if dw:
            x = _core.Codes((rows, weight.shape[1]), name_of(dy.dtype), False, True, [codes, factors] if factors.numel() else [codes])
        given = [t if wanted else None for t, wanted in zip(out, (dx, dw, db))]
        codec.backward(queue_of(dy.device), with_rows(dy, rows), x, w, *given, records)
    return out[0][:dy.shape[0]] if dx else out[0], out[1], out[2]


@linear_backward.register_fake
def _(dy, codes, factors, weight, coder, dx, dw, db, records):
    new = lambda wanted, *shape, dtype: dy.new_empty(shape if wanted else 0, dtype=dtype)
    return (new(dx, dy.shape[0], weight.shape[1], dtype=dy.dtype), new(dw, *weight.shape, dtype=weight.dtype),
            new(db, weight.shape[0], dtype=torch.float32))


class Product(torch.autograd.Function):
    """y = x weight^T + bias by the operators above. x: [T, in]."""

    @staticmethod
    def forward(ctx, x, weight, bias, coder, recipe, keep, backward, records):
        y, codes, factors = torch.ops.octet.linear_forward(x, weight, bias, coder, recipe, keep, backward, records)
        ctx.save_for_backward(codes, factors, weight, coder)
        ctx.records, ctx.bias = records, None if bias is None else bias.dtype
        ctx.owner = None if torch.compiler.is_compiling() else Coder.of(coder)  # lives as long as the graph
        ctx.steps = ctx.owner and ctx.owner.steps
        return y

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, dy):
        codes, factors, weight, coder = ctx.saved_tensors
        if ctx.owner is not None and ctx.steps != ctx.owner.steps:
            raise RuntimeError("octet.torch: a backward follows the optimizer step after its forward, when the scales of that have moved on; "
                               "step after the backward, or take a recipe without a history")
        dx, dw, db = ctx.needs_input_grad[:3]
        out = torch.ops.octet.linear_backward(dy, codes, factors, weight, coder, dx, dw, db, ctx.records)
        return (out[0] if dx else None, out[1] if dw else None, out[2].to(ctx.bias) if db else None, None, None, None, None, None)
