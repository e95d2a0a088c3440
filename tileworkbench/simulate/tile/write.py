"""Stores of elements and tiles. Several points that store to one element must agree on the value."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...errors import Loc, SimulationError
from .access import boxed, extent_of, in_range, is_affine, positions, refuse_outside, view
from .affine import Affine, boxes
from .state import State
from .storage import Slot, own, settle, shadow


def store(st: State, slot: Slot, indices: list[Any], value: Any, loc: Loc | None, undefined: Any = None) -> None:
    """Stores `value` (in the container of the buffer's dtype) at `indices` for every active point."""
    if st.mask is False:
        return
    if slot.lead == 0:
        _put(st, slot, slot.array, indices, value, loc)
        if slot.unwritten is not None:
            _put(st, slot, slot.unwritten, indices, False, loc, agree=False)
        return
    if slot.private and st.rank > slot.lead:
        _spread(st, slot)
    array = own(slot, _lead_sizes(st, slot, indices, value))
    _put(st, slot, array, indices, value, loc)
    if undefined is not None or slot.undefined is not None:
        _put(st, slot, shadow(slot), indices, False if undefined is None else undefined, loc, agree=False)
        settle(slot)


def replace(st: State, slot: Slot, value: Any, keep: bool, undefined: Any = None) -> None:
    """Makes `value` (machine axes, then the tile's own) the whole contents. `keep`: nobody will change it later."""
    value = np.asarray(value)
    if value.ndim == 0:
        value = value.reshape((1,) * (slot.lead + len(slot.shape)))
    full = value.shape[: slot.lead] + slot.shape
    whole = value.shape == full
    if keep and value.dtype == slot.array.dtype:
        slot.array, slot.owned = (value, value.flags.owndata) if whole else (np.broadcast_to(value, full), False)
    else:
        slot.array = np.array(np.broadcast_to(value, full), dtype=slot.array.dtype)
        slot.owned = True
    slot.undefined = undefined if undefined is None else np.broadcast_to(undefined, full)


def release_private(st: State, slots: list[Slot]) -> None:
    """Ends the spread of thread-private buffers over a T.Parallel: a value that differs between its iterations has no
    meaning after it."""
    for slot in slots:
        extra = slot.array.shape[st.base : slot.lead]
        keep = slot.array.shape[: st.base] + slot.shape
        if all(n == 1 for n in extra):
            slot.array = slot.array.reshape(keep)
            if isinstance(slot.undefined, np.ndarray):
                slot.undefined = slot.undefined.reshape(keep)
        else:
            slot.array, slot.undefined = np.zeros(keep, slot.array.dtype), True
        slot.lead = st.base


def _spread(st: State, slot: Slot) -> None:
    shape = slot.array.shape
    lead = shape[: slot.lead] + (1,) * (st.rank - slot.lead)
    slot.array = slot.array.reshape(lead + slot.shape)
    if isinstance(slot.undefined, np.ndarray):
        slot.undefined = np.broadcast_to(slot.undefined, shape).reshape(lead + slot.shape)
    slot.owned = False
    slot.lead = st.rank
    st.spread.append(slot)


def _lead_sizes(st: State, slot: Slot, indices: list[Any], value: Any) -> tuple[int, ...]:
    """Extents of a private copy: all blocks; threads and T.Parallel loops only where the store differs along them."""
    sizes = list(st.sizes[: slot.lead])
    shapes = [v.shape for v in (value, st.mask, *indices) if isinstance(v, np.ndarray) and v.ndim]
    shapes += [i.sizes for i in indices if isinstance(i, Affine)]
    for axis in range(st.base - 1, slot.lead):
        varies = slot.private and any(shape[axis] > 1 for shape in shapes)
        sizes[axis] = st.sizes[axis] if varies else 1
    return tuple(sizes)


def _put(
    st: State, slot: Slot, array: np.ndarray, indices: list[Any], value: Any, loc: Loc | None, agree: bool = True
) -> None:
    if is_affine(indices) and _injective(indices):
        if in_range(indices, slot.shape):
            if _assign(view(array, slot.lead, indices, st.rank), value, st.mask):
                return
        elif slot.lead == 0 and (cut := boxes(indices, slot.shape, extent_of(st, slot, indices))) is not None:
            shape = extent_of(st, slot, indices)
            if _fits(value, shape) and _fits(st.mask, shape):
                for box in cut:
                    target = view(array, 0, boxed(indices, box), st.rank)
                    _assign(target, _part(value, box), _part(st.mask, box))
                return
    _scatter(st, slot, array, indices, value, loc, agree)


def _fits(value: Any, shape: tuple[int, ...]) -> bool:
    if not isinstance(value, np.ndarray) or not value.ndim:
        return True
    return value.ndim == len(shape) and all(a in (1, b) for a, b in zip(value.shape, shape, strict=True))


def _assign(target: np.ndarray, value: Any, mask: Any) -> bool:
    if not (_fits(value, target.shape) and _fits(mask, target.shape)):
        return False
    np.copyto(target, value, casting="unsafe", where=mask)
    return True


def _part(value: Any, box: Any) -> Any:
    if not isinstance(value, np.ndarray) or value.ndim == 0:
        return value
    return value[tuple(slice(a, b) if n > 1 else slice(None) for (a, b), n in zip(box, value.shape, strict=True))]


def _injective(indices: list[Any]) -> bool:
    """Different points reach different elements: every axis moves one index only, and within an index the steps are
    those of a mixed radix."""
    used: set[int] = set()
    for index in indices:
        if type(index) is int:
            continue
        moves = sorted((abs(s), n, a) for a, (s, n) in enumerate(zip(index.steps, index.sizes, strict=True)) if s)
        reach = 0
        for step, size, axis in moves:
            if axis in used or step <= reach:
                return False
            used.add(axis)
            reach += step * (size - 1)
    return True


def _scatter(
    st: State, slot: Slot, array: np.ndarray, indices: list[Any], value: Any, loc: Loc | None, agree: bool
) -> None:
    at, valid = positions(slot, indices, st.rank)
    if valid is not True and slot.lead:
        refuse_outside(st, slot, indices, valid, loc)
    points = [v for v in (value, st.mask, valid) if isinstance(v, np.ndarray) and v.ndim]
    shape = np.broadcast_shapes(*(a.shape for a in (*at, *points)))
    active = np.logical_and(valid, st.mask)
    values = np.broadcast_to(np.asarray(value).astype(array.dtype, copy=False), shape)
    if np.all(active):
        where = tuple(np.broadcast_to(a, shape) for a in at)
    else:
        active = np.broadcast_to(active, shape)
        where = tuple(np.broadcast_to(a, shape)[active] for a in at)
        values = values[active]
    array[where] = values
    if agree:
        _agree(slot, array, where, values, loc)


def _agree(slot: Slot, array: np.ndarray, where: Any, values: np.ndarray, loc: Loc | None) -> None:
    """What was written must be there: else a later point overwrote an earlier one with another value."""
    there = array[where]
    differ = there != values
    if differ.any() and values.dtype.kind not in "iub":
        differ &= ~(np.isnan(there) & np.isnan(values))
    if not differ.any():
        return
    first = tuple(np.argwhere(differ)[0])
    place = tuple(int(w[first]) for w in where[slot.lead :])
    raise SimulationError(
        f"`{slot.buffer.name}[{', '.join(map(str, place))}]` is written with {values[first]} and with {there[first]} "
        "by different iterations",
        rule="iterations that run at the same time may write one element only with one value",
        fix="give every iteration its own element, or use T.atomic_add",
        loc=loc,
    )
