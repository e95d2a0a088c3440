"""T.Parallel: an n-dimensional element loop spread over the threads; iterations are independent."""

from __future__ import annotations

from dataclasses import field
from typing import Any, ClassVar

from ..ir.expr import Var
from ..ir.node import node
from ..ir.effects import accesses
from ..ir.op import Access, Op
from ..ir.stmt import Stmt


@node
class Parallel(Op):
    """`for vars in T.Parallel(*extents): body`. The body holds element statements only (stores, lets, ifs, serial loops,
    atomics), no tile operation. hints: coalesced_width, loop_layout, prefer_async."""

    name: ClassVar[str] = "Parallel"
    vars: tuple[Var, ...]
    extents: tuple[Any, ...]
    body: tuple[Stmt, ...]
    hints: tuple[tuple[str, Any], ...] = field(default=())

    def hint(self, key: str, default: Any = None) -> Any:
        return dict(self.hints).get(key, default)

    def effects(self) -> tuple[Access, ...]:
        return tuple(accesses(self.body))
