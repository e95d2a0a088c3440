"""Descriptors of a warpgroup product's operands: where each instruction of the tile begins, as a form of its loops."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...errors import InternalError, LayoutError
from ...ir.expr import Expr, const
from ...ir.instr import Addr, Desc
from ...ir.stmt import ZERO, Region
from ...layout import SharedLayout
from ...layout.descriptor import Descriptor, wgmma_descriptor
from ...layout.wgmma import K_BYTES
from ..context import Context
from .wgmma_choice import is_late


def desc(
    region: Region, mn_major: bool, extent_mn: int, along_mn: Any, along_k: Any, ctx: Context, k_bytes: int = K_BYTES
) -> Desc:
    """The operand's descriptor with its start as a linear form of the loops, proven over all of them."""
    if is_late(region):
        return _late_desc(region, mn_major, extent_mn, along_mn, along_k, ctx)
    buffer, item = region.buffer, region.buffer.dtype.bytes
    layout = ctx.layouts[buffer]
    axes = [*along_mn, along_k]
    counts = [count for _, count, _ in axes]
    starts = np.empty(counts, dtype=np.int64)
    first: Descriptor | None = None
    row, column = (int(s.value) for s in region.starts[-2:])  # type: ignore[attr-defined]
    at_mn, at_k = (column, row) if mn_major else (row, column)
    for index in np.ndindex(*counts):
        mn = sum(i * size for i, (_, _, size) in zip(index[:-1], along_mn, strict=True))
        made = wgmma_descriptor(
            layout, item, mn_major, at_mn + mn, at_k + index[-1] * along_k[2], extent_mn, k_bytes=k_bytes
        )
        first = first or made
        starts[index] = made.start
    offset: Expr = const(int(starts.flat[0]) // item)
    for axis, (var, count, _) in enumerate(axes):
        if count == 1:
            continue
        along = np.moveaxis(starts, axis, 0)
        offset = offset + _piecewise(along, var, item)
    if first is None:
        raise InternalError("a wgmma operand without an instruction", loc=region.loc)
    base = ctx.address(buffer, (*region.starts[:-2], ZERO, ZERO))
    place = Addr(base.buffer, ctx.facts.simplify(base.offset + offset))
    return Desc(place, first.span, first.leading, first.stride, "mn" if mn_major else "k")


def _late_desc(region: Region, mn_major: bool, extent_mn: int, along_mn: Any, along_k: Any, ctx: Context) -> Desc:
    """The descriptor of an operand whose place in the tile is worked out at run time."""
    buffer, item = region.buffer, region.buffer.dtype.bytes
    layout = ctx.layouts[buffer]
    first = wgmma_descriptor(layout, item, mn_major, 0, 0, extent_mn)
    tile = SharedLayout.swizzled(layout.shape, item, first.span)
    row, column = region.starts[-2:]
    along: list[Expr] = [ZERO, ZERO]
    for axis, parts in ((0, along_mn), (1, (along_k,))):
        for var, count, size in parts:
            along[axis] = along[axis] + (var * size if count > 1 else ZERO)
    row = ctx.facts.simplify(row + along[1 if mn_major else 0])
    column = ctx.facts.simplify(column + along[0 if mn_major else 1])
    width = tile.panel_columns
    offset = column // width * tile.panel_size + row * width + column % width
    base = ctx.address(buffer, (*region.starts[:-2], ZERO, ZERO))
    place = Addr(base.buffer, ctx.facts.simplify(base.offset + offset))
    return Desc(place, first.span, first.leading, first.stride, "mn" if mn_major else "k")


def _piecewise(along: np.ndarray[Any, Any], var: Expr, item: int) -> Expr:
    """Elements added per index of one axis: one stride, or two when panels are crossed (period found by table)."""
    profile = along.reshape(along.shape[0], -1)
    steps = profile - profile[0]
    if not (steps == steps[:, :1]).all():
        raise LayoutError("a wgmma operand's place is not a sum over its loops")
    values = steps[:, 0] // item
    count = len(values)
    for period in (d for d in range(1, count + 1) if count % d == 0):
        inner, outer = int(values[1 % count]) if period > 1 else 0, int(values[period]) if period < count else 0
        index = np.arange(count)
        if np.array_equal(index % period * inner + index // period * outer, values):
            low = var % period * inner if period > 1 else ZERO
            return low + (var // period * outer if period < count else ZERO)
    raise LayoutError("a wgmma operand's place is no strided form of its loop")
