"""BulkLoad and BulkStore: one thread asks, the copy engine moves consecutive bytes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...ir.instr import BulkLoad, BulkStore
from .engine import aligned, askers, begin_load, begin_store, integers, one_thread
from .faults import fault
from .memory import Space, resolver
from .program import Program
from .waits import barrier
from .warp import Warp

Array = Any


def bulk_load(p: Program, s: BulkLoad) -> Callable[[Warp], None]:
    """BulkLoad by a thread: consecutive bytes, both sides at multiples of 16."""
    size_of = integers(p, (s.bytes,), "the number of bytes")
    to, source = _bytes_at(p, s.dst), _bytes_at(p, s.src)
    find, number = barrier(p, s.bar), p.number(s)

    def run(w: Warp) -> None:
        for lanes in askers(w, s):
            one(w, lanes)

    def one(w: Warp, lanes: Any) -> None:
        size, bar = _bulk_size(w, size_of(w)[0]), find(w)
        space, base = to(w, lanes, size)
        far, first = source(w, lanes, size)
        thread = int(w.threads[lanes[0]])
        units = np.unique(np.arange(first, first + size) // far.unit)
        if far.shadow is not None:
            far.shadow.read_by_engine(w, thread, units, number, bar.agent, bar.phase + 1)

        def data() -> tuple[Array, Array]:
            known = np.repeat(far.defined[units], far.unit)[:size]
            return far.raw[first : first + size][:, None].copy(), known

        begin_load(w, s, bar, space, np.arange(base, base + size)[:, None], data, thread, number)

    return run


def bulk_store(p: Program, s: BulkStore) -> Callable[[Warp], None]:
    """BulkStore by one thread; a reduction is atomic an element of the tensor's type."""
    size_of = integers(p, (s.bytes,), "the number of bytes")
    to, source, number = _bytes_at(p, s.dst), _bytes_at(p, s.src), p.number(s)
    item = s.dst.buffer.dtype.bytes

    def run(w: Warp) -> None:
        lanes = one_thread(w)
        size = _bulk_size(w, size_of(w)[0])
        far, first = to(w, lanes, size)
        space, base = source(w, lanes, size)
        at = np.arange(base, base + size).reshape(-1, item)
        begin_store(w, s, lanes, space, at, at, far, np.arange(first, first + size, item), number, s.dst.buffer.dtype)

    return run


def _bulk_size(w: Warp, size: int) -> int:
    if size <= 0 or size % 16:
        raise fault(w, "bytes", f"a bulk copy of {size} bytes", rule="bulk copies move a positive multiple of 16 bytes")
    return size


def _bytes_at(p: Program, addr: Any) -> Callable[[Warp, Any, int], tuple[Space, int]]:
    """First byte of a run whose length is known at run time, aligned to 16 and inside its buffer."""
    made: dict[int, Any] = {}

    def find(w: Warp, lanes: Any, size: int) -> tuple[Space, int]:
        if size not in made:
            made[size] = resolver(p, addr, size, align=False)
        space, base = made[size](w, lanes)
        aligned(w, int(base[0]) + space.skew, 16, addr.buffer)
        return space, int(base[0])

    return find
