"""Values of element code: loop variables bound, private and fragment elements as registers, memory read into registers
before the statement that needs it; a load on one side of a select happens only when that side is chosen."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ..errors import InternalError, LanguageError
from ..ir.expr import (
    Binary,
    Buffer,
    Call,
    Const,
    Expr,
    Load,
    Select,
    Var,
    const,
    logical,
    logical_not,
)
from ..ir.instr import LoadMem
from ..ir.node import map_children, replace
from ..ir.stmt import ZERO, For, Stmt
from ..layout import Distribution
from . import intrinsics, private
from .context import Context, run
from .fit import require_fit
from .nest import Nest, Use

TRUE = const(True)


@dataclass
class Scope:
    """State while one loop's body is emitted. `mapping` binds the user's loop variables to coordinates; `digits` are
    the register loop variables; `guard` holds for elements that exist; `side` additionally limits side effects."""

    ctx: Context
    nest: Nest
    loop: Distribution | None
    mapping: Mapping[Var, Expr]
    digits: tuple[Var, ...] = ()
    lane: Var | None = None  # the innermost digit, which the vectorise pass may merge over
    lanes: int = 1
    inner: tuple[For, ...] = ()
    side: Expr = TRUE
    guards: tuple[Expr, ...] = ()  # the user's conditions around the statement
    pre: list[Stmt] = field(default_factory=list)


def thread_scope(ctx: Context) -> Scope:
    """The state of code that every thread executes by itself."""
    return Scope(ctx, Nest((), (), (), ()), None, {})


def coordinates(indices: tuple[Expr, ...], scope: Scope) -> tuple[Expr, ...]:
    """Where an element of memory lies."""
    return tuple(scope.ctx.coordinate(expression(i, scope)) for i in indices)


def register_index(buffer: Buffer, indices: tuple[Expr, ...], scope: Scope) -> Expr:
    """The register of a fragment, local or var element."""
    if buffer.space != "fragment":
        offset: Expr = ZERO
        for index, extent in zip(indices, buffer.shape, strict=True):
            offset = offset * extent + expression(index, scope)
        return scope.ctx.facts.simplify(offset)
    if scope.loop is None:
        raise InternalError(f"fragment {buffer.name} is indexed outside T.Parallel", loc=buffer.loc)
    use = Use(buffer, indices, False, scope.inner, scope.guards)
    found = require_fit(scope.nest, scope.loop, use, scope.ctx.layouts[buffer])
    total: Expr = const(found.base)
    for digit, weight in zip(scope.digits, found.weights, strict=True):
        total = total + digit * weight
    for var, weight in found.inner:
        total = total + var * weight
    registers = scope.ctx.layouts[buffer].registers
    low, high = scope.ctx.facts.range(total)
    if scope.guards and not 0 <= low <= high < registers:  # where the guard does not hold, the place is any register
        total = total % registers
    return total


def expression(e: Expr, scope: Scope) -> Expr:
    """`e` with loop variables bound and memory loads moved into registers (appended to scope.pre)."""
    if isinstance(e, Var):
        return scope.mapping.get(e, e)
    if isinstance(e, Load):
        return _load(e, scope)
    if isinstance(e, Select):
        return _select(e, scope)
    if isinstance(e, Binary) and e.op in ("land", "lor"):
        a = expression(e.a, scope)
        return scope.ctx.facts.simplify(logical(e.op, a, under(e.b, a if e.op == "land" else logical_not(a), scope)))
    if isinstance(e, Call) and intrinsics.is_intrinsic(e):
        return _exchange(e, scope)
    if not e._fields:
        return e
    new = map_children(e, lambda c: expression(c, scope) if isinstance(c, Expr) else c)
    return scope.ctx.facts.simplify(new) if new.dtype.is_int else new


def _exchange(e: Call, scope: Scope) -> Expr:
    if scope.loop is not None or scope.lane is not None:
        raise LanguageError(
            f"T.{e.fn} inside T.Parallel or T.vectorized",
            rule="it works between the threads of a warp or block",
            fix="write the loop over threads with T.get_thread_binding()",
            loc=e.loc,
        )
    args = [expression(a, scope) for a in e.args]
    return intrinsics.value(e, args, scope.ctx, scope.pre)


def _select(e: Select, scope: Scope) -> Expr:
    """Loads of a side happen only where that side is chosen."""
    cond = scope.ctx.facts.simplify(expression(e.cond, scope))
    if isinstance(cond, Const):
        return expression(e.a if cond.value else e.b, scope)
    a = under(e.a, cond, scope)
    b = under(e.b, logical_not(cond), scope)
    return replace(e, cond=cond, a=a, b=b)


def under(e: Expr, cond: Expr, scope: Scope) -> Expr:
    """`e`, with its loads made only where `cond` holds."""
    mark = len(scope.pre)
    made = expression(e, scope)
    for i in range(mark, len(scope.pre)):
        load = scope.pre[i]
        if isinstance(load, LoadMem):
            pred = cond if load.pred is None else logical("land", cond, load.pred)
            fill = const(0, load.dst.buffer.dtype) if load.fill is None else load.fill
            scope.pre[i] = replace(load, pred=pred, fill=fill)
    return made


def _load(e: Load, scope: Scope) -> Expr:
    ctx, buffer = scope.ctx, e.buffer
    if buffer.space in ("local", "var"):
        return private.read(ctx.reg(buffer), register_index(buffer, e.indices, scope), ctx, scope.pre)
    if buffer.space == "fragment":
        return Load(ctx.reg(buffer), (register_index(buffer, e.indices, scope),), loc=e.loc)
    coords = coordinates(e.indices, scope)
    staged = ctx.registers(f"{buffer.name}_v", scope.lanes, buffer.dtype)
    at: Expr = scope.lane if scope.lane is not None else ZERO
    pred = ctx.inside(buffer, coords) if buffer.space == "global" else TRUE
    known = isinstance(pred, Const) and pred.value
    when, fill = (None, None) if known else (pred, ctx.outside.get(buffer, const(0, buffer.dtype)))
    place = ctx.address(buffer, coords)
    scope.pre.append(LoadMem(run(staged, at), place, when, fill, cache_of(buffer, ctx), loc=e.loc))
    return Load(staged, (at,), loc=e.loc)


def cache_of(buffer: Buffer, ctx: Context) -> str:
    """The cache operator of accesses to a buffer."""
    return ctx.cache if buffer.space == "global" else ""
