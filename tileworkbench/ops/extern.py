"""Calls of device functions that the kernel brings with it as source text."""

from __future__ import annotations

from typing import Any

from ..ir.expr import Buffer, Expr, Load
from ..ir.node import node
from ..ir.op import Access, ElementStmt
from ..ir.stmt import Region


@node
class ExternCall(ElementStmt):
    """`result = function(*args)` by every thread that comes here. An argument is a value, or the address of a region's
    first element; `modes` says what is done through each address (r, w or rw; empty for values). `result` names a
    variable of the thread, None for a function without a value."""

    function: str
    args: tuple[Expr | Region, ...]
    modes: tuple[str, ...]
    result: Buffer | None = None

    def element_access(self) -> tuple[Access, ...]:
        """What may be touched through the addresses, and the result."""
        given = zip(self.args, self.modes, strict=True)
        through = tuple(Access(a.buffer, mode) for a, mode in given if isinstance(a, Region))
        return through if self.result is None else (*through, Access(self.result, "w"))

    def text(self, show: Any) -> str:
        """The call as the user wrote it."""
        shown = [f"T.access_ptr({show(Load(a.buffer, a.starts))}, {show(m)})" if isinstance(a, Region) else show(a)
                 for a, m in zip(self.args, self.modes, strict=True)]  # fmt: skip
        target = "" if self.result is None else f"{show(self.result)} = "
        dtype = "void" if self.result is None else str(self.result.dtype)
        return f"{target}T.call_extern({', '.join([show(dtype), show(self.function), *shown])})"
