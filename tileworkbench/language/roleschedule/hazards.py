"""Tiles that one role fills and another uses without a pipeline between them."""

from __future__ import annotations

from typing import Any

from ...ir.effects import accesses
from ...ir.expr import Buffer
from ..faults import fault

Uses = tuple[set[Buffer], set[Buffer]]


def uses(stmts: tuple[Any, ...]) -> Uses:
    """(buffers read, buffers written) by statements."""
    found = list(accesses(stmts))
    return {a.buffer for a in found if a.reads}, {a.buffer for a in found if a.writes}


def check_shared(texts: list[Any], versions: set[Buffer]) -> None:
    """Refuses what no barrier orders: a shared tile written by one role and used by another, and registers that a role
    reads though another role alone fills them."""
    for text in texts:
        for other in texts:
            if text is not other:
                _check(text, other, versions)


def _check(text: Any, other: Any, versions: set[Buffer]) -> None:
    (reads, writes), (_, made) = text.uses, other.uses
    for b in sorted(made & (reads | writes), key=lambda b: b.name):
        shared = b.space == "shared" and b not in versions
        if shared or (b.space in ("fragment", "local") and b not in writes):
            raise fault(
                f"`{b.name}` is written by role {other.role.name!r} and used by role {text.role.name!r}",
                "what a role hands to another goes through a pipeline",
                "name it in a T.WSPipeline, or let one role do both",
                b.loc,
            )
