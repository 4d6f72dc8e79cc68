"""Memory of PyTorch for the codes of one operand of a linear layer."""

import weakref
from typing import Any, NamedTuple, Optional

import torch


class Operand(NamedTuple):
    """Codes and their factors: parts of a layout, in its order."""

    layout: Any
    memory: list[torch.Tensor]
    addresses: list[int]
    kept: list[torch.Tensor]  # those of the columns

    @classmethod
    def of(cls, layout: Any, memory: list[torch.Tensor], kept: list[torch.Tensor]) -> "Operand":
        return cls(layout, memory, [m.data_ptr() for m in memory], kept)


class Layouts:
    """The layouts of one codec, each made once."""

    def __init__(self, codec: Any, device: torch.device):
        self._codec, self._device = codec, device
        self._made: dict[Any, Any] = {}

    def of(self, *key: Any) -> tuple[Any, list[tuple[list[int], torch.dtype, bool]]]:
        """key: the operand's name, rows and columns of its values, their dtype, whether it has codes by rows, and by columns."""
        found = self._made.get(key)
        if found is None:
            if len(self._made) >= 64:  # of sequences of many lengths
                self._made.clear()
            operand, rows, columns, dtype, by_rows, by_columns = key
            layout = self._codec.layout(operand, rows, columns, str(dtype).removeprefix("torch."), by_rows, by_columns)
            found = self._made[key] = layout, [(size, getattr(torch, kind), of_columns) for size, kind, of_columns in layout.parts]
        return found

    def memory(self, *key: Any) -> Operand:
        layout, parts = self.of(*key)
        memory = [torch.empty(size, dtype=kind, device=self._device) for size, kind, _ in parts]
        return Operand.of(layout, memory, [m for m, part in zip(memory, parts) if part[2]])


class Latest:
    """The codes of the input that a layer without state encoded last, for layers that read the same tensor after it. They live until the
    tensor changes or dies, another one is encoded, or a backward begins."""

    _all: "dict[tuple[str, torch.device], Latest]" = {}

    def __init__(self) -> None:
        self.drop()

    @classmethod
    def of(cls, recipe: str, device: torch.device) -> "Latest":
        found = cls._all.get((recipe, device))
        if found is None:
            found = cls._all[recipe, device] = cls()
        return found

    @classmethod
    def drop_all(cls) -> None:
        for one in cls._all.values():
            one.drop()

    def drop(self, dead: Any = None) -> None:
        if dead is None or dead is self._tensor:
            self._tensor, self._version, self._keep, self._key, self.operand = None, 0, False, None, None

    def find(self, x: torch.Tensor, keep: bool, key: Any) -> Optional[Operand]:
        """keep: whether it has the codes by columns; key: all else that they depend on."""
        if self._tensor is None or self._tensor() is not x or self._version != x._version or self._keep < keep or self._key != key:
            return None
        return self.operand

    def put(self, operand: Operand, x: torch.Tensor, keep: bool, key: Any) -> None:
        if not x.is_inference():  # such a tensor has no version
            self._tensor, self._version = weakref.ref(x, self.drop), x._version
            self._keep, self._key, self.operand = keep, key, operand
