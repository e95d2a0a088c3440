"""Buffers that are other names for the storage of one: T.view and T.reshape."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np

from ...errors import SimulationError
from ...ir.expr import Buffer
from ...ir.kernel import Kernel
from ...ir.node import walk
from ...ir.stmt import Alloc
from .rounding import is_narrow, native, widen
from .storage import Slot, own, shadow


def roots(kernel: Kernel) -> dict[Buffer, Buffer]:
    """View → the buffer whose storage it names."""
    allocs = (n.buffer for n in walk(kernel.body) if isinstance(n, Alloc))
    found = {b: b.attr("view_of") for b in allocs if b.attrs}
    return {view: root for view, root in found.items() if root is not None}


def written_through(buffers: Iterable[Buffer], views: dict[Buffer, Buffer]) -> set[Buffer]:
    """The buffers and, for views, what they name."""
    return {views.get(b, b) for b in buffers}


def seen_as(slot: Slot, buffer: Buffer, shape: tuple[int, ...], write: bool) -> Slot:
    """The slot with its bytes read as values of `buffer`'s dtype: itself where `write`, so that the bytes stay in that
    form, else a copy for one reading (a NaN's payload does not survive a change of form)."""
    old, new = slot.buffer.dtype, buffer.dtype
    if old.bits % 8 or new.bits % 8:
        raise SimulationError(
            f"`{buffer.name}` sees {old} storage as {new}",
            rule="on the CPU target a view of elements smaller than a byte keeps the dtype",
            fix="use T.reinterpret on the elements",
            loc=buffer.loc,
        )
    if slot.lead == 0 and not slot.frozen:
        return tensor_as(slot, buffer, shape, write)
    held = slot.array if slot.narrow or not is_narrow(old) else native(slot.array, old, old)
    row = (*slot.array.shape[: slot.lead], -1)
    values = np.ascontiguousarray(held).reshape(row).view(np.uint8).view(new.numpy)
    undefined = slot.undefined
    if isinstance(undefined, np.ndarray):
        lead = undefined.shape[: slot.lead]
        of_bytes = np.repeat(undefined.reshape(*lead, -1), old.bits // 8, axis=-1)
        undefined = of_bytes.reshape(*lead, -1, new.bits // 8).any(axis=-1).reshape(lead + shape)
    array = np.array(widen(values, new).reshape(*row[:-1], *shape))
    made = replace(slot, buffer=buffer, array=array, undefined=undefined, shape=shape, narrow=False, owned=True)
    if not write:
        return made
    slot.buffer, slot.array, slot.undefined = buffer, array, undefined
    slot.shape, slot.narrow, slot.owned = shape, False, True
    return slot


def tensor_as(slot: Slot, buffer: Buffer, shape: tuple[int, ...], write: bool) -> Slot:
    """A tensor's own memory as values of another dtype."""
    if not slot.array.flags.c_contiguous:
        raise SimulationError(
            f"`{buffer.name}` sees {slot.buffer.dtype} elements of `{slot.buffer.name}` as {buffer.dtype}",
            rule="a tensor that is seen as another dtype is contiguous",
            fix="pass a contiguous tensor",
            loc=buffer.loc,
        )
    if write and slot.unwritten is not None:
        slot.unwritten[...] = False
    seen = slot.array.reshape(-1).view(buffer.dtype.numpy).reshape(shape)
    return replace(
        slot, buffer=buffer, array=seen, shape=shape, narrow=is_narrow(buffer.dtype), unwritten=None, view=True
    )


def view_slot(buffer: Buffer, root: Slot, shape: tuple[int, ...], sizes: tuple[int, ...], write: bool = False) -> Slot:
    """`root`'s values under another shape. The slot shares memory with the root and lives for one access."""
    if buffer.strides is not None:
        return part_of(buffer, root, shape)
    if buffer.dtype is not root.buffer.dtype:
        root = seen_as(root, buffer, shape, write)
    if root.lead:
        array = own(root, (*(n for n in sizes[: root.lead - 1]), 1))
        undefined = root.undefined if root.undefined is None else shadow(root)
    else:
        array, undefined = root.array, root.undefined
    lead = array.shape[: root.lead]
    marks: dict[str, Any] = {"undefined": undefined, "unwritten": root.unwritten}
    marks = {k: v.reshape(lead + shape) if isinstance(v, np.ndarray) else v for k, v in marks.items()}
    return replace(
        root, buffer=buffer, array=array.reshape(lead + shape), shape=shape, view=True, frozen=False, **marks
    )


def part_of(buffer: Buffer, root: Slot, shape: tuple[int, ...]) -> Slot:
    """A part of a tensor's storage with strides of its own, to be read."""
    steps = tuple(int(s) for s in buffer.strides or ())

    def seen(array: np.ndarray) -> np.ndarray:
        row = np.ascontiguousarray(array).reshape(-1)
        pitches = tuple(n * row.itemsize for n in steps)
        return np.lib.stride_tricks.as_strided(row, shape, pitches, writeable=False)

    undefined = seen(root.undefined) if isinstance(root.undefined, np.ndarray) else root.undefined
    marks: dict[str, Any] = {"undefined": undefined, "unwritten": None}
    return replace(root, buffer=buffer, array=seen(root.array), shape=shape, view=True, frozen=False, **marks)
