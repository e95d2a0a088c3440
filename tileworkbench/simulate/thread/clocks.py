"""Happens-before as vector clocks, one row a thread.

`order[t, a]` is the latest clock of agent `a` that thread `t` knows to be over: it may touch what `a` did up to there.
`fenced[t, a]` is the same for generic accesses that their author has made visible to the asynchronous proxy
(Fence proxy_async) before the synchronisation that told `t` about them.

Agents are the block's threads, then one agent a barrier: transfers that complete on a barrier are ordered before its
waiters by the number of its phase. The threads of a warp share one counter, which steps at every release; a thread's
own entry is unlimited (program order).
"""

from __future__ import annotations

from typing import Any

import numpy as np

Array = Any
OWN = np.int32(2**31 - 1)


class Clocks:
    """Clocks of one block of `threads` threads in warps of `lanes`, and `barriers` barrier agents."""

    def __init__(self, threads: int, lanes: int, barriers: int) -> None:
        self.threads, self.lanes = threads, lanes
        self.warps = -(-threads // lanes)
        padded = self.warps * lanes
        self.columns = padded + barriers
        self.first_barrier = padded
        self.order = np.zeros((padded, self.columns), dtype=np.int32)
        self.fenced = np.zeros((padded, self.columns), dtype=np.int32)
        diagonal = np.arange(padded)
        self.order[diagonal, diagonal] = OWN
        # Lanes past the last thread never touch anything: nobody waits for them.
        self.order[:, threads:padded] = OWN
        self.now = np.ones(self.warps, dtype=np.int32)
        self._least: dict[int, Array] = {}

    def release(self, warp: int, threads: Array) -> tuple[Array, Array]:
        """What `threads` (of one warp) hand over at a release: their knowledge and their own accesses so far."""
        order = self.order[threads].max(axis=0)
        order[threads] = self.now[warp]
        fenced = self.fenced[threads].max(axis=0)
        self.now[warp] += 1
        return order, fenced

    def acquire(self, warp: int, threads: Array, order: Array, fenced: Array) -> None:
        """`threads` (of one warp) now know what was handed over."""
        self.order[threads] = np.maximum(self.order[threads], order)
        self.fenced[threads] = np.maximum(self.fenced[threads], fenced)
        self._least.pop(warp, None)

    def fence(self, warp: int, threads: Array) -> None:
        """Fence proxy_async: the threads' own generic writes so far become visible to the asynchronous proxy, and all
        that they know to be over: a fence holds for what comes before it in causality order, whoever did it."""
        known = self.order[threads]
        known[np.arange(len(threads)), threads] = self.now[warp]
        self.fenced[threads] = np.maximum(self.fenced[threads], known)
        self.now[warp] += 1

    def least(self, warp: int) -> Array:
        """(lanes, warps): for each lane of `warp` the least clock it knows among all threads of another warp."""
        found = self._least.get(warp)
        if found is None:
            rows = self.order[warp * self.lanes : (warp + 1) * self.lanes, : self.warps * self.lanes]
            found = self._least[warp] = rows.reshape(self.lanes, self.warps, self.lanes).min(axis=2)
        return found
