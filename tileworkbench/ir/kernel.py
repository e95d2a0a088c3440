"""A kernel at any of the three levels."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from ..errors import Loc
from .expr import Buffer, Expr, Var
from .node import walk
from .planned import Channel
from .stmt import Stmt


@dataclass(frozen=True)
class TmaMap:
    """A TMA descriptor's recipe in IR terms. `dims` and `strides` innermost first; strides in bytes without the
    innermost; `box` in elements; `swizzle` in bytes; `l2`: bytes that the cache fetches at once."""

    name: str
    tensor: Buffer
    dims: tuple[Any, ...]
    strides: tuple[Any, ...]
    box: tuple[int, ...]
    swizzle: int = 0
    fill: str = "zero"
    l2: int = 128


@dataclass(frozen=True)
class Assumed:
    """A fact this variant is built under: `cond` holds at launch; `text` is shown to the user. `required`: the user
    states it of every call, so that no variant is for others."""

    cond: Expr
    text: str
    required: bool = False


@dataclass(frozen=True)
class Decision:
    """What the compiler chose for one op and what it refused, for `result.plan`."""

    op: str
    chosen: str
    reason: str
    refused: tuple[tuple[str, str], ...] = ()
    loc: Loc | None = None


@dataclass(frozen=True, eq=False)
class Kernel:
    """`level` is tile, planned or thread. `threads` counts compute threads (what the user wrote), `launch_threads` all.

    layouts: shared tiles and fragments → layouts (planned level). versions: ring depth of shared buffers.
    buffers, offsets, shared_bytes: storage of the thread level (offsets in bytes from the start of shared memory).
    outputs: parameter indices that the runtime allocates and returns."""

    name: str
    params: tuple[Buffer | Var, ...]
    grid: tuple[Any, ...]
    block_vars: tuple[Var, ...]
    threads: int
    body: tuple[Stmt, ...]
    thread_vars: tuple[Var, ...] = ()
    thread_shape: tuple[int, ...] = ()
    level: str = "tile"
    outputs: tuple[int, ...] = ()
    defaults: Mapping[Var, Any] = field(default_factory=dict)  # defaults of scalar parameters
    attrs: Mapping[str, Any] = field(default_factory=dict)
    loc: Loc | None = None
    # planned
    launch_threads: int = 0
    layouts: Mapping[Buffer, Any] = field(default_factory=dict)
    versions: Mapping[Buffer, int] = field(default_factory=dict)
    channels: tuple[Channel, ...] = ()
    decisions: tuple[Decision, ...] = ()
    assumed: tuple[Assumed, ...] = ()
    notes: tuple[str, ...] = ()
    # thread
    buffers: tuple[Buffer, ...] = ()
    offsets: Mapping[Buffer, int] = field(default_factory=dict)
    shared_bytes: int = 0
    maps: tuple[TmaMap, ...] = ()
    cluster: tuple[int, ...] = (1, 1, 1)

    def with_(self, **changes: Any) -> Kernel:
        """This kernel with some fields changed."""
        return replace(self, **changes)

    @property
    def tensors(self) -> tuple[Buffer, ...]:
        """The parameters that are tensors, in their order."""
        return tuple(p for p in self.params if isinstance(p, Buffer))

    @property
    def scalars(self) -> tuple[Var, ...]:
        """The parameters that are numbers, in their order."""
        return tuple(p for p in self.params if isinstance(p, Var))

    @property
    def launch_loc(self) -> Loc | None:
        """Where the user launches it: its T.Kernel."""
        return next((v.loc for v in self.block_vars if v.loc is not None), self.loc)

    def symbols(self) -> tuple[Var, ...]:
        """Symbolic extents and strides of the tensor parameters, in order of first appearance."""
        seen: dict[Var, None] = {}
        scalars = set(self.scalars)
        for tensor in self.tensors:
            for entry in (*tensor.shape, *(tensor.strides or ())):
                if isinstance(entry, Expr):
                    seen.update((n, None) for n in walk(entry) if isinstance(n, Var) and n not in scalars)
        return tuple(seen)
