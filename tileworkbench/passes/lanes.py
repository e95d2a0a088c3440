"""May the lanes of a vector loop be done side by side, each access for all lanes at once, and in which order?

A wide form does the loads first, then the computation lane by lane, then the stores. That is the loop's meaning as long
as no statement needs what an earlier one of the same form has changed; where one does, another form begins."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from ..ir.arith import Facts, coefficient
from ..ir.expr import Buffer, Expr, Load, Var, same
from ..ir.instr import AtomicMem, LoadMem, Reg, StoreMem
from ..ir.node import walk
from ..ir.stmt import Stmt, Store

Access = LoadMem | StoreMem | AtomicMem


def may_be_wide(s: Stmt) -> bool:
    """An access that lanes may make together; an atomic only where it orders nothing and gives nothing back."""
    if isinstance(s, AtomicMem):
        return s.op == "add" and s.old is None and s.order == "relaxed"
    return isinstance(s, (LoadMem, StoreMem))


def registers(s: Access) -> Reg:
    """Where an access takes its values from or puts them."""
    return s.dst if isinstance(s, LoadMem) else s.value if isinstance(s, AtomicMem) else s.src


@dataclass
class Form:
    """Loads, then computation, then stores."""

    loads: list[LoadMem] = field(default_factory=list)
    middle: list[Store] = field(default_factory=list)
    stores: list[StoreMem | AtomicMem] = field(default_factory=list)


def forms(body: tuple[Stmt, ...], lane: Var, facts: Facts, *, ordered: bool) -> tuple[Form, ...] | None:
    """The straight-line body as forms in order; None when a lane must be finished before the next begins. `ordered`:
    the lanes are trips of a serial loop, so what one stores another may read."""
    if ordered and not _apart(body, lane, facts):
        return None
    made = [Form()]
    for s in body:
        if _needs_new(s, made[-1]):
            made.append(Form())
        if isinstance(s, LoadMem):
            made[-1].loads.append(s)
        elif isinstance(s, (StoreMem, AtomicMem)):
            made[-1].stores.append(s)
        elif isinstance(s, Store):
            made[-1].middle.append(s)
    shared = _kept(body, lane)
    where = {b for f in made for accesses in (f.loads, f.stores) for s in accesses for b in _asked(s)}
    if shared & where or ((shared or ordered) and len(made) > 1):
        return None
    return tuple(made)


def _needs_new(s: Stmt, form: Form) -> bool:
    written = {m.buffer for m in form.middle}
    if isinstance(s, LoadMem):
        stored = any(t.dst.buffer is s.src.buffer for t in form.stores)
        used = {n.buffer for m in form.middle for n in walk(m.value) if isinstance(n, Load)}
        return stored or bool(written & set(_asked(s))) or s.dst.buffer in written | used
    if isinstance(s, Store):
        return any(s.buffer in (*_asked(t), registers(t).buffer) for t in form.stores)
    return False


def _asked(s: Access) -> Iterator[Buffer]:
    """Registers that say where or whether an access happens, or what stands in for it."""
    place = s.src.offset if isinstance(s, LoadMem) else s.dst.offset
    fill = s.fill if isinstance(s, LoadMem) else None
    for e in (place, s.pred, fill):
        if isinstance(e, Expr):
            yield from (n.buffer for n in walk(e) if isinstance(n, Load))


def _kept(body: tuple[Stmt, ...], lane: Var) -> set[Buffer]:
    """Registers that all lanes write: each lane needs its own value before the next one replaces it."""
    stores = (s for s in body if isinstance(s, Store))
    return {s.buffer for s in stores if not any(coefficient(i, lane) for i in s.indices)}


def _apart(body: tuple[Stmt, ...], lane: Var, facts: Facts) -> bool:
    """No lane touches what another one stores, except by one store that all of them do in order."""
    places: dict[Buffer, list[Expr]] = {}
    stored: set[Buffer] = set()
    for s in body:
        if isinstance(s, LoadMem):
            places.setdefault(s.src.buffer, []).append(facts.simplify(s.src.offset))
        elif isinstance(s, (StoreMem, AtomicMem)):
            places.setdefault(s.dst.buffer, []).append(facts.simplify(s.dst.offset))
            stored.add(s.dst.buffer)
    return all(_one_place(places[buffer], lane) for buffer in stored)


def _one_place(offsets: list[Expr], lane: Var) -> bool:
    """One access alone, or several at the same place, which differs from lane to lane."""
    first, *others = offsets
    return not others or (bool(coefficient(first, lane)) and all(same(first, other) for other in others))
