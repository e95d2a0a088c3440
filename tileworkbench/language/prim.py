"""T.prim_func, and the one place where a function is run against a builder and becomes an ir.Kernel."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping
from typing import Any

from ..errors import Loc, TileError
from ..ir.expr import Buffer, Expr, Var
from ..ir.kernel import Kernel
from ..ir.text import show
from .builder import Builder, reading
from .faults import fault, settle
from .macro import Macro
from .parameters import Table, annotations_of, untyped
from .reader import defining_scope, stage
from .scopes import check_scopes


class PrimFunc:
    """A function that was read: `kernel` is its tile-level ir.Kernel, `fn` the Python function."""

    def __init__(self, kernel: Kernel, fn: Callable[..., Any]) -> None:
        functools.update_wrapper(self, fn)
        self.kernel, self.fn = kernel, fn
        self.name = kernel.name

    @property
    def attrs(self) -> Mapping[str, Any]:
        return self.kernel.attrs

    @property
    def params(self) -> tuple[Buffer | Var, ...]:
        return self.kernel.params

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise fault(
            f"`{self.name}` is a kernel's text, not a callable",
            "a T.prim_func is compiled before it is called",
            "use tileworkbench.compile(kernel), or @jit around the function that returns it",
        )

    def __repr__(self) -> str:
        return show(self.kernel)


def prim_func(func: Callable[..., Any] | None = None, **_: Any) -> Any:
    """Reads a function into a kernel at once; usable with and without parentheses."""
    if func is None:
        return prim_func
    return PrimFunc(read(func, defining_scope(1)), func)


def read(fn: Any, outer: Mapping[str, Any] | None = None) -> Kernel:
    """The tile-level kernel of a T.prim_func or of a plain function with annotated parameters."""
    if isinstance(fn, PrimFunc):
        return fn.kernel
    if isinstance(fn, Kernel):
        return fn
    if isinstance(fn, Macro):
        raise fault(f"`{fn.fn.__name__}` is a macro", "a macro is part of kernels", "call it from a kernel")
    return finish(run(fn, outer or {}, "lazy"))


def run(
    fn: Callable[..., Any],
    outer: Mapping[str, Any],
    style: str,
    given: Mapping[str, Any] | None = None,
    phase: int = 2,
    constants: Mapping[str, int] | None = None,
) -> Builder:
    """Traces `fn`: binds its parameters, runs the staged text, and returns the builder with what it made."""
    builder = Builder(fn.__name__, style, phase)
    try:
        staged = stage(fn, outer)
        table = builder.table = Table(builder, fn, constants)
        with reading(builder), builder.activate(fn.__name__) as scope:
            values = table.bind(annotations_of(fn, outer), given or {})
            for name, value in values.items():
                scope.values[name], scope.homes[name] = value, builder.frame
            builder.returned = staged(**values)
    except Exception as error:
        if phase == 1 and builder.table is not None and builder.table.complete():
            return builder  # text after the declarations may need the values of symbols
        # A tile error tells the user all there is; errors of the user's own Python keep their cause.
        shown = settle(error)
        if shown is error:
            raise
        raise shown from None
    return builder


def finish(builder: Builder) -> Kernel:
    """The ir.Kernel of a finished trace; what is wrong with it as a whole is placed at the `def`."""
    node, source = builder.table.source.node, builder.table.source
    header = source.span(node.lineno, node.col_offset, node.lineno, node.col_offset + len("def"))
    try:
        return _finished(builder, header)
    except TileError as error:
        raise settle(error.at(header)) from None


def _finished(builder: Builder, header: Loc) -> Kernel:
    launch, table = builder.launch, builder.table
    names = list(table.signature.parameters)
    for missing in table.undeclared.values():
        raise untyped(missing)
    if launch is None:
        raise fault(
            f"`{builder.name}` has no `with T.Kernel(...)`",
            "a kernel's body stands in a T.Kernel block",
            "wrap the body in `with T.Kernel(...) as ...:`",
        )
    params = table.ordered(names)
    outputs = output_places(builder, len(params))
    attrs = dict(builder.attrs)
    if launch.prelude:
        attrs["prelude"] = launch.prelude
    made = Kernel(
        name=builder.name,
        params=(*params, *builder.empties),
        grid=launch.grid,
        block_vars=launch.block_vars,
        threads=math.prod(launch.thread_shape),
        body=launch.body,
        thread_vars=launch.thread_vars,
        thread_shape=launch.thread_shape,
        outputs=outputs,
        defaults=dict(table.defaults),
        attrs=attrs,
        cluster=launch.cluster,
        loc=header,
    )
    check_scopes(made)
    return made


def output_places(builder: Builder, first: int) -> tuple[int, ...]:
    """Indices of the returned T.empty tensors among the parameters, in the order of the return."""
    returned = builder.returned
    values = () if returned is None else tuple(returned) if isinstance(returned, list | tuple) else (returned,)
    places = []
    for value in values:
        match = [n for n, e in enumerate(builder.empties) if e is value]
        if not match:
            what = (
                f"`{value.name}`"
                if isinstance(value, Buffer | Var)
                else "an expression"
                if isinstance(value, Expr)
                else repr(value)
            )
            raise fault(
                f"`{builder.name}` returns {what}",
                "a kernel returns the tensors that it made by T.empty"
                if builder.style == "eager"
                else "a T.prim_func returns nothing; its outputs are parameters",
                "return a T.empty tensor" if builder.style == "eager" else "name the output in out_idx",
            )
        places.append(first + match[0])
    if len(places) != len(builder.empties):
        raise fault(
            f"`{builder.name}` makes {len(builder.empties)} T.empty tensors and returns {len(places)}",
            "all T.empty tensors are returned",
            "return each of them once",
        )
    return tuple(places)
