"""What steers execution: registers, elected threads, hints, ends."""

from __future__ import annotations

from typing import Any, ClassVar

from ...errors import Loc
from ..expr import Buffer, Var
from ..node import node
from ..stmt import Stmt
from .operands import Instr, Reg


@node
class SetRegs(Instr):
    """setmaxnreg: direction inc or dec."""

    scope: ClassVar[str] = "warpgroup"
    needs: ClassVar[str | None] = "setmaxnreg"
    count: int
    direction: str


@node
class Elect(Instr):
    """`body` by one lane of each warp (who = warp) or by one thread of the role or block."""

    scope: ClassVar[str] = "warp"
    who: str
    body: tuple[Stmt, ...]


@node
class Prefetch(Instr):
    """A tensor map (by name) or a memory address into a cache."""

    what: Any  # str (map) or Addr
    level: str = "L2"


@node
class SchedHint(Instr):
    """Scheduling advice with no meaning of its own: priority, group or iglp."""

    kind: str
    value: int


@node
class GridDep(Instr):
    """Programmatic dependent launch: wait for the previous grid, or let the next one launch."""

    needs: ClassVar[str | None] = "griddep"
    action: str


@node
class Trap(Instr):
    """Ends the kernel with an error."""

    message: str = ""


@node
class Stamp(Instr):
    """Profile builds: one clock record."""

    lane: int
    stage: str
    role: str


@node
class CallExtern(Instr):
    """`result = function(*args)` of a function that stands in the kernel's own source text: values, addresses in
    memory, and registers (their address). The simulator refuses it. `reads` and `writes`: tensors reached through
    addresses."""

    function: str
    args: tuple[Any, ...]  # Expr, Addr or Reg
    result: Reg | None = None
    reads: tuple[Buffer, ...] = ()
    writes: tuple[Buffer, ...] = ()


@node
class ForeignKernel(Instr):
    """The whole kernel is the function `entry` of the user's own `source`, in the dialect of the target; the simulator
    refuses it. `args` are tensors and numbers in the order of its parameters; `place` is where the source's first line
    stands in the user's files, None where that is not known."""

    entry: str
    source: str
    args: tuple[Buffer | Var, ...]
    place: Loc | None = None
