"""The few names of TVM's expression module that kernels are written with, on this package's expressions."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from typing import Any

from .. import language
from ..errors import TileError
from ..ir import expr
from ..ir.dtype import dtype as to_dtype
from ..language.dtypes import NAMES, UNBUILT, UnbuiltDtype, vector_dtype
from ..language.loopbodies import Loop
from ..target import Target
from .foreign import Foreign, ForeignName

_TVM = "TVM's intermediate form, which this compiler does not have"
PrimExpr = expr.Expr
Var = language.Var
Buffer = expr.Buffer
BufferLoad = expr.Load


class _OfLanguage(type):
    """The language's own dtype objects count as instances."""

    def __instancecheck__(cls, value: Any) -> bool:
        return type.__instancecheck__(cls, value) or isinstance(value, language.dtype | UnbuiltDtype)


class DataType(str, metaclass=_OfLanguage):
    """A type by its name, with TVM's attributes: `DataType("float16").bits`."""

    def __new__(cls, value: Any) -> DataType:
        return super().__new__(cls, value if type(value) is str else str(value).removeprefix("torch."))

    @property
    def bits(self) -> int:
        """Bits of one element."""
        known = NAMES.get(self._element) or UNBUILT.get(self._element)
        return known.bits if known is not None else to_dtype(self._element).bits

    @property
    def lanes(self) -> int:
        _, _, lanes = self.rpartition("x")
        return int(lanes) if lanes.isdigit() and self != self._element else 1

    @property
    def itemsize(self) -> int:
        return (self.bits * self.lanes + 7) // 8

    @property
    def _element(self) -> str:
        """The name without lanes."""
        head, _, lanes = self.rpartition("x")
        return head if head and lanes.isdigit() else str(self)


def const(value: Any, dtype: Any = None, span: Any = None) -> Any:
    """A literal of a type; int32 or float32 when none is given."""
    made = expr.as_expr(value)
    return made if dtype is None else expr.cast(made, to_dtype(dtype))


SPACES = {
    "": "global", "global": "global", "shared": "shared", "shared.dyn": "shared", "local": "local",
    "local.fragment": "fragment",
}  # fmt: skip


def decl_buffer(
    shape: Any, dtype: Any = "float32", name: str = "buffer", data: Any = None, strides: Any = None,
    elem_offset: Any = None, scope: str = "", **_: Any,
) -> expr.Buffer:  # fmt: skip
    """A buffer that no kernel has, as functions that make layouts take one."""
    if scope not in SPACES or data is not None or elem_offset is not None:
        said = f"decl_buffer in {scope!r}" if scope not in SPACES else "decl_buffer over other memory"
        raise ForeignName(said, rule="a buffer by itself has a shape, a type and a memory", fix="leave the rest out")
    extents = tuple(shape) if isinstance(shape, list | tuple) else (shape,)
    return expr.Buffer(name, extents, to_dtype(dtype), SPACES[scope], tuple(strides) if strides else None)


def IntImm(dtype: Any, value: int) -> Any:
    return const(value, dtype)


def FloatImm(dtype: Any, value: float) -> Any:
    return const(value, dtype)


def StringImm(value: str) -> str:
    return value


def all(*conditions: Any) -> Any:
    """Whether every condition holds."""
    return functools.reduce(lambda a, b: expr.logical("land", a, b), map(expr.as_expr, conditions))


def any(*conditions: Any) -> Any:
    """Whether a condition holds."""
    return functools.reduce(lambda a, b: expr.logical("lor", a, b), map(expr.as_expr, conditions))


def And(a: Any, b: Any) -> Any:
    """Whether both conditions hold."""
    return expr.logical("land", expr.as_expr(a), expr.as_expr(b))


def Or(a: Any, b: Any) -> Any:
    """Whether one of the conditions holds."""
    return expr.logical("lor", expr.as_expr(a), expr.as_expr(b))


def Not(a: Any) -> Any:
    """Whether the condition does not hold."""
    return expr.logical_not(expr.as_expr(a))


def determine_fp8_type(fp8_format: str = "e4m3") -> Any:
    """The 8-bit float of this machine's cards: AMD's before gfx950 have the FNUZ encodings."""
    fnuz = Target.of("auto").has("fp8_fnuz")
    names = {"e4m3": ("float8_e4m3fn", "float8_e4m3fnuz"), "e5m2": ("float8_e5m2", "float8_e5m2fnuz")}
    if fp8_format not in names:
        raise ValueError(f"fp8_format is 'e4m3' or 'e5m2', not {fp8_format!r}")
    name = names[fp8_format][fnuz]
    return NAMES.get(name) or UNBUILT[name]


def determine_torch_fp8_type(fp8_format: str = "e4m3") -> Any:
    """The torch dtype of that type."""
    import torch

    return getattr(torch, str(determine_fp8_type(fp8_format)))


class _TorchNames(Mapping[Any, str]):
    """torch dtype → name; torch is opened when it is asked."""

    @functools.cached_property
    def _table(self) -> dict[Any, str]:
        import torch

        found = {getattr(torch, name): name for name in NAMES if hasattr(torch, name)}
        return {dtype: str(dtype).removeprefix("torch.") for dtype in found}

    def __getitem__(self, key: Any) -> str:
        return self._table[key]

    def __iter__(self) -> Iterator[Any]:
        return iter(self._table)

    def __len__(self) -> int:
        return len(self._table)


TORCH_NAMES = _TorchNames()
ALL_DTYPES = [*NAMES, *UNBUILT]


def resolve_torch_storage_dtype(value: Any) -> Any:
    """The language's name of the type that torch holds elements of `value` in: packed ones by pairs or by bytes."""
    row = to_dtype(value)
    if not row.is_packed:
        return NAMES[row.name]
    return vector_dtype("float4_e2m1fnx2") if row.is_float else NAMES["int8" if row.kind == "int" else "uint8"]


def __getattr__(name: str) -> Any:
    """Functions of expressions are the language's; what else TVM has here is its intermediate form."""
    if name.startswith("__"):
        raise AttributeError(name)
    try:
        return getattr(language, name)
    except (TileError, AttributeError):
        return Foreign(f"tvm.tirx.{name}", _TVM)


class _Frames(type):
    """Loops that TVM has itself count as instances: those whose step is 1."""

    def __instancecheck__(cls, value: Any) -> bool:
        if not isinstance(value, Loop):
            return False
        steps = [getattr(step, "value", step) for _, _, step in value.ranges]
        return not [step for step in steps if not isinstance(step, int) or step != 1]


class IRBuilderFrame(metaclass=_Frames):
    """What TVM's builder opens for a statement with a body."""


class _Calls(type):
    """Calls of functions count as instances; none is made by this name."""

    def __instancecheck__(cls, value: Any) -> bool:
        return isinstance(value, expr.Call)

    def __call__(cls, *args: Any, **named: Any) -> Any:
        return Foreign("tvm.tirx.Call", _TVM)(*args, **named)


class Call(metaclass=_Calls):
    """What a mathematical function makes of an expression."""
