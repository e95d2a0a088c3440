"""Statements on registers and scalars: Let, register writes, Alloc, Eval, Assert and Print."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import InternalError, SimulationError
from ...ir.stmt import Alloc, Assert, Eval, Let, Print, Store
from . import scalars
from .faults import fault
from .flow import PLAIN, Code
from .memory import check_defined
from .registers import check_register_write, register_rows
from .values import flat_index
from .warp import Warp

if TYPE_CHECKING:
    from .program import Program


def let(p: Program, s: Let) -> Code:
    """Let: the value and its definedness are bound when the statement is reached."""
    value, slot = p.scope.value(s.value), p.scope.slot(s.var)
    read, undefined = value.read, value.undefined

    def run(w: Warp) -> None:
        w.at = s
        got = read(w)
        w.env[slot] = got.copy() if isinstance(got, np.ndarray) else got
        if undefined is not None:
            w.undefined[slot] = undefined(w)

    return PLAIN, run


def store(p: Program, s: Store) -> Code:
    """A register write. Only executing lanes change."""
    buffer = s.buffer
    if buffer.space in ("shared", "global", "barrier"):
        raise InternalError(f"{buffer.name} is not a register buffer: memory is written by StoreMem", loc=s.loc)
    slot, index, value = p.scope.register(buffer), flat_index(p.scope, buffer, s.indices), p.scope.value(s.value)
    convert = None if value.dtype is buffer.dtype else scalars.converter(value.dtype, buffer.dtype, False)
    number, read, undefined = index.read, value.read, value.undefined

    def run(w: Warp) -> None:
        w.at = s
        rf, i = w.regs[slot], number(w)
        got = read(w) if convert is None else convert(read(w))
        bad = undefined(w) if undefined is not None else None
        if type(i) is not int:
            _scatter(w, rf, i, got, bad)
            return
        if not 0 <= i < rf.extent:
            register_rows(w, rf, i, 1)
        if rf.writing is not None:
            check_register_write(w, rf, i, 1)
        if w.full:
            rf.data[i] = got
            rf.defined[i] = True if bad is None else ~bad
        else:
            np.copyto(rf.data[i], got, where=w.mask, casting="unsafe")
            np.copyto(rf.defined[i], True if bad is None else ~bad, where=w.mask)

    return PLAIN, run


def _scatter(w: Warp, rf: Any, index: Any, got: Any, bad: Any) -> None:
    lanes = w.active()
    wrong = (index[lanes] < 0) | (index[lanes] >= rf.extent)
    if wrong.any():
        raise fault(
            w,
            "bounds",
            f"index {int(index[lanes][wrong][0])} of {rf.buffer.name!r}, which has {rf.extent} elements",
            rule="register numbers lie inside their buffer",
            lanes=lanes[wrong],
        )
    rf.data[index[lanes], lanes] = got[lanes] if isinstance(got, np.ndarray) else got
    rf.defined[index[lanes], lanes] = True if bad is None else ~bad[lanes]


def alloc(p: Program, s: Alloc) -> Code:
    """Alloc: the registers hold nothing any more. A tensor at an address from a table is refused."""
    if s.buffer.attr("address") is not None:
        raise SimulationError(
            f"`{s.buffer.name}` stands at an address from a table",
            rule="the thread machine reaches tensors that are passed, not addresses",
            loc=s.loc,
        )
    slot = p.scope.register(s.buffer)

    def run(w: Warp) -> None:
        w.regs[slot].defined[:] = False

    return PLAIN, run


def evaluate(p: Program, s: Eval) -> Code:
    value = p.scope.value(s.value)
    return PLAIN, lambda w: value.read(w)


def check(p: Program, s: Assert) -> Code:
    """Assert: a fault names the lanes that fail."""
    cond = p.scope.value(s.cond)

    def run(w: Warp) -> None:
        w.at = s
        check_defined(w, cond.undefined, "an asserted condition")
        fails = np.logical_not(cond.read(w)) & w.mask
        if fails.any():
            raise fault(w, "assert", f"assertion failed: {s.message}" if s.message else "assertion failed", lanes=fails)

    return PLAIN, run


def show(p: Program, s: Print) -> Code:
    """Print: one event a lane, in lane order."""
    parts = [part if isinstance(part, str) else p.scope.value(part) for part in s.parts]

    def run(w: Warp) -> None:
        columns = [part if isinstance(part, str) else part.read(w) for part in parts]
        for lane in w.active():
            row = [c if isinstance(c, str) else str(c[lane] if isinstance(c, np.ndarray) else c) for c in columns]
            w.block.event(w, "print", s, text="".join(row), lane=int(lane))

    return PLAIN, run
