"""FP8 linear layers for PyTorch, with the bits of Octet's own.

    import octet.torch
    model = octet.torch.convert(model, recipe="current")   # linear layers but the head, in place
    with octet.torch.fp8(other_recipe):                    # another recipe, or enabled=False, for what runs inside
        loss = model(...)

Each of the three products of a layer, y = x W^T, dx = dy W and dW = dy^T x, multiplies 8-bit codes and adds in FP32. Parameters stay as
they are: float32 or bfloat16, with their optimizer, and their gradients in their dtype. x is bfloat16 or float32 [..., in], and y has its
dtype; under torch.autocast x is converted to bfloat16 first. On a GPU work is put into the current stream, and nothing waits on the host.
docs/pytorch.md has examples.
"""

import contextlib
import logging
from contextvars import ContextVar
from typing import Any, Callable, Iterator, Mapping, Optional, Union

try:
    import torch
except ImportError as error:
    raise ImportError("octet.torch needs PyTorch 2.6 or later, which is not installed: pip install torch") from error

from ._errors import ConfigError
from ._torch_coder import DEVICES, Coder, Recipe
from ._torch_products import Product, TracedProduct, is_traced
from ._torch_shards import is_divided, require_whole
from ._torch_steps import end_step

__all__ = ["Linear", "convert", "end_step", "fp8"]

RecipeLike = Union[str, Mapping[str, Any]]
"""The name of a recipe (docs/recipes.md), or a dict with `name` and its options: {"name": "current", "format": "e4m3"}."""

_log = logging.getLogger("octet")
_setting: "ContextVar[tuple[bool, Optional[Recipe]]]" = ContextVar("octet.torch.fp8", default=(True, None))
_HEADS = ("lm_head", "embed_out", "output_projection", "score", "classifier")
_compiled: "tuple[bool, Optional[Recipe]]" = (True, None)  # the same as compiled code reads and guards it: it does not trace a ContextVar


@contextlib.contextmanager
def fp8(recipe: Optional[RecipeLike] = None, *, enabled: bool = True) -> Iterator[None]:
    """Within it, forwards of octet.torch.Linear use this recipe; None: that of each layer. enabled=False: they compute as torch.nn.Linear.

    Settings nest: the innermost one holds. A backward uses the recipe of its forward, wherever it runs. The setting belongs to the thread,
    or to the task of asyncio; compiled forwards follow the last one that any thread began, since compilers see neither. Raises ConfigError
    if there is no such recipe, or it has no 8-bit operands.
    """
    global _compiled
    setting = enabled, None if recipe is None else Recipe.of(recipe)
    token, compiled, _compiled = _setting.set(setting), _compiled, setting
    try:
        yield
    finally:
        _setting.reset(token)
        _compiled = compiled


class Linear(torch.nn.Linear):
    """torch.nn.Linear whose three products multiply 8-bit codes.

    Weight [out_features, in_features] and bias [out_features] are float32 or bfloat16; both features are multiples of 16, or of 32 where 32 values share a scale.
    The input is float32 or bfloat16 [..., in_features] on a CPU or a GPU. Codes of the weight are kept until it changes, so micro-batches
    share them, and backward reads codes of the input, 1 byte per value. A weight without requires_grad keeps none.
    Where FSDP2 (fully_shard) divides the weight, codes are made of each gathered one, and not kept.

    recipe: how operands are scaled. Recipes with a history have it in state_dict(), as fp8_<recipe>_<operand>_<name>.
    Raises ConfigError if the recipe does not exist or the features do not fit. A forward raises it for a weight of FSDP1 or of tensor
    parallelism, which is a part or a view.
    """

    _gathered = False  # FSDP2 gathers the weight around each forward and backward

    def __init__(self, in_features: int, out_features: int, bias: bool = True, device: Any = None, dtype: Optional[torch.dtype] = None, *,
                 recipe: RecipeLike = "current"):
        super().__init__(in_features, out_features, bias, device, dtype)
        self._begin(Recipe.of(recipe))

    def _begin(self, recipe: Recipe) -> None:
        self.recipe = recipe
        self._coders: dict[str, Coder] = {}
        self._stored: dict[str, dict[str, torch.Tensor]] = {}  # of recipes that have not been used yet
        self._gathered = is_divided(self.weight)
        self._coder(recipe)

    def __setattr__(self, name: str, value: Any) -> None:
        # fully_shard puts parts here between forwards: torch.distributed.fsdp looks for this function.
        super().__setattr__(name, value)
        if name == "weight" and not self._gathered and is_divided(value):
            self._gathered = True
            for coder in self._coders.values():
                coder.keep_codes(False)

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        enabled, recipe = _compiled if torch.compiler.is_compiling() else _setting.get()
        if not enabled or input.numel() == 0 or input.device.type == "meta":
            return super().forward(input)
        require_whole(input, self.weight)
        coder, weight, kind = self._coder(recipe or self.recipe), self.weight, input.device.type
        dtype = torch.get_autocast_dtype(kind) if torch.is_autocast_enabled(kind) else input.dtype
        self._require(input, dtype)
        grad = torch.is_grad_enabled()
        how = dtype, grad and weight.requires_grad, grad and input.requires_grad, grad and self.training
        if is_traced(input):
            of = coder.recipe
            return TracedProduct.apply(input, weight, self.bias, coder.number, of.key, of.keeps_state, of.needs_maximum, *how)
        return Product.apply(input, weight, self.bias, coder, *how)

    def _require(self, input: torch.Tensor, dtype: torch.dtype) -> None:
        usable, weight = (torch.float32, torch.bfloat16), self.weight
        if dtype not in usable or weight.dtype not in usable:
            raise ConfigError(f"octet.torch.Linear: input and weight must be float32 or bfloat16, got {dtype} and {weight.dtype}; "
                              "convert them, or use torch.autocast with bfloat16")
        if input.device.type not in DEVICES or weight.device != input.device:
            raise ConfigError(f"octet.torch.Linear: input and weight must be on one CPU or GPU, got {input.device} and {weight.device}")
        if input.shape[-1] != self.in_features:
            raise ConfigError(f"octet.torch.Linear: the input must be [..., {self.in_features}], got {list(input.shape)}")

    def _coder(self, recipe: Recipe) -> Coder:
        coder = self._coders.get(recipe.name)
        if coder is None or coder.recipe != recipe:
            reason = recipe.unfit(self.out_features, self.in_features)
            if reason:
                raise ConfigError(f"octet.torch.Linear: {reason} under {recipe.name}; take torch.nn.Linear, or another recipe")
            coder = self._coders[recipe.name] = Coder(recipe)
            coder.keep_codes(not self._gathered)
            coder.load(self._stored.pop(recipe.name, {}))
        return coder

    def extra_repr(self) -> str:
        return f"{super().extra_repr()}, recipe={self.recipe.name}"

    def _states(self) -> dict[str, dict[str, torch.Tensor]]:
        return {**self._stored, **{name: coder.state() for name, coder in self._coders.items() if coder.state()}}

    def _save_to_state_dict(self, destination: Any, prefix: str, keep_vars: bool) -> None:
        super()._save_to_state_dict(destination, prefix, keep_vars)
        for recipe, state in self._states().items():
            for name, tensor in state.items():
                destination[f"{prefix}fp8_{recipe}_{name}"] = tensor

    def _load_from_state_dict(self, state_dict: Any, prefix: str, *others: Any) -> None:
        found: dict[str, dict[str, torch.Tensor]] = {}
        for key in [key for key in state_dict if key.startswith(f"{prefix}fp8_")]:
            recipe, name = key[len(prefix) + 4:].split("_", 1)
            found.setdefault(recipe, {})[name] = state_dict.pop(key)
        super()._load_from_state_dict(state_dict, prefix, *others)
        for recipe, state in found.items():
            if recipe in self._coders:
                self._coders[recipe].load(state)
            else:
                self._stored[recipe] = state

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_coders": {}, "_stored": {recipe: dict(state) for recipe, state in self._states().items()}}


def is_body(module: torch.nn.Module, name: str) -> bool:
    """The filter of convert(): every linear layer but one that is named as the head of a language model."""
    return name.rpartition(".")[2] not in _HEADS


def convert(model: torch.nn.Module, recipe: RecipeLike = "current", *,
            filter: Callable[[torch.nn.Module, str], bool] = is_body) -> torch.nn.Module:
    """Replaces modules of the type torch.nn.Linear by octet.torch.Linear with the same parameters, in place, and returns the model.

    filter: called with each such module and its name; those for which it is False stay as they are. So do the output embeddings of a model
    of transformers, subclasses of torch.nn.Linear, and layers whose shape does not fit the recipe: lines of logging.getLogger("octet") name
    them. Raises ConfigError if the recipe does not exist, or no layer is left.
    """
    chosen, changed, left = Recipe.of(recipe), [], []
    head = getattr(model, "get_output_embeddings", lambda: None)()
    for name, module in list(model.named_modules()):
        if type(module) is not torch.nn.Linear:
            continue
        why = "head" if module is head else "" if filter(module, name) else "filter"
        why = why or chosen.unfit(module.out_features, module.in_features)
        if why:
            left.append(f"{name or 'the model'} ({why})")
            continue
        module.__class__ = Linear
        module._begin(chosen)
        changed.append(name)
    if not changed:
        raise ConfigError(f"octet.torch.convert: no linear layer is left to convert; {len(left)} were left out: {', '.join(left[:4])}")
    _log.info("octet.torch: %d linear layers have recipe %s", len(changed), chosen.name)
    for line in left:
        _log.info("octet.torch: left as it is: %s", line)
    return model
