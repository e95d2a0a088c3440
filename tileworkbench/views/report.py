"""One HTML file that holds documents and all that draws them: it works offline, from `file://`, scripts off too."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Sequence
from pathlib import Path

from .document import Document
from .html import escape, to_html
from .modules import joined

START = """
for (const script of document.querySelectorAll('script[type="application/json"]')) {
  const place = script.previousElementSibling;
  const live = document.createElement('div');
  module_document.draw(live, JSON.parse(script.textContent), {});
  place.replaceWith(live);
}
"""
# The variables are JupyterLab's own, so that the drawing module has one way to be themed.
STYLE = """
:root { color-scheme: light dark; --jp-ui-font-color1: #1b1b1b; --jp-layout-color0: #fff; --jp-layout-color2: #eee;
  --jp-border-color1: #bbb; --jp-brand-color1: #0072b2; }
@media (prefers-color-scheme: dark) { :root { --jp-ui-font-color1: #e8e8e8; --jp-layout-color0: #111;
  --jp-layout-color2: #2a2a2a; --jp-border-color1: #555; --jp-brand-color1: #56b4e9; } }
body { background: var(--jp-layout-color0); color: var(--jp-ui-font-color1); font: 14px/1.5 system-ui, sans-serif;
  max-width: 1100px; margin: 24px auto; padding: 0 16px; }
main > * { margin-bottom: 24px; }
"""


def report(documents: Sequence[Document], title: str = "tileworkbench report") -> str:
    """A self-contained page. Its policy allows no request at all, and no script but the one it was written with."""
    script = joined("document") + START
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode("ascii")
    policy = (
        f"default-src 'none'; img-src data:; style-src 'unsafe-inline'; script-src 'sha256-{digest}'; base-uri 'none'"
    )
    body = "\n".join(to_html(each) + f'<script type="application/json">{embedded(each)}</script>' for each in documents)
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
        f'<meta name="viewport" content="width=device-width"><title>{escape(title)}</title>'
        f"<style>{STYLE}</style></head>\n"
        f"<body><main>{body}</main>\n<script>{script}</script></body></html>\n"
    )


def embedded(document: Document) -> str:
    """JSON that cannot end its script element, nor be read as markup: `<`, `>` and `&` occur in strings only."""
    text = json.dumps(document.to_json(), ensure_ascii=False)
    for char in "<>&\u2028\u2029":
        text = text.replace(char, f"\\u{ord(char):04x}")
    return text


def write_report(path: Path, documents: Sequence[Document], title: str = "tileworkbench report") -> None:
    """Writes `report` with the line ends that the digest in its policy was taken over."""
    path.write_text(report(documents, title), encoding="utf-8", newline="\n")
