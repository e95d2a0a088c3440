"""Matches the arguments of a call with the kernel's parameters, by place and by name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..codegen.source import ScalarParam, TensorParam
from ..errors import LaunchError
from . import arrays, hostexpr, packing
from .arrays import Array

Param = TensorParam | ScalarParam


@dataclass(frozen=True)
class Call:
    """Arguments of one call by parameter name; `missing` are the places of outputs to allocate. An array is None where
    None was given for a tensor that the kernel does not touch."""

    arrays: dict[str, Any]
    scalars: dict[str, Any]
    missing: tuple[int, ...]


def match(params: Sequence[Param], outputs: Sequence[int], args: Sequence[Any], named: Mapping[str, Any]) -> Call:
    """Outputs may be left out, all of them or none by place. LaunchError names what is missing or too much."""
    names = [param.name for param in params]
    output_names = {names[i] for i in outputs}
    inputs = [name for name in names if name not in output_names]
    order = names if len(args) > len(inputs) or output_names & named.keys() else inputs
    if len(args) > len(order):
        raise LaunchError(f"{len(args)} arguments were given", rule=_takes(inputs, output_names), fix="pass these")
    values = dict(zip(order, args, strict=False))
    for name, value in named.items():
        if name not in names or name in values:
            trouble = f"{name!r} was given twice" if name in values else f"there is no parameter {name!r}"
            raise LaunchError(trouble, rule=_takes(inputs, output_names), fix="pass these")
        values[name] = value
    _fill_defaults(params, values)
    missing = [i for i, name in enumerate(names) if name not in values]
    lacking = [names[i] for i in missing if i not in outputs]
    if lacking:
        given = len(args) + len(named)
        raise LaunchError(
            f"{', '.join(lacking)} is missing: {given} arguments were given",
            rule=_takes(inputs, output_names),
            fix=f"pass {lacking[0]} as well",
        )
    return _sorted(params, values, tuple(missing))


def _fill_defaults(params: Sequence[Param], values: dict[str, Any]) -> None:
    for param in params:
        if isinstance(param, ScalarParam) and param.default is not None:
            values.setdefault(param.name, param.default)


def _sorted(params: Sequence[Param], values: Mapping[str, Any], missing: tuple[int, ...]) -> Call:
    found: dict[str, Any] = {}
    given = [param for param in params if param.name in values]
    scalars = {param.name: values[param.name] for param in given if isinstance(param, ScalarParam)}
    for param in given:
        if isinstance(param, TensorParam):
            found[param.name] = (
                None if values[param.name] is None and not param.access else _read(param, values[param.name], scalars)
            )
    return Call(found, scalars, missing)


def _read(param: TensorParam, value: Any, scalars: Mapping[str, Any]) -> Array:
    try:
        if param.address and isinstance(value, int) and not isinstance(value, bool):
            return _at_address(param, value, scalars)
        return packing.logical(arrays.read(value), param.dtype)
    except LaunchError as error:
        raise LaunchError(f"{param.name}: {error.found}", rule=error.rule, fix=error.fix, loc=param.loc) from None


def _at_address(param: TensorParam, address: int, scalars: Mapping[str, Any]) -> Array:
    """The tensor that a bare address means: its extents follow from the scalars of the call."""
    entries = (*param.shape, *(param.strides or ()))
    unknown = sorted({n for e in entries for n in hostexpr.symbols(e) if n not in scalars})
    if unknown:
        raise LaunchError(
            f"an address whose tensor has the unknown extent {unknown[0]}",
            rule="the extents behind a bare address are numbers, or scalars of the call",
            fix="pass the array itself",
        )
    shape = tuple(hostexpr.evaluate(e, scalars) for e in param.shape)
    steps = tuple(hostexpr.evaluate(e, scalars) for e in param.strides or ())
    return Array("address", address, shape, steps or arrays.contiguous_strides(shape), param.dtype, 0, None)


def _takes(inputs: Sequence[str], outputs: set[str]) -> str:
    made = f"; {', '.join(sorted(outputs))} may be left out" if outputs else ""
    return f"the kernel takes {len(inputs)} argument{'s' * (len(inputs) != 1)} ({', '.join(inputs)}){made}"
