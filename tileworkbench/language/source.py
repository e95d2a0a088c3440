"""The text of a user's function: found through linecache, so files, cells and registered text are alike."""

from __future__ import annotations

import ast
import linecache
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ..errors import LanguageError, Loc
from ..places import to_characters

FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef
Functions = dict[tuple[str, int], FunctionNode]
_PARSED: dict[str, tuple[list[str], Functions]] = {}
_LIMIT = 64  # parsed files kept


@dataclass(frozen=True)
class Source:
    """A function's place in a file: its syntax tree with the file's own lines and byte columns."""

    file: str
    lines: list[str]
    node: FunctionNode

    def loc(self, node: Any) -> Loc:
        """The span of a syntax node, in characters."""
        return self.span(node.lineno, node.col_offset, node.end_lineno, node.end_col_offset)

    def span(self, line: int, col: int, end_line: int, end_col: int) -> Loc:
        return Loc(
            self.file,
            line,
            to_characters(self.lines, line, col),
            end_line,
            to_characters(self.lines, end_line, end_col),
        )


def find(fn: Callable[..., Any]) -> Source:
    """The source of a Python function; LanguageError when its text cannot be had or is not a `def`."""
    code = fn.__code__
    file = code.co_filename
    linecache.checkcache(file)
    lines = linecache.getlines(file, fn.__globals__)
    if not lines:
        raise LanguageError(
            f"the source text of `{fn.__name__}` cannot be found ({file})",
            rule="a kernel is read from its text",
            fix="write it in a file or a notebook cell, or register the text in `linecache.cache` under its file name",
        )
    node = _functions(file, lines).get((code.co_name, code.co_firstlineno))
    if node is not None:
        return Source(file, lines, node)
    if code.co_name == "<lambda>":
        raise LanguageError("a lambda cannot be a kernel", rule="a kernel is a `def`", fix="write a `def`")
    raise LanguageError(
        f"line {code.co_firstlineno} of {file} no longer holds `{code.co_name}`",
        rule="a kernel is read from its text, which must be the text that Python ran",
        fix="save the file and import it again (or re-run the cell)",
    )


def _first_line(node: FunctionNode) -> int:
    return node.decorator_list[0].lineno if node.decorator_list else node.lineno


def _functions(file: str, lines: list[str]) -> Functions:
    """All functions of a file by name and first line; parsed once while the text stays the same."""
    known = _PARSED.get(file)
    if known is not None and known[0] is lines:
        return known[1]
    # Notebook cells may hold a top-level await.
    flags = ast.PyCF_ONLY_AST | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
    tree = compile("".join(lines), file, "exec", flags=flags, dont_inherit=True)
    if len(_PARSED) >= _LIMIT:
        _PARSED.pop(next(iter(_PARSED)))
    found = {(n.name, _first_line(n)): n for n in ast.walk(tree) if isinstance(n, FunctionNode)}
    _PARSED[file] = (lines, found)
    return found
