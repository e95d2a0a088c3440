"""Macros: functions inlined into the kernel at each call, with names of their own."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from ..ir.expr import Buffer, Const, Expr, Load, Var
from ..ir.stmt import ZERO, Let
from .builder import Builder, require
from .faults import fault


class Ref:
    """Annotates a macro parameter that is passed by reference: a T.alloc_var name or an element `A[i]`."""


class Macro:
    """An inlined function. `reader` stages its text at the first call."""

    def __init__(self, fn: Callable[..., Any], outer: Mapping[str, Any], reader: Callable[..., Any]) -> None:
        functools.update_wrapper(self, fn)
        self.fn, self.outer, self.reader = fn, outer, reader
        self.signature = inspect.signature(fn)
        self.staged: Callable[..., Any] | None = None

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else partial(self, instance)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        name = self.fn.__name__
        builder = require(f"the macro `{name}`")
        try:
            given = self.signature.bind(*args, **kwargs)
        except TypeError as reason:
            rule = f"the signature is {name}{self.signature}"
            raise fault(f"{name}: {reason}", rule, "follow it") from None
        given.apply_defaults()
        if self.staged is None:
            self.staged = self.reader(self.fn, self.outer)
        with builder.activate(name) as scope:
            for parameter, value in given.arguments.items():
                made = self._argument(builder, parameter, value)
                given.arguments[parameter] = made
                scope.values[parameter] = made
                scope.homes[parameter] = builder.frame
            return self.staged(*given.args, **given.kwargs)

    def _argument(self, builder: Builder, name: str, value: Any) -> Any:
        """A reference stays what it is; any other expression is computed once, before the body."""
        if is_reference(self.signature.parameters[name].annotation):
            if isinstance(value, Buffer) and value.space == "var":
                value = Load(value, (ZERO,))
            if not isinstance(value, Load):
                raise fault(
                    f"`{name}` of `{self.fn.__name__}` is not a place that can be stored to",
                    "a T.Ref parameter takes a T.alloc_var name or an element `A[i]`",
                    "pass the variable itself",
                )
            indices = tuple(once(builder, name, i) for i in value.indices)
            place = Load(value.buffer, indices, loc=value.loc)
            builder.scope.variables[name] = place
            return value.buffer if value.buffer.space == "var" else place
        return once(builder, name, value) if isinstance(value, Expr) else value

    def __repr__(self) -> str:
        return f"<macro {self.fn.__qualname__}>"


def is_reference(annotation: Any) -> bool:
    return annotation is Ref or annotation in ("T.Ref", "Ref", "T.Var") or getattr(annotation, "is_reference", False)


def once(builder: Builder, name: str, value: Expr) -> Expr:
    """`value` computed here: a let, unless it is a name or a constant."""
    if isinstance(value, Const | Var) or builder.launch is None:
        return value
    var = Var(builder.unique(name), dtype=value.dtype, loc=builder.here)
    builder.emit(Let(var, value, loc=builder.here))
    builder.define(var)
    return var
