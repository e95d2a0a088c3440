"""Tensors at addresses: of a pointer parameter, of a table of pointers, or of a number."""

from __future__ import annotations

from typing import Any

from ..ir.expr import Buffer, Expr, Var
from ..ir.stmt import Alloc, Let
from .builder import require
from .dtypes import as_dtype
from .extents import as_shape
from .faults import fault, shown


def make_tensor(ptr: Any, shape: Any, dtype: Any = "float32", strides: Any = None) -> Buffer:
    """A tensor at the address of a T.ptr parameter, or at an address that a table of pointers holds (a multiple of 16
    bytes)."""
    builder = require("T.make_tensor")
    parameter = any(ptr is p for p in builder.params) and ptr.dtype.kind == "handle"
    if isinstance(ptr, Var) and ptr.name in builder.table.pointers:
        raise fault(
            f"`{ptr.name}` is given a shape twice", "a pointer parameter is viewed once", "view the tensor by T.view"
        )
    if isinstance(ptr, Expr) and not parameter and ptr.dtype.is_int and ptr.dtype.bits == 64:
        return _at_address(builder, ptr, shape, dtype, strides)
    if not isinstance(ptr, Var) or not parameter:
        raise fault(
            "T.make_tensor of something else than a pointer",
            "a pointer is a T.ptr parameter, or an element of a T.Tensor((n,), T.ptr)",
            "pass the pointer as a parameter of its own",
        )
    steps = as_shape(strides, "T.make_tensor") if strides is not None else None
    name = builder.take_hint(ptr.name)
    view = Buffer(name, as_shape(shape, "T.make_tensor"), as_dtype(dtype), "global", steps, (("pointer", ptr),))
    made: Buffer = builder.table.resolve_pointer(ptr, view)
    return made


def _at_address(builder: Any, address: Expr, shape: Any, dtype: Any, strides: Any) -> Buffer:
    name = builder.take_hint("pointed")
    held = Var(builder.unique(f"{name}_address"), dtype=address.dtype, loc=builder.here)
    builder.emit(Let(held, address, loc=builder.here))
    builder.define(held)
    steps = as_shape(strides, "T.make_tensor") if strides is not None else None
    extents = as_shape(shape, "T.make_tensor")
    made = Buffer(name, extents, as_dtype(dtype), "global", steps, (("address", held),), loc=builder.here)
    builder.emit(Alloc(made, loc=builder.here))
    builder.define(made)
    return made


def make_tensor_from_addr(
    addr: Any, shape: Any, dtype: Any = "float32", strides: Any = None, storage_scope: str = "global"
) -> Buffer:
    """A tensor in global memory at an address that is a 64-bit number, a multiple of 16."""
    builder = require("T.make_tensor_from_addr")
    if storage_scope != "global":
        raise fault(
            f"T.make_tensor_from_addr: storage_scope={shown(storage_scope)}",
            "an address that a program holds is one in global memory",
            "T.alloc_shared makes tiles, T.view sees one as another",
        )
    if not isinstance(addr, Expr) or not addr.dtype.is_int or addr.dtype.bits != 64:
        raise fault(
            f"T.make_tensor_from_addr of {shown(addr)}",
            "an address is a 64-bit integer",
            "pass it as T.int64 or T.uint64, or as an element of a tensor of them",
        )
    return _at_address(builder, addr, shape, dtype, strides)


def match_buffer(
    param: Any, shape: Any, dtype: Any = "float32", data: Any = None, strides: Any = None, elem_offset: Any = None,
    scope: str = "global", align: int = -1, offset_factor: int = 0, buffer_type: str = "", axis_separators: Any = None,
) -> Buffer:  # fmt: skip
    """The older spelling of T.make_tensor. `align`, `offset_factor` and `buffer_type` change nothing here."""
    if data is not None or elem_offset is not None or scope != "global" or axis_separators:
        raise fault(
            "T.match_buffer with data, elem_offset, another scope or axis_separators",
            "it gives a pointer in global memory a shape, dtype and strides", "T.match_buffer(ptr, shape, dtype)",
        )  # fmt: skip
    return make_tensor(param, shape, dtype, strides or None)
