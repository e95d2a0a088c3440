"""Running a thread kernel: arguments, blocks, faults and results."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import product
from math import prod
from typing import Any

import numpy as np

from ...errors import AssumptionError, InternalError, LaunchError, SimulationError, TargetError
from ...ir.evaluate import evaluate
from ...ir.expr import Buffer, Expr, Var
from ...ir.instr import Sync
from ...ir.kernel import Assumed, Kernel
from ...ir.node import walk
from ...options import options
from . import cluster
from .arguments import Argument, bind, bind_values, check_memory
from .block import Block, Event
from .faults import Fault, fault
from .memory import Space
from .program import Program, stores_elsewhere
from .rows import ROWS
from .warp import Warp


@dataclass(frozen=True)
class ThreadRun:
    """`outputs`: the arrays of the kernel's outputs (all tensors that it writes when it declares none), in parameter
    order. `defined`: by name, which elements of an output were written. `faults`: what was found, when collecting."""

    outputs: tuple[np.ndarray, ...]
    defined: dict[str, np.ndarray]
    events: tuple[Event, ...]
    steps: int
    faults: tuple[SimulationError, ...] = ()


@dataclass(eq=False)
class Launch:
    """What all blocks of one run share."""

    kernel: Kernel
    schedule: str
    seed: int
    collect: bool
    limit: int
    values: dict[Var, Any] = field(default_factory=dict)
    tensors: dict[Buffer, Space] = field(default_factory=dict)
    grid: tuple[int, ...] = ()
    events: list[Event] = field(default_factory=list)
    faults: list[SimulationError] = field(default_factory=list)
    published: dict[Any, set[int]] = field(default_factory=dict)
    boxes: dict[str, Any] = field(default_factory=dict)
    steps: int = 0

    def report(self, error: Fault) -> None:
        """Raises a fault, or keeps it when faults are collected: each once."""
        if not self.collect:
            raise error
        same = any(
            f.loc == error.loc and getattr(f, "kind", "") == error.kind and getattr(f, "other", None) == error.other
            for f in self.faults
        )
        if not same:
            self.faults.append(error)

    def tick(self, w: Warp) -> None:
        """One more step; SimulationError beyond the limit."""
        self.steps += 1
        if self.steps > self.limit:
            raise SimulationError(
                f"the kernel has taken {self.limit} steps in the simulator and goes on", loc=w.at.loc if w.at else None,
                rule="a simulated kernel ends within the option simulate_step_limit",
                fix="use smaller sizes, look for a loop that never ends, or raise simulate_step_limit",
            )  # fmt: skip

    def evaluate(self, e: Any) -> int:
        """A launch-time integer: an extent, stride or grid size from the arguments."""
        if not isinstance(e, Expr):
            return int(e)
        return int(evaluate(e, self.values))


def run(
    kernel: Kernel,
    args: Sequence[Any],
    schedule: str = "eager",
    seed: int = 0,
    target: Any = None,
    blocks: int | Iterable[tuple[int, ...]] | None = None,
    collect: bool = False,
    outputs: Sequence[int] | None = None,
) -> ThreadRun:
    """Runs a thread-level kernel on NumPy arguments in order of its parameters; tensors that it writes are changed in
    place. Parameters in `outputs` (default: the kernel's) start undefined. `blocks`: how many, or which block indices.

    Raises SimulationError at the first fault, or gathers them in the result's `faults` with collect=True."""
    if schedule not in ("eager", "latest", "random"):
        raise LaunchError(
            f"schedule {schedule!r}", rule="schedules are eager, latest and random", fix="name one of them"
        )
    meetings = {n.who for n in walk(kernel.body) if isinstance(n, Sync)} & {"grid", "cluster"}
    if stores_elsewhere(kernel):
        meetings |= {"cluster"}
    if meetings == {"grid", "cluster"}:
        raise TargetError(
            "the kernel's blocks meet in the grid and in clusters", rule="the thread machine knows one such meeting",
            fix="run it on a GPU",
        )  # fmt: skip
    arch = getattr(target, "arch", target)
    lanes = getattr(arch, "warp_size", None) or kernel.attrs.get("warp_size", 32)
    launch = Launch(kernel, schedule, seed, collect, int(options.simulate_step_limit))
    made = kernel.outputs if outputs is None else tuple(outputs)
    bound = bind(launch, kernel, args, made)
    if (fact := _unmet(launch)) is not None and fact.required:
        raise AssumptionError.of(fact.text, fact.cond.loc)
    if fact is not None:
        raise LaunchError(
            f"this variant of {kernel.name} does not take these arguments",
            rule=f"it was built for arguments of which it holds that {fact.text}",
            fix="run the general variant, as tileworkbench.simulate and launches do",
        )
    check_memory(launch, -(-(kernel.launch_threads or kernel.threads) // lanes))
    with np.errstate(all="ignore"):
        program = Program(kernel, lanes, ROWS)
        launch.grid = tuple(launch.evaluate(extent) for extent in kernel.grid)
        try:
            if "grid" in meetings:
                _run_together(launch, program, blocks)
            elif "cluster" in meetings:
                cluster.run(launch, program, {at: number for number, at in _blocks(launch.grid, None)}, blocks)
            else:
                for number, where in _blocks(launch.grid, blocks):
                    for _ in Block(launch, program, number, where).run():
                        raise InternalError("a block waits for others in a kernel whose blocks do not meet")
        except SimulationError as error:
            if not collect:
                raise
            launch.faults.append(error)
    return _result(launch, kernel, bound, made)


def unmet(kernel: Kernel, args: Sequence[Any]) -> Assumed | None:
    """What the kernel was built for and these arguments do not keep."""
    launch = Launch(kernel, "eager", 0, False, 0)
    bind_values(launch, kernel, args)
    return _unmet(launch)


def _unmet(launch: Launch) -> Assumed | None:
    for fact in launch.kernel.assumed:
        known = all(v in launch.values for v in walk(fact.cond) if isinstance(v, Var))
        if known and not launch.evaluate(fact.cond):
            return fact
    return None


def _run_together(launch: Launch, program: Program, wanted: Any) -> None:
    """All blocks, each from one meeting of the grid to the next."""
    if wanted is not None:
        raise LaunchError("some blocks of a kernel whose blocks meet", rule="T.sync_grid waits for all", fix="run all")
    everyone = [Block(launch, program, number, where) for number, where in _blocks(launch.grid, None)]
    running = {block: block.run() for block in everyone}
    shadows = [space.shadow for space in launch.tensors.values() if space.shadow is not None]
    while running:
        order = list(running) if launch.schedule != "latest" else list(reversed(running))
        for block in order:
            for shadow in shadows:
                shadow.begin(block)
            if next(running[block], running) is running:
                del running[block]
        if running and len(running) < len(everyone):
            raise fault(
                next(iter(running)).warps[0], "deadlock", "deadlock: some blocks have ended, others wait for them",
                rule="all blocks of the grid come to each T.sync_grid", fix="move it out of the branch",
            )  # fmt: skip
        for shadow in shadows:
            shadow.meet()


def _blocks(grid: tuple[int, ...], wanted: Any) -> Iterable[tuple[int, tuple[int, int, int]]]:
    """Block numbers and places, x fastest."""
    full = (*grid, 1, 1, 1)[: max(3, len(grid))]
    if wanted is not None and not isinstance(wanted, int):
        for place in wanted:
            at = (*place, 0, 0, 0)[: len(full)]
            yield sum(i * prod(full[:d]) for d, i in enumerate(at)), at
        return
    for number, reverse in enumerate(product(*[range(e) for e in reversed(full)])):
        if isinstance(wanted, int) and number >= wanted:
            return
        yield number, tuple(reversed(reverse))  # type: ignore[misc]


def _result(launch: Launch, kernel: Kernel, bound: dict[Buffer, Argument], made: tuple[int, ...]) -> ThreadRun:
    shown, defined = [], {}
    for position, param in enumerate(kernel.params):
        if not isinstance(param, Buffer):
            continue
        space, argument = launch.tensors[param], bound[param]
        if space.shadow is None and position not in made:
            continue
        if argument.copied:
            argument.array[...] = argument.view
        if position in made or not made:
            shown.append(argument.array)
            defined[param.name] = argument.mask(space)
    return ThreadRun(tuple(shown), defined, tuple(launch.events), launch.steps, tuple(launch.faults))
