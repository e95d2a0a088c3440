"""Completion inside %%tilekernel cells: options on the magic's line, names of the language in the body."""

from __future__ import annotations

import inspect
import re
from typing import Any

from .options import completions
from .source import MAGIC

NAME = re.compile(r"(?:^|[^\w.])T\.(\w*)$")


def matcher() -> Any:
    """A matcher for IPython's completer; it answers only in cells of ours."""
    from IPython.core.completer import SimpleCompletion, context_matcher

    @context_matcher()  # type: ignore[untyped-decorator]
    def tileworkbench_matcher(context: Any) -> Any:
        found = matches(context.full_text, context.text_until_cursor, context.cursor_line, context.token)
        return {
            "completions": [SimpleCompletion(text=text, type=kind) for text, kind in found],
            "suppress": bool(found),
        }

    return tileworkbench_matcher


def matches(text: str, before: str, line: int, token: str) -> list[tuple[str, str]]:
    """(completion, kind) for the token at the cursor. `before` is its line up to the cursor, `line` counts from 0."""
    lines = text.lstrip("\n").split("\n")
    if not lines or not lines[0].startswith(MAGIC):
        return []
    if before.startswith(MAGIC):
        rest = before.removeprefix(MAGIC)
        return [(name, "option") for name in completions(rest)] if rest[:1].isspace() else []
    found = NAME.search(before)
    return language_names(found[1], token) if found else []


def language_names(prefix: str, token: str) -> list[tuple[str, str]]:
    """Names of `T` with their signatures as the kind, in the spelling of the token (with or without "T.")."""
    import tileworkbench.language as T

    head = token[: len(token) - len(prefix)] if token.endswith(prefix) else ""
    names = sorted(
        n for n in vars(T) if n.startswith(prefix) and not n.startswith("_") and not inspect.ismodule(vars(T)[n])
    )
    return [(f"{head}{name}", kind_of(getattr(T, name))) for name in names]


def kind_of(value: Any) -> str:
    """What a name is, with a signature for functions."""
    if inspect.isfunction(value):
        return f"function {signature_of(value)}"
    return "class" if inspect.isclass(value) else "instance"


def signature_of(value: Any) -> str:
    """Parameters without annotations, short enough for a menu."""
    parameters = inspect.signature(value).parameters.values()
    return str(inspect.Signature([p.replace(annotation=inspect.Parameter.empty) for p in parameters]))
