"""T.access_ptr and the cp.async statement that takes it: a place in a buffer, given to instruction-like statements."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from ..errors import ShapeError
from ..ir.expr import Buffer, Expr, Load, Var, as_expr, binary, select, truth
from ..ir.node import walk
from ..ir.stmt import ONE, ZERO, For, Let, Store
from .builder import Builder, require
from .dtypes import as_dtype
from .elements import index_to_coordinates
from .faults import fault, shown
from .regions import to_region


@dataclass(frozen=True, eq=False)
class Pointer:
    """The address of an element, with what it is used for: r, w or rw. `place`: the element's number in the storage,
    where the user gave that."""

    buffer: Buffer
    indices: tuple[Expr, ...]
    access: str
    place: Expr | None = None

    def element(self, number: Any) -> tuple[Expr, ...]:
        """The indices of the element `number` places further in the last dimension."""
        return (*self.indices[:-1], binary("add", self.indices[-1], number))


def access_ptr(
    base: Any,
    access_type: str = "r",
    *extents: Any,
    offset: Any = 0,
    extent: Any = None,
    ignore_last_ndim: int = 0,
) -> Pointer:
    """A pointer to `base` (a buffer, an element or a slice), moved by `offset` elements of its last dimension."""
    require("T.access_ptr")
    if access_type not in ("r", "w", "rw"):
        raise fault(f"T.access_ptr: access_type={shown(access_type)}", "it is r, w or rw", 'T.access_ptr(A[i], "r")')
    region = to_region(base, "T.access_ptr: the base")
    indices = (*region.starts[:-1], binary("add", region.starts[-1], offset))
    return Pointer(region.buffer, indices, access_type)


def address_of(buffer_load: Any) -> Pointer:
    """A pointer to an element, for reading and writing."""
    require("T.address_of")
    region = to_region(buffer_load, "T.address_of: its operand")
    return Pointer(region.buffer, region.starts, "rw")


def type_annotation(dtype: Any) -> Any:
    """The element type that T.tvm_access_ptr is told."""
    as_dtype(dtype)
    return dtype


def tvm_access_ptr(ptype: Any, data: Any, offset: Any, extent: Any, rw_mask: Any) -> Pointer:
    """A pointer to the element at `offset` of a buffer's storage, counted row by row. `rw_mask` is 1 for reading, 2 for
    writing, 3 for both; `extent` is what the user says of its reach."""
    require("T.tvm_access_ptr")
    what = "T.tvm_access_ptr"
    if not isinstance(data, Buffer):
        raise fault(f"{what}: data={shown(data)}", "it points into a buffer", "T.tvm_access_ptr(T.float32, A, 0, 1, 1)")
    mode = {1: "r", 2: "w", 3: "rw"}.get(getattr(rw_mask, "value", rw_mask))
    if mode is None:
        raise fault(f"{what}: rw_mask={shown(rw_mask)}", "it is 1 (read), 2 (write) or 3 (both)", "give one of these")
    if as_dtype(ptype) is not data.dtype:
        raise fault(
            f"{what} of {as_dtype(ptype)} into `{data.name}` of {data.dtype}",
            "the pointer's type is the buffer's",
            "view the buffer by T.view",
        )
    if data.strides is not None:
        raise fault(f"{what} into `{data.name}`", "the buffer has rows without gaps", "T.access_ptr(A[i, j])")
    places = index_to_coordinates(as_expr(offset), data.shape)
    return Pointer(data, tuple(as_expr(p) for p in places), mode, as_expr(offset))


def read_once(builder: Builder, e: Expr) -> Expr:
    """What is read from memory is read once, not for every element."""
    if not any(isinstance(n, Load) for n in walk(e)):
        return e
    var = Var(builder.unique("held"), e.dtype, loc=builder.here)
    builder.emit(Let(var, e, loc=builder.here))
    return var


def ptx_cp_async(dst_ptr: Any, src_ptr: Any, num_elems: Any, predicate: Any = None) -> None:
    """Copies `num_elems` elements from global to shared memory, for the executing thread; where `predicate` is false
    the destination becomes 0. It may be in flight until T.cp_async_barrier_noinc says that it has landed; where the
    kernel waits in another way it is complete when the statement ends."""
    builder = require("T.ptx_cp_async")
    for word, value in (("dst_ptr", dst_ptr), ("src_ptr", src_ptr)):
        if not isinstance(value, Pointer):
            raise fault(f"T.ptx_cp_async: {word} is not a pointer", "it takes T.access_ptr(...)", "T.access_ptr(A[i])")
    if isinstance(num_elems, Expr) or not hasattr(num_elems, "__index__"):
        raise fault("T.ptx_cp_async: num_elems is known only at run time", "it is an int", "use a constant")
    if dst_ptr.buffer.dtype is not src_ptr.buffer.dtype:
        raise ShapeError(
            f"T.ptx_cp_async from {src_ptr.buffer.dtype} to {dst_ptr.buffer.dtype}",
            rule="both sides have one dtype",
            fix="use T.copy, which converts",
        )
    loc = builder.here
    src, dst = (replace(p, indices=tuple(read_once(builder, i) for i in p.indices)) for p in (src_ptr, dst_ptr))
    lane = Var(builder.unique("lane"), loc=loc)
    moved: Expr = Load(src.buffer, src.element(lane), loc=loc)
    if predicate is not None:
        moved = select(read_once(builder, truth(predicate)), moved, as_expr(0, dst.buffer.dtype))
    body = (Store(dst.buffer, dst.element(lane), moved, loc=loc),)
    builder.emit(For(lane, ZERO, as_expr(num_elems), ONE, body, "vector", (("cp_async", True),), loc=loc))
