"""Operands of tile operations against the extents of their tiles."""

from __future__ import annotations

from ..errors import Loc, ShapeError
from ..ir.expr import Const
from ..ir.node import Node, children
from ..ir.stmt import Region
from .faults import exact


def check_ranges(op: Node, loc: Loc | None) -> None:
    """Operands in tiles lie inside them, as far as is known. (Outside a tensor reads give 0, writes are dropped.)"""
    for region in (r for r in children(op) if isinstance(r, Region) and r.buffer.space != "global"):
        for dim, (start, size, extent) in enumerate(
            zip(region.starts, region.extents, region.buffer.shape, strict=True)
        ):
            first = start.value if isinstance(start, Const) else 0
            if isinstance(size, int) and isinstance(extent, int) and not 0 <= first <= first + size <= extent:
                raise exact(
                    ShapeError(
                        f"elements {first} … {first + size - 1} of `{region.buffer.name}` dimension {dim}",
                        rule=f"the dimension has {extent} elements",
                        fix=f"stay within 0 … {extent - 1}",
                        loc=region.loc or loc,
                    )
                )
