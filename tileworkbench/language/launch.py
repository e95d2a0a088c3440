"""T.Kernel and the indices of blocks and threads."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from ..errors import Loc, ResourceError, ShapeError
from ..ir.expr import Expr, Var
from .builder import Builder, require
from .extents import as_shape
from .faults import fault, shown
from .roleschedule.entry import KEY as SCHEDULE
from .roleschedule.materialise import materialise
from .texts import text_place

MAX_THREADS = 1024


@dataclass(eq=False)
class Launch:
    """What a kernel's `with T.Kernel` said, and the body that it got."""

    grid: tuple[Any, ...]
    thread_shape: tuple[int, ...]
    prelude: str | None = None
    prelude_place: Loc | None = None
    source: Any = None  # the user's own text, where that is the whole kernel
    cluster: tuple[int, ...] = (1, 1, 1)
    block_vars: tuple[Var, ...] = ()
    thread_vars: tuple[Var, ...] = ()
    body: tuple[Any, ...] = ()
    loc: Loc | None = None
    attrs: dict[str, Any] = field(default_factory=dict)
    launch_kind: str = "Kernel"
    open_threads: set[int] | None = None  # of a launch by loops: dimensions whose threads a loop has given

    def run(
        self, builder: Builder, names: str | tuple[str, ...], loc: Loc, keep: Callable[[Builder, str, Any], Any]
    ) -> Iterator[Any]:
        """The frame of the kernel's body; while a signature is read the body is not run."""
        if builder.phase == 1:
            return
        if builder.launch is not None:
            raise fault(
                "T.Kernel inside T.Kernel",
                "launches follow one another; a block launches nothing",
                "close the first block before the second",
                loc,
            )
        count = len(self.grid)
        if isinstance(names, tuple) and names and len(names) != count:
            raise fault(
                f"T.Kernel has {count} grid dimension{'s' * (count != 1)}, `as` names {len(names)}",
                "one name for each dimension of the grid",
                f"write {count} name{'s' * (count != 1)}",
                loc,
            )
        builder.launch, self.loc = self, loc
        self.prelude_place = text_place(self.prelude, loc) if isinstance(self.prelude, str) else None
        builder.launches.append(self)
        common, builder.attrs = builder.attrs, {}
        self._make_indices(builder, names)
        with builder.inside("kernel") as frame:
            frame.defined.extend((*self.block_vars, *self.thread_vars))
            given = names if isinstance(names, tuple) else ()
            for name, var in zip(given, self.block_vars, strict=False):
                keep(builder, name, var)
            yield self.block_vars[0] if isinstance(names, str) and count == 1 else self.block_vars
        self.body, self.attrs = tuple(frame.body), builder.attrs
        if (asked := self.attrs.pop(SCHEDULE, None)) is not None:
            schedule, place = asked
            found = materialise(builder, schedule, place, self.body, self.thread_vars[0], self.thread_shape)
            self.body, self.thread_shape = found
        builder.launch, builder.attrs, builder.random = None, common, None

    def _make_indices(self, builder: Builder, names: str | tuple[str, ...]) -> None:
        words = names if isinstance(names, tuple) and names else ("bx", "by", "bz")
        if isinstance(names, str) and len(self.grid) == 1:
            words = (names,)
        count = len(self.grid)
        self.block_vars = tuple(Var(builder.unique(w), loc=self.loc) for w in words[:count])
        self.thread_vars = tuple(Var(builder.unique(w), loc=self.loc) for w in ("tx", "ty", "tz"))


def Kernel(*blocks: Any, threads: Any = None, prelude: str | None = None) -> Launch:
    """Launches a grid of 1–3 dimensions, or one block when none is given, with `threads` per block (an int or up to 3
    ints, default 128).

    `with T.Kernel(nx, ny, threads=128) as (bx, by):` names the block's indices."""
    return Launch(_grid(blocks), block_threads(threads), prelude)


def ClusterKernel(*blocks: Any, cluster_dims: Any, threads: Any = None, prelude: str | None = None) -> Launch:
    """T.Kernel with thread-block clusters of 1–3 dimensions."""
    dims = as_shape(cluster_dims, "T.ClusterKernel")
    if not all(isinstance(d, int) for d in dims) or len(dims) > 3 or math.prod(dims) > 16:
        raise fault(
            f"cluster_dims={shown(cluster_dims)}", "1–3 ints whose product is at most 16", "for example (2, 1, 1)"
        )
    return Launch(_grid(blocks), block_threads(threads), prelude, cluster=(*dims, *(1,) * (3 - len(dims))))


def _grid(blocks: tuple[Any, ...]) -> tuple[Any, ...]:
    if len(blocks) == 1 and isinstance(blocks[0], list | tuple):
        blocks = tuple(blocks[0])
    if len(blocks) > 3:
        raise fault(
            f"T.Kernel with {len(blocks)} grid dimensions", "a grid has 1 to 3 dimensions", "T.Kernel(nx, ny, nz)"
        )
    return as_shape(blocks, "T.Kernel", 0) if blocks else (1,)


def block_threads(threads: Any) -> tuple[int, ...]:
    """The threads of a block in each dimension, checked."""
    given = tuple(threads) if isinstance(threads, list | tuple) else (128 if threads is None else threads,)
    if not 1 <= len(given) <= 3 or any(isinstance(t, bool | Expr) or not hasattr(t, "__index__") for t in given):
        raise ShapeError(
            f"T.Kernel: threads={shown(threads)}",
            rule="threads is an int, or 1–3 ints, known while compiling",
            fix="threads=128",
        )
    counts = tuple(t.__index__() for t in given)
    if any(c <= 0 for c in counts):
        raise ShapeError(
            f"T.Kernel: threads={shown(threads)}", rule="a block has at least one thread", fix="threads=128"
        )
    if math.prod(counts) > MAX_THREADS:
        raise ResourceError(
            f"T.Kernel: threads={shown(threads)} makes {math.prod(counts)} threads a block",
            rule=f"a block has at most {MAX_THREADS} threads",
            fix="use fewer threads; each may compute several elements",
        )
    return counts


def _launch(what: str) -> Launch:
    launch = require(what).launch
    if launch is None:
        raise fault(f"{what} outside `with T.Kernel(...)`", "it answers for the running kernel", "move it inside")
    return launch  # type: ignore[no-any-return]


def _extents(what: str) -> tuple[int, ...]:
    shape = _launch(what).thread_shape
    return (*shape, *(1,) * (3 - len(shape)))


def _pick(entries: tuple[Any, ...], dim: int, what: str) -> Any:
    if not isinstance(dim, int) or not 0 <= dim < len(entries):
        raise fault(f"{what}({shown(dim)})", f"the dimension is 0 … {len(entries) - 1}", "0 for the first dimension")
    return entries[dim]


def get_thread_binding(dim: int = 0) -> Var:
    """The thread's index in one dimension of the block."""
    return _pick(_launch("T.get_thread_binding").thread_vars, dim, "T.get_thread_binding")  # type: ignore[no-any-return]


def get_thread_bindings() -> list[Var]:
    """The thread's three indices."""
    return list(_launch("T.get_thread_bindings").thread_vars)


def get_block_binding(dim: int = 0) -> Var:
    """The block's index in one dimension of the grid."""
    return _pick(_launch("T.get_block_binding").block_vars, dim, "T.get_block_binding")  # type: ignore[no-any-return]


def get_block_bindings() -> list[Var]:
    """The block's indices."""
    return list(_launch("T.get_block_bindings").block_vars)


def get_thread_extent(dim: int = 0) -> int:
    """The block's size in one dimension."""
    return _pick(_extents("T.get_thread_extent"), dim, "T.get_thread_extent")  # type: ignore[no-any-return]


def get_thread_extents() -> list[int]:
    """The block's sizes."""
    return list(_extents("T.get_thread_extents"))


def get_block_extent(dim: int = 0) -> Any:
    """The grid's size in one dimension (an expression when it is symbolic)."""
    return _pick(_launch("T.get_block_extent").grid, dim, "T.get_block_extent")


def get_block_extents() -> list[Any]:
    """The grid's sizes."""
    return list(_launch("T.get_block_extents").grid)
