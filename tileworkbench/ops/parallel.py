"""T.Parallel: an n-dimensional element loop spread over the threads; iterations are independent."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import field
from typing import Any, ClassVar

from ..errors import LanguageError
from ..ir.arith import Facts, substitute
from ..ir.effects import accesses
from ..ir.expr import Buffer, Call, Const, Expr, Load, Var, as_expr, compare, const, logical
from ..ir.node import node, walk
from ..ir.op import Access, Choice, Impl, Op
from ..ir.stmt import ZERO, Eval, For, If, Region, Stmt, Store
from ..target import Target
from .context import Context
from .copies.rows import rows, rows_impl
from .elementwise import emit_parallel
from .hints import check_width
from .intrinsics import is_effect
from .loops import choose, infer, misfits_of
from .nest import Nest

STEP = 256  # elements of a loop's tile where its extents are known only at run time


def known(extent: Any) -> Any:
    """A constant extent as an int."""
    return int(extent.value) if isinstance(extent, Const) else extent


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
        self._check_alone()
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

    def _check_alone(self) -> None:
        """An iteration waits for no other: only some threads of the block may run any."""
        meeting = next((n for n in walk(self.body) if isinstance(n, Eval) and is_effect(n.value)), None)
        if meeting is not None and isinstance(meeting.value, Call):
            raise LanguageError(
                f"T.{meeting.value.fn} inside T.Parallel or T.vectorized",
                rule="it works between the threads of a warp or block",
                fix="write the loop over threads with T.get_thread_binding()",
                loc=meeting.loc,
            )

    def nest(self) -> Nest:
        return Nest.of(self.vars, self.extents, self.body)

    def canonical(self) -> tuple[Stmt, ...]:
        """Extents known only at run time are walked in steps of a constant tile, whose rest is guarded."""
        late = [d for d, e in enumerate(self.extents) if not isinstance(known(e), int)]
        if not late or self.hint("loop_layout") is not None:
            return (self,)
        tile = [known(e) for e in self.extents]
        for d in late:
            tile[d] = 1
        tile[late[-1]] = max(1, STEP // math.prod(tile))
        firsts = {d: Var(f"{self.vars[d].name}_first", self.vars[d].dtype) for d in late}
        places = {self.vars[d]: self.vars[d] + firsts[d] for d in late}
        guard: Expr = const(True)
        for d in late:
            guard = logical("land", guard, compare("lt", places[self.vars[d]], self.extents[d]))
        inside = (If(guard, substitute(self.body, places), loc=self.loc),)
        made: Stmt = Parallel(self.vars, tuple(tile), inside, self.hints, loc=self.loc)
        for d in reversed(late):
            made = For(firsts[d], ZERO, as_expr(self.extents[d]), const(tile[d]), (made,), loc=self.loc)
        return (made,)

    def impls(self, facts: Facts, target: Target, warps: int) -> Choice:
        return Choice((Impl("loop", "alu"),))

    def ahead(self, facts: Facts, target: Target) -> Impl | None:
        return rows_impl(self, facts, target)

    @property
    def src(self) -> Region | None:
        """What the loop copies from, where it is a copy of rows."""
        found = rows(self)
        return found.src if found else None

    @property
    def conditions(self) -> tuple[Expr, ...]:
        """Whether an element is copied, where the loop is a copy of rows."""
        found = rows(self)
        return (found.cond,) if found else ()

    @property
    def dst(self) -> Region | None:
        """What the loop copies to, where it is a copy of rows."""
        found = rows(self)
        return found.dst if found else None

    def infer(self, impl: Impl, known: Mapping[Buffer, Any], threads: int, free: bool) -> Mapping[Buffer, Any]:
        width, hint = self.hint("coalesced_width"), self.hint("loop_layout")
        return infer(self.nest(), known, threads, free=free, vector=width, hint=hint)

    def misfits(self, impl: Impl, known: Mapping[Buffer, Any], threads: int) -> tuple[tuple[Buffer, Any], ...]:
        width, hint = self.hint("coalesced_width"), self.hint("loop_layout")
        return misfits_of(self.nest(), known, threads, vector=width, hint=hint)

    def issue(self, impl: Impl, ctx: Context) -> tuple[Stmt, ...]:
        width, hint = self.hint("coalesced_width"), self.hint("loop_layout")
        loop = choose(self.nest(), ctx.layouts, ctx.threads, vector=width, hint=hint)
        return emit_parallel(self.vars, self.extents, self.body, loop, ctx, in_flight=impl.completion == "group")
