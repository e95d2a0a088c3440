"""T.atomic_*: read-modify-write of elements, or of whole tiles (an implied parallel loop)."""

from __future__ import annotations

from typing import Any

from ..ir.expr import Buffer, Expr, Load, as_expr, cast
from ..ir.stmt import ZERO, Alloc, Region
from ..ops.atomic import AtomicTile
from ..ops.atomic_element import AtomicElement
from .builder import require
from .faults import fault, shown
from .fitted import fitted
from .regions import element, pair, to_region
from .remarks import remarks

ORDERS = ("relaxed", "consume", "acquire", "release", "acq_rel", "seq_cst")


def update(
    kind: str, dst: Any, value: Any, memory_order: str | None, return_prev: bool, use_tma: bool = False
) -> Expr | None:
    """Emits one read-modify-write; the old value of an element where that is asked for."""
    what = f"T.atomic_{kind}"
    builder = require(what)
    order = memory_order or "relaxed"
    if order not in ORDERS:
        raise fault(
            f"{what}: memory_order={shown(memory_order)}", f"orders are {', '.join(ORDERS)}", "leave it out for relaxed"
        )
    target = dst.buffer if isinstance(dst, Load | Region) else dst
    if isinstance(value, Buffer) and value.space == "var":
        value = element(value)
    tile = isinstance(value, Buffer | Region) or not isinstance(dst, Load)
    # A thread's own array takes a tile as it would take its elements one by one.
    if isinstance(target, Buffer) and not (tile and target.space == "local"):
        _check_target(what, target)
    if tile:
        if return_prev:
            raise fault(f"{what}: return_prev on a tile", "only an element gives its old value", "loop over elements")
        _tile(what, kind, dst, value, order, use_tma)
        return None
    operand = fitted(value, dst.buffer)
    old = None
    if return_prev:
        old = _previous(dst.buffer)
    builder.emit(AtomicElement(kind, dst.buffer, dst.indices, operand, order, old, loc=builder.here))
    return Load(old, (ZERO,), loc=builder.here) if old is not None else None


def _tile(what: str, kind: str, dst: Any, value: Any, order: str, use_tma: bool) -> None:
    builder = require(what)
    if isinstance(value, Buffer | Region):
        source, region = pair(value, dst, what)
        builder.emit(AtomicTile(kind, region, source, order, bool(use_tma), loc=builder.here))
        return
    region = to_region(dst, f"{what}: the destination")
    scalar = fitted(value, region.buffer)
    builder.emit(AtomicTile(kind, region, scalar, order, bool(use_tma), loc=builder.here))


def atomic_add(
    dst: Any, value: Any, memory_order: str | None = None, return_prev: bool = False, use_tma: bool = False,
    annotations: Any = None,
) -> Expr | None:  # fmt: skip
    """Adds to an element or a tile; `return_prev` gives the element's old value; `use_tma` reduces in bulk."""
    said = remarks(annotations)
    return update("add", dst, value, memory_order, return_prev, bool(use_tma or said.get("use_tma")))


LOAD_ORDERS = ("relaxed", "consume", "acquire", "seq_cst")
STORE_ORDERS = ("relaxed", "release", "seq_cst")


def _place(what: str, of: Any, memory_order: str, orders: tuple[str, ...]) -> Load:
    if memory_order not in orders:
        raise fault(
            f"T.{what} does not support memory_order={shown(memory_order)}",
            f"its orders are {', '.join(orders)}",
            "leave it out",
        )
    if isinstance(of, Region) and all(isinstance(e, int) and e == 1 for e in of.extents):
        of = Load(of.buffer, of.starts, loc=of.loc)
    if not isinstance(of, Load):
        raise fault(f"T.{what} of something else than an element", "it names one element", "write `A[i, j]`")
    _check_target(f"T.{what}", of.buffer)
    return of


def _check_target(what: str, buffer: Buffer) -> None:
    if buffer.space not in ("global", "shared"):
        raise fault(
            f"{what} on `{buffer.name}`, in {buffer.space} memory",
            "an atomic works on tensors and shared tiles, which several threads see",
            "use a plain assignment",
        )
    if buffer.dtype.bits not in (16, 32, 64):
        raise fault(
            f"{what} on `{buffer.name}`, {buffer.dtype}", "atomic accesses are 16, 32 or 64 bits wide", "use int32"
        )


def atomic_load(src: Any, memory_order: str = "seq_cst") -> Expr:
    """An element's value, read at once. Orders: relaxed, consume, acquire, seq_cst."""
    builder = require("T.atomic_load")
    place = _place("atomic_load", src, memory_order, LOAD_ORDERS)
    old = _previous(place.buffer)
    nothing = cast(as_expr(0), place.buffer.dtype)
    builder.emit(AtomicElement("load", place.buffer, place.indices, nothing, memory_order, old, loc=builder.here))
    return Load(old, (ZERO,), loc=builder.here)


def atomic_store(dst: Any, src: Any, memory_order: str = "seq_cst") -> None:
    """Sets an element at once. Orders: relaxed, release, seq_cst."""
    builder = require("T.atomic_store")
    place = _place("atomic_store", dst, memory_order, STORE_ORDERS)
    if isinstance(src, Buffer) and src.space == "var":
        src = element(src)
    value = fitted(src, place.buffer)
    builder.emit(AtomicElement("store", place.buffer, place.indices, value, memory_order, loc=builder.here))


def _previous(buffer: Buffer) -> Buffer:
    """A variable that receives what an element held."""
    builder = require("T.atomic_load")
    old = Buffer(builder.unique("old"), (1,), buffer.dtype, "var", loc=builder.here)
    builder.emit(Alloc(old, loc=builder.here))
    builder.define(old)
    return old


def atomic_max(
    dst: Any, value: Any, memory_order: str | None = None, return_prev: bool = False, annotations: Any = None
) -> Expr | None:
    """The larger of the old value and `value`."""
    remarks(annotations)
    return update("max", dst, value, memory_order, return_prev)


def atomic_min(
    dst: Any, value: Any, memory_order: str | None = None, return_prev: bool = False, annotations: Any = None
) -> Expr | None:
    """The smaller of the old value and `value`."""
    remarks(annotations)
    return update("min", dst, value, memory_order, return_prev)


def atomic_or(dst: Any, value: Any, memory_order: str | None = None) -> None:
    """Bitwise or of one element."""
    update("or", dst, value, memory_order, False)
