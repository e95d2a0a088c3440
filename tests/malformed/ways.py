"""The three ways in which a kernel's text reaches Python: an imported file, a notebook's cell, and `exec` of text that
was registered under a name of its own."""

from __future__ import annotations

import importlib.util
import itertools
import linecache
import sys
from pathlib import Path
from typing import Any

from tileworkbench.codegen.emit import emit
from tileworkbench.jitkernel import compiling
from tileworkbench.language.prim import PrimFunc
from tileworkbench.pipeline import run_passes
from tileworkbench.target import Target

_NUMBER = itertools.count()
Space = dict[str, Any]


def in_file(text: str, folder: Path) -> Space:
    """Imports the text as a module of a file."""
    name = f"malformed_{next(_NUMBER)}"
    path = folder / f"{name}.py"
    path.write_text(text, encoding="utf-8")
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ImportError(str(path))
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    finally:
        del sys.modules[name]
    return vars(module)


def in_cell(text: str, folder: Path) -> Space:
    """Runs the text as IPython runs a cell: compiled and registered by its caching compiler."""
    from IPython.core.compilerop import CachingCompiler

    compiler = CachingCompiler()
    name = compiler.cache(text, next(_NUMBER))
    space: Space = {"__name__": "__main__"}
    exec(compiler(text, name, "exec"), space)
    return space


def by_exec(text: str, folder: Path) -> Space:
    """Runs the text by `exec`, registered in linecache as other front ends do."""
    name = f"<kernel {next(_NUMBER)}>"
    linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
    space: Space = {}
    exec(compile(text, name, "exec", dont_inherit=True), space)
    return space


WAYS = {"file": in_file, "cell": in_cell, "exec": by_exec}


def compile_all(space: Space, target: str) -> None:
    """Compiles every kernel of a namespace down to the device's text; nothing is built or run."""
    for kernel in [v for v in space.values() if isinstance(v, PrimFunc)]:
        if target == "cpu":
            compiling.compile(kernel, target="cpu")
            continue
        goal = Target.of(target)
        for tile in kernel.kernels:
            emit(run_passes(tile, goal), goal)
