"""T.atomic_*: read-modify-write of elements or whole tiles of global or shared memory."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from ..ir.arith import Facts
from ..ir.expr import Buffer, Expr, Load, Var
from ..ir.node import node
from ..ir.op import Access, Choice, Impl, Op
from ..ir.stmt import Region, Stmt
from ..target import Target
from .atomic_element import AtomicElement
from .context import Context
from .copies.pairs import at, extent, walked
from .parallel import Parallel


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

    def as_parallel(self) -> Parallel:
        """The update as an element loop of atomic operations."""
        shape = tuple(extent(self.dst.extents[d]) for d in walked(self.dst))
        loop_vars = tuple(Var("ijklmnpq"[d % 8]) for d in range(max(1, len(shape))))
        value = self.value
        if isinstance(value, Region):
            value = Load(value.buffer, at(value, loop_vars), loc=self.loc)
        one = AtomicElement(self.kind, self.dst.buffer, at(self.dst, loop_vars), value, self.order, loc=self.loc)
        return Parallel(loop_vars, shape or (1,), (one,), loc=self.loc)

    def impls(self, facts: Facts, target: Target, warps: int) -> Choice:
        return Choice((Impl("atomics", "lsu"),))

    def infer(self, impl: Impl, known: Mapping[Buffer, Any], threads: int, free: bool) -> Mapping[Buffer, Any]:
        return self.as_parallel().infer(impl, known, threads, free)

    def misfits(self, impl: Impl, known: Mapping[Buffer, Any], threads: int) -> tuple[tuple[Buffer, Any], ...]:
        return self.as_parallel().misfits(impl, known, threads)

    def issue(self, impl: Impl, ctx: Context) -> tuple[Stmt, ...]:
        return self.as_parallel().issue(impl, ctx)

    def run(self, env: Any) -> None:
        to = self.dst.buffer.dtype
        extents = env.extents(self.dst)
        if isinstance(self.value, Region):
            value = env.read(self.value, sink="an atomic update")
            value = value.reshape(value.shape[: env.lead] + extents)
            value = env.convert(value, self.value.buffer.dtype, to)
        else:
            env.require(self.value, "an atomic update", self.loc)
            value = env.convert(env.scalar(self.value), self.value.dtype, to)
            value = value.reshape(value.shape + (1,) * len(extents)) if value.ndim else value
        env.update(self.kind, self.dst, value)

    def text(self, show: Any) -> str:
        options = "" if self.order == "relaxed" else f", memory_order={show(self.order)}"
        options += ", use_tma=True" if self.use_tma else ""
        return f"T.atomic_{self.kind}({show.like(self.dst, self.value)}, {show.like(self.value, self.dst)}{options})"
