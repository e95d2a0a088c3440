"""Who may import whom: the rooms of the house, read from the source text. CONTRIBUTING.md has the table in words."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "tileworkbench"
GROUND = {"collector", "errors", "knobs", "options", "places"}
IR = {"layout", "target", "ir"}
SIMULATORS = {"simulate", "simulate.tile", "simulate.thread"}

# A room may import itself and these. `simulate.thread` is a room of its own: it judges the passes and knows no op.
MAY = {
    "places": set(),
    "collector": set(),
    "errors": {"places"},
    "knobs": {"errors"},
    "options": {"errors", "knobs"},
    "layout": GROUND,
    "target": {*GROUND, "layout"},
    "ir": {*GROUND, "layout", "target"},
    "ops": {*GROUND, *IR},
    "language": {*GROUND, *IR, "ops"},
    "passes": {*GROUND, *IR, "ops"},
    "simulate": {*GROUND, *IR, "ops"},
    "simulate.tile": {*GROUND, *IR, "ops", "simulate"},
    "simulate.thread": {*GROUND, *IR, "simulate"},
    "codegen": {*GROUND, *IR},
    "runtime": {*GROUND, "target", "codegen.source"},
    "pipeline": {*GROUND, *IR, "ops", "language", "passes", "codegen", "runtime"},
    "browser": GROUND,
    "lab_extension": GROUND,
    "doctor": {*GROUND, "target", "runtime", "browser", "lab_extension"},
    "jitkernel": {*GROUND, *IR, "ops", "language", "passes", "codegen", "runtime", *SIMULATORS, "pipeline"},
    "checks": {*GROUND, *IR, "ops", "runtime", *SIMULATORS, "jitkernel"},
    "tune": {*GROUND, *IR, "language", "codegen.source", "runtime", *SIMULATORS, "pipeline", "jitkernel", "checks"},
    # A view reads records, of which a compiled kernel is one, and never compiles.
    "views": {*GROUND, *IR, "codegen.source", "runtime", *SIMULATORS, "pipeline", "jitkernel", "checks", "tune"},
}
# The doors to a user may open every room.
TOP = {"", "__main__", "cli", "compat", "demo", "magics", "profiler", "tutorial"}

# Imported in the leaf that needs them, inside a function, so that a machine without them still imports and compiles.
OPTIONAL = {
    *("cupy", "cuda", "torch", "IPython", "ipykernel", "ipywidgets", "traitlets", "plotly", "anywidget", "jupyterlab"),
    *(
        "jupyter_core",
        "nbformat",
        "nbclient",
        "nbconvert",
        "playwright",
        "pytest",
        "hypothesis",
        "jsonschema",
        "hatchling",
    ),
}
# Files that are themselves such a leaf: nothing imports them but a lazy import.
LEAVES: set[str] = {"tileworkbench.magics.extension"}


@dataclass(frozen=True)
class Import:
    place: str
    source: str  # dotted module that imports
    target: str  # dotted module that is imported
    top: bool  # executed on import of `source`


def module_name(path: Path) -> str:
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imports(path: Path) -> Iterator[Import]:
    """Every import statement of a file, with relative names resolved; `from . import x` names the submodule x."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    top = set(executed(tree.body))
    source = module_name(path)
    package = source if path.name == "__init__.py" else source.rpartition(".")[0]
    for found in ast.walk(tree):
        place = f"{path.relative_to(ROOT)}:{getattr(found, 'lineno', 0)}"
        if isinstance(found, ast.Import):
            for alias in found.names:
                yield Import(place, source, alias.name, found in top)
        elif isinstance(found, ast.ImportFrom):
            base = ".".join(package.split(".")[: len(package.split(".")) - found.level + 1]) if found.level else ""
            for target in origins(".".join(filter(None, (base, found.module))), [alias.name for alias in found.names]):
                yield Import(place, source, target, found in top)


def origins(base: str, names: list[str]) -> Iterator[str]:
    for name in names:
        folder = PACKAGE.parent / base.replace(".", "/")
        is_module = (folder / f"{name}.py").is_file() or (folder / name / "__init__.py").is_file()
        yield f"{base}.{name}" if is_module else base


def executed(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """Statements that run when the module is imported: not those of functions, nor those for type checkers only."""
    for statement in body:
        yield statement
        if isinstance(statement, ast.If) and "TYPE_CHECKING" in ast.unparse(statement.test):
            yield from executed(statement.orelse)
        elif not isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef):
            for field in ("body", "orelse", "finalbody"):
                yield from executed(getattr(statement, field, []))
            for handler in getattr(statement, "handlers", []):
                yield from executed(handler.body)


def room(module: str) -> str:
    """ "simulate.thread" for tileworkbench.simulate.thread.warp, "ir" for tileworkbench.ir.expr, "" for the package."""
    parts = module.split(".")[1:]
    for name in (".".join(parts[:2]), *parts[:1]):
        if name in MAY or name in TOP:
            return name
    return parts[0] if parts else ""


def allowed(found: Import) -> bool:
    source, target = room(found.source), room(found.target)
    if source in TOP or source == target:
        return True
    # A package's __init__ may open its own rooms to those above.
    if source == "simulate" and target.startswith("simulate."):
        return True
    may = MAY[source]
    return target in may or any(found.target == f"tileworkbench.{name}" for name in may)


FILES = sorted(path for path in PACKAGE.rglob("*.py") if "__pycache__" not in path.parts)
ALL = [found for path in FILES for found in imports(path)]
OWN = [found for found in ALL if found.target.split(".")[0] == "tileworkbench"]


def test_every_room_is_in_the_table() -> None:
    rooms = {room(module_name(path)) for path in FILES}
    assert rooms <= {*MAY, *TOP}, f"rooms without a row: {rooms - {*MAY, *TOP}}"


def test_rooms_import_downwards_only() -> None:
    wrong = [f"{found.place}: {found.source} imports {found.target}" for found in OWN if not allowed(found)]
    assert not wrong, "\n".join(wrong)


def test_the_table_has_no_cycle() -> None:
    def below(name: str, path: tuple[str, ...] = ()) -> None:
        assert name not in path, f"{' → '.join((*path, name))}"
        for lower in MAY.get(name, ()):
            below(lower, (*path, name))

    for name in MAY:
        below(name)


def test_modules_have_no_import_cycle() -> None:
    """At import time, within a room too. A package that only gathers its modules is not an edge to itself."""
    modules = {module_name(path) for path in FILES}
    edges = {name: {f.target for f in OWN if f.source == name and f.top and f.target in modules} for name in modules}
    seen: dict[str, bool] = {}

    def visit(name: str, path: tuple[str, ...]) -> None:
        assert seen.get(name) is not False, f"cycle: {' → '.join((*path[path.index(name) :], name))}"
        if name in seen:
            return
        seen[name] = False
        for target in sorted(edges[name] - {name}):
            # `from .. import x` inside a package names the package when x is not a module; that is no load order.
            if not name.startswith(f"{target}."):
                visit(target, (*path, name))
        seen[name] = True

    for name in sorted(modules):
        visit(name, ())


def test_optional_packages_are_imported_in_functions_only() -> None:
    wrong = [
        f"{found.place}: {found.target}"
        for found in ALL
        if found.top and found.target.split(".")[0] in OPTIONAL and found.source not in LEAVES
    ]
    assert not wrong, "\n".join(wrong)


def test_the_reader_of_imports_sees_what_python_would(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "tileworkbench"
    (package / "ir").mkdir(parents=True)
    for name in ("__init__", "errors", "ir/__init__", "ir/expr"):
        (package / f"{name}.py").touch()
    (package / "ir" / "walk.py").write_text(
        "from typing import TYPE_CHECKING\nfrom . import expr\nfrom .. import errors\nfrom ..passes.lower import x\n"
        "if TYPE_CHECKING:\n    import torch\ntry:\n    import cupy\nexcept ImportError:\n    import numpy\n"
        "def f():\n    import cuda\n"
    )
    monkeypatch.setitem(globals(), "PACKAGE", package)
    monkeypatch.setitem(globals(), "ROOT", tmp_path)
    found = {(each.target, each.top) for each in imports(package / "ir" / "walk.py")}
    assert found == {
        ("typing", True),
        ("tileworkbench.ir.expr", True),
        ("tileworkbench.errors", True),
        ("tileworkbench.passes.lower", True),
        ("torch", False),
        ("cupy", True),
        ("numpy", True),
        ("cuda", False),
    }
    assert not allowed(Import("", "tileworkbench.ir.walk", "tileworkbench.passes.lower", True))
    assert not allowed(Import("", "tileworkbench.simulate.thread.warp", "tileworkbench.ops.copy", True))
    assert not allowed(Import("", "tileworkbench.runtime.launch", "tileworkbench.codegen.cuda", True))
    assert allowed(Import("", "tileworkbench.runtime.launch", "tileworkbench.codegen.source", True))


def test_the_package_imports_nothing_optional() -> None:
    """In a fresh interpreter, where a chain through another package would show too."""
    code = f"import sys, tileworkbench, tileworkbench.cli; print(*sorted({OPTIONAL!r} & set(sys.modules)))"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT)
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.split() == []
