"""Running a kernel on NumPy arrays."""

from __future__ import annotations

import time
import weakref
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any

import numpy as np

from ...errors import AssumptionError, InternalError, LaunchError, SimulationError
from ...ir.effects import writes
from ...ir.expr import Buffer, Expr, Var
from ...ir.kernel import Kernel
from ...options import options
from . import clusters
from .affine import Affine
from .bind import Bound, bind
from .chunk import Box, check_memory, chunks, deciding_axes, orders_grid, tile_bytes, uniform_control, waits
from .env import Env
from .program import Event, Program
from .rings import Ring, Shared
from .roles import stuck
from .state import Budget, State
from .views import roots, written_through

_PROGRAMS: weakref.WeakKeyDictionary[Kernel, Program] = weakref.WeakKeyDictionary()


@dataclass(frozen=True)
class Run:
    """What a simulated call did. outputs: the arrays of `kernel.outputs` (of every written tensor when there are none).

    unwritten: by tensor name, masks of the elements that no block stored to (only tensors that have some). events: with
    `collect`, the tile operations as they ran."""

    outputs: tuple[np.ndarray, ...]
    unwritten: dict[str, np.ndarray]
    seconds: float
    events: tuple[Event, ...] = field(default=())


def run(
    kernel: Kernel, args: Sequence[Any], *, collect: bool = False, progress: Callable[[float], None] | None = None
) -> Run:
    """Executes a tile- or planned-level kernel. `args`: NumPy arrays and numbers in parameter order, outputs optional;
    arrays that the kernel writes are changed in place. `progress` is called with the part done, 0 … 1."""
    if kernel.level == "thread":
        raise InternalError("the tile machine runs tile- and planned-level kernels", loc=kernel.loc)
    started = time.perf_counter()
    program = _PROGRAMS.get(kernel)
    if program is None:
        program = _PROGRAMS[kernel] = Program(kernel)
    written = written_tensors(kernel)
    with np.errstate(all="ignore"):
        bound = bind(kernel, args, written, lambda e, values: _number(program, e, values))
        for fact in kernel.assumed:
            if fact.required and not _number(program, fact.cond, bound.values):
                raise AssumptionError.of(fact.text, fact.cond.loc)
        for buffer, value in kernel.attrs.get("safe_values", {}).items():
            if buffer in bound.slots:
                bound.slots[buffer].outside = value.value
        grid = tuple(_number(program, g, bound.values) for g in reversed(kernel.grid))
        if any(n < 1 for n in grid):
            raise LaunchError(
                f"the grid is {tuple(reversed(grid))}",
                rule="a grid has at least one block",
                fix="call it when there is work",
                loc=kernel.loc,
            )
        events: list[Any] | None = [] if collect else None
        budget = Budget(options.simulate_step_limit, options.simulate_step_limit)
        check_memory(kernel, bound.slots, grid)
        # A barrier of the grid needs all blocks at the same statement.
        per_block = 0 if orders_grid(kernel) else tile_bytes(kernel)
        together = clusters.meet(kernel, orders_grid(kernel))
        if together:
            plan = list(clusters.boxes(kernel, grid))
        else:
            plan = list(chunks(grid, per_block, _single_axes(kernel, grid)))
        for number, box in enumerate(plan):
            if together:
                blocks = [_state(kernel, program, bound, block, budget, events) for block in _each(box)]
                clusters.run(kernel, blocks, program)
            else:
                _run_chunk(kernel, program, bound, box, budget, events)
            if progress is not None:
                progress((number + 1) / len(plan))
    for theirs, ours in bound.returned:
        theirs[...] = ours
    unwritten = {b.name: s.unwritten for b, s in bound.slots.items() if s.unwritten is not None and s.unwritten.any()}
    return Run(_outputs(kernel, bound, written), unwritten, time.perf_counter() - started, tuple(events or ()))


def written_tensors(kernel: Kernel) -> set[Buffer]:
    """Tensors that some statement may store to."""
    return written_through(writes(kernel.body), roots(kernel)) & set(kernel.tensors)


def _outputs(kernel: Kernel, bound: Bound, written: set[Buffer]) -> tuple[np.ndarray, ...]:
    if kernel.outputs:
        return tuple(bound.arrays[at] for at in kernel.outputs)
    return tuple(bound.arrays[at] for at, p in enumerate(kernel.params) if p in written)


def _single_axes(kernel: Kernel, grid: tuple[int, ...]) -> set[int]:
    """Axes along which blocks run one by one: those that decide trip counts, if others are left to run together; all
    of them when blocks may differ in what they wait for."""
    apart = waits(kernel) and not uniform_control(kernel)
    if orders_grid(kernel):
        if apart:
            raise SimulationError(
                "T.sync_grid in a kernel whose blocks wait for barriers of their own at different times",
                rule="on the CPU target blocks that meet run in step", fix='simulate it with level="thread"',
                loc=kernel.loc,
            )  # fmt: skip
        return set()
    if apart:
        return set(range(len(grid)))
    deciding = deciding_axes(kernel)
    rest = 1
    for axis, n in enumerate(grid):
        rest *= 1 if axis in deciding else n
    return deciding if rest >= 4 else set()


def _each(box: Box) -> Iterator[Box]:
    """The blocks of a box, the fastest axis first."""
    for place in product(*(range(start, stop) for start, stop in box)):
        yield tuple((at, at + 1) for at in place)


def _run_chunk(
    kernel: Kernel, program: Program, bound: Bound, box: Box, budget: Budget, events: list[Any] | None
) -> None:
    for reason in program.run(_state(kernel, program, bound, box, budget, events)):
        raise stuck(reason)


def _state(kernel: Kernel, program: Program, bound: Bound, box: Box, budget: Budget, events: list[Any] | None) -> State:
    """The state in which the blocks of a box begin."""
    sizes = (*(stop - start for start, stop in box), 1)
    rank = len(sizes)
    st = State(sizes, max(kernel.threads, 1), bound.slots, budget, dict(bound.values), events=events)
    st.sizes, st.views = (*sizes[:-1], st.threads), program.views
    st.env, st.ring = Env(st, program), Ring(Shared(kernel), "")
    st.origin = tuple(start for start, _ in box)
    for i, var in enumerate(kernel.block_vars):
        axis = len(kernel.grid) - 1 - i
        st.vars[var] = _along(axis, sizes[axis], rank, box[axis][0])
    _bind_threads(kernel, st)
    return st


def _along(axis: int, size: int, rank: int, origin: int) -> Any:
    if size == 1:
        return origin
    unit = tuple(int(a == axis) for a in range(rank))
    return Affine(origin, unit, tuple(size if a == axis else 1 for a in range(rank)))


def _bind_threads(kernel: Kernel, st: State) -> None:
    """Thread variables: x runs fastest."""
    shape = kernel.thread_shape or (st.threads,)
    flat = st.env.thread_index()
    if sum(n > 1 for n in shape) <= 1:
        for var, n in zip(kernel.thread_vars, shape, strict=False):
            st.vars[var] = flat if n > 1 else 0
        return
    pitch = 1
    for var, n in zip(kernel.thread_vars, shape, strict=False):
        st.vars[var] = ((flat.dense() // pitch) % n).astype(np.int32)
        pitch *= n


def _number(program: Program, e: Any, values: dict[Var, Any]) -> int:
    """An expression of symbols and scalars as an int."""
    if isinstance(e, int):
        return e
    st = State((1,), 1, {}, Budget(1, 1), dict(values))
    st.env = Env(st, program)
    value = program.expression(e, 0)(st)
    return int(value) if isinstance(e, Expr) else value
