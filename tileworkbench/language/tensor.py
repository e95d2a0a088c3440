"""Parameter types and views: T.Tensor, T.StridedTensor, T.ptr, T.dynamic, T.const, T.empty, T.reshape, T.view …"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ..errors import ShapeError
from ..ir.dtype import FLOAT32, DType
from ..ir.expr import Buffer, Expr, Var
from .builder import require
from .dtypes import as_dtype, dtype
from .extents import as_shape
from .faults import fault, shown
from .pointed import make_tensor
from .views import view

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

    def __init__(self, name: str) -> None:
        self.__name__ = name

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
ptr, handle = PointerFactory("ptr"), PointerFactory("handle")


def scope_space(scope: str) -> str:
    """The ir memory space of a storage scope's name."""
    if scope not in _SPACES:
        raise fault(f"the storage scope {shown(scope)}", f"scopes are {', '.join(_SPACES)}", "use one of these")
    return _SPACES[scope]


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


def is_annotation(value: Any) -> bool:
    return isinstance(value, TensorType | PointerType | dtype | PointerFactory)
