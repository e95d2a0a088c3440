"""T.While: TVM's spelling of a `while` statement, as a block."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from ..errors import Loc
from ..ir.expr import Const, Expr, truth
from ..ir.stmt import While as WhileLoop
from .builder import Builder
from .faults import fault
from .mathfns import scalar


@dataclass(eq=False)
class Repetition:
    """The block before its body is known."""

    condition: Expr
    launch_kind: str = "While"

    def run(
        self, builder: Builder, names: str | tuple[str, ...], loc: Loc, keep: Callable[[Builder, str, Any], Any]
    ) -> Iterator[Any]:
        with builder.inside("while", "while") as frame:
            yield None
        builder.emit(WhileLoop(self.condition, tuple(frame.body), loc=loc))


def While(condition: Any) -> Repetition:
    """`with T.While(cond):` repeats its block as long as the condition holds; what it loads is loaded again each
    time."""
    found = truth(scalar(condition, "T.While"))
    if isinstance(found, Const):
        raise fault(
            f"T.While on a test that is always {'true' if found.value else 'false'}",
            "a loop in a kernel ends by a test of run-time values",
            "test an element of a tile, or a T.alloc_var",
        )
    return Repetition(found)
