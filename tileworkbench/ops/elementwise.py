"""Emission of element code: a parallel nest becomes unrolled register loops whose memory accesses are instructions.

Memory is read into registers before the statement that needs it; a load on one side of a select happens only when that
side is chosen. The vectorise pass later merges the accesses of the innermost (vector) loop.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace as replace_scope
from typing import Any

from ..errors import InternalError, LanguageError
from ..ir.arith import substitute
from ..ir.expr import (
    Const,
    Expr,
    Value,
    Var,
    as_expr,
    cast,
    compare,
    const,
    logical,
    logical_not,
)
from ..ir.instr import Addr, AtomicMem, CallExtern, Reg, StoreMem
from ..ir.node import replace, walk
from ..ir.stmt import ONE, ZERO, Alloc, Assert, Break, Continue, Eval, For, If, Let, Print, Region, Stmt, Store, While
from ..ir.uniform import rank
from ..layout import Distribution
from . import descriptor_product, intrinsics, matrix_element, private
from .atomic_element import AtomicElement
from .context import Context, run
from .descriptor_product import DescriptorProduct
from .extern import ExternCall
from .matrix_element import MatrixLoad, MatrixProduct
from .nest import Nest
from .source_kernel import SourceKernel
from .values import TRUE, Scope, cache_of, coordinates, expression, register_index, thread_scope

# Orders that the memory system has no word for become the next stronger one.
ORDERS = {"consume": "acquire", "seq_cst": "acq_rel"}


def emit_parallel(loop_vars: tuple[Var, ...], extents: tuple[Any, ...], body: tuple[Stmt, ...], loop: Distribution,
                  ctx: Context, *, in_flight: bool = False) -> tuple[Stmt, ...]:  # fmt: skip
    """The nest on this role's threads, spread by `loop`; `in_flight`: its copies may be so when it ends."""
    nest = Nest.of(loop_vars, extents, body)
    digits = tuple(ctx.var("r") for _ in loop.reg_extents)
    outer = ctx.facts
    rolled = digits[:-1] if _draws(body) and all(u.buffer.space != "fragment" for u in nest.uses) else ()
    ctx.flat.update(digits[len(rolled) :])
    for digit, extent in zip(digits, loop.reg_extents, strict=True):
        ctx.facts = ctx.facts.with_range(digit, 0, extent - 1)
    coords = [ctx.facts.simplify(as_expr(c)) for c in loop.coordinate(ctx.thread, digits)]
    mapping = dict(zip(loop_vars, coords, strict=True))
    guard: Expr = TRUE
    for part in loop.guards(ctx.thread, digits):
        guard = logical("land", guard, ctx.facts.simplify(as_expr(part)))
    if loop.base:  # threads before and past the layout's have nothing to do
        guard = logical("land", ctx.thread >= loop.base, guard)
    if loop.base + loop.threads < ctx.threads:
        guard = logical("land", guard, ctx.thread < loop.base + loop.threads)
    side = TRUE if loop.replication == 1 else ctx.facts.simplify(as_expr(loop.replica(ctx.thread)) == 0)
    lane = digits[-1] if digits else None
    lanes = loop.reg_extents[-1] if digits else 1
    scope = Scope(ctx, nest, loop, mapping, digits, lane, lanes, side=side)
    inside = emit_body(body, scope)
    if not (isinstance(guard, Const) and guard.value):
        inside = (If(guard, inside),)
    for i, digit in reversed(list(enumerate(digits))):
        kind = "vector" if i == len(digits) - 1 else "serial" if digit in rolled else "unroll"
        attrs = (("in_flight", True),) if in_flight and kind == "vector" else ()
        inside = (For(digit, ZERO, const(loop.reg_extents[i]), ONE, inside, kind, attrs),)
    ctx.facts = outer
    return inside


def _draws(body: tuple[Stmt, ...]) -> bool:
    """Whether random numbers are drawn: their steps are many statements, each after the one before."""
    return any(isinstance(n, Store) and n.buffer.attr("sequential") for s in body for n in walk(s))


def emit_body(body: tuple[Stmt, ...], scope: Scope) -> tuple[Stmt, ...]:
    """Element statements, in order."""
    out: list[Stmt] = []
    for s in body:
        scope.pre = []
        made = _statement(s, scope)
        out += [*scope.pre, *made]
    scope.pre = []
    return tuple(out)


def _statement(s: Stmt, scope: Scope) -> tuple[Stmt, ...]:
    if isinstance(s, Store):
        return _store(s, scope)
    if isinstance(s, Let):
        return (replace(s, value=expression(s.value, scope)),)
    if isinstance(s, If):
        cond = expression(s.cond, scope)
        pre, guards = scope.pre, scope.guards
        scope.guards = (*guards, s.cond)
        then = emit_body(s.then, scope)
        scope.guards = (*guards, logical_not(s.cond))
        orelse = emit_body(s.orelse, scope)
        scope.pre, scope.guards = pre, guards
        return (replace(s, cond=cond, then=then, orelse=orelse),)
    if isinstance(s, For):
        return _serial(s, scope)
    if isinstance(s, (Break, Continue)):
        return (s,)
    if isinstance(s, Alloc):
        return ()
    if isinstance(s, While):
        return (while_loop(s, *_condition(s.cond, scope), _nested(s.body, scope)),)
    if isinstance(s, Eval):
        if intrinsics.is_effect(s.value):
            return intrinsics.effect(s.value, scope.ctx)
        return (replace(s, value=expression(s.value, scope)),)
    if isinstance(s, Print):
        return (replace(s, parts=tuple(expression(p, scope) if isinstance(p, Expr) else p for p in s.parts)),)
    if isinstance(s, Assert):
        return (replace(s, cond=expression(s.cond, scope)),)
    if isinstance(s, ExternCall):
        return _extern(s, scope)
    if isinstance(s, SourceKernel):
        return s.emit(scope.ctx.target)
    if isinstance(s, AtomicElement):
        return _atomic(s, scope)
    if isinstance(s, MatrixLoad):
        return matrix_element.emit_load(s, scope)
    if isinstance(s, MatrixProduct):
        return matrix_element.emit_product(s, scope)
    if isinstance(s, DescriptorProduct):
        return descriptor_product.emit(s, scope)
    raise InternalError(f"{type(s).__name__} is no element statement", loc=s.loc)


def _condition(cond: Expr, scope: Scope) -> tuple[list[Stmt], Expr]:
    """A condition that is asked again and again: with the statements that it needs each time."""
    outer, scope.pre = scope.pre, []
    made = expression(cond, scope)
    pre, scope.pre = scope.pre, outer
    return pre, made


def while_loop(s: While, pre: list[Stmt], cond: Expr, body: tuple[Stmt, ...]) -> While:
    """The loop; a condition that needs statements is asked inside."""
    if not pre:
        return replace(s, cond=cond, body=body)
    leave = If(logical_not(cond), (Break(loc=s.loc),), loc=s.loc)
    return replace(s, cond=TRUE, body=(*pre, leave, *body))


def _nested(body: tuple[Stmt, ...], scope: Scope) -> tuple[Stmt, ...]:
    pre = scope.pre
    made = emit_body(body, scope)
    scope.pre = pre
    return made


def _serial(s: For, scope: Scope) -> tuple[Stmt, ...]:
    start, stop, step = (expression(e, scope) for e in (s.start, s.stop, s.step))
    made = replace(s, start=start, stop=stop, step=step)
    walks_registers = any(u.buffer.space == "fragment" and s in u.inner for u in scope.nest.uses)
    kind = loop_kind(made, walks_registers)
    if kind == "unroll":
        scope.ctx.flat.add(s.var)
    outer, inner = scope.ctx.facts, scope.inner
    scope.ctx.facts = scope.ctx.facts.with_loop(s.var, start, stop, step)
    scope.inner = (*inner, s)
    body = _nested(s.body, scope)
    scope.ctx.facts, scope.inner = outer, inner
    return (replace(made, body=body, kind=kind),)


UNROLLED = 256  # statements that a loop over a private array may become


def loop_kind(s: For, walks_registers: bool = False) -> str:
    """serial or unroll: loops that the user unrolls and loops over registers are flattened when trips are known."""
    trips = s.trips
    if trips is None:
        return "serial"
    if walks_registers or s.kind in ("vector", "unroll"):
        return "unroll"
    if private.walks_private(s) and trips * sum(isinstance(n, Stmt) for n in walk(s.body)) <= UNROLLED:
        return "unroll"
    return "serial"


def _store(s: Store, scope: Scope) -> tuple[Stmt, ...]:
    ctx, buffer = scope.ctx, s.buffer
    value = cast(expression(s.value, scope), buffer.dtype)
    if buffer.space in ("local", "var"):
        return private.write(ctx.reg(buffer), register_index(buffer, s.indices, scope), value, ctx)
    if buffer.space == "fragment":
        return (Store(ctx.reg(buffer), (register_index(buffer, s.indices, scope),), value, loc=s.loc),)
    coords = coordinates(s.indices, scope)
    staged = ctx.registers(f"{buffer.name}_w", scope.lanes, buffer.dtype)
    at: Value = scope.lane if scope.lane is not None else 0
    side = logical("land", scope.side, _once(s, scope))
    pred = logical("land", side, ctx.inside(buffer, coords) if buffer.space == "global" else TRUE)
    known = isinstance(pred, Const) and pred.value
    return (
        Store(staged, (as_expr(at),), value, loc=s.loc),
        StoreMem(
            ctx.address(buffer, coords),
            run(staged, at),
            None if known else pred,
            cache_of(buffer, ctx),
            ctx.elsewhere.get(buffer),
            loc=s.loc,
        ),
    )


def _once(s: Store, scope: Scope) -> Expr:
    """Every thread would store the same value to the same place: one of them is enough."""
    ctx, uniform = scope.ctx, scope.ctx.uniform
    if scope.loop is not None or uniform is None or rank(ctx.flow) < rank("role") or s.buffer in ctx.own_reads:
        return TRUE
    if all(uniform.uniform(e, "role") for e in (s.value, *s.indices)):
        return compare("eq", ctx.thread, 0)
    return TRUE


def _atomic(s: Any, scope: Scope) -> tuple[Stmt, ...]:
    ctx, buffer = scope.ctx, s.buffer
    coords = coordinates(s.indices, scope)
    staged = ctx.registers(f"{buffer.name}_a", scope.lanes, buffer.dtype)
    at: Value = scope.lane if scope.lane is not None else 0
    value = cast(expression(s.value, scope), buffer.dtype)
    pred = logical("land", scope.side, ctx.inside(buffer, coords) if buffer.space == "global" else TRUE)
    known = isinstance(pred, Const) and pred.value
    old = None
    if s.old is not None:
        old = run(ctx.reg(s.old))
    where, order = "cta" if buffer.space == "shared" else "gpu", ORDERS.get(s.order, s.order)
    if s.kind in ("load", "store") and s.order == "seq_cst":
        order = s.order
    return (
        Store(staged, (as_expr(at),), value, loc=s.loc),
        AtomicMem(
            s.kind, ctx.address(buffer, coords), run(staged, at), old, None if known else pred, order, where, loc=s.loc
        ),
    )


def _extern(s: ExternCall, scope: Scope) -> tuple[Stmt, ...]:
    """A call by each thread; where elements have replicas, by the first one only."""
    ctx = scope.ctx
    args = tuple(expression(a, scope) if isinstance(a, Expr) else _address(a, s, scope) for a in s.args)
    result = run(ctx.reg(s.result)) if s.result is not None else None
    named = [(a.buffer, m) for a, m in zip(s.args, s.modes, strict=True) if isinstance(a, Region)]
    reads = tuple(b for b, m in named if "r" in m and b.space == "global")
    writes = tuple(b for b, m in named if "w" in m and b.space == "global")
    made: Stmt = CallExtern(s.function, args, result, reads, writes, loc=s.loc)
    always = isinstance(scope.side, Const) and scope.side.value
    return (made,) if always or result is not None else (If(scope.side, (made,), loc=s.loc),)


def _address(region: Region, s: ExternCall, scope: Scope) -> Addr | Reg:
    buffer = region.buffer
    if buffer.space in ("global", "shared"):
        return scope.ctx.address(buffer, coordinates(region.starts, scope))
    if buffer.space == "fragment":
        raise LanguageError(
            f"T.call_extern is given the address of the fragment `{buffer.name}`",
            rule="a fragment is spread over the registers of many threads",
            fix="copy it to a shared tile, or use T.alloc_local",
            loc=s.loc,
        )
    index = register_index(buffer, region.starts, scope)
    if not private.settled(index, scope.ctx.flat):
        raise LanguageError(
            f"T.call_extern is given the address of `{buffer.name}` at a place known only at run time",
            rule="private arrays live in registers, which are numbered while compiling",
            fix="give the whole array",
            loc=s.loc,
        )
    return run(scope.ctx.reg(buffer), index)


def emit_simt(s: Stmt, ctx: Context) -> tuple[Stmt, ...]:
    """One thread-level statement of the user's (every thread executes it)."""
    return emit_body((s,), thread_scope(ctx))


def emit_vector(s: For, trips: int, ctx: Context) -> tuple[Stmt, ...]:
    """A thread's own T.vectorized loop over stores: its accesses may become wide."""
    lane = ctx.var(s.var.name)
    ctx.flat.add(lane)
    outer = ctx.facts
    ctx.facts = ctx.facts.with_range(lane, 0, trips - 1)
    scope = replace_scope(thread_scope(ctx), mapping={s.var: s.start + lane}, lane=lane, lanes=trips)
    body = emit_body(s.body, scope)
    ctx.facts = outer
    kept = (("in_flight", True),) if s.attr("in_flight") else ()
    return (For(lane, ZERO, const(trips), ONE, body, "vector", (("ordered", True), *kept), loc=s.loc),)


def bind(body: Any, mapping: Mapping[Var, Value]) -> Any:
    """Statements with variables replaced."""
    return substitute(body, mapping)
