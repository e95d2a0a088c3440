"""MmaSparse: a matrix instruction of one warp whose first operand holds half of each row, placed by metadata.

The metadata is read as the unit reads it: bit by bit from the registers of the lanes that give it (PTX, "sparse matrix
storage"): one or two lanes of each quad for 16- and 32-bit operands, two or four for 8-bit ones; the selector says
which."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...errors import InternalError
from ...ir.instr import MmaSparse
from .faults import fault
from .fragments import sparse_fragments
from .loadstore import registers
from .program import Program
from .tensor import accumulate, check_counts, held_registers, operand_values
from .warp import Warp

Array = Any
REGISTER_BYTES = 4


def giving(k: int, width: int, selector: int = 0) -> tuple[Array, Array]:
    """(lane, bit) of the 4-bit field of each group of each of the 16 rows; `width` bytes an element of A."""
    groups = k // 2 if width == 4 else k // 4
    lanes = k * width // 32 * (2 if width == 1 else 1)  # of a quad that give metadata
    row, field = np.arange(16)[:, None], np.arange(groups)[None, :]
    if width == 1:
        lane, bit = field // 8 * 2 + row // 8, field % 8 * 4
    else:
        lane, bit = field // 4 + 0 * row, row // 8 * 16 + field % 4 * 4
    return row % 8 * 4 + selector * lanes + lane, bit


def fields_of(words: Array, k: int, width: int, selector: int = 0) -> Array:
    """The 4-bit fields of each of the 16 rows, first group of the row first, from a 32-bit word of each lane."""
    lane, bit = giving(k, width, selector)
    return words[lane] >> bit.astype(np.uint32) & 15


def expand(held: Array, fields: Array, width: int) -> tuple[Array, Array]:
    """(the dense rows, which fields of held numbers have no meaning). Zeros stand where nothing is held."""
    rows, groups = fields.shape
    if width == 4:
        place = np.where(fields == 0b1110, 1, 0)[..., None]
        wrong = (fields != 0b1110) & (fields != 0b0100)
        size = 2
    else:
        place = np.stack([fields & 3, fields >> 2], axis=-1)
        wrong = place[..., 0] >= place[..., 1]
        size = 4
    values = held.reshape(rows, groups, size // 2)
    dense = np.zeros((rows, groups, size), held.dtype)
    for i in range(size // 2):
        at = place[..., i : i + 1].astype(np.int64)
        np.put_along_axis(dense, at, np.take_along_axis(dense, at, -1) + values[..., i : i + 1], -1)
    return dense.reshape(rows, groups * size), wrong & (values != 0).any(axis=-1)


def words_of(held: Array) -> Array:
    """The 32 bits that each lane's metadata registers (registers, lanes) hold."""
    raw = np.ascontiguousarray(held.T).view(np.uint8)
    return raw.reshape(held.shape[1], REGISTER_BYTES).view("<u4")[:, 0]


def check_metadata(s: Any) -> None:
    """InternalError when the metadata operand is not 32 bits a lane."""
    if s.e.count * s.e.buffer.dtype.bytes != REGISTER_BYTES:
        raise InternalError(f"the metadata of {s.atom} is {s.e.count} of {s.e.buffer.dtype}, not 32 bits", loc=s.loc)


def dense_rows(w: Warp, s: Any, held: Array, words: Sequence[Array], k: int, width: int, selector: int = 0) -> Array:
    """The rows of `a` with zeros where nothing is held, 16 rows for each warp's metadata."""
    fields = np.concatenate([fields_of(x, k, width, selector) for x in words])
    rows, wrong = expand(held, fields, width)
    if wrong.any():
        row, at = np.argwhere(wrong)[0]
        raise fault(
            w,
            "metadata",
            f"metadata {fields[row, at]:#06b} for group {at} of row {row}",
            at=s,
            rule="a field names two places in rising order (of two 32-bit elements: 0b0100 or 0b1110)",
            fix="compress the operand and its metadata together",
        )
    return rows


def mma_sparse(p: Program, s: MmaSparse) -> Callable[[Warp], None]:
    """MmaSparse by a whole warp: d = a·b + c over the dense rows; all operands must be defined, the metadata in the
    lanes that give it."""
    a_type, b_type, acc = s.a.buffer.dtype, s.b.buffer.dtype, s.d.buffer.dtype
    width, tf32 = a_type.bytes, "tf32" in s.atom
    table = sparse_fragments(s.atom, width)
    check_counts(s, table)
    check_metadata(s)
    operands = (("a", s.a), ("b", s.b), ("c", s.c), ("e", s.e))
    find = [(name, registers(p, reg, False), reg.count) for name, reg in operands]
    target = registers(p, s.d, True)
    asked = {"e": np.isin(np.arange(32), giving(table.b.rows, width, s.selector)[0])}

    def run(w: Warp) -> None:
        held_a, held_b, held_c, held_e = held_registers(w, find, asked)
        held = operand_values(table.a.gather(held_a), a_type, tf32)
        a = dense_rows(w, s, held, [words_of(held_e)], table.b.rows, width, s.selector)
        b = operand_values(table.b.gather(held_b), b_type, tf32)
        result = accumulate(a, b, table.c.gather(held_c), acc)
        out, into = target(w)
        out.data[into : into + s.d.count] = table.c.scatter(result)
        out.defined[into : into + s.d.count] = True

    return run
