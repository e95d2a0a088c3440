"""Where a kernel is checked: the CPU target, the thread machine for a card that is not here, or the card."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any, Protocol

import numpy as np

from ..ir.expr import Buffer, Var
from ..jitkernel.kernel import JITKernel
from ..jitkernel.sizes import extent
from ..simulate import thread, tile
from ..target.detect import detect

Results = tuple[list[np.ndarray], list[np.ndarray | None]]
MOST_BLOCKS = 4


class Machine(Protocol):
    """`means` says that the machine defines the kernel's meaning, so that there is nothing to compare it with. `run`
    gives the outputs and, where only a part was computed, masks of what was."""

    means: bool
    text: str

    def run(self, args: list[Any], outputs: Sequence[int]) -> Results: ...


def machine_of(kernel: JITKernel) -> Machine:
    """The machine that a compiled kernel is checked on."""
    if kernel.variant is None:
        return TileMachine(kernel)
    if kernel.target.dialect == "cuda" and kernel.variant.binary is not None and has_cuda():
        return Card(kernel)
    return ThreadMachine(kernel)


def has_cuda() -> bool:
    return any(found.arch.startswith("sm_") for found in detect())


class TileMachine:
    """The CPU target: it defines what a kernel means."""

    means = True
    text = "CPU target"

    def __init__(self, kernel: JITKernel) -> None:
        self.kernel = kernel

    def run(self, args: list[Any], outputs: Sequence[int]) -> Results:
        tile.run(self.kernel.tile, args)
        return [args[i] for i in outputs], [None] * len(outputs)


class ThreadMachine:
    """Every warp, copy and barrier of the generated code, block by block: the first ones and the last."""

    means = False

    def __init__(self, kernel: JITKernel) -> None:
        self.kernel = kernel
        self.text = f"thread machine for {kernel.target}"

    def run(self, args: list[Any], outputs: Sequence[int]) -> Results:
        lowered = self.kernel.kernel
        ran = thread.run(
            lowered, args, target=self.kernel.target, blocks=some_blocks(self.kernel, args), outputs=tuple(outputs)
        )
        return list(ran.outputs), [ran.defined[lowered.params[i].name] for i in outputs]


def some_blocks(kernel: JITKernel, args: list[Any]) -> list[tuple[int, ...]]:
    """The corners of the grid, where tails are."""
    sizes: dict[Var, int] = {}
    for param, arg in zip(kernel.tile.params, args, strict=True):
        if isinstance(param, Buffer):
            sizes |= {e: n for e, n in zip(param.shape, arg.shape, strict=True) if isinstance(e, Var)}
        else:
            sizes[param] = arg
    grid = [extent(g, sizes) for g in kernel.tile.grid]
    corners = product(*[sorted({0, n - 1}) for n in grid])
    return list(corners)[: MOST_BLOCKS * 2]


class Card:
    """The card itself, by the launcher."""

    means = False

    def __init__(self, kernel: JITKernel) -> None:
        self.kernel = kernel
        self.text = f"{kernel.target} card"

    def run(self, args: list[Any], outputs: Sequence[int]) -> Results:
        self.kernel.launcher(*args)
        return [args[i] for i in outputs], [None] * len(outputs)
