"""Where a kernel is checked: the CPU target, the thread machine for a card that is not here, or the card."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import numpy as np

from ..ir.expr import Buffer, Var
from ..ir.kernel import Kernel
from ..jitkernel.kernel import JITKernel
from ..jitkernel.simulating import fitting
from ..jitkernel.sizes import extent
from ..simulate import thread, tile
from ..simulate.tile.machine import written_tensors
from ..target.detect import detect


@dataclass(frozen=True)
class Outcome:
    """Outputs of a run, and by output: `computed`, a mask where only some blocks ran; `unwritten`, a mask of elements
    that no block stored to, where the machine knows and there are some."""

    outputs: list[np.ndarray]
    computed: list[np.ndarray | None]
    unwritten: list[np.ndarray | None]


class Machine(Protocol):
    """`means` says that the machine defines the kernel's meaning, so that there is nothing to compare it with."""

    means: bool
    text: str

    def run(self, args: list[Any], outputs: Sequence[int], kind: str) -> Outcome: ...


def machine_of(kernel: JITKernel) -> Machine:
    """The machine that a compiled kernel is checked on."""
    if kernel.variant is None:
        return TileMachine(kernel)
    if kernel.target.dialect == "cuda" and kernel.variant.binary is not None and has_cuda():
        return Card(kernel)
    return ThreadMachine(kernel)


def has_cuda() -> bool:
    """Whether there is a card of NVIDIA's that kernels run on."""
    return any(found.arch.startswith("sm_") for found in detect())


class TileMachine:
    """The CPU target: it defines what a kernel means."""

    means = True
    text = "CPU target"

    def __init__(self, kernel: JITKernel) -> None:
        self.kernel = kernel

    def run(self, args: list[Any], outputs: Sequence[int], kind: str) -> Outcome:
        runs = [(part.tile, tile.run(part.tile, args)) for part in self.kernel.parts]
        return Outcome([args[i] for i in outputs], [None] * len(outputs), [holes(runs, place) for place in outputs])


def holes(runs: Sequence[tuple[Kernel, tile.Run]], place: int) -> np.ndarray | None:
    """Elements of a parameter that none of the runs stored to; None where there are none."""
    left: np.ndarray | None = None
    for kernel, ran in runs:
        param = kernel.params[place]
        if param in written_tensors(kernel):
            mask = ran.unwritten.get(param.name)
            if mask is None:
                return None
            left = mask if left is None else left & mask
    return left


class ThreadMachine:
    """Every warp, copy and barrier of the generated code, for the first block and the last, where tails are. Copies
    land as late as they may on whole numbers, where results are exact, and at random times otherwise."""

    means = False
    SCHEDULES: ClassVar[dict[str, str]] = {"integer": "latest", "random": "random"}

    def __init__(self, kernel: JITKernel) -> None:
        self.kernel = kernel
        self.text = f"thread machine for {kernel.target}"

    def run(self, args: list[Any], outputs: Sequence[int], kind: str) -> Outcome:
        *before, last = self.kernel.parts
        target = self.kernel.target
        for part in before:
            fit = fitting(part.kernel, part.tile, target, args)
            thread.run(fit, args, self.SCHEDULES[kind], target=target, outputs=())
        ends = ends_of_grid(last.tile, args)
        fit = fitting(last.kernel, last.tile, target, args)
        # Tensors that earlier parts have written are defined.
        fresh = () if before else tuple(outputs)
        ran = thread.run(fit, args, self.SCHEDULES[kind], target=target, blocks=ends, outputs=fresh)
        computed = [ran.defined.get(last.kernel.params[i].name) if not before else None for i in outputs]
        return Outcome([args[i] for i in outputs], computed, [None] * len(outputs))


def ends_of_grid(kernel: Kernel, args: list[Any]) -> list[tuple[int, ...]]:
    """The first block and the last."""
    sizes: dict[Var, int] = {}
    for param, arg in zip(kernel.params, args, strict=True):
        if isinstance(param, Buffer):
            sizes |= {e: n for e, n in zip(param.shape, arg.shape, strict=True) if isinstance(e, Var)}
        else:
            sizes[param] = arg
    grid = [extent(g, sizes) for g in kernel.grid]
    return sorted({(0,) * len(grid), tuple(n - 1 for n in grid)}) if all(grid) else []


class Card:
    """The card itself, by the launcher; arrays are copied there and back."""

    means = False

    def __init__(self, kernel: JITKernel) -> None:
        self.kernel = kernel
        self.text = f"{kernel.target} card"

    def run(self, args: list[Any], outputs: Sequence[int], kind: str) -> Outcome:
        for part in self.kernel.parts:
            part.launcher(*args)
        return Outcome([args[i] for i in outputs], [None] * len(outputs), [None] * len(outputs))
