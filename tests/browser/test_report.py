"""The saved report, opened as a file: drawn by its module, readable without scripts, inert whatever it says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.views.samples import PAYLOADS, full, hostile
from tileworkbench.views.document import Document, Section, Verdict
from tileworkbench.views.report import write_report

pytestmark = pytest.mark.browser


@pytest.fixture
def saved(tmp_path: Path) -> str:
    write_report(tmp_path / "report.html", [full(), hostile()])
    return (tmp_path / "report.html").as_uri()


def test_the_report_draws_every_block_and_asks_for_nothing(open_page: Any, saved: str) -> None:
    watched = open_page(offline=True)
    page = watched.page
    page.goto(saved)
    first = page.locator(".tw-document").first
    assert first.locator(".tw-verdict").inner_text().endswith("✓ right on 5 shapes")
    assert "line 3: warning: a name before its definition" in first.locator(".tw-diagnostic").inner_text()
    assert first.locator(".tw-bar").count() == 3
    widths = [box.bounding_box()["width"] for box in first.locator(".tw-bar").all()]
    assert widths[1] == pytest.approx(2 * widths[0], rel=0.02)
    assert widths[2] == 0
    picture = first.locator("img.tw-picture")
    assert picture.evaluate("image => image.naturalWidth") == 16
    first.get_by_role("tab", name="Code").click()
    first.get_by_text("line 1 of a long text").wait_for()  # it came compressed
    assert first.locator(".tw-minus").inner_text() == "- f"
    assert first.locator(".tw-plus").inner_text() == "+ X"
    assert "cell:8int b;" in first.locator(".tw-row").nth(1).inner_text()
    watched.clean()


def test_long_code_keeps_few_lines_in_the_page_and_shows_the_last(open_page: Any, saved: str) -> None:
    page = open_page(offline=True).page
    page.goto(saved)
    first = page.locator(".tw-document").first
    first.get_by_role("tab", name="Code").click()
    box = first.get_by_role("region", name="SASS")
    box.get_by_text("line 1 of a long text").wait_for()
    assert box.locator(".tw-row").count() < 200
    box.evaluate("box => { box.scrollTop = box.scrollHeight; }")
    box.get_by_text("line 1999 of a long text").wait_for()
    assert box.locator(".tw-row").count() < 200


def test_tabs_by_keyboard(open_page: Any, saved: str) -> None:
    page = open_page(offline=True).page
    page.goto(saved)
    first = page.locator(".tw-document").first
    names = [tab.inner_text() for tab in first.get_by_role("tab").all()]
    assert names == ["Summary", "Code"]
    first.get_by_role("tab", name="Summary").focus()
    for key, chosen in (("ArrowRight", "Code"), ("ArrowRight", "Summary"), ("End", "Code"), ("Home", "Summary")):
        page.keyboard.press(key)
        assert page.evaluate("document.activeElement.textContent") == chosen
        assert first.get_by_role("tab", selected=True).inner_text() == chosen
        assert first.get_by_role("tabpanel").count() == 1
    page.keyboard.press("Escape")
    assert page.evaluate("document.activeElement === document.body")


def test_hostile_text_stays_text(open_page: Any, saved: str) -> None:
    watched = open_page(offline=True)
    page = watched.page
    page.goto(saved)
    second = page.locator(".tw-document").nth(1)
    for i in range(second.get_by_role("tab").count()):
        second.get_by_role("tab").nth(i).click()
        panel = second.get_by_role("tabpanel").inner_text()
        assert PAYLOADS[0] in panel
    assert (
        second.locator("script, svg, form, input, iframe, a, [onerror], [onload], [data-commandlinker-command]").count()
        == 0
    )
    watched.clean()


def test_the_report_reads_without_scripts(open_page: Any, saved: str) -> None:
    page = open_page(offline=True, java_script_enabled=False).page
    page.goto(saved)
    assert page.locator(".tw-document").count() == 0
    assert page.get_by_text("48 KiB").first.is_visible()
    assert page.get_by_alt_text("a grid of three colours").first.is_visible()


BROKEN = [
    None,
    3,
    [],
    {"version": "1"},
    {"version": 1, "sections": 5, "diagnostics": {"length": 1e9}, "verdict": []},
    {
        "version": 1,
        "sections": [{"blocks": [{"kind": kind, "rows": 7, "bars": [[]], "runs": [[1], "~", ["~"]], "png": 1}]}],
    }
    if (kind := "constructor")
    else None,
    *(
        {
            "version": 1,
            "verdict": {"tone": "__proto__", "word": {}},
            "sections": [
                {
                    "title": ["x"],
                    "blocks": [
                        {
                            "kind": kind,
                            "rows": [7, [[]]],
                            "columns": [{}, 2],
                            "bars": [[], {"value": 1e400}],
                            "facts": [1, []],
                        }
                        | {"runs": [[1], "~", ["~"], ["+", 5]], "png": "data:text/html,x", "gzip": "####", "marks": [0]}
                    ],
                }
            ],
        }
        for kind in ("text", "code", "diff", "table", "bars", "picture", "facts", "toString")
    ),
]


def test_malformed_records_raise_nothing(open_page: Any, tmp_path: Path) -> None:
    write_report(tmp_path / "report.html", [Document("x", Verdict("right", ""), (Section("a", "A", ()),))])
    watched = open_page(offline=True)
    page = watched.page
    page.goto((tmp_path / "report.html").as_uri())
    for spec in BROKEN:
        shown = page.evaluate(
            "spec => { const el = document.createElement('div'); document.body.append(el);"
            " module_document.draw(el, spec, {}); return el.textContent; }",
            spec,
        )
        assert shown
    page.wait_for_timeout(100)
    newer = page.evaluate(
        "() => { const el = document.createElement('div'); module_document.draw(el, {version: 2}, {});"
        " return el.querySelector('.tw-text').textContent; }"
    )
    assert newer == "made with a newer tileworkbench (record version 2)"
    watched.clean()
