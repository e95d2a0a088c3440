"""A warp: the agent of the thread machine. Its lanes are an axis of NumPy arrays with a mask of those that execute."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from ...ir.expr import Buffer
from ...ir.stmt import Stmt

if TYPE_CHECKING:
    from .block import Block

Array = Any


class RegFile:
    """One register buffer of one warp: `data` and `defined` are (extent, lanes).

    `writing` and `reading` count asynchronous matrix instructions that still write or read a register; `touched` marks
    registers used since the last WgmmaFence. All three exist only for buffers that such an instruction names."""

    __slots__ = ("buffer", "data", "defined", "extent", "reading", "touched", "writing")

    def __init__(self, buffer: Buffer, extent: int, lanes: int, tracked: bool) -> None:
        self.buffer, self.extent = buffer, extent
        self.data = np.zeros((extent, lanes), dtype=buffer.dtype.numpy)
        self.defined = np.zeros((extent, lanes), dtype=bool)
        self.writing: Any = np.zeros(extent, dtype=np.int32) if tracked else None
        self.reading: Any = np.zeros(extent, dtype=np.int32) if tracked else None
        self.touched: Any = np.zeros(extent, dtype=bool) if tracked else None


@dataclass(slots=True)
class Blocked:
    """Why a warp cannot go on: `ready` is asked again each round, `what` describes it for the deadlock report and
    `urge` lets the asynchronous work land that it waits for (schedule "latest")."""

    ready: Callable[[], bool]
    what: Callable[[], str]
    urge: Callable[[], bool] = lambda: False


@dataclass(slots=True, eq=False)
class Warp:
    """`mask` holds the executing lanes; `alive` those that exist (the last warp of a block may be partial)."""

    index: int
    lanes: int
    block: Block
    alive: Array
    env: list[Any]
    undefined: list[Any]
    regs: list[RegFile]
    mask: Array = field(init=False)
    full: bool = True
    threads: Array = field(init=False)
    lane_ids: Array = field(init=False)
    role: str = ""
    role_first: int = 0
    role_threads: Array = field(init=False)
    role_size: int = 0
    at: Stmt | None = None
    dead: Array | None = None  # lanes that left the innermost loop's body by break or continue
    left: Array | None = None  # lanes that left the innermost loop by break
    blocked: Blocked | None = None
    groups: dict[str, list[Any]] = field(default_factory=lambda: {"copy": [], "bulk": [], "wgmma": []})
    open: dict[str, list[Any]] = field(default_factory=lambda: {"copy": [], "bulk": [], "wgmma": []})
    wgmma_fenced: bool = False
    registers: int = 0

    def __post_init__(self) -> None:
        self.mask = self.alive
        self.lane_ids = np.arange(self.lanes, dtype=np.int32)
        self.threads = self.lane_ids + self.index * self.lanes
        self.role_threads = self.threads

    def set_mask(self, mask: Array) -> None:
        self.mask = mask
        self.full = mask is self.alive or bool((mask == self.alive).all())

    @property
    def any(self) -> bool:
        return self.full or bool(self.mask.any())

    def active(self, pred: Any = True) -> Array:
        """Lane numbers that execute and for which `pred` holds."""
        if pred is True:
            return np.flatnonzero(self.mask)
        if pred is False:
            return np.empty(0, dtype=np.int64)
        return np.flatnonzero(self.mask & pred)

    def leader(self) -> int:
        """The lane that elect.sync picks: the lowest that executes."""
        return int(np.argmax(self.mask))
