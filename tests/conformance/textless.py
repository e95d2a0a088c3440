"""A test file without what it asserts on generated source text: the kernels run and their numbers are compared, but the
text may be another compiler's."""

from __future__ import annotations

import ast
import shutil
from collections.abc import Iterable
from pathlib import Path

# What gives generated text: attributes, and methods' names.
TEXT = frozenset({"get_kernel_source", "kernel_source", "get_host_source", "host_source", "script", "astext"})
SIMPLE = (ast.Assert, ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Expr)


def copy(checkout: Path, folders: Iterable[str], place: Path) -> Path:
    """A checkout at `place` that holds the tests of these folders (or files) without what they assert on text."""
    base = checkout / "testing" / "python"
    for configuration in base.parent.glob("conftest.py"):
        (place / "testing").mkdir(exist_ok=True)
        shutil.copy(configuration, place / "testing")
    if (checkout / "examples").is_dir() and not (place / "examples").exists():
        (place / "examples").symlink_to(checkout / "examples")  # tests import from there
    for folder in folders:
        files = [base / folder] if (base / folder).is_file() else (base / folder).rglob("*.py")
        for file in files:
            made = place / file.relative_to(checkout)
            made.parent.mkdir(parents=True, exist_ok=True)
            made.write_text(without_text(file.read_text(encoding="utf-8")), encoding="utf-8")
    return place


def without_text(source: str) -> str:
    """The same tests, without every statement of a test function that looks at generated text."""
    tree = ast.parse(source)
    functions = [n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef)]
    givers: set[str] = set()
    while True:  # functions that return text, also by way of one another
        found = {f.name for f in functions if _returns_text(f, givers)}
        if found <= givers:
            break
        givers |= found
    for function in functions:
        if function.name.startswith("test"):
            function.body = _kept(function.body, set(), givers) or [ast.Pass()]
    return ast.unparse(ast.fix_missing_locations(tree))


def _returns_text(function: ast.FunctionDef, givers: set[str]) -> bool:
    names = _names(function.body, set(), givers)
    returned = [n.value for n in ast.walk(function) if isinstance(n, ast.Return) and n.value is not None]
    return any(_is_text(value, names, givers) for value in returned)


def _names(body: list[ast.stmt], names: set[str], givers: set[str]) -> set[str]:
    """Names that hold text, or what was made of it."""
    for statement in (s for part in body for s in ast.walk(part)):
        if isinstance(statement, ast.Assign) and _is_text(statement.value, names, givers):
            names |= {n.id for target in statement.targets for n in ast.walk(target) if isinstance(n, ast.Name)}
    return names


def _is_text(expression: ast.AST, names: set[str], givers: set[str]) -> bool:
    for n in ast.walk(expression):
        if isinstance(n, ast.Attribute) and n.attr in TEXT:
            return True
        if isinstance(n, ast.Name) and (n.id in names or n.id in givers):
            return True
    return False


def _kept(body: list[ast.stmt], names: set[str], givers: set[str]) -> list[ast.stmt]:
    names = _names(body, names, givers)
    kept: list[ast.stmt] = []
    for statement in body:
        if isinstance(statement, SIMPLE):
            if not _is_text(statement, names, givers):
                kept.append(statement)
            continue
        head = [child for child in ast.iter_child_nodes(statement) if not isinstance(child, ast.stmt)]
        if not isinstance(statement, ast.With | ast.FunctionDef) and any(_is_text(h, names, givers) for h in head):
            continue
        for part in ("body", "orelse", "finalbody"):
            inner = getattr(statement, part, None)
            if inner and not isinstance(statement, ast.FunctionDef):
                setattr(statement, part, _kept(inner, set(names), givers) or [ast.Pass()])
        kept.append(statement)
    return kept
