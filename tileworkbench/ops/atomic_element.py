"""Atomic updates of single elements."""

from __future__ import annotations

from typing import Any

from ..ir.expr import Buffer, Expr, Load
from ..ir.node import node
from ..ir.op import Access, ElementStmt


@node
class AtomicElement(ElementStmt):
    """One element, inside T.Parallel or thread-level code. `old` names a var buffer that receives the previous
    value."""

    kind: str
    buffer: Buffer
    indices: tuple[Expr, ...]
    value: Expr
    order: str = "relaxed"
    old: Buffer | None = None

    def element_access(self) -> tuple[Access, ...]:
        old = (Access(self.old, "w"),) if self.old is not None else ()
        return (Access(self.buffer, "atomic"), *old)

    def text(self, show: Any) -> str:
        """The element's read-modify-write, with its old value where that is kept."""
        order = "" if self.order == "relaxed" else f", memory_order={show(self.order)}"
        target = "" if self.old is None else f"{show(self.old)} = "
        back = "" if self.old is None else ", return_prev=True"
        place = show(Load(self.buffer, self.indices))
        return f"{target}T.atomic_{self.kind}({place}, {show(self.value)}{order}{back})"
