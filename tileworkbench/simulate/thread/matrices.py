"""LdMatrix and StMatrix: 8 × 8 matrices of 16-bit elements between shared memory and a warp's registers.

Lane l of a matrix holds row l/4, columns 2(l%4) and the next (transposed: column l/4, rows 2(l%4) and the next); the
matrices' registers follow one another. Elements of 8 or 32 bits travel as the 16-bit pieces that they are.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...errors import InternalError
from ...ir.instr import LdMatrix, Reg, StMatrix
from .faults import fault
from .loadstore import mark, registers, write_bytes
from .memory import Space, resolver
from .program import Program
from .warp import Warp

Array = Any


def _check(s: LdMatrix | StMatrix, reg: Reg) -> None:
    if s.num not in (1, 2, 4) or reg.count * reg.buffer.dtype.bytes != 4 * s.num:
        raise InternalError(
            f"{type(s).__name__} of {s.num} matrices with {reg.count} registers of {reg.buffer.dtype}",
            rule="1, 2 or 4 matrices, four bytes of registers a matrix and lane",
            loc=s.loc,
        )


def _rows_of(w: Warp, where: Any, num: int) -> tuple[Space, Array]:
    """The addresses of the num × 8 matrix rows, from the first 8·num lanes."""
    if not w.full or w.lanes != 32:
        raise fault(w, "divergent", "a matrix load or store by part of a warp", rule="all 32 lanes execute it together")
    space, base = where(w, np.arange(8 * num))
    return space, base


def to_lanes(rows: Array, num: int, transposed: bool) -> Array:
    """(8·num, 8) pieces → (32 lanes, 2·num)."""
    matrices = rows.reshape(num, 8, 8)
    if transposed:
        matrices = matrices.transpose(0, 2, 1)
    return np.ascontiguousarray(matrices.reshape(num, 32, 2).transpose(1, 0, 2).reshape(32, 2 * num))


def from_lanes(held: Array, num: int, transposed: bool) -> Array:
    """The inverse: (32 lanes, 2·num) → (8·num, 8)."""
    matrices = held.reshape(32, num, 2).transpose(1, 0, 2).reshape(num, 8, 8)
    if transposed:
        matrices = matrices.transpose(0, 2, 1)
    return np.ascontiguousarray(matrices.reshape(num * 8, 8))


def ldmatrix(p: Program, s: LdMatrix) -> Callable[[Warp], None]:
    """LdMatrix by a whole warp; the lane that names a row's address is the one that reads it."""
    _check(s, s.dst)
    find, where, number = registers(p, s.dst, True), resolver(p, s.src, 16), p.number(s)
    num, count, dtype = s.num, s.dst.count, s.dst.buffer.dtype

    def run(w: Warp) -> None:
        rf, first = find(w)
        space, base = _rows_of(w, where, num)
        units = space.units(base, 16)
        mark(w, space, np.arange(8 * num), units, number, False)
        pieces = np.ascontiguousarray(space.read(base, 16)).view(np.uint16)
        known = np.repeat(to_lanes(space.element_defined(units, 8, 2), num, s.transposed), 2, axis=1)
        rf.data[first : first + count] = to_lanes(pieces, num, s.transposed).view(dtype.numpy).T
        rf.defined[first : first + count] = known.reshape(32, count, dtype.bytes).all(axis=2).T

    return run


def stmatrix(p: Program, s: StMatrix) -> Callable[[Warp], None]:
    """StMatrix by a whole warp."""
    _check(s, s.src)
    find, where, number = registers(p, s.src, False), resolver(p, s.dst, 16), p.number(s)
    num, count, width = s.num, s.src.count, s.src.buffer.dtype.bytes

    def run(w: Warp) -> None:
        rf, first = find(w)
        space, base = _rows_of(w, where, num)
        pieces = np.ascontiguousarray(rf.data[first : first + count].T).view(np.uint16)
        bytes_known = np.repeat(rf.defined[first : first + count].T, width, axis=1).reshape(32, 2 * num, 2).all(axis=2)
        known = np.repeat(from_lanes(bytes_known, num, s.transposed), 2, axis=1)
        # The lane that names a row's address stands for all that hold its elements: nothing but a warp-wide barrier
        # can order them anyway.
        raw = from_lanes(pieces, num, s.transposed).view(np.uint8)
        write_bytes(w, space, np.arange(8 * num), base, raw, known, number)

    return run
