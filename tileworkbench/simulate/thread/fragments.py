"""Which (lane, register) holds which element of a matrix instruction's operands, by shape and element width."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from ...errors import InternalError

Array = Any


@dataclass(frozen=True, eq=False)
class Operand:
    """`flat` is (registers, lanes): the row-major element number of a `rows` × `columns` matrix."""

    rows: int
    columns: int
    flat: Array

    def gather(self, held: Array) -> Array:
        """Registers (registers, lanes) → the matrix."""
        out = np.empty(self.rows * self.columns, dtype=held.dtype)
        out[self.flat] = held
        return out.reshape(self.rows, self.columns)

    def scatter(self, matrix: Array) -> Array:
        return matrix.reshape(-1)[self.flat]


@dataclass(frozen=True, eq=False)
class Fragments:
    """The operands of one warp-level instruction: a is m × k, b is k × n, c and d are m × n."""

    a: Operand
    b: Operand
    c: Operand


def shape_of(atom: str) -> tuple[int, int, int]:
    """m, n, k of an instruction's name (`…m16n8k16…` or `…16x16x16…`)."""
    found = re.search(r"m(\d+)n(\d+)k(\d+)", atom) or re.search(r"(\d+)x(\d+)x(\d+)", atom)
    if found is None:
        raise InternalError(f"the matrix instruction {atom!r} names no shape")
    return int(found[1]), int(found[2]), int(found[3])


def _operand(rows: int, columns: int, row: Array, column: Array) -> Operand:
    flat = row * columns + column
    if np.unique(flat).size != rows * columns:
        raise InternalError(f"the operand table does not cover {rows}×{columns}")
    return Operand(rows, columns, flat)


@cache
def fragments(atom: str, width: int) -> Fragments:
    """The tables of an instruction whose a and b elements have `width` bytes."""
    m, n, k = shape_of(atom)
    if "x" in atom and re.search(r"\d+x\d+x\d+", atom):
        return _mfma(m, n, k)
    if (m, n, k) == (8, 8, 4) and width == 8:
        return _mma_double()
    if m in (8, 16) and n == 8 and width < 8:
        return _mma(m, k, width)
    raise InternalError(f"the thread machine has no operand table for {atom!r}")


@cache
def sparse_fragments(atom: str, width: int) -> Fragments:
    """The tables of a sparse instruction: a is m × k/2, the held elements of each row in order."""
    m, n, k = shape_of(atom)
    if (m, n) != (16, 8) or k * width not in (32, 64):
        raise InternalError(f"the thread machine has no operand table for {atom!r}")
    return Fragments(_mma(m, k // 2, width).a, _mma(m, k, width).b, _mma(m, k, width).c)


def _grid(registers: int, lanes: int) -> tuple[Array, Array]:
    return np.arange(registers)[:, None], np.arange(lanes)[None, :]


def _mma(m: int, k: int, width: int) -> Fragments:
    """mma.sync m8n8kK and m16n8kK. A 32-bit register holds `packed` neighbours along k; registers go down by 8 rows
    first, then along k (PTX, matrix fragments of mma)."""
    packed, halves = 4 // width, m // 8
    i, lane = _grid(m * k // 32, 32)
    reg, sub = i // packed, i % packed
    a = _operand(m, k, lane // 4 + 8 * (reg % halves), lane % 4 * packed + 4 * packed * (reg // halves) + sub)
    i, lane = _grid(8 * k // 32, 32)
    reg, sub = i // packed, i % packed
    b = _operand(k, 8, lane % 4 * packed + 4 * packed * reg + sub, lane // 4 + 0 * i)
    i, lane = _grid(m * 8 // 32, 32)
    return Fragments(a, b, _operand(m, 8, lane // 4 + 8 * (i // 2), lane % 4 * 2 + i % 2))


def _mma_double() -> Fragments:
    i, lane = _grid(1, 32)
    a = _operand(8, 4, lane // 4 + i, lane % 4 + i)
    b = _operand(4, 8, lane % 4 + i, lane // 4 + i)
    i, lane = _grid(2, 32)
    return Fragments(a, b, _operand(8, 8, lane // 4 + 0 * i, lane % 4 * 2 + i))


def _mfma(m: int, n: int, k: int) -> Fragments:
    """CDNA mfma of one block: lanes run along m (or n), groups of lanes along k (AMD matrix instruction calculator)."""
    groups = 64 // m
    held = k // groups
    i, lane = _grid(held, 64)
    along = lane % m + 0 * i
    deep = lane // m * held + i
    a, b = _operand(m, k, along, deep), _operand(k, n, deep, along)
    i, lane = _grid(m * n // 64, 64)
    row = i // 4 * (4 * groups) + lane // n * 4 + i % 4
    return Fragments(a, b, _operand(m, n, row, lane % n + 0 * i))


@cache
def wgmma_accumulator(n: int) -> Operand:
    """m64nN accumulator of a warpgroup: (registers, 128 threads), row-major element numbers of 64 × n."""
    i, thread = _grid(n // 2, 128)
    row = thread // 32 * 16 + thread % 32 // 4 + 8 * (i // 2 % 2)
    return _operand(64, n, row, i // 4 * 8 + thread % 4 * 2 + i % 2)


@cache
def wgmma_a(k: int, width: int) -> Operand:
    """The A operand of m64nNkK held in registers by a warpgroup: each warp holds its 16 rows as mma does."""
    packed = 4 // width
    i, thread = _grid(64 * k // 128, 128)
    reg, sub = i // packed, i % packed
    row = thread // 32 * 16 + thread % 32 // 4 + 8 * (reg % 2)
    return _operand(64, k, row, thread % 4 * packed + 4 * packed * (reg // 2) + sub)
