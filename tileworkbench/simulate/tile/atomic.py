"""Atomic updates of single elements, inside T.Parallel or thread-level code."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import SimulationError
from ...ir.expr import Const
from .access import positions, refuse_outside
from .arithmetic import as_array, dense
from .rounding import convert, widen
from .state import State
from .storage import Slot, own, shadow
from .taint import refuse, undefined_of
from .write import store

if TYPE_CHECKING:
    from ...ops.atomic_element import AtomicElement
    from .program import Program

UPDATES: dict[str, np.ufunc] = {
    "add": np.add,
    "sub": np.subtract,
    "max": np.fmax,
    "min": np.fmin,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
}


def compile_atomic(s: AtomicElement, depth: int, program: Program) -> Callable[[State], None]:
    """An atomic update of one element, by every active point."""
    value, tainted = program.expression(s.value, depth), program.taint(s.value, depth)
    indices = [program.expression(i, depth) for i in s.indices]
    addresses = [(program.taint(i, depth), i) for i in s.indices if not isinstance(i, Const)]
    to, source = s.buffer.dtype, s.value.dtype

    def run(st: State) -> None:
        at = [i(st) for i in indices]
        for check, index in addresses:
            refuse(st, check, index, "an address", s.loc)
        refuse(st, tainted, s.value, "an atomic update", s.loc)
        v = as_array(convert(dense(value(st), source), source, to, saturate=True), to)
        slot = st.slot(s.buffer, write=True)
        if slot.lead:
            own(slot, tuple(n if a < st.base - 1 else 1 for a, n in enumerate(st.sizes[: slot.lead])))
        # Every point updates once, also where nothing depends on its axis; inside T.Parallel threads are no axis.
        points = (*st.sizes[: st.base - 1], 1, *st.sizes[st.base :]) if depth else st.sizes
        old = update(st, slot, s.kind, at, v, s.loc, points, wants_old=s.old is not None)
        if s.old is not None:
            target = st.slot(s.old, write=True)
            zero: list[Any] = [0] * len(target.shape)
            store(st, target, zero, convert(old, to, s.old.dtype), s.loc)

    return run


def update(
    st: State,
    slot: Slot,
    kind: str,
    at: list[Any],
    value: Any,
    loc: Any,
    every: tuple[int, ...],
    wants_old: bool = False,
) -> np.ndarray | None:
    """Combines every active point's value into its element, in some order; what each found there, if wanted. `every`:
    extents of the points."""
    index, valid = positions(slot, at, st.rank)
    if valid is not True and slot.lead:
        refuse_outside(st, slot, at, valid, loc)
    points = [np.asarray(v) for v in (value, st.mask, valid) if np.ndim(v)]
    shape = np.broadcast_shapes(every, *(a.shape for a in (*index, *points)))
    active = np.broadcast_to(np.logical_and(valid, st.mask), shape)
    where = tuple(np.broadcast_to(a, shape)[active] for a in index)
    values = np.broadcast_to(value, shape)[active].astype(slot.array.dtype)
    if kind != "store" and slot.undefined is not None and undefined_of(slot)[where].any():
        raise SimulationError(
            f"an atomic update of an element of `{slot.buffer.name}` that was never written",
            rule="an atomic update reads the old value",
            fix=f"clear `{slot.buffer.name}` first",
            loc=loc,
        )
    if slot.lead and slot.undefined is not None:
        shadow(slot)
    found = _combine(slot, UPDATES.get(kind), kind, where, values, loc, wants_old)
    if kind == "store" and isinstance(slot.undefined, np.ndarray):
        slot.undefined[where] = False
    if slot.unwritten is not None and kind != "load":
        slot.unwritten[where] = False
    if found is None:
        return None
    old = np.zeros(shape, slot.array.dtype)
    old[active] = found
    return widen(old, slot.buffer.dtype) if slot.narrow else old


def _combine(
    slot: Slot, fn: np.ufunc | None, kind: str, where: Any, values: np.ndarray, loc: Any, wants_old: bool
) -> np.ndarray | None:
    if fn is not None and not wants_old:
        fn.at(slot.array, where, values)
        return None
    if kind == "load":
        loaded: np.ndarray = slot.array[where]
        return loaded
    if fn is None and kind not in ("exch", "exchange", "store"):
        raise SimulationError(f"atomic {kind} has no meaning on the CPU target", rule="add, max, min, …", loc=loc)
    # One at a time, in the order of the iterations: the old values are those of that order.
    found = np.empty_like(values)
    for n, (place, v) in enumerate(zip(zip(*where, strict=True), values, strict=True)):
        found[n] = slot.array[place]
        slot.array[place] = v if fn is None else fn(found[n], v)
    return found
