"""T.cumsum and T.cummax: inclusive prefix combination along one dimension."""

from __future__ import annotations

from typing import Any, ClassVar

from ..ir.node import node
from ..ir.op import Access, Op
from ..ir.stmt import Region


@node
class Scan(Op):
    """kind: sum or max; `reverse` scans from the end. src and dst may be the same buffer."""

    name: ClassVar[str] = "scan"
    kind: str
    src: Region
    dst: Region
    dim: int
    reverse: bool = False

    def effects(self) -> tuple[Access, ...]:
        return Access(self.src.buffer, "r", self.src), Access(self.dst.buffer, "w", self.dst)

    def text(self, show: Any) -> str:
        reverse = ", reverse=True" if self.reverse else ""
        return f"T.cum{self.kind}({show(self.src)}, {show(self.dst)}, dim={self.dim}{reverse})"
