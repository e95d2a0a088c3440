"""JupyterLab, an untrusted notebook, no kernel: our extension draws the record; without it the static HTML shows."""

from __future__ import annotations

import json
import secrets
from typing import Any

import pytest

from tests.views.samples import PAYLOADS, full, hostile
from tileworkbench.views.bundle import bundle
from tileworkbench.views.document import MIME

pytestmark = pytest.mark.browser


def cell(data: dict[str, Any]) -> dict[str, Any]:
    output = {"output_type": "display_data", "data": data, "metadata": {}}
    return {"cell_type": "code", "id": secrets.token_hex(4), "execution_count": None, "metadata": {}} | {
        "source": "1 + 1",
        "outputs": [output],
    }


def notebook(*cells: dict[str, Any]) -> str:
    return json.dumps({"cells": list(cells), "metadata": {}, "nbformat": 4, "nbformat_minor": 5})


def static_only(data: dict[str, Any]) -> dict[str, Any]:
    """What a host without our extension reads of a bundle."""
    return {kind: value for kind, value in data.items() if kind != MIME}


@pytest.fixture
def opened(lab: Any, open_page: Any) -> Any:
    def open_notebook(name: str, *cells: dict[str, Any]) -> Any:
        (lab.folder / name).write_text(notebook(*cells), encoding="utf-8")
        watched = open_page()
        watched.page.goto(lab.url(f"lab/workspaces/{name.partition('.')[0]}/tree/{name}"))
        # A workspace of its own, so that no other notebook opens. It names no kernel, so JupyterLab asks.
        watched.page.locator(".jp-Dialog").get_by_role("button", name="No Kernel", exact=True).click()
        watched.page.locator(".jp-Notebook .jp-Cell").first.wait_for()
        return watched

    return open_notebook


def test_the_extension_draws_records_untrusted_and_without_a_kernel(lab: Any, opened: Any) -> None:
    watched = opened("drawn.ipynb", cell(bundle(full())), cell(bundle(hostile())))
    page = watched.page
    first, second = page.locator(".tw-document").first, page.locator(".tw-document").nth(1)
    assert first.locator(".tw-verdict").inner_text().endswith("✓ right on 5 shapes")
    second.get_by_role("tab").nth(1).click()
    assert PAYLOADS[0] in second.get_by_role("tabpanel").inner_text()
    assert page.locator(".jp-OutputArea [data-commandlinker-command], .jp-OutputArea [onerror]").count() == 0
    assert json.loads(lab.get("api/kernels")) == []
    watched.clean()
    # Keys that reach the notebook in command mode would delete the cell; ours stay in the view until Escape.
    first.get_by_role("tab", name="Summary").focus()
    page.keyboard.press("ArrowRight")
    first.get_by_text("line 1 of a long text").wait_for()
    for _ in range(2):
        page.keyboard.press("d")
    assert page.locator(".jp-Notebook .jp-CodeCell").count() == 2
    page.keyboard.press("Escape")
    assert page.evaluate("document.activeElement.closest('.tw-document')") is None
    assert page.evaluate("document.activeElement.closest('.jp-Notebook') !== null")


def test_static_html_survives_the_sanitiser(opened: Any) -> None:
    watched = opened("static.ipynb", cell(static_only(bundle(full()))), cell(static_only(bundle(hostile()))))
    page = watched.page
    html = page.locator(".jp-RenderedHTML").first
    html.get_by_text("48 KiB").wait_for()
    picture = html.get_by_alt_text("a grid of three colours")
    assert picture.evaluate("image => image.naturalWidth") == 16
    html.locator("summary", has_text="Code").click()
    added = html.get_by_text("+ X", exact=True)
    assert added.evaluate("element => getComputedStyle(element).backgroundColor") == "rgba(0, 158, 115, 0.2)"
    assert added.evaluate("element => getComputedStyle(element).font") == "12px / 18px monospace"
    bars = html.locator("td > div")
    assert [round(bar.bounding_box()["width"]) for bar in bars.all()] == [100, 200, 0]
    # Out of sight JupyterLab skips the layout that inner_text() would need.
    assert PAYLOADS[0] in page.locator(".jp-RenderedHTML").nth(1).text_content()
    assert page.locator(".jp-OutputArea [data-commandlinker-command], .jp-OutputArea [onerror]").count() == 0
    watched.clean()


def test_nbconvert_takes_the_static_html(tmp_path: Any, open_page: Any) -> None:
    nbconvert = pytest.importorskip("nbconvert")
    nbformat = pytest.importorskip("nbformat")
    body, _ = nbconvert.HTMLExporter().from_notebook_node(nbformat.reads(notebook(cell(bundle(hostile()))), 4))
    (tmp_path / "page.html").write_text(body, encoding="utf-8")
    page = open_page(offline=True).page
    page.goto((tmp_path / "page.html").as_uri(), wait_until="domcontentloaded")
    assert PAYLOADS[0] in page.locator(".jp-OutputArea").first.inner_text()
    assert page.evaluate("window.pwned") is None
