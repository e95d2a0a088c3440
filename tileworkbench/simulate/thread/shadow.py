"""Race detection: for every unit of memory (a byte of shared memory, an element of a global tensor) the last write and
the reads since, each as (agent, clock, proxy, statement), checked against the accessing thread's clocks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .engine_reads import EngineReads
from .races import Array, Pending, Races

if TYPE_CHECKING:
    from .block import Block
    from .warp import Warp


class Shadow(Races):
    """`label(unit)` says where a unit lies, for reports. `across` keeps the block of each access (global tensors)."""

    def __init__(self, units: int, label: Any, across: bool) -> None:
        self.units, self.label, self.across = units, label, across
        self.w_owner = np.full(units, -1, dtype=np.int32)
        self.w_clock = np.zeros(units, dtype=np.int32)
        self.w_async = np.zeros(units, dtype=bool)
        self.w_atomic = np.zeros(units, dtype=bool)
        self.w_stmt = np.zeros(units, dtype=np.int32)
        self.w_block: Any = np.full(units, -1, dtype=np.int32) if across else None
        self.r_block: Any = np.full(units, -1, dtype=np.int32) if across else None
        self.r_many: Any = np.zeros(units, dtype=bool) if across else None
        self.r_last: Any = np.zeros(units, dtype=np.int32) if across else None
        self.r_clock: Any = None
        self.engine: EngineReads | None = None
        self.kept: dict[Block, Any] = {}  # readers' clocks of blocks that are interrupted
        self.writing: dict[int, Pending] = {}
        self.reading: dict[int, Pending] = {}
        self.read_units: dict[int, Any] = {}
        self.w_pending: Any = None
        self.r_pending: Any = None
        self.r_pending_by: Any = None

    def begin(self, block: Block) -> None:
        """A block starts: its clocks count from one again."""
        self.block = block
        self.r_clock = self.engine = None

    def resume(self, block: Block) -> None:
        """A block that others have interrupted goes on: what its warps have read is still known."""
        if block is self.block:
            return
        masks, statements = getattr(self, "r_mask", None), getattr(self, "r_stmt", None)
        self.kept[self.block] = (self.r_clock, masks, statements, self.engine)
        self.block = block
        self.r_clock, self.r_mask, self.r_stmt, self.engine = self.kept.get(block, (None, None, None, None))

    def meet(self) -> None:
        """All blocks have met: whatever they did is over, but for transfers that nobody has waited for."""
        self.w_owner[:] = -1
        self.w_block[:] = self.r_block[:] = -1
        self.r_many[:] = False

    def met(self, blocks: list[int]) -> None:
        """These blocks have met: what they did is over."""
        wrote, read = np.isin(self.w_block, blocks), np.isin(self.r_block, blocks)
        self.w_owner[wrote] = self.w_block[wrote] = -1
        self.r_block[read] = -1
        self.r_many[read] = False

    def _readers(self) -> Array:
        if self.r_clock is None:
            clocks = self.block.clocks
            self.r_clock = np.zeros((clocks.warps, self.units), dtype=np.int32)
            self.r_mask = np.zeros((clocks.warps, self.units), dtype=np.uint64)
            self.r_stmt = np.zeros((clocks.warps, self.units), dtype=np.int32)
        return self.r_clock

    # --- accesses ---------------------------------------------------------------------------------------------------
    def read(self, w: Warp, threads: Any, units: Any, number: int, via: str = "generic") -> None:
        """`threads` (one a unit, or one for all) read `units`. via: generic, async (an issuing thread's engine)."""
        self._check_writes(w, threads, units, via, "read", False)
        if via == "generic" or self.across:
            self.mark_read(w, threads, units, number)

    def read_by_engine(self, w: Warp, thread: int, units: Any, number: int, agent: int, phase: int) -> None:
        """A transfer that `thread` asks for reads `units` of a tensor, and completes `phase` of the barrier `agent`."""
        self._check_writes(w, thread, units, "async", "read", False)
        if not self.across:
            return
        if self.engine is None:
            self.engine = EngineReads(self.units)
        other = self.engine.under_way(self.block.clocks.order, thread, units)
        if other.any():  # one transfer is kept a unit: another that may still read is taken as the thread's own read
            self.mark_read(w, thread, np.asarray(units)[other], number)
        self.engine.mark(units, agent, phase, thread, number)
        self._mark_block(units, number)

    def write(self, w: Warp, threads: Any, units: Any, number: int, atomic: bool = False) -> None:
        """`threads` (one a unit, or one for all) write `units`."""
        self._check_writes(w, threads, units, "generic", "write", atomic)
        self._check_reads(w, threads, units, atomic)
        self.mark_write(units, threads, self.block.clocks.now[w.index], number, atomic=atomic)

    def check_overwrite(self, w: Warp, threads: Any, units: Any, via: str) -> None:
        """An asynchronous write is issued: it must come after everything that touched the units."""
        self._check_writes(w, threads, units, via, "write", False)
        self._check_reads(w, threads, units, False)

    def mark_write(
        self, units: Any, owner: Any, clock: Any, number: int, asynchronous: bool = False, atomic: bool = False
    ) -> None:
        """Remembers a write that needs no check, by a thread or an engine (`asynchronous`)."""
        self.w_owner[units] = owner
        self.w_clock[units] = clock
        self.w_async[units] = asynchronous
        self.w_atomic[units] = atomic
        self.w_stmt[units] = number
        if self.r_clock is not None:
            self.r_clock[:, units] = 0
        if self.engine is not None:
            self.engine.forget(units)
        if self.across:
            self.w_block[units] = self.block.number
            self.r_block[units] = -1
            self.r_many[units] = False

    def mark_read(self, w: Warp, threads: Any, units: Any, number: int) -> None:
        """Remembers a read that needs no check; without `threads` the warp as a whole reads."""
        clock = self._readers()[w.index]
        mask, now = self.r_mask[w.index], self.block.clocks.now[w.index]
        if threads is None:
            self._mark_collective(w, units, number, now)
            return
        bits = np.left_shift(np.uint64(1), (np.asarray(threads) - w.index * w.lanes).astype(np.uint64))
        stale = clock[units] != now
        mask[units] = np.where(stale, np.uint64(0), mask[units])
        clock[units] = now
        if np.ndim(bits) == 0:
            mask[units] |= bits
        else:
            np.bitwise_or.at(mask, units, bits)
        self.r_stmt[w.index][units] = number
        if self.across:
            self._mark_block(units, number)

    def _mark_block(self, units: Any, number: int) -> None:
        self.r_many[units] |= (self.r_block[units] >= 0) & (self.r_block[units] != self.block.number)
        self.r_block[units] = self.block.number
        self.r_last[units] = number

    def _mark_collective(self, w: Warp, units: Any, number: int, now: Any) -> None:
        """A read of the warp as a whole, over for all of it when any lane has gone on: an empty lane mask says so."""
        self.r_clock[w.index][units] = now
        self.r_mask[w.index][units] = 0
        self.r_stmt[w.index][units] = number

    # --- checks -----------------------------------------------------------------------------------------------------
    def _check_writes(self, w: Warp, threads: Any, units: Any, via: str, doing: str, atomic: bool) -> None:
        clocks = self.block.clocks
        if self.writing and (held := self.w_pending[units]).any():
            self._in_flight(w, units, held, self.writing, doing)
        owner = self.w_owner[units]
        if owner.size == 0 or int(owner.max()) < 0:
            return
        clock = self.w_clock[units]
        if not atomic and not self.across and self._all_known(threads, owner, clock, units, via):
            return
        written = owner >= 0
        if self.across:
            foreign = written & (self.w_block[units] != self.block.number)
            if foreign.any():
                self._across(w, threads, units, foreign, doing, atomic)
                written &= ~foreign
        known = clocks.order[threads, owner] >= clock
        if atomic:
            known |= self.w_atomic[units]
        if not (bad := written & ~known).any() and via == "async":
            fenced = self.w_async[units] | (clocks.fenced[threads, owner] >= clock)
            if (bad := written & ~fenced).any():
                self._report(w, threads, units, int(np.argmax(bad)), self.w_stmt, "write", doing, "proxy_fence")
                return
        if bad.any():
            self._report(w, threads, units, int(np.argmax(bad)), self.w_stmt, "write", doing, None)

    def _all_known(self, threads: Any, owner: Array, clock: Array, units: Any, via: str) -> bool:
        """The common case in one comparison: one transfer wrote all of it, and the accessing threads know of it."""
        first = owner.flat[0]
        if first < self.block.clocks.first_barrier or int(owner.min()) != first or int(owner.max()) != first:
            return False
        known = self.block.clocks.order[threads, first] >= clock.max()
        return bool(np.all(known)) and (via != "async" or bool(self.w_async[units].all()))

    def _check_reads(self, w: Warp, threads: Any, units: Any, atomic: bool) -> None:
        if self.reading and (held := self.r_pending[units]).any():
            self._in_flight(w, units, np.where(held > 0, self._reader(units, held), 0), self.reading, "write")
        if self.across:
            foreign = (self.r_many[units]) | ((self.r_block[units] >= 0) & (self.r_block[units] != self.block.number))
            if foreign.any():
                self._across(w, threads, units, foreign, "write", atomic, reads=True)
        if self.engine is not None:
            self._check_engine(self.engine, w, threads, units)
        if self.r_clock is None:
            return
        seen = self.r_clock[:, units]
        lane = np.asarray(threads) - w.index * w.lanes
        least = self.block.clocks.least(w.index)[lane]
        late = seen > (least.T if least.ndim == 2 else least[:, None])
        if late.any():
            self._check_late(w, threads, units, seen, late)

    def _check_engine(self, engine: EngineReads, w: Warp, threads: Any, units: Any) -> None:
        late = engine.under_way(self.block.clocks.order, threads, units)
        if late.any():
            at = int(np.argmax(late))
            unit, mine = self._unit(units, at), int(np.broadcast_to(threads, late.shape).flat[at])
            self._race(w, mine, unit, int(engine.stmt[unit]), int(engine.thread[unit]), "read", "write", None)

    def _check_late(self, w: Warp, threads: Any, units: Any, seen: Array, late: Array) -> None:
        """Lane by lane, for the few units that some lane of a warp has read too recently."""
        lanes, order = w.lanes, self.block.clocks.order
        readers, positions = np.nonzero(late)
        numbers = np.arange(self.units)[units][positions] if isinstance(units, slice) else np.asarray(units)[positions]
        mine = np.broadcast_to(np.asarray(threads), late.shape[1])[positions]
        masks = self.r_mask[readers, numbers]
        did = (masks[:, None] >> np.arange(lanes, dtype=np.uint64)) & np.uint64(1)
        columns = readers[:, None] * lanes + np.arange(lanes)
        known = order[mine[:, None], columns] >= seen[readers, positions][:, None]
        whole = masks == 0
        bad = np.where(whole[:, None], ~known.any(axis=1, keepdims=True), (did != 0) & ~known)
        if bad.any():
            row = int(np.argmax(bad.any(axis=1)))
            reader = int(columns[row][np.argmax(bad[row])])
            statement = int(self.r_stmt[readers[row], numbers[row]])
            self._race(w, int(mine[row]), int(numbers[row]), statement, reader, "read", "write", None)

    # --- asynchronous work between issue and wait --------------------------------------------------------------------
    def begin_write(self, work: Pending, units: Any) -> None:
        """Asynchronous work will write these units until it is waited for."""
        if self.w_pending is None:
            self.w_pending = np.zeros(self.units, dtype=np.int32)
        self.writing[work.number] = work
        self.w_pending[units] = work.number

    def end_write(self, work: Pending, units: Any, finished: bool) -> None:
        """It has; `finished`: all of it."""
        mine = self.w_pending[units] == work.number
        self.w_pending[units] = np.where(mine, 0, self.w_pending[units])
        if finished:
            self.writing.pop(work.number, None)

    def _reader(self, units: Any, held: Array) -> Array:
        """The number of an operation that still reads each unit; where the latest has ended, of an earlier one."""
        latest = self.r_pending_by[units]
        for i in np.flatnonzero(held > 0):
            if int(latest.flat[i]) not in self.reading:
                unit = self._unit(units, int(i))
                reads = self.read_units.items()
                latest.flat[i] = next(n for n, at in reads if (np.arange(self.units)[at] == unit).any())
        return latest

    def begin_read(self, work: Pending, units: Any) -> None:
        """Asynchronous work will read these units until it is waited for."""
        if self.r_pending is None:
            self.r_pending = np.zeros(self.units, dtype=np.int32)
            self.r_pending_by = np.zeros(self.units, dtype=np.int32)
        self.reading[work.number], self.read_units[work.number] = work, units
        self.r_pending[units] += 1
        self.r_pending_by[units] = work.number

    def end_read(self, work: Pending, units: Any) -> None:
        """It has."""
        self.r_pending[units] -= 1
        self.reading.pop(work.number, None)
        self.read_units.pop(work.number, None)
