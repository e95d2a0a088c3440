"""CopyAsync (cp.async), CopyAsyncArrive and LdsDirect: per-lane copies from global to shared memory.

A copy may land at any time from its issue to its wait; until the issuing lane has waited nobody may touch its
destination, and after it only that lane: others need a barrier.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...errors import InternalError
from ...ir.instr import CopyAsync, CopyAsyncArrive, LdsDirect
from .block import Work
from .faults import fault
from .groups import GroupWork, add
from .loadstore import mark
from .memory import Space, check_defined, resolver, uniform
from .program import Program
from .races import Pending
from .warp import Warp

Array = Any


def copy_async(p: Program, s: CopyAsync) -> Callable[[Warp], None]:
    """Every executing lane copies `bytes` from its source; bytes past `valid` become 0 and are not read."""
    if s.bytes not in (4, 8, 16):
        raise InternalError(f"cp.async of {s.bytes} bytes", rule="cp.async copies 4, 8 or 16 bytes", loc=s.loc)
    to, valid = resolver(p, s.dst, s.bytes), None if s.valid is None else p.scope.value(s.valid)
    number = p.number(s)

    def run(w: Warp) -> None:
        lanes = w.active()
        target, base = to(w, lanes)
        if valid is None:
            counts = np.full(lanes.size, s.bytes)
        else:
            check_defined(w, valid.undefined, "the number of valid bytes")
            got = valid.read(w)
            counts = got[lanes] if isinstance(got, np.ndarray) else np.full(lanes.size, int(got))
            if counts.size and (counts.min() < 0 or counts.max() > s.bytes):
                raise fault(
                    w,
                    "bytes",
                    f"cp.async of {s.bytes} bytes with {int(counts.max())} valid ones",
                    lanes=lanes,
                    rule="the valid bytes are between 0 and the bytes copied",
                )
        raw, known = _source(w, lanes, counts, number)
        _issue(w, s, lanes, target, base, raw, known, number)

    def _source(w: Warp, lanes: Array, counts: Array, number: int) -> tuple[Callable[[], Array], Array]:
        """Reads of the source: lanes by their number of valid bytes, since nothing is read past them."""
        parts = []
        known = np.ones((lanes.size, s.bytes), dtype=bool)
        for count in np.unique(counts).tolist():
            if count:
                at = np.flatnonzero(counts == count)
                space, base = readers[count](w, lanes[at])
                units = space.units(base, count)
                mark(w, space, lanes[at], units, number, False)
                known[at, :count] = np.repeat(
                    space.element_defined(units, units.shape[1], space.unit), space.unit, axis=1
                )[:, :count]
                parts.append((at, space, base, count))

        def read() -> Array:
            raw = np.zeros((lanes.size, s.bytes), dtype=np.uint8)
            for at, space, base, count in parts:
                raw[at, :count] = space.read(base, count)
            return raw

        return read, known

    class _Readers(dict[int, Any]):
        def __missing__(self, count: int) -> Any:
            made = self[count] = resolver(p, s.src, count, align=count == s.bytes)
            return made

    readers = _Readers()
    return run


def _issue(
    w: Warp, s: Any, lanes: Array, space: Space, base: Array, read: Any, known: Array, number: int, engine: str = "copy"
) -> None:
    """Checks the destination, marks it in flight and hands the copy to the scheduler and to the open group."""
    size = known.shape[1]
    units = space.units(base, size)
    shadow = space.shadow
    threads = np.repeat(w.threads[lanes], size)
    shadow.check_overwrite(w, threads, units.ravel(), "generic")
    pending = Pending("copy", w, s, w.block.next_serial())
    shadow.begin_write(pending, units.ravel())

    def move() -> None:
        space.raw[base[:, None] + np.arange(size)] = read()
        space.defined[units] = known

    work = w.block.submit(Work(move, w, s))
    row_of = {int(lane): row for row, lane in enumerate(lanes)}
    mask = np.zeros(w.lanes, dtype=bool)
    mask[lanes] = True
    left = set(row_of)

    def finish(waited: Array, reads_only: bool) -> None:
        w.block.land(work)
        done = [row_of[int(lane)] for lane in np.flatnonzero(waited)]
        left.difference_update(int(lane) for lane in np.flatnonzero(waited))
        mine = units[done]
        shadow.end_write(pending, mine.ravel(), not left)
        shadow.mark_write(mine.ravel(), np.repeat(w.threads[lanes[done]], size), w.block.clocks.now[w.index], number)
        group_work.lanes = group_work.lanes & ~waited

    group_work = GroupWork(mask, finish, s)
    add(w, engine, group_work)


def copy_async_arrive(p: Program, s: CopyAsyncArrive) -> Callable[[Warp], None]:
    """The barrier gets one arrival of each executing lane when that lane's earlier copies are done. With noinc the
    arrival is one of those that the barrier counts; without, the barrier's pending count grows by it first."""
    index = p.scope.value(s.bar.index)

    def run(w: Warp) -> None:
        bar = w.block.barriers.find(w, s.bar.buffer, uniform(w, index.read(w), "the barrier's index"))
        lanes = w.mask.copy()
        threads = w.threads[lanes]
        w.block.barriers.check_use(w, bar, threads)
        works = [
            x for x in (*w.open["copy"], *(v for g in w.groups["copy"] for v in g.works)) if (x.lanes & lanes).any()
        ]
        if not s.noinc:
            bar.pending += int(lanes.sum())

        def arrive() -> None:
            for work in works:
                due = work.lanes & lanes
                if due.any():
                    work.finish(due, False)
            w.block.barriers.arrive(w, bar, int(lanes.sum()), w.block.clocks.release(w.index, threads))

        w.block.submit(Work(arrive, w, s))

    return run


def lds_direct(p: Program, s: LdsDirect) -> Callable[[Warp], None]:
    """Lane i's bytes go to base + i · bytes; the base is the same in all lanes (AMD buffer_load … lds)."""
    to, source, number = resolver(p, s.dst, s.bytes), resolver(p, s.src, s.bytes), p.number(s)

    def run(w: Warp) -> None:
        lanes = w.active()
        target, base = to(w, lanes)
        if (base != base[0]).any():
            raise fault(
                w, "divergent", "the shared base of a direct copy differs between lanes", rule="it is wave-uniform"
            )
        base = base + lanes * s.bytes
        space, at = source(w, lanes)
        units = space.units(at, s.bytes)
        mark(w, space, lanes, units, number, False)
        known = np.repeat(space.element_defined(units, units.shape[1], space.unit), space.unit, axis=1)[:, : s.bytes]
        _issue(w, s, lanes, target, base, lambda: space.read(at, s.bytes), known, number)

    return run
