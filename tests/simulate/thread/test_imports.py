"""The thread machine judges ops and passes, so it may not know them: only the IR and what lies below it."""

from __future__ import annotations

import ast
from pathlib import Path

import tileworkbench.simulate.thread as room

ALLOWED = {"ir", "target", "layout", "errors", "options"}


def test_imports_stay_below():
    root = Path(room.__file__).parent
    for file in root.glob("*.py"):
        for n in ast.walk(ast.parse(file.read_text())):
            if isinstance(n, ast.ImportFrom) and n.level == 3:
                assert (n.module or "").split(".")[0] in ALLOWED, f"{file.name}: {n.module}"
            elif isinstance(n, ast.ImportFrom):
                assert n.level == 1 or not (n.module or "").startswith("tileworkbench"), f"{file.name}: {n.module}"
            elif isinstance(n, ast.Import):
                assert not any(a.name.startswith("tileworkbench") for a in n.names), file.name
