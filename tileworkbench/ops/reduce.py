"""T.reduce_*: reduces a tile over one dimension; the result is replicated over the threads that shared a row."""

from __future__ import annotations

from typing import Any, ClassVar

from ..ir.node import node
from ..ir.op import Access, Op
from ..ir.stmt import Region


@node
class Reduce(Op):
    """`dst = kind(src, axis=dim)`; dst lacks that dim or has extent 1 there. kind: sum, max, min, abssum, absmax, bitand,
    bitor, bitxor. clear=False combines with the old dst (once). max and min ignore NaN unless nan_propagate."""

    name: ClassVar[str] = "reduce"
    kind: str
    src: Region
    dst: Region
    dim: int
    clear: bool = True
    nan_propagate: bool = False

    def effects(self) -> tuple[Access, ...]:
        mode = "w" if self.clear else "rw"
        return Access(self.src.buffer, "r", self.src), Access(self.dst.buffer, mode, self.dst)

    def text(self, show: Any) -> str:
        options = "" if self.clear else ", clear=False"
        options += ", nan_propagate=True" if self.nan_propagate else ""
        return f"T.reduce_{self.kind}({show(self.src)}, {show(self.dst)}, dim={self.dim}{options})"
