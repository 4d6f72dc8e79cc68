"""8-bit floating point on arrays, with the bits of Octet's kernels.

Formats are "e4m3" (OCP E4M3, as ml_dtypes.float8_e4m3fn) and "e5m2" (ml_dtypes.float8_e5m2). Codes are uint8. Arrays of ml_dtypes are taken
where codes are, and know their format; `codes.view(ml_dtypes.float8_e4m3fn)` makes one of codes without a copy. Any array that NumPy reads
is taken. Values are rounded to float32 first.
"""

from dataclasses import dataclass
from typing import Any, Mapping, Optional, Tuple, Union

import numpy as np
from numpy.typing import ArrayLike, NDArray

from . import _core
from ._config import assignments
from ._errors import ConfigError

_FORMATS = {"float8_e4m3fn": "e4m3", "float8_e5m2": "e5m2"}
_BLOCKS = {"tensor": (0, 0), "row": (1, 0)}

Block = Union[str, Tuple[int, int]]
"""The values that share a scale: "tensor", "row", or rows and columns: (1, 128), (128, 128), (1, 32)."""


def encode(x: ArrayLike, format: str = "e4m3") -> NDArray[np.uint8]:
    """The nearest codes, ties to even, in the shape of x. Values beyond the format's largest one become it, infinity included; NaN stays NaN.

    ml_dtypes makes NaN or infinity of values that are too large; all others have its bits, NaN without its sign.
    """
    values = np.asarray(x)
    flat = np.ascontiguousarray(values, dtype=np.float32).reshape(-1)
    return _core.encode(flat, format).reshape(values.shape)


def decode(codes: Any, format: Optional[str] = None) -> NDArray[np.float32]:
    """The values of codes, exactly, in their shape. format: None: that of an array of ml_dtypes, else "e4m3"."""
    given, own = _codes(codes)
    return _core.decode(given.reshape(-1), format or own or "e4m3").reshape(given.shape)


@dataclass(frozen=True)
class Quantized:
    """A matrix as codes and factors: x[i, j] ~= decode(codes)[i, j] * descales[block of (i, j)]."""

    codes: NDArray[np.uint8]  # [rows, cols]
    descales: NDArray[np.float32]  # [rows / block rows, cols / block columns], rounded up
    block: Tuple[int, int]  # 0: all
    format: str
    amax: float  # largest |x|

    def dequantize(self) -> NDArray[np.float32]:
        """Values times descales, float32 [rows, cols]."""
        rows, cols = self.codes.shape
        scales = np.repeat(self.descales, self.block[0] or rows, axis=0)[:rows]
        scales = np.repeat(scales, self.block[1] or cols, axis=1)[:, :cols]
        return decode(self.codes, self.format) * scales


def quantize(x: ArrayLike, *, block: Block = "tensor", format: str = "e4m3", scale: str = "quotient") -> Quantized:
    """Quantizes a matrix [rows, cols] as Octet's layers do, one scale per block from its largest absolute value.

    scale: "quotient" (largest value of the format / amax), "power_of_two" (that rounded down), "e8m0" (OCP MX).
    The table of docs/python.md has the arguments of each recipe.
    """
    values = np.asarray(x)
    if values.ndim != 2:
        raise ConfigError(f"quantize: x must be a matrix [rows, cols], got {values.ndim} dimensions; reshape it")
    if isinstance(block, str) and block not in _BLOCKS:
        raise ConfigError(f'quantize: block must be "tensor", "row" or (rows, columns), got "{block}"')
    rows, cols = _BLOCKS[block] if isinstance(block, str) else block
    narrow = values.dtype.name == "bfloat16"
    codes, descales, amax = _core.quantize(np.ascontiguousarray(values, dtype=np.float32), format, scale, rows, cols, narrow)
    return Quantized(codes, descales, (rows, cols), format, amax)


@dataclass(frozen=True)
class LinearResult:
    """y = x W^T + b and the gradients, float32. y and dx have values of bfloat16."""

    y: NDArray[np.float32]  # [T, out]
    dx: NDArray[np.float32]  # [T, in] = dy W
    dw: NDArray[np.float32]  # [out, in] = dy^T x
    db: Optional[NDArray[np.float32]]  # [out] = sum of dy over T


def linear(x: ArrayLike, weight: ArrayLike, dy: ArrayLike, bias: Optional[ArrayLike] = None, *,
           recipe: Union[str, Mapping[str, Any]] = "current", steps: int = 1, weights: str = "float32") -> LinearResult:
    """Forward and backward of one linear layer of Octet on the CPU: x [T, in], weight [out, in], dy [T, out], bias [out].

    x and dy are rounded to bfloat16, the type of activations. recipe: a name, or a dict with `name` and its options (docs/recipes.md).
    steps: so many steps with the same values, for recipes whose scales follow earlier maxima; the result is that of the last one. They begin
    with a scale of 1. weights: "float32" or "bfloat16", the type of weight and its gradient.
    """
    options = {"name": recipe} if isinstance(recipe, str) else dict(recipe)
    arrays = [None if a is None else np.ascontiguousarray(a, dtype=np.float32) for a in (x, weight, dy, bias)]
    return LinearResult(*_core.run_layer(*arrays, list(assignments(options)), steps, weights))


def _codes(codes: Any) -> Tuple[NDArray[np.uint8], Optional[str]]:
    array = np.ascontiguousarray(codes)
    if array.dtype == np.uint8:
        return array, None
    own = _FORMATS.get(array.dtype.name)
    if own is None:
        raise ConfigError(f"codes must be uint8, float8_e4m3fn or float8_e5m2, got {array.dtype.name}; encode() makes them of values")
    return array.view(np.uint8), own
