"""T.Parallel: an n-dimensional element loop spread over the threads; iterations are independent."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Any, ClassVar

from ..errors import LanguageError
from ..ir.arith import Facts
from ..ir.effects import accesses
from ..ir.expr import Buffer, Load, Var
from ..ir.node import node, walk
from ..ir.op import Access, Choice, Impl, Op
from ..ir.stmt import Stmt, Store
from ..target import Target
from .context import Context
from .elementwise import emit_parallel
from .hints import check_width
from .loops import choose, infer, misfits_of
from .nest import Nest


@node
class Parallel(Op):
    """`for vars in T.Parallel(*extents): body`. The body holds element statements only (stores, lets, ifs, serial
    loops, atomics), no tile operation. hints: coalesced_width, loop_layout, prefer_async."""

    name: ClassVar[str] = "Parallel"
    vars: tuple[Var, ...]
    extents: tuple[Any, ...]
    body: tuple[Stmt, ...]
    hints: tuple[tuple[str, Any], ...] = field(default=())

    def hint(self, key: str, default: Any = None) -> Any:
        return dict(self.hints).get(key, default)

    def effects(self) -> tuple[Access, ...]:
        return tuple(accesses(self.body))

    def fills(self, buffer: Buffer) -> bool:
        whole = any(isinstance(s, Store) and s.buffer is buffer and self.nest().covers(s) for s in self.body)
        return whole and not any(a.buffer is buffer and a.reads for a in self.effects())

    def run(self, env: Any) -> None:
        env.parallel(self)

    def text(self, show: Any) -> str:
        hints = "".join(f", {key}={show(value)}" for key, value in self.hints)
        return f"for {', '.join(map(show, self.vars))} in T.Parallel({', '.join(map(show, self.extents))}{hints})"

    def check(self) -> None:
        check_width(self, self.hint("coalesced_width"))
        own = set(self.vars)
        for n in walk(self.body):
            if not isinstance(n, (Load, Store)) or n.buffer.space != "local":
                continue
            if any(v in own for i in n.indices for v in walk(i) if isinstance(v, Var)):
                raise LanguageError(
                    f"`{n.buffer.name}` is indexed by a T.Parallel index",
                    rule="T.alloc_local makes an array of each thread, T.Parallel spreads its indices over threads",
                    fix="use T.alloc_fragment for a tile spread over threads, or T.serial for the loop",
                    loc=n.loc or self.loc,
                )

    def nest(self) -> Nest:
        return Nest.of(self.vars, self.extents, self.body)

    def impls(self, facts: Facts, target: Target, warps: int) -> Choice:
        return Choice((Impl("loop", "alu"),))

    def infer(self, impl: Impl, known: Mapping[Buffer, Any], threads: int, free: bool) -> Mapping[Buffer, Any]:
        width, hint = self.hint("coalesced_width"), self.hint("loop_layout")
        return infer(self.nest(), known, threads, free=free, vector=width, hint=hint)

    def misfits(self, impl: Impl, known: Mapping[Buffer, Any], threads: int) -> tuple[tuple[Buffer, Any], ...]:
        width, hint = self.hint("coalesced_width"), self.hint("loop_layout")
        return misfits_of(self.nest(), known, threads, vector=width, hint=hint)

    def issue(self, impl: Impl, ctx: Context) -> tuple[Stmt, ...]:
        width, hint = self.hint("coalesced_width"), self.hint("loop_layout")
        loop = choose(self.nest(), ctx.layouts, ctx.threads, vector=width, hint=hint)
        return emit_parallel(self.vars, self.extents, self.body, loop, ctx)
