"""Global memory that transfers into shared memory read: over for whoever has seen the transfer's barrier complete."""

from __future__ import annotations

from typing import Any

import numpy as np

Array = Any


class EngineReads:
    """The last transfer that read each unit of a tensor in a block: its barrier, the phase that it completes, the
    thread that asked for it, the statement."""

    def __init__(self, units: int) -> None:
        self.agent = np.full(units, -1, dtype=np.int32)
        self.phase = np.zeros(units, dtype=np.int32)
        self.thread = np.zeros(units, dtype=np.int32)
        self.stmt = np.zeros(units, dtype=np.int32)

    def mark(self, units: Any, agent: int, phase: int, thread: int, number: int) -> None:
        self.agent[units], self.phase[units] = agent, phase
        self.thread[units], self.stmt[units] = thread, number

    def forget(self, units: Any) -> None:
        self.agent[units] = -1

    def under_way(self, order: Array, threads: Any, units: Any) -> Array:
        """Where a transfer may still read, as far as the threads know; `order` holds what each thread knows of each
        agent."""
        held = self.agent[units]
        return (held >= 0) & (order[threads, held] < self.phase[units])
