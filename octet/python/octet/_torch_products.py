"""The products of a linear layer with autograd: called at once, or as operators that compilers and dispatch modes see."""

from typing import Optional

import torch
from torch import library

from ._torch_coder import Coder, Recipe, device_guard, matrix, padded, queue_of
from ._torch_operand import Latest, Operand

_STALE = ("octet.torch: a backward follows the optimizer step after its forward, when the scales of that have moved on; "
          "step after the backward, or take a recipe without a history")


def is_traced(x: torch.Tensor) -> bool:
    """Whether a compiler or a dispatch mode has to see operators."""
    return torch.compiler.is_compiling() or type(x) not in (torch.Tensor, torch.nn.Parameter) or torch._C._len_torch_dispatch_stack() > 0


class Product(torch.autograd.Function):
    """y [..., out] = x [..., in] weight^T + bias in `dtype`. keep: the weight's gradient will be asked for; backward: the input's."""

    @staticmethod
    def forward(ctx, x, weight, bias, coder, dtype, keep, backward, records):
        tokens = x.numel() // x.shape[-1]
        rows = padded(tokens, x.device)
        with device_guard(x.device):
            coder.on(x.device).recorded |= records
            latest = Latest.of(coder.recipe.key, x.device)
            key = dtype, queue_of(x.device)
            # Layers without state that read the same tensor one after another share its codes.
            operand, values = None if coder.recipe.keeps_state else latest.find(x, keep, key), None
            if operand is None:
                latest.drop()
                operand, values = coder.memory("x", rows, x.shape[-1], dtype, keep), matrix(x, dtype)
                latest.put(operand, x, keep, key)
            y = coder.multiply(operand, values, rows, dtype, weight, bias, backward, records)
        ctx.save_for_backward(weight, *(operand.kept if keep else []))
        ctx.coder, ctx.steps, ctx.records = coder, coder.steps, records  # the coder lives as long as the graph
        ctx.shape, ctx.dtype, ctx.tokens, ctx.bias = x.shape, x.dtype, tokens, None if bias is None else bias.dtype
        return (y if rows == tokens else y[:tokens]).view(*x.shape[:-1], weight.shape[0])

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, dy):
        weight, *kept = ctx.saved_tensors
        coder = ctx.coder
        if ctx.steps != coder.steps:
            raise RuntimeError(_STALE)
        Latest.drop_all()
        with device_guard(dy.device):
            dx, dw, db = coder.on(dy.device).gradients(dy, kept, weight, ctx.needs_input_grad[:3], ctx.records)
        if dx is not None:
            dx = (dx if dx.shape[0] == ctx.tokens else dx[:ctx.tokens]).view(ctx.shape).to(ctx.dtype)
        return dx, dw, None if db is None else db.to(ctx.bias), None, None, None, None, None


_library = library.Library("octet", "FRAGMENT")
_library.define("linear_encode(Tensor x, Tensor? maximum, Tensor? coder, str recipe, bool keep, bool records) -> "
                "(Tensor, Tensor, Tensor, Tensor)")
_library.define("linear_forward(Tensor[] x, SymInt tokens, ScalarType dtype, Tensor weight, Tensor? bias, Tensor coder, bool keep, "
                "bool backward, bool records) -> Tensor")
_library.define("linear_backward(Tensor dy, Tensor? maximum, Tensor codes, Tensor factors, Tensor weight, Tensor coder, bool dx, bool dw, bool db, "
                "bool records) -> (Tensor, Tensor, Tensor)")


def _of_layout(layout, memory, device):
    """Codes and factors of columns and rows, each part once: parts that two of them share come first."""
    at, seen, out = layout.at, set(), []
    for i, part in enumerate(at):
        new = part >= 0 and part not in seen
        seen.add(part)
        out.append(memory[part] if new else torch.empty(0, dtype=torch.float32 if i % 2 else torch.uint8, device=device))
    return tuple(out)


def _encode(x, maximum, coder, recipe, keep, records):
    """The codes of x by columns, which the weight's gradient reads, with their factors, and those by rows; x [T, in] has the products' dtype.
    maximum: f32 [1], where the recipe needs one; coder: its number, or None where no state is kept; recipe: its key."""
    with device_guard(x.device):
        own = Coder.shared(Recipe.from_key(recipe), x.device) if coder is None else Coder.of(coder).on(x.device)
        own.recorded |= records
        operand = own.encode(x, keep, records, maximum)
    return _of_layout(operand.layout, operand.memory, x.device)


def _forward(x, tokens, dtype, weight, bias, coder, keep, backward, records):
    """y [tokens, out]. x: the four results of linear_encode."""
    own, rows = Coder.of(coder), padded(tokens, weight.device)
    with device_guard(weight.device):
        own.on(weight.device).recorded |= records
        layout, _ = own.layout(rows, weight.shape[1], dtype, keep)
        y = own.multiply(Operand.of(layout, [t for t in x if t.numel()], []), None, rows, dtype, weight, bias, backward, records)
    return y[:tokens]


def _backward(dy, maximum, codes, factors, weight, coder, dx, dw, db, records):
    """dx [T, in] in dy's dtype, dw [out, in] in weight's, and db [out] in float32, as far as they are asked for; else empty."""
    with device_guard(dy.device):
        kept = [t for t in (codes, factors) if t.numel()]
        made = Coder.of(coder).on(dy.device).gradients(dy, kept, weight, (dx, dw, db), records, maximum)
    if dx:
        made[0] = made[0][:dy.shape[0]]
    kinds = dy.dtype, weight.dtype, torch.float32
    return tuple(torch.empty(0, dtype=kind, device=dy.device) if t is None else t for t, kind in zip(made, kinds))


for _name, _function in (("linear_encode", _encode), ("linear_forward", _forward), ("linear_backward", _backward)):
    _library.impl(_name, _function, "CPU")
    _library.impl(_name, _function, "CUDA")


@library.register_fake("octet::linear_encode")
def _(x, maximum, coder, recipe, keep, records):
    layout, parts = Coder.shared(Recipe.from_key(recipe), x.device).layout(padded(int(x.shape[0]), x.device), int(x.shape[1]), x.dtype, keep)
    return _of_layout(layout, [x.new_empty(size, dtype=kind) for size, kind, _ in parts], x.device)


@library.register_fake("octet::linear_forward")
def _(x, tokens, dtype, weight, bias, coder, keep, backward, records):
    return weight.new_empty(tokens, weight.shape[0], dtype=dtype)


@library.register_fake("octet::linear_backward")
def _(dy, maximum, codes, factors, weight, coder, dx, dw, db, records):
    new = lambda wanted, *shape, dtype: dy.new_empty(shape if wanted else 0, dtype=dtype)
    return (new(dx, dy.shape[0], weight.shape[1], dtype=dy.dtype), new(dw, *weight.shape, dtype=weight.dtype),
            new(db, weight.shape[0], dtype=torch.float32))


def maximum_of(x: torch.Tensor) -> torch.Tensor:
    """f32 [1]: max |x| without NaN, which a compiler computes where it computes x."""
    return x.detach().abs().nan_to_num(0.0, float("inf")).amax().float().reshape(1)


class TracedProduct(torch.autograd.Function):
    """Product by the operators above. coder: its number; recipe: its key, and what it says of itself."""

    @staticmethod
    def forward(ctx, x, weight, bias, coder, recipe, keeps_state, needs_maximum, dtype, keep, backward, records):
        values = x.reshape(-1, x.shape[-1]).to(dtype)
        # Without a coder, calls of layers that read the same tensor are equal, and compilers merge them.
        encoded = torch.ops.octet.linear_encode(values, maximum_of(values) if needs_maximum else None, coder if keeps_state else None, recipe,
                                                keep, records and keeps_state)
        y = torch.ops.octet.linear_forward(list(encoded), values.shape[0], dtype, weight, bias, coder, keep, backward, records)
        ctx.save_for_backward(encoded[0], encoded[1], weight, coder)
        ctx.records, ctx.needs_maximum, ctx.bias = records, needs_maximum, None if bias is None else bias.dtype
        ctx.shape, ctx.dtype = x.shape, x.dtype
        return y.view(*x.shape[:-1], weight.shape[0])

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, dy):
        codes, factors, weight, coder = ctx.saved_tensors
        dx, dw, db = ctx.needs_input_grad[:3]
        values = dy.reshape(-1, dy.shape[-1])
        out = torch.ops.octet.linear_backward(values, maximum_of(values) if ctx.needs_maximum and (dx or dw) else None, codes, factors,
                                              weight, coder, dx, dw, db, ctx.records)
        return (out[0].view(ctx.shape).to(ctx.dtype) if dx else None, out[1] if dw else None, out[2].to(ctx.bias) if db else None,
                None, None, None, None, None, None, None, None, None)
