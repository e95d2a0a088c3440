"""Names: variables are bound where they are used, buffers exist, accesses have the buffer's rank. All levels."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ..expr import Binary, Buffer, Compare, Const, Load, Special, Var
from ..instr import Addr, Bar, Fence, Instr, Reg, Sync
from ..kernel import Kernel
from ..node import Node
from ..op import Op
from ..planned import Acquire, Commit, Complete, Issue, Release, Role, Turn, Wait
from ..stmt import Alloc, Break, Continue, For, If, Let, Region, Stmt, Store, While
from .failure import broken

_PLANNED = (Acquire, Commit, Wait, Release, Issue, Complete, Role, Turn)


class Scopes:
    """One pass over a kernel in program order. `allowed` says which statements this level may hold."""

    def __init__(self, kernel: Kernel, level: str, nodes: tuple[Node, ...]) -> None:
        self.kernel, self.level = kernel, level
        self.bound: set[Var] = {*kernel.scalars, *kernel.symbols(), *kernel.block_vars, *kernel.thread_vars}
        self.known: set[Buffer] = {*kernel.tensors, *kernel.buffers}
        self.met: set[Op] = set()
        if level != "tile":  # a role may use what stands in another role's body
            self.known |= {n.buffer for n in nodes if type(n) is Alloc}

    def run(self) -> None:
        """Raises InternalError at the first statement that breaks a rule."""
        for extent in self.kernel.grid:
            self.value(extent, self.kernel)
        self.body(self.kernel.body, 0)

    def body(self, body: tuple[Stmt, ...], loops: int) -> None:
        made: list[Any] = []
        for s in body:
            if type(s) is Let:
                self.value(s.value, s)
                self.bind((s.var,), s)
                made.append(s.var)
            elif type(s) is Alloc:
                if self.level == "thread" and s.buffer.space in ("shared", "fragment"):
                    raise broken("a tile at thread level", s, "tiles have become registers and placed storage")
                self.values(s.buffer.shape, s)
                self.known.add(s.buffer)
            else:
                self.statement(s, loops)
        self.bound.difference_update(made)

    def statement(self, s: Stmt, loops: int) -> None:
        """One statement that opens no scope for its successors."""
        kind = type(s)
        if kind is For:
            self.values((s.start, s.stop, s.step), s)  # type: ignore[attr-defined]
            self.nested((s.var,), s.body, s, loops + 1)  # type: ignore[attr-defined]
        elif kind is If:
            self.value(s.cond, s)  # type: ignore[attr-defined]
            self.body(s.then, loops)  # type: ignore[attr-defined]
            self.body(s.orelse, loops)  # type: ignore[attr-defined]
        elif kind is While:
            self.value(s.cond, s)  # type: ignore[attr-defined]
            self.body(s.body, loops + 1)  # type: ignore[attr-defined]
        elif kind is Store:
            self.element(s.buffer, s.indices, s)  # type: ignore[attr-defined]
            self.values((*s.indices, s.value), s)  # type: ignore[attr-defined]
        elif kind is Break or kind is Continue:
            if not loops:
                raise broken("no loop is open", s, "break and continue stand in a loop")
        else:
            self.other(s, loops)

    def other(self, s: Stmt, loops: int) -> None:
        """Statements of one level only, and what is generic over its fields."""
        self.fits(s)
        inner = s.op if isinstance(s, (Issue, Complete)) else s
        if self.level == "tile" and isinstance(inner, Op):
            if inner in self.met:
                raise broken("one operation stands at two places", s, "passes keep what they find by the operation")
            self.met.add(inner)
        inside = () if isinstance(s, Complete) else getattr(inner, "body", ())
        variables = getattr(inner, "vars", ())
        own = {"body", "vars"}
        if inner is not s and getattr(s, "pred", None) is not None:
            self.value(s.pred, s)  # type: ignore[attr-defined]
        for key in inner._fields:
            value = getattr(inner, key)
            if key not in own and isinstance(value, (Node, tuple)):
                self.value(value, s)
        if inside:
            # Elect and roles keep the loop around them out of reach; a loop nest is a loop.
            self.nested(variables, inside, s, loops)

    def fits(self, s: Stmt) -> None:
        """The statement belongs to the level."""
        if self.level == "thread":
            if isinstance(s, Op) or (isinstance(s, _PLANNED) and type(s) is not Role):
                raise broken("a tile-level statement at thread level", s, "every operation and channel is lowered")
        elif isinstance(s, Instr) and not (self.level == "planned" and isinstance(s, (Sync, Fence))):
            raise broken(f"an instruction at {self.level} level", s, "instructions exist at thread level only")
        elif self.level == "tile" and isinstance(s, _PLANNED):
            raise broken("a planned statement at tile level", s, "roles, channels and issues exist from planning on")

    def nested(self, variables: Iterable[Var], body: tuple[Stmt, ...], s: Stmt, loops: int) -> None:
        variables = tuple(variables)
        self.bind(variables, s)
        self.body(body, loops)
        self.bound.difference_update(variables)

    def bind(self, variables: Iterable[Var], s: Stmt) -> None:
        for v in variables:
            if v in self.bound:
                raise broken(f"variable {v.name} is bound twice", s, "a variable is bound once on every path")
            self.bound.add(v)

    def values(self, values: Iterable[Any], s: Stmt | Kernel) -> None:
        for value in values:
            if type(value) is not int:
                self.value(value, s)

    def value(self, value: Any, s: Stmt | Kernel) -> None:
        """Every variable and buffer below an operand."""
        stack = [value]
        while stack:
            n = stack.pop()
            kind = type(n)
            if kind is Const or kind is int or kind is str or kind is Special:
                continue
            if kind is Var:
                if n not in self.bound:
                    raise broken(f"variable {n.name} has no value", s, "a variable is bound before it is used")
            elif kind is Binary or kind is Compare:
                stack += (n.a, n.b)
            elif kind is tuple:
                stack.extend(n)
            elif kind is Load:
                self.element(n.buffer, n.indices, s)
                stack.extend(n.indices)
            elif kind is Buffer:
                self.exists(n, s)
            elif kind is Region:
                self.box(n, s)
                stack.extend(n.starts)
                stack.extend(n.extents)
            elif kind is Reg or kind is Addr or kind is Bar:
                self.exists(n.buffer, s)
                stack.append(n.index if kind is Bar else n.start if kind is Reg else n.offset)
            elif isinstance(n, Node) and not isinstance(n, Stmt):
                stack.extend([getattr(n, key) for key in n._fields])

    def exists(self, b: Buffer, s: Stmt | Kernel) -> None:
        if b not in self.known and self._root(b) not in self.known:
            raise broken(f"buffer {b.name} does not exist here", s, "a buffer is a parameter or made before its use")

    @staticmethod
    def _root(b: Buffer) -> Any:
        while isinstance(base := b.attr("view_of"), Buffer):
            b = base
        return b

    def element(self, b: Buffer, indices: tuple[Any, ...], s: Stmt | Kernel) -> None:
        self.exists(b, s)
        if len(indices) != len(b.shape) and not (b.space == "var" and not indices):
            raise broken(
                f"{b.name} has {len(b.shape)} dimensions, not {len(indices)}", s, "an element has one index a dimension"
            )
        if self.level == "thread" and b.space not in ("reg", "local", "var"):
            raise broken(
                f"{b.name} in {b.space} memory read or written by an expression", s, "memory is reached by instructions"
            )

    def box(self, r: Region, s: Stmt | Kernel) -> None:
        self.exists(r.buffer, s)
        if not len(r.starts) == len(r.extents) == len(r.buffer.shape):
            raise broken(
                f"a region of {r.buffer.name} has {len(r.starts)} starts and {len(r.extents)} extents",
                s,
                f"a region of {r.buffer.name} has {len(r.buffer.shape)} of each",
            )
