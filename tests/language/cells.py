"""Kernels given as text, registered as notebooks register cells; «…» marks the span that an error must name."""

from __future__ import annotations

import itertools
import linecache
import textwrap
from typing import Any

import tileworkbench.language as T
from tileworkbench.ir.text import show

_NUMBER = itertools.count()


def run_cell(text: str, **names: Any) -> dict[str, Any]:
    """Executes dedented text as a registered cell and returns its namespace."""
    text = textwrap.dedent(text).lstrip("\n")
    file = f"<cell {next(_NUMBER)}>"
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    space: dict[str, Any] = {"T": T, **names}
    exec(compile(text, file, "exec", dont_inherit=True), space)
    return space


def marked(text: str) -> tuple[str, tuple[int, int, int, int]]:
    """The text without marks, and the marked span: line, column, end line, end column."""
    text = textwrap.dedent(text).lstrip("\n")
    start, end = text.index("«"), text.index("»") - 1
    plain = text.replace("«", "").replace("»", "")
    return plain, (*_place(plain, start), *_place(plain, end))


def _place(text: str, offset: int) -> tuple[int, int]:
    before = text[:offset]
    return before.count("\n") + 1, offset - (before.rfind("\n") + 1)


def body(text: str, threads: int = 128, **names: Any) -> list[str]:
    """The lines of a kernel body, as read, for statements over A, B: (64, 64) float32, I: (64,) int32, n: int32."""
    return kernel_lines(build(text, threads, **names))


def build(text: str, threads: int = 128, **names: Any) -> Any:
    lines = textwrap.indent(textwrap.dedent(text).strip("\n"), " " * 8)
    source = f"""
@T.prim_func
def k(A: T.Tensor((64, 64), "float32"), B: T.Tensor((64, 64), "float32"), I: T.Tensor((64,), "int32"), n: T.int32):
    with T.Kernel(4, threads={threads}) as bx:
{lines}
"""
    return run_cell(source, **names)["k"].kernel


def kernel_lines(kernel: Any) -> list[str]:
    lines = show(kernel).splitlines()
    start = next(i for i, line in enumerate(lines) if "T.Kernel(" in line)
    return [line[8:] for line in lines[start + 1 :] if line.strip()]
