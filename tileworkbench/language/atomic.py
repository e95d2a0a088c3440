"""T.atomic_*: read-modify-write of elements, or of whole tiles (an implied parallel loop)."""

from __future__ import annotations

from typing import Any

from ..ir.expr import Buffer, Expr, Load, as_expr, cast
from ..ir.stmt import ZERO, Alloc, Region
from ..ops.atomic import AtomicTile
from ..ops.atomic_element import AtomicElement
from .builder import require
from .faults import fault
from .regions import element, pair, to_region

ORDERS = ("relaxed", "consume", "acquire", "release", "acq_rel", "seq_cst")


def _atomic(
    kind: str, dst: Any, value: Any, memory_order: str | None, return_prev: bool, use_tma: bool = False
) -> Expr | None:
    what = f"T.atomic_{kind}"
    builder = require(what)
    order = memory_order or "relaxed"
    if order not in ORDERS:
        raise fault(f"{what}: memory_order={memory_order!r}", f"orders are {', '.join(ORDERS)}", "")
    target = dst.buffer if isinstance(dst, Load | Region) else dst
    if isinstance(target, Buffer) and target.dtype.is_packed:
        raise fault(
            f"{what} on `{target.name}`, {target.dtype}", "atomics take elements of at least a byte", "use int32"
        )
    if isinstance(value, Buffer) and value.space == "var":
        value = element(value)
    if isinstance(value, Buffer | Region) or not isinstance(dst, Load):
        if return_prev:
            raise fault(f"{what}: return_prev on a tile", "only an element gives its old value", "loop over elements")
        _tile(what, kind, dst, value, order, use_tma)
        return None
    fitted = cast(as_expr(value, dst.buffer.dtype), dst.buffer.dtype)
    old = None
    if return_prev:
        old = Buffer(builder.unique("old"), (1,), dst.buffer.dtype, "var", loc=builder.here)
        builder.emit(Alloc(old, loc=builder.here))
        builder.define(old)
    builder.emit(AtomicElement(kind, dst.buffer, dst.indices, fitted, order, old, loc=builder.here))
    return Load(old, (ZERO,), loc=builder.here) if old is not None else None


def _tile(what: str, kind: str, dst: Any, value: Any, order: str, use_tma: bool) -> None:
    builder = require(what)
    if isinstance(value, Buffer | Region):
        source, region = pair(value, dst, what)
        builder.emit(AtomicTile(kind, region, source, order, bool(use_tma), loc=builder.here))
        return
    region = to_region(dst, f"{what}: the destination")
    scalar = cast(as_expr(value, region.buffer.dtype), region.buffer.dtype)
    builder.emit(AtomicTile(kind, region, scalar, order, bool(use_tma), loc=builder.here))


def atomic_add(
    dst: Any, value: Any, memory_order: str | None = None, return_prev: bool = False, use_tma: bool = False
) -> Expr | None:
    """Adds to an element or a tile; `return_prev` gives the element's old value; `use_tma` reduces in bulk."""
    return _atomic("add", dst, value, memory_order, return_prev, use_tma)


def atomic_max(dst: Any, value: Any, memory_order: str | None = None, return_prev: bool = False) -> Expr | None:
    """The larger of the old value and `value`."""
    return _atomic("max", dst, value, memory_order, return_prev)


def atomic_min(dst: Any, value: Any, memory_order: str | None = None, return_prev: bool = False) -> Expr | None:
    """The smaller of the old value and `value`."""
    return _atomic("min", dst, value, memory_order, return_prev)


def atomic_or(dst: Any, value: Any, memory_order: str | None = None) -> None:
    """Bitwise or of one element."""
    _atomic("or", dst, value, memory_order, False)
