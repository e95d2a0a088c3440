"""What an op is given when it is emitted: names for registers and shared places, and nothing that synchronises."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from ..errors import InternalError, Loc
from ..ir.arith import Facts
from ..ir.dtype import INT32, INT64, DType
from ..ir.expr import (
    Binary,
    Buffer,
    Const,
    Expr,
    Select,
    Special,
    Value,
    Var,
    as_expr,
    binary,
    cast,
    compare,
    const,
    logical,
    select,
)
from ..ir.instr import Addr, Bar, Elect, Reg
from ..ir.kernel import TmaMap
from ..ir.region import root
from ..ir.stmt import ZERO, Stmt
from ..ir.uniform import Uniformity
from ..target import Target

INT32_LIMIT = 2**31


@dataclass
class Context:
    """The emission context of one role. `version` maps ring buffers to the index expression of the version they mean
    now; `bar` is the barrier that asynchronous copies of the current channel complete on."""

    target: Target
    facts: Facts
    layouts: Mapping[Buffer, Any]
    role: str = "main"
    warps: int = 4
    single: bool = False  # already inside one elected thread
    bar: Bar | None = None
    version: dict[Buffer, Expr] = field(default_factory=dict)
    storage: dict[Buffer, Buffer] = field(default_factory=dict)  # tile-level buffer -> thread-level buffer
    maps: dict[Any, TmaMap] = field(default_factory=dict)
    stages: dict[Any, Buffer] = field(default_factory=dict)  # staging registers by copy
    names: dict[str, int] = field(default_factory=dict)
    created: list[Buffer] = field(default_factory=list)
    scratches: dict[Any, Buffer] = field(default_factory=dict)
    shared_scratch: set[Buffer] = field(default_factory=set)
    wide: frozenset[Buffer] = frozenset()  # tensors whose offsets need 64 bits
    in_flight: list[Any] = field(default_factory=list)  # products issued and not yet waited for, oldest first
    flat: set[Var] = field(default_factory=set)  # loop variables that are constants once loops are unrolled
    policy: str = ""  # what the caches are told: evict_first, evict_last or nothing
    uniform: Uniformity | None = None
    flow: str = "block"  # the widest scope whose threads all come here
    repeats: bool = False  # inside a loop: what is emitted may run again
    block_threads: int = 0  # threads of the whole block, as the kernel counts them
    apart: bool = False  # threads that the kernel does not count load for it
    touched_again: frozenset[Buffer] = frozenset()  # global tensors that several statements touch
    own_reads: frozenset[Buffer] = frozenset()  # global tensors that the kernel reads as well as writes
    outside: Mapping[Buffer, Expr] = field(default_factory=dict)  # what reads outside a tensor give, where not 0
    present: int = 0  # threads of this role that exist
    elsewhere: dict[Buffer, Expr] = field(default_factory=dict)  # shared tiles that are stored to in another block

    @property
    def threads(self) -> int:
        """Threads that come to the operation."""
        return self.present or self.warps * self.target.arch.warp_size

    @property
    def thread(self) -> Expr:
        """The index of the thread among those of its role."""
        return Special("role_thread")

    @contextmanager
    def evicting(self, policy: str) -> Iterator[None]:
        """Accesses to global memory inside carry this eviction policy."""
        outer, self.policy = self.policy, policy
        yield
        self.policy = outer

    @property
    def cache(self) -> str:
        """The cache operator of ordinary accesses to global memory."""
        return "cs" if self.policy == "evict_first" else ""

    def name(self, base: str) -> str:
        """A name not given out before."""
        n = self.names.get(base, 0)
        self.names[base] = n + 1
        return base if n == 0 else f"{base}_{n}"

    def var(self, base: str, dtype: DType = INT32) -> Var:
        """A new scalar with a name of its own."""
        return Var(self.name(base), dtype)

    def registers(self, base: str, count: int, dtype: DType, loc: Loc | None = None) -> Buffer:
        """New registers of each thread: `count` elements of `dtype`."""
        made = Buffer(self.name(base), (count,), dtype, "reg", loc=loc)
        self.created.append(made)
        return made

    def scratch(self, base: str, count: int, dtype: DType) -> Buffer:
        """Shared memory of the op's own: `count` elements of `dtype`. Ops of one role that ask alike get the same, one
        after the other; `used_before` says when a meeting must come first."""
        key = (self.role, base, count, dtype)
        made = self.scratches.get(key)
        if made is None:
            made = self.scratches[key] = Buffer(self.name(base), (count,), dtype, "shared")
            self.created.append(made)
        else:
            self.shared_scratch.add(made)
        return made

    def used_before(self, scratch: Buffer) -> bool:
        """True when an earlier op, or an earlier trip, may still be reading the scratch memory."""
        return self.repeats or scratch in self.shared_scratch

    def reg(self, buffer: Buffer) -> Buffer:
        """The registers that hold this thread's part of a fragment, local or var buffer."""
        buffer = root(buffer)
        made = self.storage.get(buffer)
        if made is None:
            if buffer.space == "fragment":
                layout = self.layouts.get(buffer)
                if layout is None:
                    raise InternalError(f"fragment {buffer.name} has no layout", loc=buffer.loc)
                count = layout.registers
            elif buffer.space in ("local", "var"):
                count = buffer.static_size() or 1
            else:
                raise InternalError(f"{buffer.name} is in {buffer.space} memory, not in registers")
            made = self.storage[buffer] = self.registers(buffer.name, count, buffer.dtype, buffer.loc)
        return made

    def shared(self, buffer: Buffer) -> Buffer:
        """The flat storage of a shared tile."""
        made = self.storage.get(buffer)
        if made is None:
            raise InternalError(f"shared buffer {buffer.name} has no storage")
        return made

    def address(self, buffer: Buffer, coords: tuple[Value, ...]) -> Addr:
        """Where an element of a shared tile (of its current version) or of a global tensor lies."""
        place = tuple(as_expr(c) for c in coords)
        if buffer.space == "global":
            if root(buffer) in self.wide:
                place = tuple(cast(self.facts.simplify(c), INT64) for c in place)
            base = root(buffer)
            seen = base if buffer.dtype is base.dtype else buffer
            return Addr(seen, self.facts.simplify(global_offset(buffer, place)))
        layout = self.layouts[buffer]
        offset = as_expr(layout.offset(*place)) + self.version.get(buffer, ZERO) * layout.size
        return Addr(self.shared(buffer), self.facts.simplify(offset))

    def coordinate(self, e: Expr) -> Expr:
        """An index, simplified; worked out in 64 bits where 32 may not hold it."""
        made = self.facts.simplify(e)
        high = self.facts.range(made)[1]
        if high < INT32_LIMIT or (math.isinf(high) and not self.wide):
            return made
        return widened(made)

    def inside(self, buffer: Buffer, coords: tuple[Expr, ...]) -> Expr:
        """The condition that `coords` lie in the buffer, without the parts that are surely so."""
        cond: Expr = const(True)
        for coord, extent in zip(coords, buffer.shape, strict=True):
            for part in (compare("ge", coord, 0), compare("lt", coord, extent)):
                cond = logical("land", cond, self.facts.simplify(part))
        return cond

    @contextmanager
    def storing_in(self, tile: Buffer, block: Expr) -> Iterator[None]:
        """Stores to the tile go to the same place of the cluster's block of this rank."""
        self.elsewhere[tile] = block
        try:
            yield
        finally:
            del self.elsewhere[tile]

    def elect(self, *body: Stmt) -> tuple[Stmt, ...]:
        """`body` by one thread of the role."""
        return body if self.single else (Elect("role", tuple(body)),)


def widened(e: Expr) -> Expr:
    """An int32 expression with 64-bit arithmetic: its variables are converted, not its result."""
    if isinstance(e, Const):
        return const(e.value, INT64)
    if isinstance(e, Binary) and e.dtype is INT32:
        return binary(e.op, widened(e.a), widened(e.b))
    if isinstance(e, Select) and e.dtype is INT32:
        return select(e.cond, widened(e.a), widened(e.b))
    return cast(e, INT64)


def global_offset(buffer: Buffer, coords: tuple[Expr, ...]) -> Expr:
    """Element offset of `coords` in a global tensor: by its strides, else row-major."""
    strides = buffer.strides or row_major_strides(buffer.shape)
    total: Expr = ZERO
    for coord, stride in zip(coords, strides, strict=True):
        total = total + coord * stride
    return total


def row_major_strides(shape: tuple[Any, ...]) -> tuple[Any, ...]:
    """Strides in elements, last dimension contiguous; ints where the extents are."""
    strides: list[Any] = []
    step: Any = 1
    for extent in reversed(shape):
        strides.append(step)
        step = step * extent
    return tuple(reversed(strides))


def run(buffer: Buffer, start: Value = 0, count: int = 1) -> Reg:
    """`count` registers of a register buffer from `start` on."""
    return Reg(buffer, as_expr(start), count)
