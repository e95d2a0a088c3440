"""A thread kernel compiled for the machine: control flow and instructions as closures over a warp.

A compiled statement is (kind, function). PLAIN functions touch only the warp's own registers; a POINT is preceded by a
place where the scheduler may switch warps; a FLOW is a generator (control flow around points, or a row that can block).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from ...errors import InternalError
from ...ir.expr import Buffer
from ...ir.instr import Elect, Reg, Wgmma
from ...ir.kernel import Kernel
from ...ir.node import walk
from ...ir.planned import Role
from ...ir.stmt import Alloc, Assert, Break, Continue, Eval, For, If, Let, Print, Stmt, Store, While
from . import scalars
from .faults import fault
from .memory import check_defined, shared_layout
from .values import Scope, check_register_write, flat_index, register_rows
from .warp import Warp

PLAIN, POINT, FLOW = 0, 1, 2
Code = tuple[int, Callable[[Warp], Any]]
Maker = Callable[["Program", Any], Callable[[Warp], Any]]


def wgmma_buffers(kernel: Kernel) -> frozenset[Buffer]:
    """Register buffers that a wgmma names: their registers are watched while it is in flight."""
    found = set()
    for n in walk(kernel.body):
        if isinstance(n, Wgmma):
            found.update(r.buffer for r in (n.d, n.a) if isinstance(r, Reg))
    return frozenset(found)


class Program:
    """`rows` maps an instruction class to (kind, maker). `statements` numbers what touches memory, for race reports."""

    def __init__(self, kernel: Kernel, lanes: int, rows: dict[type, tuple[int, Maker]]) -> None:
        self.kernel, self.lanes, self.rows = kernel, lanes, rows
        self.layout = shared_layout(kernel)
        self.scope = Scope(lanes, wgmma_buffers(kernel))
        self.statements: list[Stmt] = []
        self.maps = {m.name: m for m in kernel.maps}
        for n in walk(kernel.body):
            if isinstance(n, (Let, For)):  # which variables may be undefined must be known before their uses
                self._note_undefined(n)
        self.code = self.body(kernel.body)

    def _note_undefined(self, n: Any) -> None:
        if isinstance(n, Let) and self.scope.value(n.value).undefined is not None:
            self.scope.maybe_undefined.add(n.var)

    def number(self, s: Stmt) -> int:
        """The statement's number in race records."""
        self.statements.append(s)
        return len(self.statements) - 1

    # --- bodies -----------------------------------------------------------------------------------------------------
    def body(self, stmts: tuple[Stmt, ...]) -> Code:
        """One function that runs the statements in order."""
        items = [self.statement(s) for s in stmts]
        leaves = any(isinstance(n, (Break, Continue)) for s in stmts for n in walk(s))
        if all(kind == PLAIN for kind, _ in items):
            return PLAIN, _plain_body([fn for _, fn in items], leaves)
        return FLOW, _flow_body(items, leaves)

    def statement(self, s: Stmt) -> Code:
        maker = _STATEMENTS.get(type(s))
        if maker is not None:
            return maker(self, s)
        if type(s) not in self.rows:
            raise InternalError(f"the thread machine has no row for {type(s).__name__}", loc=s.loc)
        kind, make = self.rows[type(s)]
        inner = make(self, s)
        if kind == FLOW:
            return FLOW, _located_flow(s, inner)

        def run(w: Warp) -> None:
            w.at = s
            inner(w)

        return kind, run


def _located_flow(s: Stmt, inner: Callable[[Warp], Iterator[Any]]) -> Callable[[Warp], Iterator[Any]]:
    def run(w: Warp) -> Iterator[Any]:
        w.at = s
        return inner(w)

    return run


def _plain_body(fns: list[Callable[[Warp], Any]], leaves: bool) -> Callable[[Warp], None]:
    def run(w: Warp) -> None:
        for fn in fns:
            fn(w)
            if leaves and not w.any:
                return

    return run


def _flow_body(items: list[Code], leaves: bool) -> Callable[[Warp], Iterator[Any]]:
    def run(w: Warp) -> Iterator[Any]:
        for kind, fn in items:
            if kind == PLAIN:
                fn(w)
            elif kind == POINT:
                yield None
                fn(w)
            else:
                yield from fn(w)
            if leaves and not w.any:
                return

    return run


def enter(code: Code, w: Warp) -> Iterator[Any]:
    """Runs a body from a generator, whatever its kind."""
    kind, fn = code
    if kind == FLOW:
        yield from fn(w)
    else:
        fn(w)


# --- branches ---------------------------------------------------------------------------------------------------------
def _if(p: Program, s: If) -> Code:
    cond = p.scope.value(s.cond)
    then, other = p.body(s.then), p.body(s.orelse)

    def split(w: Warp) -> Any:
        w.at = s
        check_defined(w, cond.undefined, "the condition of a branch")
        return cond.read(w)

    if then[0] == PLAIN and other[0] == PLAIN:

        def plain(w: Warp) -> None:
            for code in _sides(w, split(w), then, other):
                code[1](w)

        return PLAIN, plain

    def flow(w: Warp) -> Iterator[Any]:
        for code in _sides(w, split(w), then, other):
            yield from enter(code, w)

    return FLOW, flow


def _sides(w: Warp, taken: Any, then: Code, other: Code) -> Iterator[Code]:
    """The sides to run, with the mask set for each; lanes that left the loop meanwhile stay off."""
    if not isinstance(taken, np.ndarray):
        yield then if taken else other
        return
    saved = w.mask
    for code, mask in ((then, saved & taken), (other, saved & ~taken)):
        if mask.any():
            w.set_mask(mask)
            yield code
    w.set_mask(saved if w.dead is None else saved & ~w.dead)


def _elect(p: Program, s: Elect) -> Code:
    code = p.body(s.body)

    def flow(w: Warp) -> Iterator[Any]:
        w.at = s
        first = {"warp": w.index, "role": w.role_first, "block": 0}[s.who]
        if w.index != first:
            return
        if not w.full:
            raise fault(
                w,
                "divergent",
                "the warp elects a lane while some of its lanes are elsewhere",
                rule="all lanes of a warp take part in an election",
            )
        saved = w.mask
        mask = np.zeros(w.lanes, dtype=bool)
        mask[w.leader()] = True
        w.set_mask(mask)
        yield from enter(code, w)
        w.set_mask(saved if w.dead is None else saved & ~w.dead)

    return FLOW, flow


# --- loops ------------------------------------------------------------------------------------------------------------
def _for(p: Program, s: For) -> Code:
    slot = p.scope.slot(s.var)
    bounds = [p.scope.value(e) for e in (s.start, s.stop, s.step)]
    code = p.body(s.body)

    def trips(w: Warp) -> Iterator[None]:
        w.at = s
        for b in bounds:
            check_defined(w, b.undefined, "a bound of the loop")
        start, stop, step = (b.read(w) for b in bounds)
        saved, outer = w.mask, (w.dead, w.left)
        w.left = None
        try:
            if all(type(x) is int for x in (start, stop, step)):
                for i in range(start, stop, step):
                    w.env[slot] = i
                    if not _begin_trip(w, saved):
                        return
                    yield
            else:
                yield from _lane_trips(w, slot, saved, start, stop, step)
        finally:
            w.dead, w.left = outer
            w.set_mask(saved if w.dead is None else saved & ~w.dead)

    return _loop(code, trips)


def _begin_trip(w: Warp, mask: Any) -> bool:
    """Switches on the lanes that have not left the loop; counts the trip."""
    w.block.tick(w)
    w.dead = None
    if w.left is not None:
        mask = mask & ~w.left
        w.dead = w.left.copy()
    if mask is not w.mask:
        w.set_mask(mask)
    return w.left is None or w.any


def _lane_trips(w: Warp, slot: int, saved: Any, start: Any, stop: Any, step: Any) -> Iterator[None]:
    """Trips of a loop whose bounds differ between lanes: lanes that are through are switched off."""
    i = np.broadcast_to(np.asarray(start), saved.shape).astype(np.int64)
    up = np.asarray(step) > 0
    while True:
        inside = saved & np.where(up, i < stop, i > stop)
        if not inside.any():
            return
        w.env[slot] = i.astype(np.int32)
        if not _begin_trip(w, inside):
            return
        yield
        i = i + step


def _while(p: Program, s: While) -> Code:
    cond, code = p.scope.value(s.cond), p.body(s.body)

    def trips(w: Warp) -> Iterator[None]:
        saved, outer = w.mask, (w.dead, w.left)
        w.left, inside = None, saved
        try:
            while _begin_trip(w, inside):
                w.at = s
                check_defined(w, cond.undefined, "the condition of a loop")
                holds = cond.read(w)
                if not isinstance(holds, np.ndarray):
                    if not holds:
                        return
                else:
                    inside = inside & holds if w.left is None else inside & holds & ~w.left
                    if not inside.any():
                        return
                    w.set_mask(inside)
                yield
        finally:
            w.dead, w.left = outer
            w.set_mask(saved if w.dead is None else saved & ~w.dead)

    return _loop(code, trips)


def _loop(code: Code, trips: Callable[[Warp], Iterator[None]]) -> Code:
    kind, fn = code
    if kind == PLAIN:

        def plain(w: Warp) -> None:
            for _ in trips(w):
                fn(w)

        return PLAIN, plain

    def flow(w: Warp) -> Iterator[Any]:
        for _ in trips(w):
            yield from fn(w)

    return FLOW, flow


def _break(p: Program, s: Break) -> Code:
    def run(w: Warp) -> None:
        w.left = w.mask.copy() if w.left is None else w.left | w.mask
        _continue_lanes(w)

    return PLAIN, run


def _continue(p: Program, s: Continue) -> Code:
    return PLAIN, _continue_lanes


def _continue_lanes(w: Warp) -> None:
    w.dead = w.mask.copy() if w.dead is None else w.dead | w.mask
    w.set_mask(np.zeros(w.lanes, dtype=bool))


# --- scalars ----------------------------------------------------------------------------------------------------------
def _let(p: Program, s: Let) -> Code:
    value, slot = p.scope.value(s.value), p.scope.slot(s.var)
    read, undefined = value.read, value.undefined

    def run(w: Warp) -> None:
        w.at = s
        got = read(w)
        w.env[slot] = got.copy() if isinstance(got, np.ndarray) else got
        if undefined is not None:
            w.undefined[slot] = undefined(w)

    return PLAIN, run


def _store(p: Program, s: Store) -> Code:
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


def _alloc(p: Program, s: Alloc) -> Code:
    slot = p.scope.register(s.buffer)

    def run(w: Warp) -> None:
        w.regs[slot].defined[:] = False

    return PLAIN, run


def _eval(p: Program, s: Eval) -> Code:
    value = p.scope.value(s.value)
    return PLAIN, lambda w: value.read(w)


def _assert(p: Program, s: Assert) -> Code:
    cond = p.scope.value(s.cond)

    def run(w: Warp) -> None:
        w.at = s
        check_defined(w, cond.undefined, "an asserted condition")
        fails = np.logical_not(cond.read(w)) & w.mask
        if fails.any():
            raise fault(w, "assert", f"assertion failed: {s.message}" if s.message else "assertion failed", lanes=fails)

    return PLAIN, run


def _print(p: Program, s: Print) -> Code:
    parts = [part if isinstance(part, str) else p.scope.value(part) for part in s.parts]

    def run(w: Warp) -> None:
        columns = [part if isinstance(part, str) else part.read(w) for part in parts]
        for lane in w.active():
            row = [c if isinstance(c, str) else str(c[lane] if isinstance(c, np.ndarray) else c) for c in columns]
            w.block.event(w, "print", s, text="".join(row), lane=int(lane))

    return PLAIN, run


# --- roles ------------------------------------------------------------------------------------------------------------
def _role(p: Program, s: Role) -> Code:
    code = p.body(s.body)

    def flow(w: Warp) -> Iterator[Any]:
        if not s.first_warp <= w.index < s.first_warp + s.warps:
            return
        before = (w.role, w.role_first, w.role_threads, w.role_size)
        w.role, w.role_first, w.role_size = s.name, s.first_warp, s.warps * w.lanes
        w.role_threads = w.threads - np.int32(s.first_warp * w.lanes)
        yield from enter(code, w)
        w.role, w.role_first, w.role_threads, w.role_size = before

    return FLOW, flow


_STATEMENTS: dict[type, Callable[[Program, Any], Code]] = {
    For: _for,
    While: _while,
    Break: _break,
    Continue: _continue,
    If: _if,
    Elect: _elect,
    Let: _let,
    Store: _store,
    Alloc: _alloc,
    Eval: _eval,
    Assert: _assert,
    Print: _print,
    Role: _role,
}
