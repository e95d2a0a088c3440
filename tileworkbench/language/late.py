"""Functions whose tiles have the extents of a call's tensors: they are read again for every size, with numbers in place
of the symbols."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import CellType, FunctionType
from typing import Any

from ..ir.expr import Const, Expr, Var
from ..ir.linear import substitute
from .parameters import has_contents
from .tensor import TensorType


def at_sizes(
    fn: FunctionType, outer: Mapping[str, Any], sizes: Mapping[Var, int]
) -> tuple[FunctionType, dict[str, Any]]:
    """The function and the scope around it with the symbols' values: in annotations, closures, globals, and in lists,
    tuples and dicts there."""

    def known(value: Any) -> Any:
        if isinstance(value, Expr):
            found = substitute(value, sizes)
            return found.value if isinstance(found, Const) else found
        if isinstance(value, TensorType):
            return replace(value, shape=known(value.shape), strides=known(value.strides))
        if type(value) in (list, tuple):
            return type(value)(known(item) for item in value)
        if type(value) is dict:
            return {key: known(item) for key, item in value.items()}
        return value

    cells = tuple(CellType(known(c.cell_contents)) if has_contents(c) else c for c in fn.__closure__ or ())
    made = FunctionType(fn.__code__, known(fn.__globals__), fn.__name__, known(fn.__defaults__), cells)
    made.__kwdefaults__, made.__annotations__ = known(fn.__kwdefaults__), known(fn.__annotations__)
    made.__qualname__, made.__module__, made.__doc__ = fn.__qualname__, fn.__module__, fn.__doc__
    return made, known(dict(outer))
