"""T.fill and T.clear: sets every element of a tile to one value."""

from __future__ import annotations

from typing import ClassVar

from ..ir.expr import Expr
from ..ir.node import node
from ..ir.op import Access, Op
from ..ir.stmt import Region


@node
class Fill(Op):
    """`dst[...] = value`, cast to the buffer's dtype."""

    name: ClassVar[str] = "fill"
    dst: Region
    value: Expr

    def effects(self) -> tuple[Access, ...]:
        return (Access(self.dst.buffer, "w", self.dst),)
