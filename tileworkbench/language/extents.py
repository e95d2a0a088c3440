"""Extents of tensors and tiles: numbers, sizes known at run time, and what else users write for them."""

from __future__ import annotations

from typing import Any

from ..errors import ShapeError
from ..ir.expr import Expr
from .faults import shown


def as_shape(shape: Any, what: str, least: int = 1) -> tuple[Any, ...]:
    """A shape as a tuple of ints ≥ `least` and expressions; a bare int or expression is one dimension."""
    entries = tuple(shape) if isinstance(shape, list | tuple) else (shape,)
    return tuple(_extent(e, what, least) for e in entries)


def _extent(entry: Any, what: str, least: int) -> Any:
    if isinstance(entry, Expr):
        value = getattr(entry, "value", entry)
        if isinstance(value, Expr):
            if not value.dtype.is_int:
                raise ShapeError(
                    f"{what}: an extent of type {value.dtype}",
                    rule="extents are integers or symbols (T.dynamic)",
                    fix="T.cast(x, 'int32')",
                )
            return value
        entry = value
    if isinstance(entry, bool) or not hasattr(entry, "__index__"):
        raise ShapeError(
            f"{what}: an extent is {shown(entry)}", rule="extents are integers or symbols (T.dynamic)", fix="use `//`"
        )
    if entry.__index__() < least:
        raise ShapeError(
            f"{what}: an extent is {entry}",
            rule=f"extents are at least {least}",
            fix=f"give each dimension a size of {least} or more",
        )
    return entry.__index__()
