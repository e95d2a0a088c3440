"""What the thread machine says of a race: who did what to which unit of memory, and the rule that would order it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from ...ir.instr import BulkLoad, CopyAsync, TmaLoad
from .faults import fault, place, threads_text
from .rules import RULES

if TYPE_CHECKING:
    from .block import Block
    from .warp import Warp

Array = Any


@dataclass(slots=True, eq=False)
class Pending:
    """Asynchronous work between issue and wait. kind: copy (cp.async writes), store (bulk reads), wgmma (reads)."""

    kind: str
    warp: Warp
    stmt: Any
    number: int = 0
    extra: dict[str, Any] = field(default_factory=dict)


class Races:
    """Reports on one memory's records, which `Shadow` keeps: of each unit the last write (owner, statement, atomic,
    block) and, across blocks, the last read."""

    units: int
    label: Any
    block: Block
    w_owner: Array
    w_clock: Array
    w_stmt: Array
    w_atomic: Array
    w_block: Array
    r_block: Array
    r_last: Array

    def _unit(self, units: Any, position: int) -> int:
        return int(range(self.units)[units][position]) if isinstance(units, slice) else int(np.asarray(units)[position])

    def _report(
        self,
        w: Warp,
        threads: Any,
        units: Any,
        position: int,
        statements: Array,
        was: str,
        doing: str,
        rule: str | None,
    ) -> None:
        unit = self._unit(units, position)
        thread = (
            int(np.broadcast_to(np.asarray(threads), position + 1)[position])
            if np.ndim(threads) == 0
            else int(threads[position])
        )
        self._race(w, thread, unit, int(statements[unit]), int(self.w_owner[unit]), was, doing, rule)

    def _race(
        self, w: Warp, thread: int, unit: int, statement: int, owner: int, was: str, doing: str, rule: str | None
    ) -> None:
        block = self.block
        earlier = block.program.statements[statement]
        by_engine = owner >= block.clocks.first_barrier
        if rule is None:
            rule = self._missing(w, owner, was, earlier, by_engine)
        who = "the copy engine" if by_engine else f"thread {owner}"
        missing = RULES[rule]
        block.report(fault(
            w, "race", f"{doing} of {self.label(unit)} is not ordered after the {was} by {place(earlier)} ({who})",
            rule=str(missing), fix=missing.fix,
            lanes=[thread - w.index * w.lanes], other=earlier,
        ))  # fmt: skip

    def _missing(self, w: Warp, owner: int, was: str, earlier: Any, by_engine: bool) -> str:
        if by_engine:
            return "copy_arrive" if isinstance(earlier, CopyAsync) else "transfer"
        if was == "write" and isinstance(earlier, CopyAsync):
            return "copy_wait"
        if owner // w.lanes == w.index:
            return "warp_sync"
        return "reuse" if was == "read" and isinstance(w.at, (TmaLoad, BulkLoad)) else "block_sync"

    def _across(
        self, w: Warp, threads: Any, units: Any, foreign: Array, doing: str, atomic: bool, reads: bool = False
    ) -> None:
        blocks = self.r_block[units] if reads else self.w_block[units]
        for number, order in self.block.heard.items():
            # Of reads only the block is known.
            foreign = foreign & ~((blocks == number) & (reads or order[self.w_owner[units]] >= self.w_clock[units]))
        if atomic and not reads:
            foreign = foreign & ~self.w_atomic[units]
        if self.block.acquired:
            foreign = foreign & ~np.isin(blocks, list(self.block.acquired))
        if not foreign.any():
            return
        position = int(np.argmax(foreign))
        unit = self._unit(units, position)
        earlier = self.block.program.statements[int((self.r_last if reads else self.w_stmt)[unit])]
        rule = RULES["between_blocks"]
        self.block.report(fault(
            w, "race", f"{doing} of {self.label(unit)}, which block number {int(blocks[position])} has "
            f"{'read' if reads else 'written'} by {place(earlier)}",
            rule=str(rule), fix=rule.fix, other=earlier,
        ))  # fmt: skip

    def _in_flight(self, w: Warp, units: Any, held: Array, table: dict[int, Pending], doing: str) -> None:
        position = int(np.argmax(held != 0))
        work = table[int(held[position])]
        name = {"copy": "copy_wait", "store": "store_read", "wgmma": "wgmma_read", "stored": "store_done"}[work.kind]
        rule = RULES[name]
        self.block.report(fault(
            w, "race", f"{doing} of {self.label(self._unit(units, position))} while {place(work.stmt)} of "
            f"{threads_text(work.warp)} is still in flight there",
            rule=str(rule), fix=rule.fix, other=work.stmt,
        ))  # fmt: skip
