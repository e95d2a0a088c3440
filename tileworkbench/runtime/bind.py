"""Solves a kernel's symbols from the arrays of a call, and checks every shape and stride against them."""

from __future__ import annotations

import contextlib
import operator
from collections.abc import Mapping, Sequence
from typing import Any

from ..codegen.source import Host, ScalarParam, Source, TensorParam
from ..errors import LaunchError
from . import dtypes, hostexpr
from .arrays import CPU, Array, contiguous_strides


class Binding:
    """Symbol values of one call, each with the place it was read from, for messages that name both sides."""

    def __init__(self) -> None:
        self.values: dict[str, int] = {}
        self._origin: dict[str, str] = {}
        self._waiting: list[tuple[Host, int, str, TensorParam]] = []

    def set(self, name: str, value: int, origin: str) -> None:
        self.values[name], self._origin[name] = value, origin

    def require(self, expr: Host, value: int, place: str, param: TensorParam) -> None:
        """`expr` must equal `value`, found at `place`. A bare unknown symbol is bound; other unknowns wait."""
        if isinstance(expr, str) and expr not in self.values:
            self.set(expr, value, place)
        elif any(name not in self.values for name in hostexpr.symbols(expr)):
            self._waiting.append((expr, value, place, param))
        elif self._evaluated(expr, place, param) != value:
            raise self._conflict(expr, value, place, param)

    def settle(self) -> None:
        """Works off what waits, as far as one unknown at a time can be solved; LaunchError for a symbol that cannot."""
        while self._waiting:
            waiting, self._waiting = self._waiting, []
            before = len(self.values)
            for expr, value, place, param in waiting:
                self._solve(expr, value, place, param)
            if len(self._waiting) == len(waiting) and len(self.values) == before:
                expr, _, place, param = self._waiting[0]
                names = sorted({n for n in hostexpr.symbols(expr) if n not in self.values})
                raise LaunchError(
                    f"{', '.join(names)} cannot be told from {place} = {hostexpr.text(expr)}",
                    rule="every symbol stands alone in some dimension, or is the only unknown of a sum or product",
                    fix=f"pass {names[0]} as a scalar parameter",
                    loc=param.loc,
                )

    def _solve(self, expr: Host, value: int, place: str, param: TensorParam) -> None:
        unknown = {name for name in hostexpr.symbols(expr) if name not in self.values}
        if len(unknown) != 1:
            self.require(expr, value, place, param)
            return
        name = unknown.pop()
        found = hostexpr.solve(expr, value, name, self.values)
        if found is not None and found >= 0:
            self.set(name, found, f"{place} = {hostexpr.text(expr)}")
        elif _linear(expr):
            raise LaunchError(
                f"{place} is {value}, and no whole number {name} makes {hostexpr.text(expr)} that",
                rule=f"{param.name} is {signature(param)}",
                fix="pass an array of a size that the declaration can have",
                loc=param.loc,
            )
        else:
            self._waiting.append((expr, value, place, param))

    def _evaluated(self, expr: Host, place: str, param: TensorParam) -> int:
        try:
            return hostexpr.evaluate(expr, self.values)
        except ZeroDivisionError:
            raise LaunchError(
                f"{place}: {hostexpr.text(expr)} divides by 0",
                rule=f"{param.name} is {signature(param)}",
                fix="pass a size above 0",
                loc=param.loc,
            ) from None

    def _conflict(self, expr: Host, value: int, place: str, param: TensorParam) -> LaunchError:
        names = dict.fromkeys(hostexpr.symbols(expr))
        wanted = self._evaluated(expr, place, param)
        because = " and ".join(f"{n} = {self.values[n]} from {self._origin[n]}" for n in names)
        formula = "" if isinstance(expr, int | str) else f" = {hostexpr.text(expr)}"
        return LaunchError(
            f"{place} is {value}, expected {wanted}{formula}" + (f" ({because})" if because else ""),
            rule=f"{param.name} is {signature(param)}",
            fix="pass arrays whose shapes agree with the declaration",
            loc=param.loc,
        )


def _linear(expr: Host) -> bool:
    return not isinstance(expr, tuple) or (expr[0] in ("add", "sub", "mul") and all(map(_linear, expr[1:])))


def signature(param: TensorParam) -> str:
    """A tensor parameter as the user wrote it."""
    return f'Tensor(({", ".join(map(hostexpr.text, param.shape))}), "{param.dtype}")'


def check_array(param: TensorParam, array: Array) -> None:
    """Dtype, rank and place of one array, apart from all others."""
    if not dtypes.accepts(param.dtype, array.dtype, array.library):
        raise LaunchError(
            f"{param.name} has dtype {array.dtype}, expected {param.dtype}",
            rule=f"{param.name} is {signature(param)}",
            fix=f"{param.name}.{'to(torch.' if array.library == 'torch' else 'astype('}{param.dtype})",
            loc=param.loc,
        )
    if len(array.shape) != len(param.shape):
        raise LaunchError(
            f"{param.name} has {len(array.shape)} dimensions {array.shape}, expected {len(param.shape)}",
            rule=f"{param.name} is {signature(param)}",
            fix=f"reshape {param.name}",
            loc=param.loc,
        )
    if array.device == CPU and array.library != "numpy":
        raise LaunchError(
            f"{param.name} is on the CPU",
            rule="kernels of this target read memory of a GPU",
            fix=f'{param.name}.to("cuda"), or pass a NumPy array, which is copied there and back',
            loc=param.loc,
        )
    if not array.writable and "w" in param.access:
        raise LaunchError(f"{param.name} is read-only", rule="the kernel writes it", fix="pass a copy", loc=param.loc)


def bind_shapes(source: Source, arrays: Mapping[str, Array], scalars: Mapping[str, Any]) -> Binding:
    """Symbols from the shapes of `arrays` and from whole-number scalars."""
    binding = Binding()
    for name, value in scalars.items():
        with contextlib.suppress(TypeError):  # a float is no size
            binding.set(name, operator.index(value), f"the argument {name}")
    for param in tensor_params(source.params):
        if param.name in arrays:
            for i, (expr, value) in enumerate(zip(param.shape, arrays[param.name].shape, strict=True)):
                binding.require(expr, value, f"{param.name}.shape[{i}]", param)
    binding.settle()
    return binding


def bind_strides(source: Source, arrays: Mapping[str, Array], binding: Binding) -> None:
    """Checks strides, or solves them where they are symbols. The stride of an extent of 1 says nothing."""
    for param in tensor_params(source.params):
        array = arrays[param.name]
        if param.strides is None:
            _check_contiguous(param, array)
            continue
        for i, (expr, value) in enumerate(zip(param.strides, array.strides, strict=True)):
            free = array.shape[i] == 1 or 0 in array.shape
            known = all(name in binding.values for name in hostexpr.symbols(expr))
            if not (free and known):
                binding.require(expr, value, f"{param.name}.stride[{i}]", param)
    binding.settle()


def _check_contiguous(param: TensorParam, array: Array) -> None:
    wanted = contiguous_strides(array.shape)
    if 0 in array.shape or all(s == w or n == 1 for s, w, n in zip(array.strides, wanted, array.shape, strict=True)):
        return
    raise LaunchError(
        f"{param.name} has strides {array.strides}, expected {wanted}",
        rule=f"{param.name} is contiguous and row-major",
        fix=f"{param.name}.contiguous()" if array.library == "torch" else f"a contiguous copy of {param.name}",
        loc=param.loc,
    )


def fact_values(binding: Binding, arrays: Mapping[str, Array]) -> dict[str, int]:
    """What a fact may speak of: symbols, `<tensor>.ptr` and `<tensor>.stride<i>`."""
    values = dict(binding.values)
    for name, array in arrays.items():
        values[f"{name}.ptr"] = array.pointer
        values.update({f"{name}.stride{i}": stride for i, stride in enumerate(array.strides)})
    return values


def tensor_params(params: Sequence[TensorParam | ScalarParam]) -> list[TensorParam]:
    return [param for param in params if isinstance(param, TensorParam)]
