"""Block order for L2 reuse (T.use_swizzle): block indices are renamed so that neighbours in launch order share panels.

Row order: panels of `panel` grid rows; inside a panel blocks walk down its rows, then to the next column; odd panels
are walked backwards; the last panel may be narrower. Column order is the same with rows and columns exchanged. A third
grid dimension keeps its place: each of its slices is ordered so.
"""

from __future__ import annotations

from typing import Any

from ..ir.expr import Expr, Value, Var, as_expr, compare, minimum, select
from ..ir.kernel import Kernel
from ..ir.stmt import Let
from ..target import Target


def raster(kernel: Kernel, target: Target) -> Kernel:
    """The kernel with its block indices computed from renamed ones."""
    wish = kernel.attrs.get("swizzle")
    if wish is None:
        return kernel
    panel, order = wish
    attrs = {k: v for k, v in kernel.attrs.items() if k != "swizzle"}
    if len(kernel.grid) < 2:
        return kernel.with_(attrs=attrs, notes=(*kernel.notes, "T.use_swizzle has no effect on a 1-dimensional grid"))
    x, y, *others = kernel.block_vars
    raw = tuple(Var(f"{v.name}_launched") for v in (x, y))
    gx, gy = kernel.grid[:2]
    new_x, new_y = _row(raw[0], raw[1], gx, gy, panel) if order == "row" else _column(raw[0], raw[1], gx, gy, panel)
    limits = {x: (0, _last(gx)), y: (0, _last(gy))}
    attrs["ranges"] = {**kernel.attrs.get("ranges", {}), **limits}
    lets = (Let(x, new_x, loc=kernel.loc), Let(y, new_y, loc=kernel.loc))
    notes = (*kernel.notes, f"blocks run in panels of {panel} grid {order}s")
    return kernel.with_(block_vars=(*raw, *others), body=(*lets, *kernel.body), attrs=attrs, notes=notes)


def _row(bx: Expr, by: Expr, gx: Value, gy: Value, panel: int) -> tuple[Expr, Expr]:
    """Panels of grid rows: (column, row) of the block launched as (bx, by)."""
    launched = by * gx + bx
    area = as_expr(gx) * panel
    which = launched // area
    inside = launched - which * area
    height = minimum(panel, as_expr(gy) - which * panel)
    along = inside // height
    backwards = compare("eq", which % 2, 1)
    return select(backwards, as_expr(gx) - 1 - along, along), inside % height + which * panel


def _column(bx: Expr, by: Expr, gx: Value, gy: Value, panel: int) -> tuple[Expr, Expr]:
    row, column = _row(by, bx, gy, gx, panel)
    return column, row


def _last(extent: Any) -> float:
    value = getattr(extent, "value", extent)
    return value - 1 if isinstance(value, int) else float("inf")
