"""T.If with T.Then and T.Else: TVM's spelling of an `if` statement, as blocks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from ..errors import Loc
from ..ir.expr import Const, Expr, truth
from ..ir.stmt import If as Branch
from ..ir.stmt import Stmt
from .builder import Builder, Frame
from .faults import fault
from .mathfns import scalar

Keep = Callable[[Builder, str, Any], Any]
FIX = "with T.If(cond): with T.Then(): … with T.Else(): …"


@dataclass(eq=False)
class Choice:
    """The block around the sides. A test that is known while compiling keeps one of them, without a branch."""

    condition: Expr
    sides: dict[str, tuple[Stmt, ...]] = field(default_factory=dict)
    frame: Frame | None = None
    launch_kind: str = "If"

    def run(self, builder: Builder, names: str | tuple[str, ...], loc: Loc, keep: Keep) -> Iterator[Any]:
        builder.choices.append(self)
        with builder.inside("choice") as self.frame:
            yield None
        builder.choices.pop()
        if self.frame.body:
            raise fault("a statement directly in T.If", "its statements stand in T.Then or T.Else", FIX, loc)
        if "then" not in self.sides:
            raise fault("T.If without T.Then", "T.Then holds what the test decides about", FIX, loc)
        then, orelse = self.sides["then"], self.sides.get("else", ())
        if isinstance(self.condition, Const):
            for statement in then if self.condition.value else orelse:
                builder.emit(statement)
        elif then or orelse:
            builder.emit(Branch(self.condition, then, orelse, loc=loc))


@dataclass(eq=False)
class Side:
    """One side; it must stand directly in T.If."""

    kind: str
    launch_kind: str = "Then"

    def run(self, builder: Builder, names: str | tuple[str, ...], loc: Loc, keep: Keep) -> Iterator[Any]:
        word = f"T.{self.kind.capitalize()}"
        choice = builder.choices[-1] if builder.choices else None
        if choice is None or builder.frames[-1] is not choice.frame:
            raise fault(f"{word} outside of T.If", "the sides stand directly in T.If", FIX, loc)
        if self.kind in choice.sides or (self.kind == "else" and "then" not in choice.sides):
            raise fault(f"{word} twice or before T.Then", "T.Then comes first, and each side once", FIX, loc)
        choice.sides[self.kind] = ()
        if isinstance(choice.condition, Const) and bool(choice.condition.value) != (self.kind == "then"):
            return
        with builder.inside(self.kind if not isinstance(choice.condition, Const) else "choice") as frame:
            yield None
        choice.sides[self.kind] = tuple(frame.body)


def If(condition: Any) -> Choice:
    """`with T.If(cond):` holds `with T.Then():` and `with T.Else():`."""
    return Choice(truth(scalar(condition, "T.If")))


def Then() -> Side:
    """What runs where the test of T.If holds."""
    return Side("then")


def Else() -> Side:
    """What runs where it does not."""
    return Side("else")
