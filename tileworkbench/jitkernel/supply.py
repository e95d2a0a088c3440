"""Tensors made from a kernel's signature, in the kinds that TileLang's profiler offers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum
from typing import Any

import numpy as np

from ..errors import LaunchError, OptionError
from ..ir.dtype import DType
from ..ir.dtype import dtype as to_dtype
from ..ir.expr import Buffer, Const, Expr, Var
from ..ir.kernel import Kernel
from ..ir.node import walk
from .arrays import host_like, on_device
from .inputs import strided
from .sizes import shape
from .spread import Spread, torch_card


class TensorSupplyType(Enum):
    """What generated tensors hold: Integer -2 … 2; Uniform -1 … 1; Normal and Randn the normal distribution; Zero; One;
    Auto whole numbers for integers and uniform ones for floats."""

    Integer = 1
    Uniform = 2
    Normal = 3
    Randn = 4
    Zero = 5
    One = 6
    Auto = 7


class NoValue(LaunchError, ValueError):
    """An argument that cannot be made up."""


def kind_of(value: Any) -> TensorSupplyType:
    """A supply type, its name, or None for Auto; OptionError for anything else."""
    name = "Auto" if value is None else getattr(value, "name", value)
    if name not in TensorSupplyType.__members__:
        raise OptionError(
            f"tensor_supply_type={value!r}",
            rule=f"one of {', '.join(TensorSupplyType.__members__)}",
            fix="TensorSupplyType.Normal",
        )
    return TensorSupplyType[name]


def get_tensor_supply(supply_type: TensorSupplyType = TensorSupplyType.Integer) -> Callable[[Any], Any]:
    """A function from a parameter (with `dtype` and `shape`) to a tensor: of torch on the card where torch is, else of
    NumPy. LaunchError for a shape that is not known."""
    rng = np.random.default_rng()

    def supply(param: Any) -> Any:
        dtype = to_dtype(param.dtype)
        return made_on_card(dtype, extents(param), spread_of(dtype, supply_type), rng)

    return supply


def inputs(kernel: Kernel, kind: TensorSupplyType, given: Mapping[str, Any], *, card: bool) -> list[Any]:
    """One argument for every parameter of a kernel but its outputs; run-time extents and scalars from `given`, scalars
    else their default. LaunchError for an extent or scalar that nothing gives. `card`: the kernel runs on one."""
    rng = np.random.default_rng()
    sizes = {s: given[s.name] for s in kernel.symbols() if s.name in given}
    return [
        _scalar(kernel, p, given) if isinstance(p, Var) else _tensor(p, kind, sizes, rng, card)
        for place, p in enumerate(kernel.params)
        if place not in kernel.outputs and not (isinstance(p, Buffer) and p.attr("workspace"))
    ]


def _scalar(kernel: Kernel, param: Var, given: Mapping[str, Any]) -> Any:
    if param.name in given:
        return given[param.name]
    if param not in kernel.defaults:
        raise NoValue(
            f"the scalar `{param.name}` of `{kernel.name}` has no value",
            rule="scalars are not made up",
            fix=f"pass {param.name}=… to get_profiler, or all inputs: `with set_autotune_inputs(…)` for a search",
            loc=kernel.loc,
        )
    default = kernel.defaults[param]
    return getattr(default, "value", default)


def _tensor(
    param: Buffer, kind: TensorSupplyType, sizes: Mapping[Var, int], rng: np.random.Generator, card: bool
) -> Any:
    exprs = tuple(e for e in param.shape if isinstance(e, Expr))
    lacking = [n.name for n in walk(exprs) if isinstance(n, Var) and n not in sizes]
    if lacking:
        raise LaunchError(
            f"the extent {lacking[0]} of `{param.name}` is not known before the call",
            rule="tensors are made for known shapes",
            fix=f"dynamic_symbolic_constraints={{'{lacking[0]}': 1024}}, or input_tensors=[…]",
            loc=param.loc,
        )
    dims, spread = shape(param, sizes), spread_of(param.dtype, kind)
    if card and param.strides is None:
        return made_on_card(param.dtype, dims, spread, rng)
    made = spread.numpy(param.dtype, dims, rng)
    if param.strides is not None:
        made = strided(param, made, sizes)
    return on_device(made) if card else host_like(made)


def made_on_card(dtype: DType, shape: tuple[int, ...], spread: Spread, rng: np.random.Generator) -> Any:
    """A tensor on the card: filled there where the program uses torch, else by NumPy and brought there."""
    made = spread.torch(dtype, shape, "cuda") if torch_card() else None
    return made if made is not None else on_device(spread.numpy(dtype, shape, rng))


def extents(param: Any) -> tuple[int, ...]:
    """A parameter's shape as numbers."""
    found = []
    for extent in param.shape:
        if isinstance(extent, Const):
            extent = extent.value
        if isinstance(extent, Expr) or not isinstance(extent, int | np.integer):
            raise LaunchError(
                f"the extent {getattr(extent, 'name', extent)} of a tensor that is to be made",
                rule="tensors are made for known shapes",
                fix="pass the tensors (input_tensors=…), or sizes (dynamic_symbolic_constraints={…})",
            )
        found.append(int(extent))
    return tuple(found)


def spread_of(dtype: DType, kind: TensorSupplyType) -> Spread:
    """The values that a tensor of a type holds under a supply type."""
    if kind in (TensorSupplyType.Zero, TensorSupplyType.One):
        return Spread("all", float(kind is TensorSupplyType.One))
    wide = dtype.is_float and dtype.bits > 8
    if kind is TensorSupplyType.Integer or (kind is TensorSupplyType.Auto and not wide):
        return _whole(dtype)
    if not dtype.is_float:
        # A distribution narrower than 1 would leave nothing but zeros of a whole number.
        return Spread("all", 1.0)
    if kind in (TensorSupplyType.Uniform, TensorSupplyType.Auto):
        return Spread("uniform", -1.0, 1.0)
    return Spread("normal", -1.0 if kind is TensorSupplyType.Normal else 0.0, 1.0)


def _whole(dtype: DType) -> Spread:
    if dtype.kind == "bool":
        return Spread("whole", 0, 2)
    if dtype.kind == "uint":
        return Spread("whole", 0, 3)
    if dtype.is_float and dtype.bits == 8:
        return Spread("whole", -128, 128)
    return Spread("whole", -2, 3)
