"""A kernel whose device code is the user's own text."""

from __future__ import annotations

from typing import Any

from ..errors import Loc, TargetError
from ..ir.expr import Buffer, Var
from ..ir.instr import ForeignKernel
from ..ir.node import node
from ..ir.op import Access, ElementStmt
from ..ir.stmt import Stmt
from ..target import Target


@node
class SourceKernel(ElementStmt):
    """The whole body: the function `entry` of `source`, called with `args` (tensors by their address, numbers by
    value). `place` is where the text's first line stands, None where that is not known."""

    entry: str
    source: str
    args: tuple[Buffer | Var, ...]
    place: Loc | None = None

    def element_access(self) -> tuple[Access, ...]:
        """Anything may be done to a tensor whose address the text has."""
        return tuple(Access(a, "rw") for a in self.args if isinstance(a, Buffer))

    def text(self, show: Any) -> str:
        """The launch, and the size of the text."""
        lines = len(self.source.splitlines())
        return f"T.CUDASourceCodeKernel({', '.join(map(show, (self.entry, *self.args)))})  # {lines} lines of CUDA C++"

    def emit(self, target: Target) -> tuple[Stmt, ...]:
        """The one instruction; TargetError where the target does not read CUDA C++."""
        if target.dialect != "cuda":
            raise TargetError(
                f"T.CUDASourceCodeKernel `{self.entry}` for {target.name}",
                rule="its text is CUDA C++, which NVIDIA's compiler builds",
                fix="compile for an NVIDIA target, or write the kernel with T.Kernel",
                loc=self.loc,
            )
        return (ForeignKernel(self.entry, self.source, self.args, self.place, loc=self.loc),)
