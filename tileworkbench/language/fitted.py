"""Values on their way into elements."""

from __future__ import annotations

import math
from typing import Any

from ..ir.dtype import BOOL, DType
from ..ir.expr import Buffer, Expr, as_expr, cast, holds
from .faults import fault


def fitted(value: Any, buffer: Buffer) -> Expr:
    """`value` as an element of the buffer. LanguageError for a number beyond the range of its type."""
    to = buffer.dtype
    number = value.item() if hasattr(value, "item") and not isinstance(value, Expr) else value
    if isinstance(number, int | float) and to is not BOOL and not _fits(number, to):
        limit = "maximum" if number > 0 else "minimum"
        raise fault(
            f"{number!r} exceeds {limit} of {to}, the dtype of `{buffer.name}`",
            f"elements of {to} are numbers from {to.min_value()} to {to.max_value()}",
            f"use a wider dtype, or T.cast({number!r}, dtype), which converts as the device does",
        )
    return cast(as_expr(value, to), to)


def _fits(number: int | float, to: DType) -> bool:
    """Floats lose their fraction in integers."""
    if to.is_int and isinstance(number, float):
        return not math.isfinite(number) or holds(to, int(number))
    return holds(to, number)
