"""What the hints of a user may say, whatever is made of them later."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..errors import LanguageError
from ..ir.op import Op


def check_word(op: Op, hint: str, value: Any, words: Sequence[str]) -> None:
    """A hint that names one of a few things."""
    if value is not None and not (isinstance(value, str) and value in words):
        raise LanguageError(
            f"T.{op.name}: {hint}={value!r}",
            rule=f"{hint} is one of {', '.join(words)}",
            fix=f'{hint}="{words[0]}", or leave it out',
            loc=op.loc,
        )


def check_width(op: Op, width: Any) -> None:
    """The elements of one access: a power of two."""
    if width is not None and not (isinstance(width, int) and width > 0 and width & (width - 1) == 0):
        raise LanguageError(
            f"coalesced_width={width!r}",
            rule="coalesced_width counts the elements of one access: a power of two",
            fix="coalesced_width=8, or leave it out",
            loc=op.loc,
        )
