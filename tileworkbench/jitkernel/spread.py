"""What made-up tensors hold, filled in by NumPy, or by torch where the tensor shall lie."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..ir.dtype import DType
from .bench import has_card


@dataclass(frozen=True)
class Spread:
    """Values of a tensor: `kind` "whole" (numbers from `low` up to, not including, `high`), "uniform" between the two,
    "normal" (mean `low`, deviation `high`), or "all" (every one is `low`)."""

    kind: str
    low: float
    high: float = 0.0

    def numpy(self, dtype: DType, shape: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
        """An array of these values, rounded to the type."""
        if self.kind == "all":
            return np.full(shape, self.low).astype(dtype.numpy)
        if self.kind == "whole":
            return np.asarray(rng.integers(int(self.low), int(self.high), shape)).astype(dtype.numpy)
        draw = rng.uniform if self.kind == "uniform" else rng.normal
        return np.asarray(draw(self.low, self.high, shape)).astype(dtype.numpy)

    def torch(self, dtype: DType, shape: tuple[int, ...], device: str) -> Any:
        """The same on a torch device, without a detour over the host: tensors of a gigabyte take milliseconds on a card
        and seconds in NumPy. None for a type that torch has not."""
        import torch

        held = getattr(torch, dtype.numpy.name, None)
        if dtype.bits < 8 or not isinstance(held, torch.dtype):  # torch has the names of narrower ones, and no values
            return None
        if self.kind == "all":
            return torch.full(shape, self.low, dtype=torch.float32, device=device).to(held)
        # A generator of its own: the program's random numbers stay as its seed makes them.
        rng = torch.Generator(device)
        rng.seed()
        if self.kind == "whole":
            made = torch.randint(int(self.low), int(self.high), shape, dtype=torch.int16, device=device, generator=rng)
            return made.to(held)
        made = torch.empty(shape, dtype=held if held.itemsize > 1 else torch.float32, device=device)
        if self.kind == "uniform":
            return made.uniform_(self.low, self.high, generator=rng).to(held)
        return made.normal_(self.low, self.high, generator=rng).to(held)


def torch_card() -> bool:
    """Whether the program uses torch and torch has a card."""
    torch = sys.modules.get("torch")
    return torch is not None and has_card() and bool(torch.cuda.is_available())
