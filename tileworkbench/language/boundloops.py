"""T.thread_binding: loops whose index is the thread's or the block's own. Loops over the blocks, with those over the
threads inside, are a launch by themselves."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from ..errors import Loc
from ..ir.expr import Var
from .builder import Builder
from .extents import as_shape
from .faults import fault, shown
from .launch import Launch, block_threads
from .loopbodies import Keep, Loop
from .remarks import remarks

THREADS, BLOCKS = ("threadIdx.x", "threadIdx.y", "threadIdx.z"), ("blockIdx.x", "blockIdx.y", "blockIdx.z")


@dataclass(eq=False)
class ThreadLoop(Loop):
    """The index is the thread's own, the body runs once."""

    dim: int = 0

    def run(self, builder: Builder, names: tuple[str, ...], loc: Loc, keep: Keep) -> Iterator[tuple[Var, ...]]:
        var = self.index(builder, loc)
        keep(builder, names[0], var)
        yield (var,)

    def index(self, builder: Builder, loc: Loc) -> Var:
        """The thread's index, which `tx = T.thread_binding(...)` names without a loop."""
        launch = builder.launch
        extent = self.ranges[0][1]
        if launch is not None and launch.open_threads is not None and self.dim not in launch.open_threads:
            self._bind(launch, extent)
        shape = (*launch.thread_shape, 1, 1) if launch is not None else ()
        if launch is None or extent != shape[self.dim]:
            raise fault(
                f"T.thread_binding over {extent} threads",
                "it runs over all threads of one dimension of the block",
                f"use {shape[self.dim]} threads" if shape else "move it inside `with T.Kernel(...)`",
                loc,
            )
        return launch.thread_vars[self.dim]  # type: ignore[no-any-return]

    def _bind(self, launch: Launch, extent: Any) -> None:
        """In a launch by loops the loop says how many threads there are."""
        shape = [*launch.thread_shape, 1, 1][:3]
        shape[self.dim] = extent
        launch.thread_shape = block_threads(shape)
        launch.open_threads = {*(launch.open_threads or ()), self.dim}


@dataclass(eq=False)
class BlockLoop(Loop):
    """The index is the block's own: the first such loop opens the launch, those of y and z inside it widen the grid."""

    dim: int = 0

    def run(self, builder: Builder, names: tuple[str, ...], loc: Loc, keep: Keep) -> Iterator[tuple[Var, ...]]:
        grid = as_shape((self.ranges[0][1],), "T.thread_binding", 0)
        launch = builder.launch
        if launch is None and self.dim == 0:
            yield from Launch(grid, (1,), open_threads=set()).run(builder, names, loc, keep)
            return
        if launch is None or launch.open_threads is None or len(launch.grid) != self.dim or launch.open_threads:
            raise fault(
                f"T.thread_binding over {BLOCKS[self.dim]} here",
                "loops over blocks stand outside those over threads and outside T.Kernel: x, in it y, in it z",
                "use T.Kernel for blocks",
                loc,
            )
        var = Var(builder.unique(names[0]), loc=loc)
        launch.grid, launch.block_vars = (*launch.grid, *grid), (*launch.block_vars, var)
        builder.define(var)
        keep(builder, names[0], var)
        yield (var,)

    def index(self, builder: Builder, loc: Loc) -> Var:
        raise fault(f"T.thread_binding over {BLOCKS[self.dim]} without `for`", "a launch is a loop over its blocks",
                    "`for bx in T.thread_binding(...)`, or T.Kernel", loc)  # fmt: skip


def thread_binding(start: Any, stop: Any = None, thread: str = "threadIdx.x", *, annotations: Any = None) -> Loop:
    """A loop over the threads of one dimension of the block, or over the blocks: its index is the thread's or the
    block's."""
    remarks(annotations)
    if thread not in (*THREADS, *BLOCKS) or (stop is not None and start != 0):
        raise fault(
            f"T.thread_binding({shown(start)}, {shown(stop)}, thread={shown(thread)})",
            f"it starts at 0 and names one of {', '.join((*THREADS, *BLOCKS))}",
            'thread="threadIdx.x"',
        )
    ranges = ((0, start if stop is None else stop, 1),)
    if thread in BLOCKS:
        return BlockLoop("thread_binding", ranges, dim=BLOCKS.index(thread))
    return ThreadLoop("thread_binding", ranges, dim=THREADS.index(thread))


def launch_thread(thread: str, extent: Any) -> Loop:
    """The older spelling of T.thread_binding: `tx = T.launch_thread("threadIdx.x", 128)`."""
    return thread_binding(extent, thread=thread)
