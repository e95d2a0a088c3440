"""The text of a cell as Python, under a name that tracebacks, inspect and the reader can find."""

from __future__ import annotations

import ast
import hashlib
import linecache
from dataclasses import dataclass, replace
from types import CodeType
from typing import Any

from ..errors import LanguageError, Loc
from ..views.document import CellSource, Document

MAGIC = "%%tilekernel"


@dataclass(frozen=True)
class Cell:
    """A cell with its magic: `name` as places show it, `text` all of it, `first` the line of the magic, `code` the
    Python of its body with as many lines before it."""

    name: str
    text: str
    first: int
    code: str

    @property
    def source(self) -> CellSource:
        """What tells an editor whether it still shows this text."""
        return CellSource(self.name, hashlib.sha256(self.text.encode("utf-8", "surrogatepass")).hexdigest())


def cell_of(shell: Any, line: str, body: str) -> Cell:
    """The cell that runs now. The editor's own text is taken where the kernel was sent it, so that hashes agree."""
    body = body.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    text, first = sent_text(shell, body)
    if text is None:
        text, first = (f"{MAGIC} {line}".rstrip() + "\n" + body).rstrip("\n"), 1
    code = body if shell is None else shell.transform_cell(body)
    # The magic's line is a comment, so that the text parses as it stands and lines count as in the cell.
    code = "\n" * (first - 1) + f"# {MAGIC} {line}".rstrip() + "\n" + code
    name = unused(f"In[{number_of(shell)}]", code)
    linecache.cache[name] = (len(code), None, code.splitlines(keepends=True), name)
    return Cell(name, text, first, code)


def sent_text(shell: Any, body: str) -> tuple[str | None, int]:
    """The text of the execute request, if it is this cell's, and the line of its magic."""
    parent = getattr(shell, "get_parent", None)
    message = parent() if callable(parent) else None
    content = message.get("content") if isinstance(message, dict) else None
    text = content.get("code") if isinstance(content, dict) else None
    if not isinstance(text, str):
        return None, 1
    lines = text.replace("\r\n", "\n").split("\n")
    first = next((n for n, found in enumerate(lines, 1) if found.strip()), 0)
    if not first or not lines[first - 1].startswith(MAGIC):
        return None, 1
    if "\n".join(lines[first:]).strip() != body.strip():
        return None, 1
    return text, first


def number_of(shell: Any) -> int | str:
    return getattr(shell, "execution_count", "script")


def unused(name: str, code: str) -> str:
    """`name`, with a number behind it while another text has it."""
    candidate, number = name, 1
    while candidate in linecache.cache and "".join(linecache.cache[candidate][2]) != code:  # type: ignore[misc]
        number += 1
        candidate = f"{name}#{number}"
    return candidate


def compiled(cell: Cell) -> CodeType:
    """The cell's code; LanguageError at the place of a syntax error, and for a cell without a kernel's text."""
    try:
        tree = ast.parse(cell.code, cell.name)
    except SyntaxError as error:
        raise LanguageError(
            f"syntax error: {error.msg}",
            rule="the cell is Python",
            fix="mend the marked place",
            loc=syntax_place(cell, error),
        ) from None
    except ValueError as error:  # a null byte
        raise LanguageError(
            f"the cell cannot be read: {error}", rule="the cell is Python", loc=magic_place(cell)
        ) from None
    if not tree.body:
        raise LanguageError(
            "the cell is empty", rule="a %%tilekernel cell holds a kernel", fix="write a @T.prim_func below the magic",
            loc=magic_place(cell),
        )  # fmt: skip
    return compile(tree, cell.name, "exec", dont_inherit=True)


def syntax_place(cell: Cell, error: SyntaxError) -> Loc:
    """Where Python found the syntax error."""
    line, col = error.lineno or cell.first, max((error.offset or 1) - 1, 0)
    end_line, end_col = error.end_lineno or line, max((error.end_offset or 0) - 1, 0)
    return Loc(cell.name, line, col, end_line, end_col)


def magic_place(cell: Cell) -> Loc:
    """The magic's word in its line."""
    line = linecache.getline(cell.name, cell.first)
    col = max(line.find(MAGIC), 0)
    return Loc(cell.name, cell.first, col, cell.first, col + len(MAGIC))


def as_typed(cell: Cell) -> None:
    """Registers the text with the magic's line as it was typed, for a cell that will not be run."""
    lines = cell.code.splitlines(keepends=True)
    lines[cell.first - 1] = lines[cell.first - 1].removeprefix("# ")
    linecache.cache[cell.name] = (len(cell.code), None, lines, cell.name)


def in_editor(cell: Cell, document: Document) -> Document:
    """The document with columns as the editor has them: there the magic's line is no comment."""
    if not linecache.getline(cell.name, cell.first).startswith("# "):
        return document
    moved = (
        replace(d, col=max(d.col - 2, 0), end_col=max(d.end_col - 2, 0) if d.end_line == cell.first else d.end_col)
        if d.file == cell.name and d.line == cell.first
        else d
        for d in document.diagnostics
    )
    return replace(document, diagnostics=tuple(moved))


def word_place(cell: Cell, word: str) -> Loc:
    """Where a word of the option line stands; the magic itself if it cannot be found."""
    col = linecache.getline(cell.name, cell.first).find(word) if word else -1
    return magic_place(cell) if col < 0 else Loc(cell.name, cell.first, col, cell.first, col + len(word))


def with_a_body(lines: list[str]) -> list[str]:
    """IPython refuses a cell magic without a body before the magic is asked; a blank line lets ours answer."""
    if lines and lines[0].startswith(MAGIC) and not "".join(lines[1:]).strip():
        return [lines[0].rstrip("\n") + "\n", "\n"]
    return lines
