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
from .storage import Slot, own, shadow


def roots(kernel: Kernel) -> dict[Buffer, Buffer]:
    """View → the buffer whose storage it names."""
    allocs = (n.buffer for n in walk(kernel.body) if isinstance(n, Alloc))
    found = {b: b.attr("view_of") for b in allocs if b.attrs}
    return {view: root for view, root in found.items() if root is not None}


def written_through(buffers: Iterable[Buffer], views: dict[Buffer, Buffer]) -> set[Buffer]:
    """The buffers and, for views, what they name."""
    return {views.get(b, b) for b in buffers}


def view_slot(buffer: Buffer, root: Slot, shape: tuple[int, ...], sizes: tuple[int, ...]) -> Slot:
    """`root`'s values under another shape. The slot shares memory with the root and lives for one access."""
    if buffer.dtype is not root.buffer.dtype:
        raise SimulationError(
            f"`{buffer.name}` sees {root.buffer.dtype} storage as {buffer.dtype}",
            rule="on the CPU target a view keeps the dtype",
            fix="use T.reinterpret on the elements",
            loc=buffer.loc,
        )
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
