"""House rules that a reader relies on, kept by machine."""

import ast
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parents[1] / "tileworkbench"
FILES = sorted(path for path in PACKAGE.rglob("*.py") if "__pycache__" not in path.parts)
# Commands talk to a terminal; everything else raises, returns or displays.
MAY_PRINT = {"cli.py", "demo.py", "doctor.py", "__main__.py"}
VAGUE = {"utils", "util", "core", "common", "helpers", "helper", "misc"}
MOST_LINES = 340


def name(path):
    return str(path.relative_to(PACKAGE))


def tree(path):
    return ast.parse(path.read_text(encoding="utf-8"), str(path))


def places(path, wanted):
    return [f"{name(path)}:{node.lineno}" for node in ast.walk(tree(path)) if wanted(node)]


def undocumented(path):
    """Public modules, classes and module-level functions without a docstring. A class of annotated fields alone and a
    function of one or two lines say enough by their names."""
    module = tree(path)
    missing = [] if ast.get_docstring(module) else [name(path)]

    def visit(body, inside):
        for node in body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                if not ast.get_docstring(node) and not documented_by_fields(node):
                    missing.append(f"{name(path)}:{node.lineno} class {node.name}")
                visit(node.body, node)
            elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and not node.name.startswith("_"):
                short = inside is not None or (node.end_lineno - node.body[0].lineno) < 2
                if not short and not ast.get_docstring(node):
                    missing.append(f"{name(path)}:{node.lineno} {node.name}()")

    visit(module.body, None)
    return missing


def documented_by_fields(node):
    """A class that holds nothing but annotated fields, `pass` or constants is its own description."""
    return all(isinstance(item, ast.AnnAssign | ast.Assign | ast.Pass) for item in node.body)


def test_there_is_something_to_check():
    assert len(FILES) > 20


@pytest.mark.parametrize("path", FILES, ids=name)
def test_file(path):
    text = path.read_text(encoding="utf-8")
    assert text.count("\n") <= MOST_LINES, f"{name(path)} has {text.count(chr(10))} lines: one concern a file"
    assert path.stem not in VAGUE, f"{name(path)} does not say what it holds"
    asserts = places(path, lambda node: isinstance(node, ast.Assert))
    assert not asserts, f"a user's mistake is a TileError, a broken invariant an InternalError: {asserts}"
    bare = places(path, lambda node: isinstance(node, ast.ExceptHandler) and node.type is None)
    assert not bare, f"bare except: {bare}"
    stars = places(path, lambda node: isinstance(node, ast.ImportFrom) and any(a.name == "*" for a in node.names))
    assert not stars, f"star imports: {stars}"
    if path.name not in MAY_PRINT:
        printed = places(
            path,
            lambda node: isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "print",
        )
        assert not printed, f"print() outside of commands: {printed}"


@pytest.mark.parametrize("path", FILES, ids=name)
def test_public_names_have_docstrings(path):
    assert undocumented(path) == []


def test_the_rules_can_fail(tmp_path, monkeypatch):
    bad = tmp_path / "utils.py"
    bad.write_text("def long_one(a):\n    a += 1\n    a += 2\n    a += 3\n    return a\n", encoding="utf-8")
    monkeypatch.setitem(globals(), "PACKAGE", tmp_path)
    assert undocumented(bad) == ["utils.py", "utils.py:1 long_one()"]
    with pytest.raises(AssertionError, match="does not say"):
        test_file(bad)
