"""Static HTML and the report: nothing of a document ever becomes markup."""

from __future__ import annotations

import base64
import hashlib
import html.parser
import json
import re

import pytest

from tileworkbench.views.html import to_html
from tileworkbench.views.report import embedded, report

from .samples import full, hostile

TAGS = {
    *("div", "strong", "br", "details", "summary", "p", "pre", "span", "em"),
    *("table", "caption", "thead", "tbody", "tr", "td", "th", "img"),
}
ATTRIBUTES = {"style", "open", "src", "alt", "width", "height"}
PROPERTIES = {
    *("border-left", "padding", "white-space", "color", "background-color", "font", "max-height", "overflow"),
    *("margin", "vertical-align", "text-align", "width", "height"),
}


class Elements(html.parser.HTMLParser):
    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data


@pytest.mark.parametrize("document", [full(), hostile()], ids=["full", "hostile"])
def test_static_html_is_made_of_what_the_sanitiser_keeps(document) -> None:
    for tag, attributes in Elements(to_html(document)).found:
        assert tag in TAGS
        assert set(attributes) <= ATTRIBUTES
        for rule in filter(None, (attributes.get("style") or "").split(";")):
            assert rule.split(":")[0] in PROPERTIES
        if tag == "img":
            assert re.fullmatch(r"data:image/png;base64,[A-Za-z0-9+/]+={0,2}", attributes["src"] or "")
            assert attributes["alt"]


def test_hostile_text_is_read_as_text() -> None:
    shown = Elements(to_html(hostile())).text
    assert "<img src=x onerror=window.pwned=1>" in shown
    assert "</script><script>window.pwned=1</script>" in shown
    assert "⟨202E⟩gnp.js" in shown
    to_html(hostile()).encode()


def test_a_document_has_the_same_number_of_elements_whatever_its_words() -> None:
    plain = Elements(to_html(full())).found
    document = full()
    object.__setattr__(document, "title", "<b>bold</b>")
    assert len(Elements(to_html(document)).found) == len(plain)


def test_embedded_json_holds_no_markup_and_is_the_record() -> None:
    text = embedded(hostile())
    assert not re.search("[<>&\u2028\u2029]", text)
    assert json.loads(text) == hostile().to_json()


def test_the_report_runs_one_script_and_its_policy_names_it() -> None:
    page = report([full(), hostile()], title="</title><script>")
    scripts = re.findall(r"<script([^>]*)>(.*?)</script>", page, re.S)
    assert [kind for kind, _ in scripts] == [' type="application/json"'] * 2 + [""]
    digest = base64.b64encode(hashlib.sha256(scripts[-1][1].encode()).digest()).decode()
    assert f"default-src 'none'; img-src data:; style-src 'unsafe-inline'; script-src 'sha256-{digest}'" in page
    # The empty namespace of inline svg and the like is not needed either: no address stands in our own text.
    assert "http" not in re.sub(
        r'<script type="application/json">.*?</script>', "", report([full()]), flags=re.S
    ).replace("http-equiv", "")
