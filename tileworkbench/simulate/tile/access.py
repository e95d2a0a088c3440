"""Where elements lie: strided views for affine index maps, gathers for the others; loads.

Out of range: a global tensor reads 0 (and drops stores) there, as TileLang's bounds predicates do; anywhere else it is
the user's mistake if an active point does it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...errors import Loc, SimulationError
from .affine import Affine, boxes, low_high
from .rounding import widen
from .state import State
from .storage import Slot

_strided = np.lib.stride_tricks.as_strided


def view(array: np.ndarray, lead: int, indices: list[Any], rank: int) -> np.ndarray:
    """The elements at in-range affine indices, as a view over `rank` axes (extent 1 where nothing varies)."""
    shape = [*array.shape[:lead], *(1,) * (rank - lead)]
    strides = [*array.strides[:lead], *(0,) * (rank - lead)]
    offset = 0
    for d, index in enumerate(indices):
        pitch = array.strides[lead + d]
        if type(index) is int:
            offset += index * pitch
            continue
        offset += index.base * pitch
        for axis, step in enumerate(index.steps):
            if step:
                if axis < lead and shape[axis] == 1:
                    strides[axis] = 0
                shape[axis] = max(shape[axis], index.sizes[axis])
                strides[axis] += step * pitch
    if array.flags.c_contiguous and array.dtype.kind != "V":  # arrays of NumPy's own dtypes take a short way
        return np.ndarray(shape, array.dtype, array, offset, strides)
    first = [0] * lead + [i if type(i) is int else i.base for i in indices]
    return _strided(array[tuple(slice(i, i + 1) for i in first)], shape, strides)


def is_affine(indices: list[Any]) -> bool:
    return all(type(i) is int or isinstance(i, Affine) for i in indices)


def in_range(indices: list[Any], extents: tuple[int, ...]) -> bool:
    """Whether affine indices lie inside the extents everywhere."""
    for index, extent in zip(indices, extents, strict=True):
        low, high = low_high(index)
        if low < 0 or high >= extent:
            return False
    return True


def load(st: State, slot: Slot, indices: list[Any], loc: Loc | None, array: np.ndarray | None = None) -> np.ndarray:
    """The elements at `indices`, over the state's axes. `array` reads a shadow in the slot's place."""
    source = slot.array if array is None else array
    affine = is_affine(indices)
    if affine and in_range(indices, slot.shape):
        out = view(source, slot.lead, indices, st.rank)
    elif affine and slot.lead == 0 and (cut := boxes(indices, slot.shape, extent_of(st, slot, indices))) is not None:
        out = np.full(extent_of(st, slot, indices), slot.outside if array is None else False, source.dtype)
        for box in cut:
            out[tuple(slice(a, b) for a, b in box)] = view(source, 0, boxed(indices, box), st.rank)
    else:
        out = _gather(st, slot, source, indices, loc, slot.outside if array is None else False)
    return widen(out, slot.buffer.dtype) if slot.narrow and array is None else out


def extent_of(st: State, slot: Slot, indices: list[Any]) -> tuple[int, ...]:
    """Extents of the axes that the access depends on."""
    shape = [*slot.array.shape[: slot.lead], *(1,) * (st.rank - slot.lead)]
    for index in indices:
        if isinstance(index, Affine):
            shape = [max(a, b) for a, b in zip(shape, index.sizes, strict=True)]
        elif isinstance(index, np.ndarray) and index.ndim:
            shape = [max(a, b) for a, b in zip(shape, index.shape, strict=True)]
    return tuple(shape)


def boxed(indices: list[Any], box: Any) -> list[Any]:
    """Affine indices limited to a box of the axes."""
    out = []
    for index in indices:
        if isinstance(index, Affine):
            for axis, (start, stop) in enumerate(box):
                index = index.restrict(axis, start, stop) if index.sizes[axis] > 1 else index
        out.append(index)
    return out


def positions(slot: Slot, indices: list[Any], rank: int) -> tuple[list[Any], Any]:
    """Index arrays over all the slot's axes, clipped into range, and where they were in range (True: everywhere)."""
    at: list[Any] = []
    for axis in range(slot.lead):
        size = slot.array.shape[axis]
        shape = [1] * rank
        shape[axis] = size
        at.append(np.arange(size).reshape(shape))
    valid: Any = True
    for index, extent in zip(indices, slot.shape, strict=True):
        dense = index.dense() if isinstance(index, Affine) else np.asarray(index)
        dense = dense.reshape((1,) * rank) if dense.ndim == 0 else dense
        ok = (dense >= 0) & (dense < extent)
        if not ok.all():
            valid = valid & ok
            dense = np.where(ok, dense, 0)
        at.append(dense.astype(np.intp, copy=False))
    return at, valid


def _gather(st: State, slot: Slot, source: np.ndarray, indices: list[Any], loc: Loc | None, outside: Any) -> np.ndarray:
    at, valid = positions(slot, indices, st.rank)
    if valid is not True and slot.lead:
        refuse_outside(st, slot, indices, valid, loc)
    if 0 in slot.shape:
        return np.full(extent_of(st, slot, indices), outside, source.dtype)
    out: np.ndarray = source[tuple(at)]
    if valid is not True:
        out = np.where(valid, out, np.asarray(outside, source.dtype))
    return out


def refuse_outside(st: State, slot: Slot, indices: list[Any], valid: np.ndarray, loc: Loc | None) -> None:
    """Raises when an active point has an index outside a tile."""
    bad = np.logical_and(~valid, st.mask)
    if not bad.any():
        return
    where = tuple(int(x) for x in np.argwhere(bad)[0])
    for d, (index, extent) in enumerate(zip(indices, slot.shape, strict=True)):
        dense = index.dense() if isinstance(index, Affine) else np.asarray(index).reshape(np.shape(index) or (1,))
        value = int(np.broadcast_to(dense, bad.shape)[where]) if dense.ndim == bad.ndim else int(dense.reshape(-1)[0])
        if not 0 <= value < extent:
            raise SimulationError(
                f"index {value} is outside dimension {d} of `{slot.buffer.name}`, whose extent is {extent}",
                rule=f"indices of {slot.buffer.space} buffers lie in 0 … extent − 1",
                fix="guard the access with `if`, or change the loop's extent or the buffer's shape",
                loc=loc,
            )
