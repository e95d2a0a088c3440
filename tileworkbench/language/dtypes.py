"""Data type objects of the language: `T.float16` names a dtype, annotates scalars, and casts when called."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, ClassVar, Self

from ..errors import TargetError, TileError
from ..ir.dtype import DTYPES, DType
from ..ir.dtype import dtype as to_dtype
from ..ir.expr import Buffer, Expr, Load, Var, as_expr, cast
from ..ir.stmt import ZERO
from .builder import current
from .faults import fault

# Element types that exist in the language but have no storage here yet, with their bits.
_UNBUILT = {
    "int1": 1,
    "uint1": 1,
    "int2": 2,
    "uint2": 2,
    "float4_e2m1_unpacked": 8,
    "float6_e2m3fn": 6,
    "float6_e3m2fn": 6,
    "float8_e3m4": 8,
    "float8_e4m3b11fnuz": 8,
}
_IN_TORCH = {"tfloat32": "float32", "float4_e2m1fn": "float4_e2m1fn_x2", "int4": "int8", "uint4": "uint8"}


class dtype(str):
    """A data type: `T.dtype("float16")`, `T.float16`. Its own name as text, equal to whatever names the same type;
    calling it casts."""

    __slots__ = ("__dtype__",)
    __dtype__: DType

    def __new__(cls, value: Any) -> dtype:
        row = as_dtype(value)
        made = super().__new__(cls, row.name)
        made.__dtype__ = row
        return made

    @property
    def name(self) -> str:
        """For example "float16"."""
        return self.__dtype__.name

    @property
    def bits(self) -> int:
        """Bits of an element."""
        return self.__dtype__.bits

    @property
    def bytes(self) -> int:
        """Bytes of an element in memory; packed types take one."""
        return self.__dtype__.bytes

    @property
    def lanes(self) -> int:
        """Elements in a value of the type."""
        return 1

    def as_torch(self) -> Any:
        """The torch dtype that holds this one (imports torch): of packed types that of the pairs or bytes."""
        import torch

        return getattr(torch, _IN_TORCH.get(self.name, self.name))

    def __call__(self, value: Any = None) -> Expr:
        """`value` cast to this type; without one a variable that T.let gives its value."""
        if value is None:
            return _variable(self.__dtype__)
        if isinstance(value, Buffer):
            if value.space != "var":
                raise fault(
                    f"T.{self.name}({value.name}) casts a whole tile",
                    "a dtype casts scalars",
                    "T.copy converts tiles elementwise",
                )
            value = value_of(value)
        return cast(as_expr(value, self.__dtype__ if type(value) is float else None), self.__dtype__)

    def __eq__(self, other: object) -> bool:
        try:
            return to_dtype(other) is self.__dtype__
        except (TileError, TypeError):
            return False

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = str.__hash__

    def __repr__(self) -> str:
        return f"T.{self.name}"


class UnbuiltDtype(str):
    """A data type that can be named and compared; using it for a tile or a value is a TargetError."""

    __slots__ = ("bits",)
    bits: int
    lanes = 1

    def __new__(cls, name: str, bits: int) -> Self:
        made = super().__new__(cls, name)
        made.bits = bits
        return made

    @property
    def name(self) -> str:
        """The name it is written by."""
        return str(self)

    def __call__(self, value: Any) -> Expr:
        return cast(as_expr(value), as_dtype(self))

    def __repr__(self) -> str:
        return f"T.{self}"


class VectorDtype(UnbuiltDtype):
    """Several elements side by side (`float32x2`): the type of T.reinterpret's results and of variables. Called with
    as many values, or with one for all lanes, it makes a vector. Tiles hold one element a place."""

    __slots__ = ("lanes",)
    made: ClassVar[Callable[..., Any]]  # given by the module of vectors

    @property
    def element(self) -> str:
        """The name of one lane's type."""
        return self.removesuffix(f"x{self.lanes}")

    def __call__(self, *values: Any) -> Any:
        """A vector of this type."""
        return VectorDtype.made(self, values)

    @classmethod
    def of(cls, base: str, bits: int, lanes: int) -> VectorDtype:
        """The type of `lanes` elements of `bits` each."""
        made = cls(f"{base}x{lanes}", bits)
        made.lanes = lanes
        return made

    def as_torch(self) -> Any:
        """The torch dtype of the pair (imports torch): torch has one, float4_e2m1fn_x2."""
        import torch

        return getattr(torch, f"{self.element}_x{self.lanes}")


def vector_dtype(name: str) -> VectorDtype | None:
    """The type that `T.<name>` names when it is an element type and a number of lanes."""
    found = re.fullmatch(r"(\w+?)x(2|4|8|16|32|64)", name)
    base = (NAMES.get(found[1]) or UNBUILT.get(found[1])) if found else None
    return VectorDtype.of(base.name, base.bits, int(found[2])) if found and base is not None else None


def _variable(of: DType) -> Var:
    builder = current()
    if builder is None:
        return Var("v", dtype=of)
    made = Var(builder.take_hint("v"), dtype=of, loc=builder.here)
    builder.unset.add(made)
    return made


def vector_type(dtype: Any) -> VectorDtype | None:
    """The vector type that a user's word names; None for any other word."""
    return dtype if isinstance(dtype, VectorDtype) else vector_dtype(dtype) if type(dtype) is str else None


def value_of(variable: Buffer) -> Expr:
    return Load(variable, (ZERO,) * variable.rank)


def as_dtype(value: Any) -> DType:
    """The ir dtype that a user's word names; TargetError for a format without storage here."""
    if isinstance(value, VectorDtype) or (isinstance(value, str) and type(value) is str and vector_dtype(value)):
        raise TargetError(
            f"the data type {value!s}",
            rule="a place of a tile or tensor holds one element; variables and T.reinterpret have vectors",
            fix="give the tile a last dimension of as many elements, and loop with T.vectorized",
        )
    if isinstance(value, UnbuiltDtype) or value in _UNBUILT:
        raise TargetError(
            f"the data type {value!s}",
            rule="it needs elements narrower than a byte, or a format, that have no storage here yet",
            fix="use int8 or an fp8 type, packed by hand",
        )
    return to_dtype(value)


NAMES: dict[str, dtype] = {name: dtype(name) for name in DTYPES if name != "handle"}
NAMES |= {alias: dtype(alias) for alias in ("half", "float", "double", "short", "int", "uint", "long", "float8_e4m3")}
UNBUILT = {name: UnbuiltDtype(name, bits) for name, bits in _UNBUILT.items()}


def __getattr__(name: str) -> dtype | UnbuiltDtype:
    """`T.dtypes.float16`."""
    found = NAMES.get(name) or UNBUILT.get(name) or vector_dtype(name)
    if found is not None:
        return found
    raise AttributeError(name)
