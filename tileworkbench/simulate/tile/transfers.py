"""Transfers that threads ask the copy engine for: each brings a part of a tile of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from ...errors import SimulationError
from ...ir.expr import Expr
from ...ir.region import root
from .clusters import active_threads
from .state import State, simple


@contextmanager
def asked(st: State, op: Any, value: Callable[[Expr], Any]) -> Iterator[None]:
    """For the length of the block a thread that asks alone stands for its block, as there is one transfer;
    SimulationError where two threads bring the same elements."""
    mask = st.mask
    starts = [np.asarray(value(e)) for e in (*op.src.starts, *op.dst.starts)]
    asking = active_threads(st)
    if asking.sum() > 1:
        _apart(op, starts[len(op.src.starts) :], asking)
    elif isinstance(mask, np.ndarray) and all(s.ndim == 0 or s.shape[-1] == 1 for s in starts):
        st.mask = simple(mask.any(axis=-1, keepdims=True))
    try:
        yield
    finally:
        st.mask = mask


def _apart(op: Any, starts: list[np.ndarray], asking: np.ndarray) -> None:
    """Along some dimension the parts of the tile that the threads bring must not meet."""
    at = [np.broadcast_to(s.reshape(-1)[-asking.size :], asking.shape)[asking].astype(np.int64) for s in starts]
    parts = np.stack(at, axis=-1)
    meet = np.ones((len(parts), len(parts)), dtype=bool)
    for d, extent in enumerate(op.dst.extents):
        meet &= np.abs(parts[:, None, d] - parts[None, :, d]) < extent
    if (meet.sum() - len(parts)) > 0:
        raise SimulationError(
            f"T.{op.name}: several of {len(parts)} threads bring the same elements of `{root(op.dst.buffer).name}`",
            rule="every thread that comes to a transfer asks for one",
            fix="let one thread ask: if T.get_thread_binding() == 0: …",
            loc=op.loc,
        )
