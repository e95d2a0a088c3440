"""Each class of expression as closures over a warp: its value in all lanes, and the lanes where it is undefined."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...errors import InternalError
from ...ir.dtype import BOOL
from ...ir.expr import Binary, Bitcast, Call, Cast, Compare, Const, Load, Select, Special, Unary, Var
from . import scalars
from .faults import fault
from .mathcalls import call
from .registers import check_register_read, register_rows
from .values import Maker, Read, Scope, Value, either, flat_index, union
from .warp import RegFile, Warp

DIVISIONS = ("floordiv", "floormod", "truncdiv", "truncmod")


def _const(s: Scope, e: Const) -> Value:
    held = scalars.constant(e.value, e.dtype)
    return Value(lambda w: held, None, e.dtype, held)


def _var(s: Scope, e: Var) -> Value:
    slot = s.slot(e)
    undefined = (lambda w: w.undefined[slot]) if e in s.maybe_undefined else None

    def read(w: Warp) -> Any:
        value = w.env[slot]
        if value is None:
            raise fault(
                w, "unbound", f"variable {e.name!r} has no value here", rule="a variable is bound before its use"
            )
        return value

    return Value(read, undefined, e.dtype)


def _extent(i: int) -> Read:
    return lambda w: w.block.grid[i] if i < len(w.block.grid) else 1


def _place(i: int) -> Read:
    return lambda w: w.block.where[i]


_SPECIALS: dict[str, Read] = {
    "thread": lambda w: w.threads,
    "role_thread": lambda w: w.role_threads,
    "lane": lambda w: w.lane_ids,
    "warp": lambda w: w.index,
    "cluster_rank": lambda w: w.block.rank,
    **{f"grid_{axis}": _extent(i) for i, axis in enumerate("xyz")},
    **{f"block_{axis}": _place(i) for i, axis in enumerate("xyz")},
}


def _special(s: Scope, e: Special) -> Value:
    if e.name not in _SPECIALS:
        raise InternalError(f"the thread machine knows no index {e.name!r}")
    return Value(_SPECIALS[e.name], None, e.dtype)


def _unary(s: Scope, e: Unary) -> Value:
    a, fn = s.value(e.a), scalars.unary(e.op, e.a.dtype)
    read = a.read
    return Value(lambda w: fn(read(w)), a.undefined, e.dtype)


def _binary(s: Scope, e: Binary) -> Value:
    a, b = s.value(e.a), s.value(e.b)
    if e.op in ("land", "lor"):
        return _logic(e, a, b)
    fn, x, y = scalars.binary(e.op, e.dtype), a.read, b.read
    if e.op in DIVISIONS and not b.constant and e.dtype.is_int:
        return Value(_checked_division(e, fn, x, y), union(a, b), e.dtype)
    if b.constant is not None:
        held = b.constant
        return Value(lambda w: fn(x(w), held), union(a, b), e.dtype)
    return Value(lambda w: fn(x(w), y(w)), union(a, b), e.dtype)


def _checked_division(e: Binary, fn: Callable[[Any, Any], Any], x: Read, y: Read) -> Read:
    def read(w: Warp) -> Any:
        divisor = y(w)
        zero = divisor == 0
        if zero is True or (zero is not False and (zero & w.mask).any()):
            raise fault(
                w,
                "division",
                "division by zero",
                rule="the divisor of an integer division is not 0",
                lanes=zero if zero is not True else None,
            )
        return fn(x(w), divisor)

    return read


def _logic(e: Binary, a: Value, b: Value) -> Value:
    """`b` is evaluated (and must be defined) only in lanes that `a` does not decide."""
    stop = e.op == "lor"
    fn = np.logical_or if stop else np.logical_and

    def read(w: Warp) -> Any:
        x = a.read(w)
        if not isinstance(x, np.ndarray):
            return x if bool(x) is stop else b.read(w)
        y = _under(w, ~x if stop else x, b.read)
        return fn(x, y)

    def undefined(w: Warp) -> Any:
        x = a.read(w)
        mine = a.mask(w)
        if not isinstance(x, np.ndarray):
            return mine if bool(x) is stop else either(mine, b.mask(w))
        other = _under(w, ~x if stop else x, b.mask)
        return either(mine, None if other is None else other & (~x if stop else x))

    return Value(read, undefined if union(a, b) else None, BOOL)


def _under(w: Warp, mask: Any, read: Read) -> Any:
    """`read` with the warp's mask narrowed, so that what the other lanes would do is not reported."""
    saved, full = w.mask, w.full
    w.mask, w.full = saved & mask, False
    try:
        return read(w)
    finally:
        w.mask, w.full = saved, full


def _compare(s: Scope, e: Compare) -> Value:
    a, b = s.value(e.a), s.value(e.b)
    fn, x, y = scalars.compare(e.op, e.a.dtype), a.read, b.read
    return Value(lambda w: fn(x(w), y(w)), union(a, b), BOOL)


def _select(s: Scope, e: Select) -> Value:
    c, a, b = s.value(e.cond), s.value(e.a), s.value(e.b)
    container = e.dtype.numpy

    def read(w: Warp) -> Any:
        chosen = c.read(w)
        if not isinstance(chosen, np.ndarray):
            return a.read(w) if chosen else b.read(w)
        return np.where(chosen, _under(w, chosen, a.read), _under(w, ~chosen, b.read)).astype(container, copy=False)

    def undefined(w: Warp) -> Any:
        chosen = c.read(w)
        mine = c.mask(w)
        if not isinstance(chosen, np.ndarray):
            return either(mine, a.mask(w) if chosen else b.mask(w))
        x, y = a.mask(w), b.mask(w)
        found = either(None if x is None else x & chosen, None if y is None else y & ~chosen)
        return either(mine, found)

    return Value(read, undefined if union(c, a, b) else None, e.dtype)


def _cast(s: Scope, e: Cast) -> Value:
    a, fn = s.value(e.a), scalars.converter(e.a.dtype, e.dtype, e.saturate)
    read = a.read
    return Value(lambda w: fn(read(w)), a.undefined, e.dtype)


def _bitcast(s: Scope, e: Bitcast) -> Value:
    a, fn = s.value(e.a), scalars.bitcaster(e.a.dtype, e.dtype)
    read = a.read
    return Value(lambda w: fn(read(w)), a.undefined, e.dtype)


def _call(s: Scope, e: Call) -> Value:
    args = [s.value(a) for a in e.args]
    fn, readers = call(e), [a.read for a in args]
    return Value(lambda w: fn(*[r(w) for r in readers]), union(*args), e.dtype)


def _load(s: Scope, e: Load) -> Value:
    buffer = e.buffer
    if buffer.space in ("shared", "global", "barrier"):
        raise InternalError(f"{buffer.name} is not a register buffer: memory is read by LoadMem at thread level")
    slot, index = s.register(buffer), flat_index(s, buffer, e.indices)
    number = index.read

    def read(w: Warp) -> Any:
        rf, i = w.regs[slot], number(w)
        if type(i) is not int:
            return _gather(w, rf, i)
        if not 0 <= i < rf.extent:
            register_rows(w, rf, i, 1)
        if rf.writing is not None:
            check_register_read(w, rf, i, 1)
        return rf.data[i]

    def undefined(w: Warp) -> Any:
        rf, i = w.regs[slot], number(w)
        defined = rf.defined[i] if type(i) is int else rf.defined[np.clip(i, 0, rf.extent - 1), w.lane_ids]
        return None if defined.all() else ~defined

    return Value(read, undefined, e.dtype)


def _gather(w: Warp, rf: RegFile, index: Any) -> Any:
    """A register chosen lane by lane: legal for private arrays, which the device keeps in local memory."""
    bad = ((index < 0) | (index >= rf.extent)) & w.mask
    if bad.any():
        raise fault(
            w,
            "bounds",
            f"index {int(index[bad][0])} of {rf.buffer.name!r}, which has {rf.extent} elements",
            rule="register numbers lie inside their buffer",
            lanes=bad,
        )
    return rf.data[np.clip(index, 0, rf.extent - 1), w.lane_ids]


MAKERS: dict[type, Maker] = {
    Const: _const,
    Var: _var,
    Special: _special,
    Unary: _unary,
    Binary: _binary,
    Compare: _compare,
    Select: _select,
    Cast: _cast,
    Bitcast: _bitcast,
    Call: _call,
    Load: _load,
}
