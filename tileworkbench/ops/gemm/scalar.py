"""Products by multiply-add on any target and dtype: each thread owns a part of C and walks K."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ...ir.expr import Buffer, Const, Load, Var, cast, const
from ...ir.op import Impl
from ...ir.stmt import ONE, ZERO, For, If, Stmt, Store
from ..context import Context
from ..elementwise import emit_parallel
from ..loops import choose, infer
from ..nest import Nest

if TYPE_CHECKING:
    from .op import Gemm


def scalar_impl(op: Gemm) -> Impl:
    """Always possible when the operands are shared tiles; slow."""
    m, n, k = op.mnk
    return Impl("fma", "alu", "thread", cost=m * n * k)


def _body(op: Gemm, i: Var, j: Var) -> tuple[Stmt, ...]:
    kk = Var("kk")
    _, _, k = op.mnk
    to = op.c.buffer.dtype
    a = (kk, i) if op.transpose_a else (i, kk)
    b = (j, kk) if op.transpose_b else (kk, j)

    def at(region: Any, pair: Any) -> tuple[Any, ...]:
        return (*region.starts[:-2], region.starts[-2] + pair[0], region.starts[-1] + pair[1])

    c = at(op.c, (i, j))
    product = cast(Load(op.a.buffer, at(op.a, a)), to) * cast(Load(op.b.buffer, at(op.b, b)), to)
    body: tuple[Stmt, ...] = (
        For(kk, ZERO, const(k), ONE, (Store(op.c.buffer, c, Load(op.c.buffer, c) + product, loc=op.loc),), "serial"),
    )
    clear: Stmt = Store(op.c.buffer, c, const(0, to), loc=op.loc)
    if isinstance(op.clear, Const):
        return (clear, *body) if op.clear.value else body
    return (If(op.clear, (clear,), loc=op.loc), *body)


def infer_layouts(op: Gemm, known: Mapping[Buffer, Any], threads: int, free: bool) -> dict[Buffer, Any]:
    """C is spread like the loop over it."""
    m, n, _ = op.mnk
    i, j = Var("i"), Var("j")
    return infer(Nest.of((i, j), (m, n), _body(op, i, j)), known, threads, free=free, vector=1)


def issue(op: Gemm, impl: Impl, ctx: Context) -> tuple[Stmt, ...]:
    """An element loop over C with the walk along K inside."""
    m, n, _ = op.mnk
    i, j = Var("i"), Var("j")
    body = _body(op, i, j)
    loop = choose(Nest.of((i, j), (m, n), body), ctx.layouts, ctx.threads, vector=1)
    return emit_parallel((i, j), (m, n), body, loop, ctx)
