"""Joins the drawing modules into one inline script, without a bundler or Node."""

from __future__ import annotations

import re
from pathlib import Path

from ..errors import InternalError

HERE = Path(__file__).resolve().parent
IMPORT = re.compile(r"^import \{([\w, ]+)\} from '\./(\w+)\.js';$", re.M)
EXPORT = re.compile(r"^export (?:async )?(?:function|const|class) (\w+)", re.M)


def joined(name: str) -> str:
    """Script text that defines `module_<name>` and, before it, what it imports: each module of this folder a function
    that returns its exports. Safe inside a script element."""
    order: list[str] = []
    visit(name, order)
    script = "".join(wrapped(module) for module in order)
    if re.search(r"</script|<!--", script, re.I):
        raise InternalError("a drawing module holds text that would end its script element")
    return script


def visit(name: str, order: list[str]) -> None:
    """Adds a module to `order`, after all that it imports."""
    for imported in IMPORT.finditer(source(name)):
        visit(imported[2], order)
    if name not in order:
        order.append(name)


def source(name: str) -> str:
    return (HERE / f"{name}.js").read_text(encoding="utf-8")


def wrapped(name: str) -> str:
    """A module as a constant that holds its exports."""
    text = source(name)
    names = ", ".join(EXPORT.findall(text))
    body = IMPORT.sub(lambda found: f"const {{{found[1]}}} = module_{found[2]};", text)
    body = re.sub(r"^export ", "", body, flags=re.M)
    return f"const module_{name} = (() => {{\n{body}\nreturn {{{names}}};\n}})();\n"
