"""T.macro and its kin: functions and methods that become part of the kernels that call them."""

from __future__ import annotations

from collections.abc import Callable
from types import FunctionType
from typing import Any

from ..ir.expr import Var as ir_Var
from .dtypes import as_dtype
from .macro import Macro
from .reader import defining_scope, stage


def macro(func: Callable[..., Any] | None = None) -> Any:
    """A function inlined into the kernels that call it; usable with and without parentheses."""
    if func is None:
        return macro
    return Macro(func, defining_scope(1), stage)


def inline(func: Callable[..., Any]) -> Macro:
    """T.macro for methods and helpers."""
    return Macro(func, defining_scope(1), stage)


def meta_class(cls: type) -> type:
    """A class whose methods, special ones apart, are inlined like macros."""
    outer = defining_scope(1)
    for name, member in list(vars(cls).items()):
        if isinstance(member, FunctionType) and not name.startswith("__"):
            setattr(cls, name, Macro(member, outer, stage))
    return cls


class VarFactory:
    """`T.Var(name, dtype)` makes a symbol; as an annotation it is the older spelling of T.Ref."""

    is_reference = True

    def __instancecheck__(self, value: Any) -> bool:
        return isinstance(value, ir_Var)

    def __call__(self, name: str, dtype: Any = "int32") -> ir_Var:
        return ir_Var(name, dtype=as_dtype(dtype))


Var = VarFactory()
