"""The end of a step: codes of weights become stale, and recipes that look back on maxima make their next scales."""

from typing import Any

import torch
import torch.distributed as dist
from torch.optim.optimizer import register_optimizer_step_post_hook

from ._torch_coder import Changes, Coder
from ._torch_operand import Latest


def end_step() -> None:
    """Ends a step of all layers whose recipe has a history: ranks of torch.distributed join the maxima of the step, with one collective
    of one small tensor, and the next scales follow from these. Called after each step() of an optimizer of PyTorch; programs that change
    weights otherwise call it themselves, on all ranks."""
    Changes.steps += 1
    Latest.drop_all()
    coders = [coder for coder in (one() for one in Coder.stateful) if coder is not None]
    joined = dist.is_available() and dist.is_initialized() and dist.get_world_size() > 1
    if joined:
        _join([maximum for coder in coders for maximum in coder.maxima()])
    for coder in coders:
        if joined or coder.recorded:
            coder.end_step()


@torch.no_grad()
def _join(maxima: list[torch.Tensor]) -> None:
    if not maxima:
        return
    # NCCL needs memory of the GPU, gloo takes both; maxima of several devices of a process are joined on the first one.
    together = torch.cat([maximum.to(maxima[0].device) for maximum in maxima])
    dist.all_reduce(together, op=dist.ReduceOp.MAX)
    torch._foreach_copy_(maxima, list(together.split(1)))


def _after_step(*_: Any) -> None:
    end_step()


register_optimizer_step_post_hook(_after_step)
