"""One run of a %%tilekernel cell: execute, compile, check, time; and what is shown when it fails."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

from ..checks import check
from ..checks.check import fault_text
from ..compat import alias_tilelang
from ..errors import LanguageError, MissingDependency, OptionError, SimulationError, TileError
from ..jitkernel import JITFunction, JITKernel
from ..jitkernel.profile import Profiler, Timings
from ..language.faults import nearest
from ..language.prim import PrimFunc
from ..places import frames, position
from ..views.blocks import Text
from ..views.document import Document, Section, Verdict
from ..views.result import Result, Shown
from . import kernels
from .options import CellOptions
from .registry import Registry
from .source import Cell, compiled, magic_place


def run(cell: Cell, options: CellOptions, space: dict[str, Any], registry: Registry) -> Result | Shown:
    """Runs the cell in `space`, where its kernels are bound afterwards; gives what is to be shown."""
    with alias_tilelang() if options.tilelang else nullcontext():
        return _run(cell, options, space, registry)


def _run(cell: Cell, options: CellOptions, space: dict[str, Any], registry: Registry) -> Result | Shown:
    code = compiled(cell)
    bind_words(space)
    before = dict(space)
    execute(code, cell, space)
    found = kernels.defined(space, cell)
    wanted = kernels.chosen(found, options.name, cell)
    for name, definition in found.items():
        if name != wanted and isinstance(definition, PrimFunc):
            space[name] = kernels.built(definition, CellOptions(target=options.target), cell)
    kernel = kernels.built(found[wanted], options, cell)
    if kernel is None:
        return waiting(found[wanted], cell)
    bind(space, before, wanted, found[wanted], kernel, options.name or wanted)
    checked = timings = None
    if options.check is not None:
        checked = check(kernel, reference(options, cell, space), run_time(kernel, options))
    if options.bench:
        timings = timed(kernel, options)
    result = Result(kernel, checked, timings, options.show, cell.source)
    registry.keep(options.name or wanted, result)
    if checked is not None and not checked.ok:
        raise Wrong(result, cell)
    return result


class Wrong(SimulationError):
    """The check failed. `result` shows itself; the error stops Run All, so that no later cell counts on the kernel."""

    def __init__(self, result: Result, cell: Cell) -> None:
        self.result = result
        found = result.check.worst if result.check is not None else None
        super().__init__(
            f"{result.kernel.name} is wrong: {fault_text(found) if found is not None else ''}",
            rule=f"--check: every element is within its bound ({found.bound if found is not None else ''})",
            fix="the kernel is bound: look at it with %tile show",
            loc=result.kernel.tile.loc or magic_place(cell),
        )


def bind_words(space: dict[str, Any]) -> None:
    """`T` and `tw` mean the language and the package unless the user has bound them."""
    import tileworkbench
    import tileworkbench.language

    space.setdefault("T", tileworkbench.language)
    space.setdefault("tw", tileworkbench)


def execute(code: Any, cell: Cell, space: dict[str, Any]) -> None:
    """Runs the cell's Python; a missing name of the cell becomes an error with its place."""
    try:
        exec(code, space)
    except NameError as error:
        raise missing_name(error, cell) or error from None


def missing_name(error: NameError, cell: Cell) -> TileError | None:
    """A name that the cell reads before it is there, at its place; other NameErrors stay what they are."""
    *_, last = frames(error.__traceback__)
    if last.tb_frame.f_code.co_filename != cell.name or not getattr(error, "name", None):
        return None
    known = [n for n in (*last.tb_frame.f_locals, *last.tb_frame.f_globals) if not n.startswith("_")]
    return LanguageError(
        f"`{error.name}` is not defined",
        rule="names are bound before the cell reads them, by this cell or an earlier one",
        fix=nearest(str(error.name), known, f"assign {error.name} first, or make the kernel a factory and use --set"),
        loc=position(last),
    )


def bind(
    space: dict[str, Any], before: dict[str, Any], own: str, definition: Any, kernel: JITKernel, name: str
) -> None:
    """The kernel under its own name, or instead under the one that --name gives; `before` are the names as the cell
    found them. A factory or an eager function keeps its name, under which it can be called with other sizes; its
    kernel then gets the kernel's name."""
    if isinstance(definition, JITFunction) or not kernels.is_kernel(definition):
        name = kernel.name if name == own else name
        if name != own and (name not in space or kernels.is_kernel(space[name]) or name not in before):
            space[name] = kernel
        return
    space[own] = kernel
    if name != own:
        space[name] = space.pop(own)
        if own in before:
            space[own] = before[own]


def reference(options: CellOptions, cell: Cell, space: dict[str, Any]) -> Callable[..., Any] | None:
    """The function that --check names, or None."""
    if not options.check:
        return None
    try:
        found = eval(options.check, space)
    except SyntaxError:
        found = None
    except NameError as error:
        raise OptionError(
            f"--check {options.check}: {error}", rule="the reference is a function that is defined by now",
            fix=nearest(options.check, [n for n, v in space.items() if callable(v)], "define it in an earlier cell"),
            loc=magic_place(cell),
        ) from None  # fmt: skip
    if not callable(found):
        raise OptionError(
            f"--check {options.check} is no function", rule="the reference is a function of the kernel's inputs",
            fix="--check 'lambda a, b: a + b'", loc=magic_place(cell),
        )  # fmt: skip
    return found  # type: ignore[no-any-return]


def run_time(kernel: JITKernel, options: CellOptions) -> dict[str, Any]:
    """Those of --set that the built kernel still asks for."""
    names = {s.name for s in kernel.tile.symbols()} | {v.name for v in kernel.tile.scalars}
    return {name: value for name, value in options.set.items() if name in names}


def timed(kernel: JITKernel, options: CellOptions) -> Timings | None:
    """None where the kernel cannot run here, which the card says."""
    try:
        return Profiler(kernel, run_time(kernel, options)).measure()
    except MissingDependency:
        return None


def waiting(definition: Any, cell: Cell) -> Shown:
    """What an eager function without sizes shows."""
    name = definition.fn.__name__
    text = f"{name} compiles at its first call, for the shapes of its tensors. --set gives sizes to compile now."
    section = Section("summary", "Summary", (Text(text),))
    return Shown(Document(name, Verdict("ready", f"{name} is defined.", "plain"), (section,), cell.source))
