"""T.prim_func, and the one place where a function is run against a builder and becomes an ir.Kernel."""

from __future__ import annotations

import functools
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from types import FunctionType
from typing import Any, cast

from ..collector import held_back
from ..ir.expr import Buffer, Var
from ..ir.kernel import Kernel
from ..ir.text import show
from .builder import Builder, reading
from .faults import LateExtent, Misnested, fault, settle, shown
from .finish import finish, single
from .late import at_sizes
from .launch import Launch
from .macro import Macro
from .parameters import Table, annotations_of
from .reader import defining_scope, stage


class PrimFunc:
    """A function that was read: `kernels` are its tile-level ir.Kernels in launch order, `kernel` the only one, `fn`
    the Python function, `seconds` what reading it took. `refused` is why there are no kernels, told to who asks for
    them; `outer` are then the names around it."""

    def __init__(
        self,
        kernels: tuple[Kernel, ...],
        fn: Callable[..., Any],
        seconds: float = 0.0,
        refused: Misnested | LateExtent | None = None,
        outer: Mapping[str, Any] | None = None,
    ) -> None:
        functools.update_wrapper(self, fn)
        self.outer = outer
        self._kernels, self.fn, self.seconds, self.refused = kernels, fn, seconds, refused
        self.name = kernels[0].name if kernels else fn.__name__
        self.shown: Sequence[int] | None = None  # the outputs that `attrs` names, where not those of T.empty
        self.told: Mapping[str, Any] = {}  # attrs that were given by name

    @property
    def kernels(self) -> tuple[Kernel, ...]:
        """The kernels that the function launches, in order; its error where it could not be read."""
        if self.refused is not None:
            raise self.refused
        return self._kernels

    @property
    def kernel(self) -> Kernel:
        """The kernel; LanguageError when the function launches several."""
        return single(self.kernels)

    @property
    def attrs(self) -> Mapping[str, Any]:
        """Facts about the function by TileLang's names: `global_symbol`, and what T.empty and T.annotate_* said."""
        first = self.kernels[0]
        shown = self.shown if self.shown is not None else [n - len(first.params) for n in first.outputs]
        held: dict[str, Any] = {"global_symbol": first.name, "tilelang_out_idx": list(shown)}
        for key in ("pass_configs", "compile_flags"):
            held[f"tilelang_{key}"] = first.attrs.get(key, ())
        return {**{key: value for key, value in held.items() if value}, **self.told}

    def with_attr(self, key: str | Mapping[str, Any], value: Any = None) -> PrimFunc:
        """The function with facts by TileLang's names. `global_symbol` is the kernel's name; others are only kept."""
        told = dict(key) if isinstance(key, Mapping) else {key: value}
        kernels = self.kernels
        if "global_symbol" in told:
            name = told.pop("global_symbol")
            if not isinstance(name, str) or not name.isidentifier() or not name.isascii():
                raise fault(f"global_symbol={shown(name)}", "a kernel's name is a word of ASCII", '"main"')
            kernels = tuple(kernel.with_(name=name) for kernel in kernels)
        made = PrimFunc(kernels, self.fn, self.seconds)
        made.shown, made.told = self.shown, {**self.told, **told}
        return made

    def script(self, *_: Any, **__: Any) -> str:
        """The kernel's text."""
        return repr(self)

    def show(self, *_: Any, **__: Any) -> None:
        """Writes the kernel's text to standard output."""
        sys.stdout.write(repr(self) + "\n")

    @property
    def params(self) -> tuple[Buffer | Var, ...]:
        """Tensors (`Buffer`) and scalars (`Var`) in the order of a call."""
        return self.kernels[0].params

    @property
    def buffer_map(self) -> Mapping[Buffer | Var, Buffer]:
        """The tensor of each parameter that is one."""
        return {p: p for p in self.params if isinstance(p, Buffer)}

    @property
    def orig_func(self) -> Callable[..., Any]:
        """The decorated Python function."""
        return self.fn

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise fault(
            f"`{self.name}` is a kernel's text, not a callable",
            "a T.prim_func is compiled before it is called",
            "use tileworkbench.compile(kernel), or @jit around the function that returns it",
        )

    def __repr__(self) -> str:
        return "\n".join(map(show, self.kernels))


def with_outputs_shown(func: PrimFunc, outputs: Sequence[int] | None) -> PrimFunc:
    """The function with these outputs in its `attrs`."""
    made = PrimFunc(func.kernels, func.fn, func.seconds)
    made.shown, made.told = outputs, func.told
    return made


def prim_func(func: Callable[..., Any] | None = None, **_: Any) -> Any:
    """Reads a function into a kernel at once, with all its mistakes but `Misnested` and `LateExtent`; usable with and
    without parentheses."""
    if func is None:
        return prim_func
    start = time.perf_counter()
    outer = defining_scope(1)
    try:
        return PrimFunc(read_all(func, outer), func, time.perf_counter() - start)
    except (Misnested, LateExtent) as error:
        return PrimFunc((), func, time.perf_counter() - start, error, outer)


def no_name(builder: Builder, name: str, value: Any) -> None:
    """The indices of a launch that nobody names."""


def read(fn: Any, outer: Mapping[str, Any] | None = None) -> Kernel:
    """The tile-level kernel of a T.prim_func or of a plain function with annotated parameters."""
    return single(read_all(fn, outer))


def read_all(fn: Any, outer: Mapping[str, Any] | None = None) -> tuple[Kernel, ...]:
    """The kernels that a function launches, in order; they share their parameters."""
    if isinstance(fn, PrimFunc):
        return fn.kernels
    if isinstance(fn, Kernel):
        return (fn,)
    if isinstance(fn, Macro):
        raise fault(f"`{fn.fn.__name__}` is a macro", "a macro is part of kernels", "call it from a kernel")
    return finish(run(fn, outer or {}, "lazy"))


def read_host(fn: PrimFunc) -> Kernel:
    """The kernel of one block and one thread that runs a function without launches, such as TVM compiles for a host;
    the kernel itself of a function that has one."""
    if not isinstance(fn.refused, Misnested):
        return fn.kernel
    return single(finish(run(fn.fn, fn.outer or {}, "lazy", launch=Launch((1,), (1,)))))


def read_sized(fn: PrimFunc, sizes: Mapping[Var, int]) -> PrimFunc:
    """A function with a `LateExtent`, read for sizes of its symbols."""
    made, outer = at_sizes(cast(FunctionType, fn.fn), fn.outer or {}, sizes)
    return PrimFunc(read_all(made, outer), made)


def run(
    fn: Callable[..., Any],
    outer: Mapping[str, Any],
    style: str,
    given: Mapping[str, Any] | None = None,
    phase: int = 2,
    constants: Mapping[str, int] | None = None,
    launch: Launch | None = None,
) -> Builder:
    """Traces `fn`: binds its parameters, runs the staged text, inside `launch` if one is given, and returns the builder
    with what it made."""
    builder = Builder(fn.__name__, style, phase)
    try:
        with held_back():
            staged = stage(fn, outer)
        table = builder.table = Table(builder, fn, constants)
        with held_back(), reading(builder), builder.activate(fn.__name__) as scope:
            values = table.bind(annotations_of(fn, outer), given or {})
            for name, value in values.items():
                scope.values[name], scope.homes[name] = value, builder.frame
            if launch is None:
                builder.returned = staged(**values)
            else:
                node = builder.table.source.node
                for _ in launch.run(builder, (), builder.table.source.loc(node), no_name):
                    staged(**values)
    except Exception as error:
        if phase == 1 and builder.table is not None and builder.table.complete():
            return builder  # text after the declarations may need the values of symbols
        # A tile error tells the user all there is; errors of the user's own Python keep their cause.
        shown = settle(error)
        if shown is error:
            raise
        raise shown from None
    return builder
