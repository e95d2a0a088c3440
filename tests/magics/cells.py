"""An IPython shell of its own for each test, and the cells that tests run in it."""

from __future__ import annotations

import io
from contextlib import redirect_stdout
from dataclasses import dataclass
from typing import Any

ADD = """%%tilekernel{options}
@T.prim_func
def add(A: T.Tensor((M, N), "float16"), B: T.Tensor((M, N), "float16"), C: T.Tensor((M, N), "float16")):
    with T.Kernel(T.ceildiv(N, 32), T.ceildiv(M, 32), threads=128) as (bx, by):
        for i, j in T.Parallel(32, 32):
            C[by * 32 + i, bx * 32 + j] = A[by * 32 + i, bx * 32 + j] + B[by * 32 + i, bx * 32 + j]
"""


@dataclass
class Ran:
    """One cell's value, its error, what it displayed (MIME bundles), and what it wrote."""

    value: Any
    error: BaseException | None
    shown: list[dict[str, Any]]
    written: str


class Notebook:
    """Runs cells as a notebook does."""

    def __init__(self, shell: Any) -> None:
        self.shell = shell
        self.space = shell.user_ns

    def run(self, text: str) -> Ran:

        shown: list[dict[str, Any]] = []
        publish = self.shell.display_pub.publish
        self.shell.display_pub.publish = lambda data, *a, **k: shown.append(data)
        out = io.StringIO()
        try:
            with redirect_stdout(out):
                done = self.shell.run_cell(text, store_history=True)
        finally:
            self.shell.display_pub.publish = publish
        return Ran(done.result, done.error_in_exec or done.error_before_exec, shown, out.getvalue())

    def fail(self, text: str) -> Any:
        """The error of a cell that must fail."""
        done = self.run(text)
        if done.error is None:
            raise AssertionError(f"the cell did not fail: {text}")
        return done
