"""T.atomic_*: read-modify-write of elements or whole tiles of global or shared memory."""

from __future__ import annotations

from typing import ClassVar

from ..ir.expr import Buffer, Expr
from ..ir.node import node
from ..ir.op import Access, Op
from ..ir.stmt import Region, Stmt


@node
class AtomicTile(Op):
    """`dst[...] = kind(dst[...], value)` for each element, atomically. `value` is a tile of the same extents or a
    scalar. kind: add, max, min. use_tma asks for a bulk reduction from shared memory."""

    name: ClassVar[str] = "atomic"
    kind: str
    dst: Region
    value: Region | Expr
    order: str = "relaxed"
    use_tma: bool = False

    def effects(self) -> tuple[Access, ...]:
        read = (Access(self.value.buffer, "r", self.value),) if isinstance(self.value, Region) else ()
        return (*read, Access(self.dst.buffer, "atomic", self.dst))


@node
class AtomicElement(Stmt):
    """One element, inside T.Parallel or thread-level code. `old` names a var buffer that receives the previous value."""

    kind: str
    buffer: Buffer
    indices: tuple[Expr, ...]
    value: Expr
    order: str = "relaxed"
    old: Buffer | None = None

    def element_access(self) -> tuple[Access, ...]:
        old = (Access(self.old, "w"),) if self.old is not None else ()
        return (Access(self.buffer, "atomic"), *old)
