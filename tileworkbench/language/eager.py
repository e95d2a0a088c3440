"""Eager kernels: a function that is called with tensors. Its signature is read with symbols in place of T.const and
without the kernel's body; then it is read again with the values that the arguments' shapes give."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from ..errors import LaunchError
from ..ir.dtype import DType
from ..ir.expr import Buffer, Expr, Var
from ..ir.kernel import Kernel
from .arrays import entries, fits
from .faults import fault
from .finish import finish, single
from .parameters import is_array
from .prim import run
from .regions import show


@dataclass(frozen=True, eq=False)
class Parameter:
    """kind: tensor, scalar, pointer, or constant (decided while compiling). Shapes hold ints and symbols."""

    name: str
    kind: str
    dtype: DType | None = None
    shape: tuple[Any, ...] = ()
    strides: tuple[Any, ...] | None = None
    default: Any = None
    has_default: bool = False


@dataclass(frozen=True, eq=False)
class Signature:
    """The parameters, and where each T.const comes from: (parameter, "shape" or "stride", axis)."""

    params: tuple[Parameter, ...]
    consts: Mapping[str, tuple[str, str, int] | None]
    attrs: Mapping[str, Any]

    @property
    def tensors(self) -> tuple[Parameter, ...]:
        return tuple(p for p in self.params if p.kind in ("tensor", "pointer"))

    @property
    def scalars(self) -> tuple[Parameter, ...]:
        return tuple(p for p in self.params if p.kind == "scalar")

    @property
    def constants(self) -> tuple[Parameter, ...]:
        return tuple(p for p in self.params if p.kind == "constant")


def signature(
    fn: Callable[..., Any], given: Mapping[str, Any] | None = None, outer: Mapping[str, Any] | None = None
) -> Signature:
    """What an eager function takes. `given` holds compile-time values by parameter name (arrays in it are only noted
    as such); `outer` the locals of the scope that defined `fn`."""
    given = given or {}
    builder = run(fn, outer or {}, "eager", given, phase=1)
    table = builder.table
    params = tuple(_parameter(table, name) for name in table.signature.parameters)
    places: dict[str, tuple[str, str, int] | None] = {}
    for name, symbol in table.symbols.items():
        place = _place(params, symbol)
        if place is None and name in given:
            places[name] = None
            continue
        places[name] = place
    hidden = [name for name, place in places.items() if place is None and name not in given]
    if hidden:
        raise fault(
            f"T.const {', '.join(f'`{n}`' for n in hidden)} cannot be read from any tensor's shape",
            "each T.const stands alone as an extent or stride of at least one tensor (`M * 2` does not count)",
            f"use `{hidden[0]}` itself as an extent, or pass {hidden[0]}=… by name",
            table.loc(next(iter(table.places))) if table.places else None,
        )
    return Signature(params, places, dict(builder.attrs))


def _parameter(table: Any, name: str) -> Parameter:
    default = table.signature.parameters[name].default
    has_default = default is not table.signature.empty
    kept: dict[str, Any] = {"default": default if has_default else None, "has_default": has_default}
    made = table.made.get(name)
    if made is None:
        return Parameter(name, "constant", **kept)
    pointer = table.pointers.get(made.name)
    if isinstance(made, Buffer):
        return Parameter(name, "tensor", made.dtype, made.shape, made.strides, **kept)
    if pointer is not None:
        return Parameter(name, "pointer", pointer.dtype, pointer.shape, pointer.strides, **kept)
    return Parameter(name, "pointer" if made.dtype.kind == "handle" else "scalar", made.dtype, **kept)


def _place(params: tuple[Parameter, ...], symbol: Var) -> tuple[str, str, int] | None:
    """The first extent, else stride, that is the symbol itself."""
    for kind in ("shape", "stride"):
        for p in params:
            entries = p.shape if kind == "shape" else p.strides or ()
            for axis, entry in enumerate(entries):
                if entry is symbol:
                    return p.name, kind, axis
    return None


def elaborate(
    fn: Callable[..., Any],
    args: Mapping[str, Any],
    config: Mapping[str, Any] | None = None,
    outer: Mapping[str, Any] | None = None,
) -> Kernel:
    """The kernel for these arguments, by parameter name: tensors as anything with `shape`, `dtype` (and `strides` in
    elements where they matter), other values as they are; `config` adds compile-time values and T.const values."""
    return single(elaborate_all(fn, args, config, outer))


def elaborate_all(
    fn: Callable[..., Any],
    args: Mapping[str, Any],
    config: Mapping[str, Any] | None = None,
    outer: Mapping[str, Any] | None = None,
) -> tuple[Kernel, ...]:
    """The kernels that an eager function launches for these arguments, in order; they share their parameters."""
    given = {**args, **(config or {})}
    found = signature(fn, given, outer)
    kernels = finish(run(fn, outer or {}, "eager", given, 2, constants(found, given)))
    for param in kernels[0].params:
        if isinstance(param, Buffer) and is_array(given.get(param.name)):
            _check_tensor(param, given[param.name])
    return kernels


def constants(found: Signature, given: Mapping[str, Any]) -> dict[str, int]:
    """The value of every T.const of a signature for these arguments; LaunchError where tensors disagree."""
    types = {p.name: p.dtype for p in found.tensors}
    values = {name: _constant(name, place, given, types) for name, place in found.consts.items()}
    _check_constants(found, values, given)
    return values


def _constant(
    name: str, place: tuple[str, str, int] | None, given: Mapping[str, Any], types: Mapping[str, DType | None]
) -> int:
    if name in given:
        return int(given[name])
    if place is None or place[0] not in given:
        raise LaunchError(
            f"the value of T.const `{name}` is not known",
            rule="it is read from a tensor argument, or passed by name",
            fix=f"pass {name}=…, or the tensor `{place[0] if place else name}`",
        )
    tensor, kind, axis = place
    found = entries(given[tensor], kind, types.get(tensor))
    if axis >= len(found):
        raise LaunchError(
            f"`{tensor}` has {len(found)} dimension{'s' * (len(found) != 1)}",
            rule=f"`{name}` is its {kind} {axis}",
            fix="pass a tensor of the declared rank",
        )
    return int(found[axis])


def _check_constants(found: Signature, constants: Mapping[str, int], given: Mapping[str, Any]) -> None:
    """All tensors agree on the value of a T.const."""
    for p in found.tensors:
        if not is_array(given.get(p.name)):
            continue
        actual = entries(given[p.name], "shape", p.dtype)
        for axis, (entry, extent) in enumerate(zip(p.shape, actual, strict=False)):
            if isinstance(entry, Var) and constants.get(entry.name, extent) != extent:
                raise LaunchError(
                    f"`{p.name}` has extent {extent} in dimension {axis}, `{entry.name}` is {constants[entry.name]}",
                    rule="all tensors agree on the value of a T.const",
                    fix=f"pass a `{p.name}` of shape ({', '.join(_value(e, constants) for e in p.shape)})",
                )


def _value(entry: Any, constants: Mapping[str, int]) -> str:
    return str(constants.get(entry.name, entry.name)) if isinstance(entry, Var) else show(entry)


def _check_tensor(param: Buffer, array: Any) -> None:
    shape = entries(array, "shape", param.dtype)
    matches = len(shape) == param.rank and all(
        isinstance(want, Expr) or want == have for want, have in zip(param.shape, shape, strict=False)
    )
    if not matches:
        raise LaunchError(
            f"`{param.name}` has shape {shape}",
            rule=f"it is declared as ({', '.join(show(e) for e in param.shape)})",
            fix="pass a tensor of that shape",
            loc=param.loc,
        )
    if not fits(array, param.dtype):
        have = str(array.dtype).removeprefix("torch.")
        raise LaunchError(
            f"`{param.name}` has dtype {have}", rule=f"it is declared as {param.dtype}", fix="convert it", loc=param.loc
        )
