"""T.copy: moves a tile between any two memory spaces, converting the dtype elementwise."""

from __future__ import annotations

from dataclasses import field
from typing import Any, ClassVar

from ..ir.node import node
from ..ir.op import Access, Op
from ..ir.stmt import Region


@node
class Copy(Op):
    """`dst = src` elementwise, mapped in row-major order over the extents that are not 1. Elements outside a global
    source read as 0; stores outside a global destination are dropped.

    hints: coalesced_width, disable_tma, eviction_policy, prefer_instruction ("tma", "cp_async", "sync"), loop_layout,
    force ("tma" or "async" for T.tma_copy and T.async_copy), barrier."""

    name: ClassVar[str] = "copy"
    src: Region
    dst: Region
    hints: tuple[tuple[str, Any], ...] = field(default=())

    def hint(self, key: str, default: Any = None) -> Any:
        return dict(self.hints).get(key, default)

    def effects(self) -> tuple[Access, ...]:
        return Access(self.src.buffer, "r", self.src), Access(self.dst.buffer, "w", self.dst)
