"""Tensors given as None: a kernel that does not touch a parameter can be called without it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..codegen.source import Source, TensorParam
from . import bind, hostexpr
from .arguments import Call
from .arrays import CPU, Array, contiguous_strides

ABSENT = "absent"  # the library of an array that is not there


def filled(source: Source, call: Call) -> Call:
    """The call with an array at address 0 for each tensor given as None, of the shape that the other arguments make;
    a size that none of them tells is 0."""
    absent = [name for name, array in call.arrays.items() if array is None]
    if not absent:
        return call
    there = {name: array for name, array in call.arrays.items() if array is not None}
    values = bind.bind_shapes(source, there, call.scalars).values
    params = {p.name: p for p in bind.tensor_params(source.params)}
    made = {name: stand_in(params[name], values) for name in absent}
    return Call({name: made.get(name) or array for name, array in call.arrays.items()}, call.scalars, call.missing)


def stand_in(param: TensorParam, values: Mapping[str, int]) -> Array:
    """An array of a parameter's shape at address 0."""
    shape = tuple(_evaluated(e, values) for e in param.shape)
    strides = (
        contiguous_strides(shape) if param.strides is None else tuple(_evaluated(e, values) for e in param.strides)
    )
    return Array(ABSENT, 0, shape, strides, param.dtype, CPU, None)


def _evaluated(expr: Any, values: Mapping[str, int]) -> int:
    return hostexpr.evaluate(expr, {**dict.fromkeys(hostexpr.symbols(expr), 0), **values})
