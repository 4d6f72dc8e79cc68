"""Parameters that several ranks divide: what a layer can read, and what it cannot."""

from typing import Any

import torch
import torch.distributed as dist

from ._errors import ConfigError

_PARTS: Any = None
if dist.is_available():
    from torch.distributed.tensor import DTensor as _PARTS


def is_divided(tensor: Any) -> bool:
    """Whether it is a DTensor, of which each rank has a part."""
    return _PARTS is not None and isinstance(tensor, _PARTS)


def _is_flat_view(weight: torch.Tensor) -> bool:
    from torch.distributed.fsdp import FlatParameter
    return any(isinstance(t, FlatParameter) or getattr(t, "_fsdp_flattened", False) for t in (weight, weight._base) if t is not None)


def require_whole(input: torch.Tensor, weight: torch.Tensor) -> None:
    """Raises ConfigError for a forward on parts of tensors, or on a view into a flat parameter."""
    if is_divided(weight) or is_divided(input):
        what = "weight" if is_divided(weight) else "input"
        raise ConfigError(f"octet.torch.Linear: the {what} is a DTensor in its forward, as under tensor parallelism (parallelize_module); "
                          "divide parameters by fully_shard (FSDP2) alone, or leave these layers out by convert(filter=)")
    if not torch.compiler.is_compiling() and dist.is_available() and dist.is_initialized() and _is_flat_view(weight):
        raise ConfigError("octet.torch.Linear: FullyShardedDataParallel (FSDP1) has the weight as a view of one flat parameter; "
                          "use torch.distributed.fsdp.fully_shard (FSDP2) or DDP, or leave the layer out by convert(filter=)")
