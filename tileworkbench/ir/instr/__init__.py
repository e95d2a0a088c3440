"""The table of thread-level instructions. Each row is a class; its fields declare the operands and its class attributes
the facts: `scope` (who executes it together), `needs` (a feature of the target), `engine` and `proxy`.

Register operands are runs of one thread's registers, memory operands are (buffer, element offset): never raw addresses.
CUDA text, HIP text and NumPy meaning are found by class in codegen/ and simulate/; a test holds that none is missing.
"""

from __future__ import annotations

from . import barriers, control, copies, lanes, matrix, memory
from .barriers import BarArrive, BarExpect, BarInit, BarWait, CopyAsyncArrive, Fence, Sync
from .control import CallExtern, Elect, ForeignKernel, GridDep, Prefetch, SchedHint, SetRegs, Stamp, Trap
from .copies import BulkLoad, BulkStore, CommitGroup, CopyAsync, LdsDirect, TmaLoad, TmaStore, WaitGroup
from .lanes import Match, Shuffle, Vote
from .matrix import Mma, MmaSparse, Wgmma, WgmmaFence
from .memory import AtomicMem, LdMatrix, LoadMem, StMatrix, StoreMem
from .operands import Addr, Bar, Desc, Instr, Reg

__all__ = [
    "Addr",
    "AtomicMem",
    "Bar",
    "BarArrive",
    "BarExpect",
    "BarInit",
    "BarWait",
    "BulkLoad",
    "BulkStore",
    "CallExtern",
    "CommitGroup",
    "CopyAsync",
    "CopyAsyncArrive",
    "Desc",
    "Elect",
    "Fence",
    "ForeignKernel",
    "GridDep",
    "Instr",
    "LdMatrix",
    "LdsDirect",
    "LoadMem",
    "Match",
    "Mma",
    "MmaSparse",
    "Prefetch",
    "Reg",
    "SchedHint",
    "SetRegs",
    "Shuffle",
    "StMatrix",
    "Stamp",
    "StoreMem",
    "Sync",
    "TmaLoad",
    "TmaStore",
    "Trap",
    "Vote",
    "WaitGroup",
    "Wgmma",
    "WgmmaFence",
    "rows",
]


def rows() -> tuple[type[Instr], ...]:
    """All instruction classes, in the order of this table."""
    parts = (memory, lanes, matrix, copies, barriers, control)
    found = [v for part in parts for v in vars(part).values() if isinstance(v, type) and v.__module__ == part.__name__]
    return tuple(v for v in found if issubclass(v, Instr))
