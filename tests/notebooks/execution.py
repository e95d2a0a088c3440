"""Runs a notebook as it stands, without widget state."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))


def executed(path: Path, timeout: int = 300) -> Any:
    """The notebook with fresh outputs; nbclient's error names the first cell that fails."""
    import nbformat
    from nbclient import NotebookClient

    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
    book = nbformat.read(path, as_version=4)
    client = NotebookClient(
        book, timeout=timeout, resources={"metadata": {"path": str(path.parent)}}, store_widget_state=False
    )
    client.execute()
    for cell in book.cells:
        cell.metadata.pop("execution", None)  # times of this run
    book.metadata.pop("widgets", None)
    return book


def executed_cells(*sources: str) -> list[list[Any]]:
    """Outputs of each cell of a notebook made of these texts, run by one kernel; failures do not stop it."""
    import nbformat
    from nbclient import NotebookClient

    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source) for source in sources])
    NotebookClient(book, timeout=120, kernel_name="python3", allow_errors=True, store_widget_state=False).execute()
    return [cell.outputs for cell in book.cells]
