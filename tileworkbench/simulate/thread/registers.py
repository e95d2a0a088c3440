"""Rules for touching a warp's registers: numbers inside their buffer, and none that a wgmma in flight still uses."""

from __future__ import annotations

from typing import Any

import numpy as np

from .faults import fault
from .warp import RegFile, Warp


def register_rows(w: Warp, rf: RegFile, start: Any, count: int) -> int:
    """The constant first register of a run, checked against the buffer's extent."""
    if type(start) is not int:
        if isinstance(start, np.ndarray) and start.size and (start == start[0]).all():
            start = int(start[0])
        else:
            raise fault(
                w,
                "register",
                f"registers of {rf.buffer.name!r} are indexed by a value that differs between lanes",
                rule="a register number is the same in all lanes",
                fix="unroll the loop, or use shared memory",
            )
    if start < 0 or start + count > rf.extent:
        raise fault(
            w,
            "bounds",
            f"registers {start}…{start + count - 1} of {rf.buffer.name!r}, which has {rf.extent}",
            rule="register numbers lie inside their buffer",
        )
    return int(start)


def check_register_read(w: Warp, rf: RegFile, start: int, count: int) -> None:
    """A register that a wgmma may still write is not read."""
    if rf.writing is not None:
        if rf.writing[start : start + count].any():
            raise fault(
                w,
                "in_flight",
                f"register {rf.buffer.name}[{start}] is read while a wgmma may still write it",
                rule="accumulators are read after WaitGroup(wgmma) has covered their group",
                fix="wait for the group before this statement",
            )
        rf.touched[start : start + count] = True


def check_register_write(w: Warp, rf: RegFile, start: int, count: int) -> None:
    """A register that a wgmma may still read or write is not written."""
    if rf.writing is not None:
        check_register_read(w, rf, start, count)
        if rf.reading[start : start + count].any():
            raise fault(
                w,
                "in_flight",
                f"register {rf.buffer.name}[{start}] is overwritten while a wgmma may still read it",
                rule="A registers of a wgmma are rewritten after WaitGroup(wgmma) has covered its group",
                fix="wait for the group before this statement",
            )
