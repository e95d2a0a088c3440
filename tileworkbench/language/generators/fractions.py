"""32 or 53 random bits as a number in (0, 1), for the generators whose words are all of 32 bits."""

from __future__ import annotations

from ...ir.dtype import FLOAT32, UINT64, DType
from ...ir.expr import Expr, as_expr, cast
from .text import Generator, Text, u64


def constant(x: float, dtype: DType) -> Expr:
    return cast(as_expr(x, dtype), dtype)


def fraction(source: Generator, out: Text, dtype: DType, scale: float) -> Expr:
    """The middle of the bits' interval in (0, scale): 32 bits of a word for a float32, 53 of two for a float64."""
    step = scale * 2.0 ** -(32 if dtype is FLOAT32 else 53)
    bits = source.word(out)
    if dtype is not FLOAT32:
        bits = cast(bits, UINT64) ^ (cast(source.word(out), UINT64) << u64(21))
    return cast(bits, dtype) * constant(step, dtype) + constant(step / 2, dtype)
