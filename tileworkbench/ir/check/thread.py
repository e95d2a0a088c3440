"""The thread level: who executes an instruction together, constant register indices, and each row's own rules."""

from __future__ import annotations

from typing import Any

from ...target import Target
from ..arith import Facts
from ..expr import Buffer, Const, Load, Special, Var
from ..instr import (
    Bar,
    CopyAsync,
    Elect,
    Instr,
    LdMatrix,
    LoadMem,
    Reg,
    SetRegs,
    StMatrix,
    StoreMem,
    Sync,
)
from ..kernel import Kernel
from ..node import Node, children
from ..planned import Role
from ..stmt import For, If, Let, Stmt, Store, While
from ..uniform import Uniformity, narrower, rank
from .failure import broken, quote
from .planned import WARPS, check_registers, check_roles
from .storage import check_storage
from .transfers import check_transfers

REGISTERS = 65536
BLOCK_BARRIERS = 16
_FLATTENED = ("unroll", "vector")


def check_thread(kernel: Kernel, nodes: tuple[Node, ...], target: Target | None, warp_size: int) -> None:
    """Raises InternalError at the first broken invariant of the thread level."""
    roles = tuple(s for s in kernel.body if isinstance(s, Role))
    check_roles(kernel, roles, warp_size)
    check_registers(kernel, roles, warp_size, target.arch.registers_per_sm if target is not None else REGISTERS)
    check_storage(kernel, nodes, target.arch.max_shared_per_block if target is not None else None)
    check_transfers(kernel, nodes)
    _Flow(kernel, target, warp_size).body(kernel.body, "grid")


class _Flow:
    """Walks statements with the scope that executes them together."""

    def __init__(self, kernel: Kernel, target: Target | None, warp_size: int) -> None:
        self.kernel, self.target, self.warp_size = kernel, target, warp_size
        self.uniform = Uniformity(kernel, warp_size)
        self.flat: set[Var] = set()  # variables that are constants once loops are unrolled
        self.facts = Facts()
        self.role: Role | None = None
        self.owned = set(kernel.buffers)

    def body(self, body: tuple[Stmt, ...], flow: str) -> None:
        for s in body:
            self.statement(s, flow)

    def statement(self, s: Stmt, flow: str) -> None:
        kind = type(s)
        if kind is For:
            self.loop(s, flow)  # type: ignore[arg-type]
        elif kind is If:
            self.registers(s.cond, s)  # type: ignore[attr-defined]
            inner = narrower(flow, self.uniform.scope(s.cond))  # type: ignore[attr-defined]
            self.body(s.then, inner)  # type: ignore[attr-defined]
            self.body(s.orelse, inner)  # type: ignore[attr-defined]
        elif kind is While:
            self.registers(s.cond, s)  # type: ignore[attr-defined]
            inner = narrower(flow, self.uniform.scope(s.cond))  # type: ignore[attr-defined]
            self.body(s.body, narrower(inner, self.uniform.exits(s.body)))  # type: ignore[attr-defined]
        elif kind is Role:
            self.enter(s, flow)  # type: ignore[arg-type]
        elif kind is Let:
            self.registers(s.value, s)  # type: ignore[attr-defined]
            if self.constant(s.value):  # type: ignore[attr-defined]
                self.flat.add(s.var)  # type: ignore[attr-defined]
        elif kind is Store:
            self.index(s.buffer, s.indices[0] if s.indices else None, 1, s)  # type: ignore[attr-defined]
            self.registers(s.value, s)  # type: ignore[attr-defined]
        elif isinstance(s, Instr):
            self.instruction(s, flow)
        else:
            self.registers(s, s)

    def loop(self, s: For, flow: str) -> None:
        bounds = (s.start, s.stop, s.step)
        self.registers(bounds, s)
        for e in bounds:
            flow = narrower(flow, self.uniform.scope(e))
        if s.kind in _FLATTENED:
            if not all(self.constant(e) for e in bounds):
                raise broken(f"the bounds of a loop of kind {s.kind} are not constant", s, "unrolled loops are static")
            self.flat.add(s.var)
        outer = self.facts
        self.facts = outer.with_loop(s.var, *bounds)
        self.body(s.body, narrower(flow, self.uniform.exits(s.body)))
        self.facts = outer

    def enter(self, s: Role, flow: str) -> None:
        if rank(flow) < rank("block" if self.role is None else "role"):
            raise broken(f"role {s.name} starts in code that only a {flow} executes", s, "all threads reach the roles")
        whole = s.warps * self.warp_size >= (self.kernel.launch_threads or self.kernel.threads)
        outer, self.role = self.role, s
        self.body(s.body, flow if whole else "role")
        self.role = outer

    # --- instructions -------------------------------------------------------------------------------------------------
    def instruction(self, s: Instr, flow: str) -> None:
        self.together(s, flow)
        if s.needs is not None and self.target is not None and not self.target.has(s.needs):
            raise broken(f"{self.target.name} has no {s.needs}", s, "instructions are ones that the target has")
        for part in children(s):
            if not isinstance(part, Stmt):
                self.registers(part, s)
        rule = _ROWS.get(type(s))
        if rule is not None:
            rule(self, s)
        if isinstance(s, Elect):
            self.body(s.body, "thread")

    def together(self, s: Instr, flow: str) -> None:
        """The instruction's scope against control flow; for meetings and elections, the threads they name."""
        scope = s.who if isinstance(s, (Sync, Elect)) else s.scope
        if scope == "role" and self.role is None:
            scope = "block"
        if scope == "named":  # whole warps arrive; which ones is the kernel's affair
            scope = "warp"
        if rank(flow) < rank(scope):
            raise broken(
                f"only a {flow} surely comes here together", s, f"all threads of a {scope} execute this together"
            )
        if scope == "warpgroup" and self.role is not None and (self.role.first_warp % WARPS or self.role.warps % WARPS):
            raise broken(
                f"role {self.role.name} has {self.role.warps} warps from {self.role.first_warp} on",
                s,
                "a warpgroup is four warps, the first a multiple of four",
            )

    def constant(self, e: Any) -> bool:
        """True when the expression is a constant once loops are unrolled."""
        stack = [e]
        while stack:
            n = stack.pop()
            if type(n) is Var:
                if n not in self.flat:
                    return False
            elif type(n) is Load or type(n) is Special:
                return False
            elif type(n) is not Const and isinstance(n, Node):
                stack.extend(children(n))
        return True

    def registers(self, value: Any, s: Stmt) -> None:
        """Every register that an operand reads or names has a constant index inside its buffer."""
        stack = [value]
        while stack:
            n = stack.pop()
            kind = type(n)
            if kind is Const or kind is Var:
                continue
            if kind is tuple:
                stack.extend(n)
            elif kind is Reg:
                self.index(n.buffer, n.start, n.count, s)
            elif kind is Load:
                self.index(n.buffer, n.indices[0] if n.indices else None, 1, s)
            elif kind is Bar:
                self.barrier(n, s)
            elif isinstance(n, Node) and kind is not Buffer:
                stack.extend(children(n))

    def index(self, b: Buffer, start: Any, count: int, s: Stmt) -> None:
        if b not in self.owned:
            raise broken(f"registers {b.name} are not the kernel's", s, "register buffers are listed in the kernel")
        size = b.static_size() or 1
        if type(start) is Const:
            low = high = start.value
        elif start is None:
            low = high = 0
        else:
            if not self.constant(start):
                raise broken(
                    f"registers {b.name} are indexed by {quote(start)}",
                    s,
                    "register indices mention constants and variables of unrolled loops only",
                )
            low, high = self.facts.range(start)
        if low < 0 or high + count > size:
            raise broken(f"registers {low} to {high + count - 1} of {b.name}", s, f"{b.name} has {size}")

    def barrier(self, bar: Bar, s: Stmt) -> None:
        if bar.buffer.space != "barrier" or bar.buffer not in self.owned:
            raise broken(f"{bar.buffer.name} is no barrier of the kernel", s, "barriers are listed in the kernel")
        if type(bar.index) is Const and not 0 <= bar.index.value < (bar.buffer.static_size() or 0):
            raise broken(f"barrier {bar.index.value} of {bar.buffer.name}", s, f"there are {bar.buffer.shape}")


# --- rows with rules of their own -------------------------------------------------------------------------------------
def _sync(flow: _Flow, s: Sync) -> None:
    limit = flow.target.arch.named_barriers if flow.target is not None else BLOCK_BARRIERS
    if s.id is not None and s.id and not 0 < s.id < max(limit, 1):
        raise broken(f"barrier id {s.id}", s, f"a block has the ids 0 to {max(limit, 1) - 1}")
    if s.who == "role" and s.id == 0:
        raise broken("a role meets at barrier 0", s, "barrier 0 is the block's")
    if s.threads is None or s.mode != "both":
        return
    role = flow.role
    everyone = flow.kernel.launch_threads or flow.kernel.threads
    expected = {"role": role.warps * flow.warp_size if role is not None else everyone, "block": everyone}.get(s.who)
    if expected is not None and s.threads != expected:
        raise broken(f"{s.threads} threads meet", s, f"the {s.who} has {expected}")


def _copy_async(flow: _Flow, s: CopyAsync) -> None:
    if s.bytes not in (4, 8, 16):
        raise broken(f"cp.async of {s.bytes} bytes", s, "4, 8 or 16 bytes")


def _vector(flow: _Flow, s: LoadMem | StoreMem) -> None:
    reg = s.dst if isinstance(s, LoadMem) else s.src
    size = reg.count * reg.buffer.dtype.bytes
    if size not in (1, 2, 4, 8, 16):
        raise broken(f"one access of {size} bytes", s, "1, 2, 4, 8 or 16 bytes")


def _matrix(flow: _Flow, s: LdMatrix | StMatrix) -> None:
    reg = s.dst if isinstance(s, LdMatrix) else s.src
    size = reg.count * reg.buffer.dtype.bytes
    if s.num not in (1, 2, 4) or size != 4 * s.num:
        raise broken(
            f"{s.num} matrices in {size} bytes of registers", s, "1, 2 or 4 matrices, four bytes each a thread"
        )


def _set_regs(flow: _Flow, s: SetRegs) -> None:
    if flow.role is None or flow.role.registers != s.count:
        want = flow.role.registers if flow.role is not None else None
        raise broken(f"{s.count} registers", s, f"the role's target is {want}")


_ROWS: dict[type, Any] = {
    Sync: _sync,
    CopyAsync: _copy_async,
    LoadMem: _vector,
    StoreMem: _vector,
    LdMatrix: _matrix,
    StMatrix: _matrix,
    SetRegs: _set_regs,
}
