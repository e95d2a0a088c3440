"""Parameter types and views: T.Tensor, T.StridedTensor, T.ptr, T.dynamic, T.const, T.empty, T.reshape, T.view …"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ..errors import ShapeError
from ..ir.dtype import FLOAT32, DType
from ..ir.expr import Buffer, Expr, Var
from ..ir.stmt import Alloc, Let
from .builder import require
from .dtypes import as_dtype, dtype
from .faults import fault, shown

_SPACES = {
    "global": "global",
    "shared": "shared",
    "shared.dyn": "shared",
    "local.fragment": "fragment",
    "local": "local",
    "local.var": "var",
    "shared.barrier": "barrier",
}


@dataclass(frozen=True, eq=False)
class TensorType:
    """What an annotation says about a tensor: shape and strides hold ints and expressions; space as in ir.Buffer."""

    shape: tuple[Any, ...]
    dtype: DType
    strides: tuple[Any, ...] | None = None
    space: str = "global"

    def buffer(self, name: str) -> Buffer:
        return Buffer(name, self.shape, self.dtype, self.space, self.strides)


@dataclass(frozen=True)
class PointerType:
    """A raw pointer parameter; T.make_tensor gives it a shape."""

    dtype: DType
    space: str = "global"


class TensorFactory:
    """`T.Tensor(shape, dtype)` and `T.Tensor[shape, dtype]`; `T.Tensor[[M, K], dtype]` as well."""

    def __init__(self, name: str, space: str) -> None:
        self.__name__, self.space = name, space

    def __call__(self, shape: Any, dtype: Any = "float32", data: Any = None, scope: str | None = None) -> Any:
        if data is not None:
            return view(data, shape, dtype) if isinstance(data, Buffer) else make_tensor(data, shape, dtype)
        space = self.space if scope is None else scope_space(scope)
        return TensorType(as_shape(shape, f"T.{self.__name__}", 0), as_dtype(dtype), space=space)

    def __getitem__(self, key: Any) -> TensorType:
        if not isinstance(key, tuple):
            return TensorType(as_shape(key, f"T.{self.__name__}", 0), FLOAT32, space=self.space)
        *shape, last = key
        if isinstance(last, int | Expr):  # T.Tensor[M, N]: no dtype
            return TensorType(as_shape(key, f"T.{self.__name__}", 0), FLOAT32, space=self.space)
        entries = shape[0] if len(shape) == 1 and isinstance(shape[0], list | tuple) else tuple(shape)
        return TensorType(as_shape(entries, f"T.{self.__name__}", 0), as_dtype(last), space=self.space)

    def __repr__(self) -> str:
        return f"T.{self.__name__}"


class StridedFactory:
    """`T.StridedTensor(shape, strides, dtype)` or `T.StridedTensor[[…], […], dtype]`; strides in elements."""

    __name__ = "StridedTensor"

    def __call__(self, shape: Any, strides: Any, dtype: Any = "float32") -> TensorType:
        made, steps = as_shape(shape, "T.StridedTensor", 0), as_shape(strides, "T.StridedTensor", 0)
        if len(made) != len(steps):
            raise ShapeError(
                f"T.StridedTensor with {len(made)} extents and {len(steps)} strides",
                rule="a stride for each extent",
                fix="give both lists the same length",
            )
        return TensorType(made, as_dtype(dtype), steps)

    def __getitem__(self, key: Any) -> TensorType:
        return self(*key)


class PointerFactory:
    """`T.ptr` as an annotation, or `T.ptr(dtype)`; as an element type it means a table of pointers."""

    __name__ = "ptr"

    def __call__(self, dtype: Any = "float32", storage_scope: str = "global") -> PointerType:
        return PointerType(as_dtype(dtype), scope_space(storage_scope))

    @property
    def __dtype__(self) -> DType:
        return as_dtype("int64")


Tensor = TensorFactory("Tensor", "global")
Buffer_ = TensorFactory("Buffer", "global")
SharedBuffer = TensorFactory("SharedBuffer", "shared")
FragmentBuffer = TensorFactory("FragmentBuffer", "fragment")
LocalBuffer = TensorFactory("LocalBuffer", "local")
StridedTensor = StridedFactory()
ptr = PointerFactory()


def scope_space(scope: str) -> str:
    """The ir memory space of a storage scope's name."""
    if scope not in _SPACES:
        raise fault(f"the storage scope {shown(scope)}", f"scopes are {', '.join(_SPACES)}", "use one of these")
    return _SPACES[scope]


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


# -- symbols --


def _names(name: Any) -> list[str]:
    return re.split(r"[,\s]+", name.strip()) if isinstance(name, str) else list(name)


def _each(name: Any, make: Callable[[str], Any]) -> Any:
    made = [make(n) for n in _names(name)]
    return made[0] if len(made) == 1 and isinstance(name, str) else tuple(made)


def dynamic(name: Any, dtype: Any = "int32") -> Any:
    """A dimension known at run time; one name gives a symbol, several ("m, n") a tuple."""
    return _each(name, lambda n: Var(n, dtype=as_dtype(dtype)))


symbolic = dynamic


def const(name: Any, dtype: Any = "int32") -> Any:
    """A dimension of an eager kernel, read from the tensors' shapes and known while compiling."""
    builder = require("T.const")
    if builder.style != "eager":
        raise fault(
            "T.const in a T.prim_func",
            "T.const reads the shapes of an eager kernel's arguments",
            "use a Python value of the factory, or T.dynamic",
        )
    return _each(name, lambda n: builder.table.constant(n, as_dtype(dtype)))


# -- tensors made inside --


def empty(*shape: Any, dtype: Any = "float32") -> Buffer:
    """Declares an output that the kernel returns: `T.empty((M, N), dtype)` or `T.empty(M, N, dtype=…)`."""
    if len(shape) >= 2 and not isinstance(shape[-1], int | Expr):
        *shape, dtype = shape  # type: ignore[assignment]
    if len(shape) == 1 and isinstance(shape[0], list | tuple):
        shape = tuple(shape[0])
    builder = require("T.empty")
    made = Buffer(builder.take_hint("out"), as_shape(shape, "T.empty", 0), as_dtype(dtype), loc=builder.here)
    builder.empties.append(made)
    return made


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


def match_buffer(param: Any, shape: Any, dtype: Any = "float32", strides: Any = None) -> Buffer:
    """The older spelling of T.make_tensor."""
    return make_tensor(param, shape, dtype, strides or None)


def reshape(src: Buffer, shape: Any) -> Buffer:
    """The same storage with another shape of equally many elements."""
    return view(src, shape, None)


def view(src: Buffer, shape: Any = None, dtype: Any = None) -> Buffer:
    """The same storage with another shape and dtype of equally many bits."""
    builder = require("T.view")
    if not isinstance(src, Buffer):
        raise fault("T.view of something else than a tile", "views are made of whole buffers", "name the buffer")
    to = as_dtype(dtype) if dtype is not None else src.dtype
    extents = as_shape(shape, "T.view") if shape is not None else src.shape
    if to is not src.dtype and (to.is_packed or src.dtype.is_packed):
        raise fault(
            f"T.view of `{src.name}`, {src.dtype}, as {to}",
            "elements narrower than a byte have one layout in global memory and another in shared memory",
            "declare the tensor as int8 and take the elements apart",
        )
    bits = [_bits(s, d) for s, d in ((src.shape, src.dtype), (extents, to))]
    if None not in bits and bits[0] != bits[1]:
        raise ShapeError(
            f"T.view of `{src.name}`: {bits[0]} bits seen as {bits[1]} bits",
            rule="a view has as many bits as its source",
            fix="check the product of the extents",
        )
    root = src.attr("view_of", src)
    made = Buffer(builder.take_hint(src.name), extents, to, src.space, None, (("view_of", root),), loc=builder.here)
    builder.emit(Alloc(made, loc=builder.here))
    builder.define(made)
    return made


def _bits(shape: tuple[Any, ...], of: DType) -> int | None:
    return math.prod(shape) * of.bits if all(isinstance(s, int) for s in shape) else None


def is_annotation(value: Any) -> bool:
    return isinstance(value, TensorType | PointerType | dtype | PointerFactory)
