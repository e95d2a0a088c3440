"""Slices to the end of a tensor of run-time size: beside a tile of constant size they are the tile's piece of the
tensor, whose part behind the edge reads 0 and is not written."""

from __future__ import annotations

from typing import Any

from ..ir.expr import Buffer, Expr, Load, Var, as_expr, compare, same
from ..ir.kernel import Assumed
from ..ir.node import replace, walk
from ..ir.stmt import Region, whole
from ..ir.text import show_expr
from .builder import Builder
from .linear import difference
from .regions import is_one, wide


def fit_to_tile(builder: Builder, a: Any, b: Any) -> tuple[Any, Any]:
    """Both sides of a copy, where a slice `x[s:n]` to the end of a tensor of run-time size takes the size of the other
    side's tile. The kernel checks that the tile holds it."""
    if not all(isinstance(s, Buffer | Region) for s in (a, b)) or (isinstance(a, Buffer) and isinstance(b, Buffer)):
        return a, b
    one, other = (whole(s) if isinstance(s, Buffer) else s for s in (a, b))
    if len(wide(one)) != len(wide(other)):
        return a, b
    return _fitted(builder, a, one, other), _fitted(builder, b, other, one)


def _fitted(builder: Builder, given: Any, mine: Region, other: Region) -> Any:
    if mine.buffer.space != "global" or other.buffer.space == "global":
        return given
    sizes = iter(wide(other))
    extents = tuple(e if is_one(e) else _size(builder, mine, d, next(sizes)) for d, e in enumerate(mine.extents))
    if all(e is known for e, known in zip(extents, mine.extents, strict=True)):
        return given
    return Region(mine.buffer, mine.starts, extents, loc=mine.loc)


def _size(builder: Builder, mine: Region, d: int, size: Any) -> Any:
    """The extent of a dimension beside one of `size`."""
    extent, whole_extent = mine.extents[d], mine.buffer.shape[d]
    if not isinstance(size, int) or not isinstance(whole_extent, Expr) or not _of_symbols(builder, extent):
        return extent
    if difference(as_expr(mine.starts[d]) + extent, whole_extent) != 0:
        return extent
    told = f"{show_expr(extent)} elements of `{mine.buffer.name}` are copied as a tile of {size}"
    holds = compare("le", extent, size)
    if not any(same(stated.cond, holds) for stated in builder.asserts):
        builder.asserts.append(Assumed(replace(holds, loc=builder.here), told, True))
    return size


def _of_symbols(builder: Builder, e: Any) -> bool:
    """Whether a value is of the call's symbols alone."""
    inside = {v for frame in builder.frames for v in frame.defined}
    found = walk(e) if isinstance(e, Expr) else ()
    return isinstance(e, Expr) and not any(isinstance(n, Load) or (isinstance(n, Var) and n in inside) for n in found)
