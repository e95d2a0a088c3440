"""The notebooks run from top to bottom, and read well without being run."""

from __future__ import annotations

import hashlib
import inspect
import json
import re
import textwrap

import pytest

from tileworkbench import tutorial
from tileworkbench.views.document import MIME

from .execution import NOTEBOOKS, executed

nbformat = pytest.importorskip("nbformat")
books = pytest.mark.parametrize("path", NOTEBOOKS, ids=[path.stem for path in NOTEBOOKS])


def cells(path, kind):
    return [cell for cell in nbformat.read(path, as_version=4).cells if cell.cell_type == kind]


def test_there_are_notebooks():
    assert [path.stem for path in NOTEBOOKS][:1] == ["01_first_kernel"]


@books
def test_it_runs(path):
    pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    book = executed(path)
    outputs = [out for cell in book.cells if cell.cell_type == "code" for out in cell.outputs]
    assert not [out for out in outputs if out.output_type == "error"]
    for cell in book.cells:
        for record in (out.data[MIME] for out in cell.get("outputs", ()) if MIME in out.get("data", {})):
            # What an editor compares before it marks anything in a cell.
            digest = hashlib.sha256(cell.source.encode()).hexdigest()
            assert record["cell"] is None or record["cell"]["sha256"] == digest, cell.source
    verdicts = [out.data[MIME]["verdict"] for out in outputs if MIME in out.get("data", {})]
    assert verdicts and all(verdict["tone"] != "bad" for verdict in verdicts), verdicts


@books
def test_it_is_kept_with_its_outputs_and_little_else(path):
    text = path.read_text(encoding="utf-8")
    book = json.loads(text)
    assert "widgets" not in book["metadata"]
    assert len(text.encode()) <= 300_000
    code = cells(path, "code")
    assert [cell.execution_count for cell in code] == list(range(1, len(code) + 1))
    for cell in code:
        for out in cell.outputs:
            assert out.output_type != "error"
            assert len(json.dumps(out, ensure_ascii=False).encode()) <= 100_000
            assert "text/html" in out.get("data", {}) or MIME not in out.get("data", {})
            assert "application/vnd.jupyter.widget-view+json" not in out.get("data", {})
    assert not re.search(r"/(home|root|work|Users|tmp)/", text), "a path of the machine that ran it"
    assert sum(bool(cell.outputs) for cell in code) >= len(code) // 2


@pytest.mark.parametrize("factory", [tutorial.add, tutorial.gemm_relu])
def test_the_first_notebook_shows_the_demos_kernels(factory):
    source = inspect.getsource(factory)
    inner = textwrap.dedent(source[source.index("    @T.prim_func") : source.index("\n    return")]).strip()
    texts = [cell.source.partition("\n")[2] for cell in cells(NOTEBOOKS[0], "code") if cell.source.startswith("%%tile")]
    assert inner in texts
