"""What an error lacks of all that the reader of a malformed kernel needs."""

from __future__ import annotations

import re

from tileworkbench.errors import InternalError, TileError, caret

from .collection import Case


def problems(case: Case, error: TileError) -> list[str]:
    """What an error lacks; empty when it says all that the reader needs."""
    text, place = str(error), error.place
    lacks = []
    if isinstance(error, InternalError):
        lacks.append("it speaks of the compiler's own invariants")
    if error.code != case.rule.code:
        lacks.append(f"its code is {error.code}, expected {case.rule.code}")
    if not re.search(case.message, error.found):
        lacks.append(f"it does not say {case.message!r}")
    if not re.fullmatch(case.rule.text, error.rule):
        lacks.append(f"its rule is {error.rule!r}")
    if not error.fix.strip():
        lacks.append("it has no fix")
    if place is None:
        return [*lacks, "it has no place"]
    if place.line != case.line:
        lacks.append(f"it points at line {place.line}, expected {case.line}")
    line = case.text.splitlines()[place.line - 1] if 0 < place.line <= case.text.count("\n") else ""
    if not 0 <= place.col < max(len(line), 1) or line[place.col : place.col + 1].isspace():
        lacks.append(f"its column {place.col} is not in the line's text")
    if caret(place) not in text or "^" not in text:
        lacks.append("it shows no caret")
    if inside := re.search(r"DType\(|Var\(name|Const\(|object at 0x|<function|<lambda>", text):
        lacks.append(f"it speaks of {inside[0]}")
    return lacks
