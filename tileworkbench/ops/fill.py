"""T.fill and T.clear: sets every element of a tile to one value."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from ..ir.arith import Facts
from ..ir.expr import Buffer, Const, Expr, Var, cast
from ..ir.node import node
from ..ir.op import Access, Choice, Impl, Op
from ..ir.stmt import Region, Stmt, Store
from ..target import Target
from .context import Context
from .copies.pairs import at, extent, sized_late, walked
from .parallel import Parallel
from .private import SPACES as PRIVATE
from .private import each_thread


@node
class Fill(Op):
    """`dst[...] = value`, cast to the buffer's dtype."""

    name: ClassVar[str] = "fill"
    dst: Region
    value: Expr

    def effects(self) -> tuple[Access, ...]:
        return (Access(self.dst.buffer, "w", self.dst),)

    def run(self, env: Any) -> None:
        env.require(self.value, f"a fill of `{self.dst.buffer.name}`", self.loc)
        value = env.scalar(self.value).copy()  # it may be a view of another tile
        if value.ndim:
            value = value.reshape(value.shape + (1,) * len(self.dst.extents))
        env.write(self.dst, value, self.value.dtype, keep=True)

    def text(self, show: Any) -> str:
        if isinstance(self.value, Const) and self.value.value == 0:
            return f"T.clear({show(self.dst)})"
        return f"T.fill({show(self.dst)}, {show(self.value)})"

    def as_parallel(self) -> Parallel:
        """The fill as an element loop."""
        shape = tuple(extent(self.dst.extents[d]) for d in walked(self.dst))
        loop_vars = tuple(Var("ijklmnpq"[d % 8]) for d in range(max(1, len(shape))))
        value = cast(self.value, self.dst.buffer.dtype)
        store = Store(self.dst.buffer, at(self.dst, loop_vars), value, loc=self.loc)
        return Parallel(loop_vars, shape or (1,), (store,), loc=self.loc)

    def element_loop(self) -> Parallel | None:
        return self.as_parallel() if sized_late(self.dst) else None

    def canonical(self) -> tuple[Stmt, ...]:
        loop = self.element_loop()
        if loop is not None:
            return loop.canonical()
        if self.dst.buffer.space not in PRIVATE:
            return (self,)
        p = self.as_parallel()
        return each_thread(p.vars, p.extents, p.body, self.loc)

    def impls(self, facts: Facts, target: Target, warps: int) -> Choice:
        return Choice((Impl("loop", "alu"),))

    def infer(self, impl: Impl, known: Mapping[Buffer, Any], threads: int, free: bool) -> Mapping[Buffer, Any]:
        return self.as_parallel().infer(impl, known, threads, free)

    def misfits(self, impl: Impl, known: Mapping[Buffer, Any], threads: int) -> tuple[tuple[Buffer, Any], ...]:
        return self.as_parallel().misfits(impl, known, threads)

    def issue(self, impl: Impl, ctx: Context) -> tuple[Stmt, ...]:
        return self.as_parallel().issue(impl, ctx)
