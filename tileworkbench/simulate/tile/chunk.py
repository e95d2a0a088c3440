"""Which blocks run together: boxes of the grid whose tiles fit the caches and the memory bound."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from ...errors import ResourceError
from ...ir.expr import Buffer, Call, Expr, Load, Var
from ...ir.kernel import Kernel
from ...ir.node import walk
from ...ir.planned import Role, Turn
from ...ir.stmt import For, If, Let, Region, Store, While
from ...ops.parallel import Parallel
from ...options import options
from .rounding import container, is_narrow
from .storage import Slot

Box = tuple[tuple[int, int], ...]  # a range an axis, slowest axis first

# Bytes of tiles and temporaries of one chunk: large enough that NumPy's cost a call vanishes, small enough for caches.
_TARGET = 8 * 2**20


def tile_bytes(kernel: Kernel) -> int:
    """Bytes that one block's buffers and the widest statement's temporaries take."""
    buffers: dict[Buffer, None] = {}
    widest = 0
    for n in walk(kernel.body):
        found = n.buffer if isinstance(n, (Load, Store, Region)) else None
        if found is not None and found.space != "global":
            buffers[found] = None
        if isinstance(n, Parallel):
            widest = max(widest, math.prod(e if isinstance(e, int) else 1024 for e in n.extents) * 4)
    total = sum((b.static_size() or 1024) * container(b.dtype).itemsize for b in buffers)
    return max(total + 2 * widest, 1)


def check_memory(kernel: Kernel, slots: dict[Buffer, Slot], grid: tuple[int, ...]) -> None:
    """Refuses a call whose arrays would pass the option simulate_memory_limit; tensors of the caller do not count."""
    own = sum(s.array.nbytes for s in slots.values() if s.frozen and is_narrow(s.buffer.dtype) and not s.narrow)
    own += sum(s.unwritten.nbytes for s in slots.values() if s.unwritten is not None)
    blocks = math.prod(grid) if orders_grid(kernel) else 1
    need = own + max(tile_bytes(kernel) * blocks, _TARGET)
    limit = options.simulate_memory_limit
    if need > limit:
        raise ResourceError(
            f"the simulated kernel needs about {need / 2**20:,.0f} MiB beside its tensors",
            rule=f"option simulate_memory_limit is {limit / 2**20:,.0f} MiB",
            fix="use smaller tiles or tensors, or raise simulate_memory_limit",
            loc=kernel.loc,
        )


def chunks(grid: tuple[int, ...], bytes_per_block: int, single: set[int], target: int = _TARGET) -> Iterator[Box]:
    """Boxes that cover the grid in order; axes in `single` have extent 1 in each."""
    room = max(1, target // bytes_per_block) if bytes_per_block else math.prod(grid)
    sizes = [1] * len(grid)
    for axis in reversed(range(len(grid))):
        if axis in single:
            continue
        sizes[axis] = min(grid[axis], room)
        room = max(1, room // max(1, sizes[axis]))
    yield from _boxes(grid, sizes, ())


def _boxes(grid: tuple[int, ...], sizes: list[int], prefix: Box) -> Iterator[Box]:
    axis = len(prefix)
    if axis == len(grid):
        yield prefix
        return
    for start in range(0, grid[axis], sizes[axis]):
        yield from _boxes(grid, sizes, (*prefix, (start, min(start + sizes[axis], grid[axis]))))


def deciding_axes(kernel: Kernel) -> set[int]:
    """Grid axes that a trip count depends on. One block at a time along them keeps loops free of masks."""
    depends: dict[Var, set[int]] = {v: {len(kernel.grid) - 1 - i} for i, v in enumerate(kernel.block_vars)}

    def axes(e: object) -> set[int]:
        found: set[int] = set()
        for n in walk(e):  # type: ignore[arg-type]
            if isinstance(n, Var):
                found |= depends.get(n, set())
        return found

    out: set[int] = set()

    def visit(stmts: tuple[Any, ...]) -> None:
        for s in stmts:
            if isinstance(s, Let):
                depends[s.var] = depends.get(s.var, set()) | axes(s.value)
            elif isinstance(s, For):
                for bound in (s.start, s.stop, s.step):
                    out.update(axes(bound))
                depends[s.var] = axes(s.start)
            elif isinstance(s, While):
                out.update(axes(s.cond))
            if not isinstance(s, Parallel):  # its loops may differ between elements anyway
                for name in ("body", "then", "orelse"):
                    visit(getattr(s, name, ()))

    visit(kernel.body)
    return out


def orders_grid(kernel: Kernel) -> bool:
    return any(isinstance(n, Call) and n.fn == "sync_grid" for n in walk(kernel.body))


def waits(kernel: Kernel) -> bool:
    """Whether the kernel has agents that wait for one another."""
    return bool(kernel.channels) or any(
        isinstance(n, (Role, Turn)) or hasattr(n, "waits_for") for n in walk(kernel.body)
    )


def uniform_control(kernel: Kernel) -> bool:
    """Whether every branch and trip count outside T.Parallel is the same for all blocks, as far as can be seen."""
    varying: set[Var] = set(kernel.block_vars)

    def varies(e: Expr) -> bool:
        return any(isinstance(n, Load) or (isinstance(n, Var) and n in varying) for n in walk(e))

    def uniform(stmts: tuple[Any, ...]) -> bool:
        for s in stmts:
            if isinstance(s, Let) and varies(s.value):
                varying.add(s.var)
            tests = (s.start, s.stop, s.step) if isinstance(s, For) else (s.cond,) if isinstance(s, (If, While)) else ()
            if any(varies(e) for e in tests):
                return False
            if isinstance(s, If) and not (uniform(s.then) and uniform(s.orelse)):
                return False
            if not isinstance(s, (If, Parallel)) and not uniform(getattr(s, "body", ())):
                return False
        return True

    return uniform(kernel.body)
