"""Atomic updates of single elements."""

from __future__ import annotations

from typing import Any

from ..ir.expr import Buffer, Expr, Load
from ..ir.node import node
from ..ir.op import Access, ElementStmt


@node
class AtomicElement(ElementStmt):
    """One element, inside T.Parallel or thread-level code. `old` names a var buffer that receives the previous
    value. Of the kinds, `load` only reads and `store` only writes."""

    kind: str
    buffer: Buffer
    indices: tuple[Expr, ...]
    value: Expr
    order: str = "relaxed"
    old: Buffer | None = None

    def element_access(self) -> tuple[Access, ...]:
        old = (Access(self.old, "w"),) if self.old is not None else ()
        mode = {"load": "r", "store": "w"}.get(self.kind, "atomic")
        return (Access(self.buffer, mode), *old)

    def text(self, show: Any) -> str:
        """The element's read-modify-write, with its old value where that is kept."""
        order = "" if self.order == "relaxed" else f", memory_order={show(self.order)}"
        target = "" if self.old is None else f"{show(self.old)} = "
        place = show(Load(self.buffer, self.indices))
        if self.kind == "load":
            return f"{target}T.atomic_load({place}, memory_order={show(self.order)})"
        back = "" if self.old is None else ", return_prev=True"
        order = f", memory_order={show(self.order)}" if self.kind == "store" else order
        return f"{target}T.atomic_{self.kind}({place}, {show(self.value)}{order}{back})"
