"""Which kernels a cell has defined, and how each becomes one that can be called."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from types import FunctionType
from typing import Any

from ..errors import LanguageError, OptionError, TileError
from ..jitkernel import JITFunction, JITKernel, compile, jit
from ..jitkernel.style import style_of
from ..language.prim import PrimFunc
from .options import CellOptions
from .source import Cell, magic_place

Definition = PrimFunc | JITFunction | JITKernel | FunctionType


def defined(space: Mapping[str, Any], cell: Cell) -> dict[str, Definition]:
    """The kernels that the cell's text defines, by the names that it gives them, in order of definition."""
    found = {name: value for name, value in space.items() if is_kernel(value) and file_of(value) == cell.name}
    if not found:  # a factory or kernel without a decorator
        plain = {n: v for n, v in space.items() if isinstance(v, FunctionType) and v.__code__.co_filename == cell.name}
        found = {name: value for name, value in plain.items() if holds_kernel(value)}
    return dict(sorted(found.items(), key=lambda item: line_of(item[1])))


def is_kernel(value: Any) -> bool:
    return isinstance(value, PrimFunc | JITFunction | JITKernel)


def file_of(value: Any) -> str:
    """The file or cell that defined a kernel."""
    if isinstance(value, JITKernel):
        return value.tile.loc.file if value.tile.loc is not None else ""
    return str(value.fn.__code__.co_filename)


def line_of(value: Any) -> int:
    """The line where its definition starts."""
    if isinstance(value, JITKernel):
        return value.tile.loc.line if value.tile.loc is not None else 0
    return int(getattr(value, "fn", value).__code__.co_firstlineno)


def holds_kernel(fn: FunctionType) -> bool:
    """A function that launches, or that holds a T.prim_func."""
    names = {*fn.__code__.co_names, *(n for c in fn.__code__.co_consts if inspect.iscode(c) for n in c.co_names)}
    return bool(names & {"Kernel", "prim_func"})


def chosen(found: dict[str, Definition], wanted: str | None, cell: Cell) -> str:
    """The kernel to show: the named one, else the last."""
    if not found:
        raise LanguageError(
            "the cell defines no kernel",
            rule="a kernel is a @T.prim_func, a function under @tw.jit, or a factory of one",
            fix="write @T.prim_func above the kernel's def",
            loc=magic_place(cell),
        )
    if wanted is None or wanted in found:
        return wanted or list(found)[-1]
    if len(found) == 1:
        return next(iter(found))
    raise OptionError(
        f"--name {wanted}", rule=f"the cell defines {', '.join(found)}", fix=f"--name {list(found)[-1]}",
        loc=magic_place(cell),
    )  # fmt: skip


def built(definition: Definition, options: CellOptions, cell: Cell) -> JITKernel | None:
    """A callable kernel; None for an eager function whose sizes are not known before it is called."""
    if isinstance(definition, JITKernel):
        if options.target is None:
            return definition
        return compile(definition.tile, target=options.target)
    if isinstance(definition, PrimFunc):
        return compile(definition, target=options.target)
    function = definition if isinstance(definition, JITFunction) else jit(definition)
    if options.target is not None:
        function = function.for_target(options.target)
    if function.style == "lazy":
        return from_factory(function, options, cell)
    return from_eager(function, options)


def from_factory(factory: JITFunction, options: CellOptions, cell: Cell) -> JITKernel:
    """A factory is built with --set; arguments that are missing, or too much, are named."""
    parameters = inspect.signature(factory.fn).parameters
    given = {name: value for name, value in options.set.items() if name in parameters}
    free = [
        n for n, p in parameters.items() if p.default is p.empty and p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)
    ]
    lacking = [name for name in free if name not in given]
    if lacking:
        raise OptionError(
            f"the factory `{factory.fn.__name__}` needs {', '.join(lacking)}",
            rule="a factory in the cell is built with --set",
            fix=" ".join(f"--set {name}=…" for name in lacking),
            loc=magic_place(cell),
        )
    made = factory.compile(**given)
    known = {*parameters, *(s.name for s in made.tile.symbols()), *(v.name for v in made.tile.scalars)}
    unknown = [name for name in options.set if name not in known]
    if unknown:
        raise OptionError(
            f"--set {unknown[0]}",
            rule=f"`{factory.fn.__name__}` has {', '.join(sorted(known))}",
            fix="set one of these",
            loc=magic_place(cell),
        )
    return made


def from_eager(function: JITFunction, options: CellOptions) -> JITKernel | None:
    """An eager function is built once all its T.const sizes are known."""
    missing = function.unknown_sizes(options.set)
    if missing and not options.set and options.check is None and not options.bench:
        return None
    if missing:
        raise OptionError(
            f"`{function.fn.__name__}` needs {', '.join(missing)}",
            rule="the sizes of an eager kernel come from its tensors, or from --set",
            fix=" ".join(f"--set {name}=…" for name in missing),
        )
    return function.for_sizes(options.set)


def style_words(definition: Definition) -> str:
    """How a definition is called, for the list of kernels."""
    if isinstance(definition, JITFunction):
        try:
            return "factory" if style_of(definition.fn) == "lazy" else "eager"
        except TileError:
            return "function"
    return "kernel"
