"""Mma: a matrix instruction of one warp (mma.sync, mfma) on register fragments."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import numpy as np

from ...errors import InternalError
from ...ir.dtype import DType
from ...ir.instr import Mma, MmaSparse
from .faults import fault
from .fragments import fragments
from .loadstore import registers
from .program import Program
from .warp import Warp

Array = Any


def operand_values(held: Array, dtype: DType, tf32: bool) -> Array:
    """Operand elements as numbers that a product keeps exactly: float64, or int64 for integers. A tf32 operand is cut
    to 10 mantissa bits, as the unit ignores the rest of the register."""
    if dtype.is_int:
        return held.astype(np.int64)
    if tf32:
        held = (np.ascontiguousarray(held, dtype=np.float32).view(np.uint32) & np.uint32(0xFFFFE000)).view(np.float32)
    return held.astype(np.float64)


def accumulate(a: Array, b: Array, c: Any, dtype: DType) -> Array:
    """a·b + c, summed in float64 (int64) and rounded once to the accumulator's type."""
    total = a @ b if c is None else a @ b + c.astype(a.dtype)
    return total.astype(dtype.numpy)


def held_registers(
    w: Warp, find: list[tuple[str, Any, int]], asked: Mapping[str, Array] = MappingProxyType({})
) -> list[Array]:
    """The (registers, lanes) of each operand of a whole warp's matrix instruction; all of them must be defined, in the
    lanes `asked` where the instruction reads an operand from some lanes alone."""
    if not w.full or not w.alive.all():
        raise fault(w, "divergent", "a matrix instruction by part of a warp", rule="all lanes execute it together")
    held = []
    for name, reg, count in find:
        rf, first = reg(w)
        known = rf.defined[first : first + count]
        if name in asked:
            known = known | ~asked[name]
        if not known.all():
            raise fault(
                w,
                "undefined",
                f"operand {name} ({rf.buffer.name}) holds values that were never written",
                lanes=~known.all(axis=0),
                rule="all elements of a matrix operand are defined",
                fix="clear the accumulator, or zero-fill the tail of the tile",
            )
        held.append(rf.data[first : first + count])
    return held


def check_counts(s: Mma | MmaSparse, table: Any) -> None:
    """InternalError when an operand's run of registers is not what the instruction takes."""
    for name, reg, part in (("a", s.a, table.a), ("b", s.b, table.b), ("c", s.c, table.c), ("d", s.d, table.c)):
        if reg.count != part.flat.shape[0]:
            raise InternalError(
                f"operand {name} of {s.atom} has {reg.count} registers, not {part.flat.shape[0]}", loc=s.loc
            )


def mma(p: Program, s: Mma) -> Callable[[Warp], None]:
    """Mma by a whole warp: d = a·b + c, each sum rounded once; all operands must be defined."""
    a_type, b_type, acc = s.a.buffer.dtype, s.b.buffer.dtype, s.d.buffer.dtype
    table = fragments(s.atom, a_type.bytes)
    tf32 = "tf32" in s.atom or "xf32" in s.atom
    check_counts(s, table)
    find = [(name, registers(p, reg, False), reg.count) for name, reg in (("a", s.a), ("b", s.b), ("c", s.c))]
    target = registers(p, s.d, True)

    def run(w: Warp) -> None:
        held = held_registers(w, find)
        a = operand_values(table.a.gather(held[0]), a_type, tf32)
        b = operand_values(table.b.gather(held[1]), b_type, tf32)
        result = accumulate(a, b, table.c.gather(held[2]), acc)
        out, into = target(w)
        out.data[into : into + s.d.count] = table.c.scatter(result)
        out.defined[into : into + s.d.count] = True

    return run
