"""ldmatrix and stmatrix: x1, x2 or x4 matrices of 8 rows of 16 bytes between shared memory and one warp's registers.

Lanes 8 j … 8 j + 7 give the row addresses of matrix j. A lane receives 32 bits of each matrix: row lane // 4, the
(lane % 4)-th word. With .trans (16-bit elements) it receives rows 2 * (lane % 4) and the next of column lane // 4.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from tileworkbench.layout.fragment import Fragment, reg_mode, thread_mode
from tileworkbench.layout.shared import SharedLayout

ROW_BYTES = 16
ROWS = 8
WARP = 32


@cache
def matrix_fragment(count: int, trans: bool, itemsize: int = 2) -> Fragment:
    """What the lanes hold of (count, 8, 16 / itemsize) stored matrices; 32-bit register j is matrix j."""
    packed = 4 // itemsize
    across, down = (1, 2) if trans else (2, 1)
    lanes = (thread_mode(4, 1, across, packed), thread_mode(8, 4, down, 1))
    modes = (*lanes, reg_mode(packed, 1, across, 1), reg_mode(count, packed, 0, 1))
    return Fragment((count, ROWS, ROW_BYTES // itemsize), modes)


@dataclass(frozen=True)
class MatrixMove:
    """How one warp's registers of a fragment are moved: `count` matrices an instruction, 16-byte runs along `dim`."""

    fragment: Fragment
    count: int
    trans: bool
    dim: int
    itemsize: int

    @property
    def run(self) -> int:
        """Elements of one instruction per thread."""
        return self.count * (4 // self.itemsize)

    @property
    def instructions(self) -> int:
        return self.fragment.registers // self.run

    def row_start(self, thread: Any, instruction: Any = 0) -> tuple[Any, ...]:
        """Coordinates of the first element of the row whose address `thread` gives; polymorphic.

        With fewer than four matrices the lanes beyond 8 * count repeat the addresses of the first ones.
        """
        packed = 4 // self.itemsize
        lane = thread % WARP
        row = lane % ROWS
        matrix = (lane // ROWS) % self.count if self.count > 1 else 0
        warp = thread // WARP * WARP
        if self.trans:
            holder, element = row // packed, row % packed
        else:
            holder, element = row * 4, 0
        register = instruction * self.run + matrix * packed + element
        return self.fragment.coords(warp + holder, register)


@cache
def matrix_move(fragment: Fragment, dim: int, itemsize: int) -> MatrixMove | None:
    """The widest ldmatrix/stmatrix that moves `fragment` when the shared layout `keeps_rows` along `dim`, or None.

    Proven by table: each 16-byte row must be 16 / itemsize consecutive elements along `dim`, starting at a multiple
    of their number.
    """
    packed, base = 4 // itemsize if itemsize <= 4 else 0, fragment.base
    if not packed or fragment.threads % WARP or base % WARP or fragment.guarded or fragment.registers % packed:
        return None
    for trans in (False, True) if itemsize == 2 else (False,):
        if _rows_are_runs(fragment, dim, packed, trans):
            words = fragment.registers // packed
            return MatrixMove(fragment, next(n for n in (4, 2, 1) if words % n == 0), trans, dim, itemsize)
    return None


@cache
def keeps_rows(layout: SharedLayout, dim: int, itemsize: int) -> bool:
    """Whether `layout` stores every aligned run of 16 bytes along `dim` in one piece at a multiple of 16 bytes."""
    run = ROW_BYTES // itemsize
    if layout.shape[dim] % run:
        return False
    rows = np.moveaxis(layout.table(), dim, -1).reshape(-1, run)
    return bool((np.diff(rows, axis=1) == 1).all()) and not (rows[:, 0] % run).any()


def _rows_are_runs(fragment: Fragment, dim: int, packed: int, trans: bool) -> bool:
    """Every 32-bit register of every warp is one matrix whose rows are consecutive along `dim`."""
    table = fragment.table().reshape(-1, WARP, fragment.registers // packed, packed, fragment.rank)
    lanes = table.reshape(table.shape[0], ROWS, 4, *table.shape[2:])
    if trans:
        # Element (row, column) of the stored matrix: lane 4 * column + row // packed, element row % packed.
        rows = lanes.transpose(0, 3, 2, 4, 1, 5).reshape(table.shape[0], -1, ROWS, ROWS, fragment.rank)
    else:
        rows = lanes.transpose(0, 3, 1, 2, 4, 5).reshape(table.shape[0], -1, ROWS, 4 * packed, fragment.rank)
    step = np.zeros(fragment.rank, dtype=np.int32)
    step[dim] = 1
    aligned = not (rows[:, :, :, 0, dim] % rows.shape[3]).any()
    return aligned and bool((np.diff(rows, axis=3) == step).all())
