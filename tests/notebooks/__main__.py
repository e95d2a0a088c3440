"""`python -m tests.notebooks` runs every notebook and keeps its new outputs."""

from __future__ import annotations

import nbformat

from .execution import NOTEBOOKS, executed

for path in NOTEBOOKS:
    nbformat.write(executed(path), path)
    print(f"{path.name}: {path.stat().st_size / 1e3:.0f} kB")
