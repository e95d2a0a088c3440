"""The arrays behind the buffers: tiles with leading machine axes, and the caller's tensors."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ...ir.expr import Buffer
from .rounding import container

# The state of a tile nothing was written to yet; an array of truth values marks a partly written one; None a whole one.
ALL = True
PRIVATE = ("local", "var")


@dataclass(eq=False, slots=True)
class Slot:
    """One buffer's values.

    array: `lead` machine axes, then the buffer's own. A leading axis of extent 1 means one value for all its points.
    owned: nobody else sees the array, so it may be changed in place; else it is copied first.
    undefined: ALL, None, or an array like `array` that is true where nothing was written.
    unwritten: of a tensor, what the kernel has not stored to yet (for the report).
    private: every thread has its own (local and var buffers).
    frozen: of a tensor, nothing writes to it while the kernel runs, so views of it may be kept."""

    buffer: Buffer
    lead: int
    array: np.ndarray
    owned: bool = True
    undefined: Any = None
    frozen: bool = False
    narrow: bool = False  # the array is in the native dtype of a narrow float, not in its container
    unwritten: np.ndarray | None = None
    private: bool = False
    view: bool = False  # shares another slot's memory: stores go into the array, which is never replaced
    outside: Any = 0  # of a tensor, what reads past its edge give
    shape: tuple[int, ...] = field(default=())


def tile_slot(buffer: Buffer, shape: tuple[int, ...], lead: int) -> Slot:
    """A tile without contents; the array is a stand-in of one element until something is written."""
    empty = np.broadcast_to(np.zeros((), container(buffer.dtype)), (1,) * lead + shape)
    return Slot(buffer, lead, empty, owned=False, undefined=ALL, private=buffer.space in PRIVATE, shape=shape)


def own(slot: Slot, sizes: tuple[int, ...]) -> np.ndarray:
    """The slot's array, made private and as large as `sizes` on its leading axes (never smaller than it is)."""
    array = slot.array
    lead = tuple(max(a, b) for a, b in zip(array.shape[: slot.lead], sizes, strict=True))
    full = lead + slot.shape
    if not slot.owned or array.shape != full:
        slot.array = np.array(np.broadcast_to(array, full), order="C")
        if isinstance(slot.undefined, np.ndarray):
            slot.undefined = np.array(np.broadcast_to(slot.undefined, full), order="C")
        slot.owned = True
    return slot.array


def shadow(slot: Slot) -> np.ndarray:
    """The slot's `undefined` as an array that may be changed; call after `own`."""
    full = slot.array.shape
    if not isinstance(slot.undefined, np.ndarray):
        slot.undefined = np.full(full, slot.undefined is ALL)
    elif slot.undefined.shape != full:
        slot.undefined = np.array(np.broadcast_to(slot.undefined, full), order="C")
    return slot.undefined


def settle(slot: Slot) -> None:
    """Forgets a shadow that marks nothing any more."""
    if isinstance(slot.undefined, np.ndarray) and not slot.undefined.any():
        slot.undefined = None
