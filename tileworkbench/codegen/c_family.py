"""The printer that the C dialects share: a thread-level kernel becomes lines of text with the users' places.

A dialect subclasses `Printer` with its tables: `rows` (instruction class → function that writes it), `functions` (name
→ text of a device function and the names it needs) and `math`. Only what a kernel calls is defined in its text."""

from __future__ import annotations

import math
from collections.abc import Iterable
from itertools import takewhile
from typing import Any

from ..errors import InternalError, TargetError
from ..ir.expr import Buffer, Const, Expr, Special, Var, const
from ..ir.instr import Addr, Bar, ForeignKernel, Instr, Reg, Sync
from ..ir.kernel import Kernel
from ..ir.node import walk
from ..ir.planned import Role
from ..ir.region import root
from ..ir.stmt import Alloc, Stmt
from ..target.target import Target
from .access import tensor_access
from .c_expr import PRIMARY, UNARY, ExprPrinter, Text
from .c_packed import place
from .dialect import Dialect
from .names import Names, comment, mangle
from .scalar import ctype
from .writer import Writer

PRIVATE = ("reg", "local", "var")


class Printer(ExprPrinter, Dialect):
    """Writes one kernel for one target: `frame.compose` asks for its parts once."""

    def __init__(self, kernel: Kernel, target: Target) -> None:
        super().__init__()
        self.kernel, self.target = kernel, target
        self.entry = f"{mangle(kernel.name)}_kernel"
        self.writer = Writer()
        self.warp_size = target.arch.warp_size
        self.role_first_warp = 0
        self.role_warps: int | None = None  # None outside of roles
        self.declared: set[Buffer] = set()
        self.access = tensor_access(kernel)
        self.launch_threads = kernel.launch_threads or kernel.threads
        self.pointed: set[Buffer] = set()  # shared buffers that the body reaches by pointer
        self.mentioned: set[Var] = set()  # variables that text mentions besides those of the body
        self.whole: ForeignKernel | None = None  # what the whole text is, where it is the user's own
        self.wanted: set[str] = set()  # the built-in values that the body mentions
        self._made: dict[str, str] = {}  # function name → its text, callees first
        self.namer = Names()
        self._scope: dict[Var, str | None] = {}  # variables declared in this body → their name outside of it
        self._name_all()

    # --- names --------------------------------------------------------------------------------------------------------
    def _name_all(self) -> None:
        k = self.kernel
        self.namer.fresh(self.entry)
        for item in (*k.params, *k.symbols(), *k.block_vars, *k.thread_vars, *k.buffers):
            if item not in self.names:
                self.names[item] = self.namer.fresh(item.name)
        self.shown = self._shown()
        self.map_names = {m.name: self.namer.fresh(m.name) for m in k.maps}
        self.cooperative = any(isinstance(n, Sync) and n.who == "grid" for n in walk(k.body))
        self.stream_parameter = self.namer.fresh("stream") if self.cooperative else ""
        for var in (*k.symbols(), *k.thread_vars):  # sizes and indices
            self.facts.ranges[var] = (0, math.inf)
        for var, extent in zip(k.block_vars, k.grid, strict=False):
            self.facts.ranges[var] = (0, extent - 1 if isinstance(extent, int) else math.inf)
        self.facts.ranges["thread"] = (0, self.launch_threads - 1)

    def _shown(self) -> dict[Any, str]:
        """Names of parameters and symbols in the launcher's records: the user's own, unless two are equal or odd."""
        found: dict[Any, str] = {}
        for item in (*self.kernel.params, *self.kernel.symbols()):
            plain = item.name.isidentifier() and item.name not in found.values()
            found[item] = item.name if plain else self.names[item]
        return found

    def bind(self, var: Var, low: float = -math.inf, high: float = math.inf) -> str:
        """A new C name for a variable that is declared here, in force to the end of the enclosing body. The same
        variable may be declared again: clones of a loop's body share theirs."""
        self._scope.setdefault(var, self.names.get(var))
        self.names[var] = self.namer.fresh(var.name)
        self.facts.ranges[var] = (low, high)
        return self.names[var]

    def map_name(self, name: str) -> str:
        if name not in self.map_names:
            raise InternalError(f"the kernel has no tensor map {name!r}", rule="lowering is complete")
        return self.map_names[name]

    def use(self, name: str) -> str:
        if name not in self._made:
            function = self.functions.get(name)
            if function is None:
                raise InternalError(f"{name} is not in the dialect's table of functions")
            self.need(function.needs_feature, name)
            for callee in function.calls:
                self.use(callee)
            self._made[name] = function.text
        return name

    def define(self, name: str, text: str, calls: tuple[str, ...] = ()) -> str:
        """A function made for this kernel (a matrix instruction of one shape); defined once."""
        for callee in calls:
            self.use(callee)
        self._made.setdefault(name, text)
        return name

    def need(self, feature: str | None, name: str) -> None:
        if feature is not None and not self.target.has(feature):
            raise TargetError(
                f"{name} needs {feature}, which {self.target.name} does not have",
                rule=f"{self.target.name} runs what its architecture has",
                fix="compile for another target",
                loc=self.writer.loc,
            )

    def want(self, name: str) -> str:
        """Notes that a built-in value (tid, lane, warp, smem_at, …) is mentioned."""
        self.wanted.add(name)
        return name

    def special(self, e: Special) -> Text:
        if e.name in ("thread", "lane", "warp"):
            return self.want({"thread": "tid"}.get(e.name, e.name)), PRIMARY
        if e.name == "role_thread":
            return self.role_thread(), PRIMARY
        if e.name in ("grid_x", "grid_y", "grid_z"):
            return f"(int)({self.grid_size(e.name[-1])})", UNARY
        if e.name in ("block_x", "block_y", "block_z"):
            return f"(int){self.block_index('xyz'.index(e.name[-1]))}", UNARY
        if e.name == "cluster_rank":
            self.need("cluster", "a cluster rank")
            return self.cluster_rank(), PRIMARY
        raise InternalError(f"codegen has no index called {e.name!r}", rule="lowering is complete", loc=e.loc)

    def role_thread(self) -> str:
        self.want("tid")
        first = self.role_first_warp * self.warp_size
        return f"(tid - {first})" if first else "tid"

    # --- operands -----------------------------------------------------------------------------------------------------
    def reg(self, r: Reg, offset: int = 0) -> str:
        """Lvalue of one register."""
        name = self.name(r.buffer)
        return name if r.buffer in self.scalars else f"{name}[{self.expr(r.start + offset)}]"

    def regs(self, r: Reg) -> str:
        """Pointer to the first register of a run. The device compiler turns constant indices back into registers."""
        name = self.name(r.buffer)
        if r.buffer in self.scalars:
            return f"&{name}"
        return name if isinstance(r.start, Const) and r.start.value == 0 else f"{name} + {self.expr(r.start, 12)}"

    def pointer(self, a: Addr) -> str:
        """C pointer to a place in global or shared memory."""
        if a.buffer.space == "global" and a.buffer.dtype.is_packed:
            return place(self, a)
        name = self._pointed(a)
        return name if isinstance(a.offset, Const) and a.offset.value == 0 else f"{name} + {self.expr(a.offset, 12)}"

    def element(self, a: Addr) -> str:
        return f"{self._pointed(a)}[{self.expr(a.offset)}]"

    def _pointed(self, a: Addr) -> str:
        if a.buffer.space == "shared":
            if a.buffer not in self.kernel.offsets:
                raise InternalError(
                    f"shared buffer {a.buffer.name!r} has no place", rule="lowering is complete", loc=a.loc
                )
            self.pointed.add(a.buffer)
        elif a.buffer.space != "global":
            raise InternalError(f"{a.buffer.name!r} is {a.buffer.space} memory, which has no addresses", loc=a.loc)
        base = root(a.buffer)
        if a.buffer.space == "global" and base is not a.buffer:  # its storage under another element type
            const = "" if "w" in self.access.get(base, "rw") else "const "
            return f"(({const}{ctype(a.buffer.dtype)}*){self.name(base)})"
        return self.name(a.buffer)

    def shared(self, a: Addr) -> str:
        """Address in shared memory as the instructions take it: 32 bits, in bytes."""
        if a.buffer.space not in ("shared", "barrier"):
            raise InternalError(f"{a.buffer.name!r} is {a.buffer.space} memory, not shared memory", loc=a.loc)
        return self.shared_bytes_at(a.buffer, a.offset * a.buffer.dtype.bytes)

    def barrier(self, b: Bar) -> str:
        return self.shared_bytes_at(b.buffer, b.index * 8)

    def bytes_in_shared(self, buffer: Buffer, byte_offset: Expr) -> Expr:
        """The place as bytes from the start of the block's shared memory."""
        if buffer not in self.kernel.offsets:
            raise InternalError(f"shared buffer {buffer.name!r} has no place", rule="lowering is complete")
        return const(self.kernel.offsets[buffer]) + byte_offset

    def shared_bytes_at(self, buffer: Buffer, byte_offset: Expr) -> str:
        where, at = self.bytes_in_shared(buffer, byte_offset), self.want("smem_at")
        return at if isinstance(where, Const) and where.value == 0 else f"{at} + {self.expr(where, 12)}"

    # --- statements ---------------------------------------------------------------------------------------------------
    def body(self, stmts: tuple[Stmt, ...]) -> None:
        """Statements in a scope of their own; roles that stand beside one another become one chain."""
        outer, self._scope = self._scope, {}
        i = 0
        while i < len(stmts):
            run = tuple(takewhile(lambda s: isinstance(s, Role), stmts[i:]))
            if run:
                self.rows[Role](self, run)
            else:
                self.stmt(stmts[i])
            i += len(run) or 1
        for var, name in self._scope.items():
            if name is None:
                self.names.pop(var, None)
            else:
                self.names[var] = name
        self._scope = outer

    def stmt(self, s: Stmt) -> None:
        row = self.rows.get(type(s))
        with self.writer.at(s.loc):
            if row is None:
                raise self._no_row(s)
            if isinstance(s, Instr):
                self.need(s.needs, type(s).__name__)
            row(self, s)

    def _no_row(self, s: Stmt) -> Exception:
        name = type(s).__name__
        if type(s) in self.refused:
            return InternalError(f"{name} reached the text for {self.target.name}: {self.refused[type(s)]}",
                                 rule="lowering gives a target only what it has", loc=s.loc)  # fmt: skip
        return InternalError(f"{name} is no thread-level statement", rule="lowering is complete", loc=s.loc)

    def line(self, text: str, why: str = "") -> None:
        note = comment(why)
        self.writer.line(f"{text}  // {note}" if note else text)

    def guarded(self, pred: Expr | None, text: str) -> None:
        """`text` as a statement that happens where `pred` holds."""
        self.line(text if pred is None else f"if ({self.expr(pred)}) {text}")

    def declare(self, buffers: Iterable[Buffer]) -> None:
        """Private buffers as arrays that are only ever indexed by constants (after unrolling), hence registers."""
        for b in buffers:
            size = b.static_size()
            if size is None:
                raise InternalError(
                    f"private buffer {b.name!r} has a symbolic size", rule="lowering is complete", loc=b.loc
                )
            if b in self.declared:
                continue
            self.declared.add(b)
            if b not in self.names:
                self.names[b] = self.namer.fresh(b.name)
            with self.writer.at(b.loc):
                self._declare(b, size)

    def _declare(self, b: Buffer, size: int) -> None:
        if size == 1:
            self.scalars.add(b)
            self.line(f"{ctype(b.dtype)} {self.names[b]};")
        else:
            self.line(f"alignas(16) {ctype(b.dtype)} {self.names[b]}[{size}];")

    # --- the whole ----------------------------------------------------------------------------------------------------
    def declare_private(self, stmts: tuple[Stmt, ...]) -> None:
        """Declares the private buffers that `stmts` mention and that are declared nowhere yet."""
        nodes = tuple(walk(stmts))
        own = dict.fromkeys(n for n in nodes if isinstance(n, Buffer) and n.space in PRIVATE)
        within = {n.buffer for n in nodes if isinstance(n, Alloc)}
        order = {b: i for i, b in enumerate(self.kernel.buffers)}
        self.declare(sorted((b for b in own if b not in within), key=lambda b: order.get(b, len(order))))

    def declare_common(self, stmts: tuple[Stmt, ...]) -> None:
        """Declares what more than one role mentions, or what is mentioned outside of roles."""
        users: dict[Buffer, list[Stmt]] = {}
        allocated: set[Buffer] = set()
        for s in stmts:
            for n in dict.fromkeys(walk(s)):
                if isinstance(n, Buffer) and n.space in PRIVATE:
                    users.setdefault(n, []).append(s)
                elif isinstance(n, Alloc):
                    allocated.add(n.buffer)
        common = [b for b, by in users.items() if len(by) > 1 or not isinstance(by[0], Role)]
        order = {b: i for i, b in enumerate(self.kernel.buffers)}
        self.declare(sorted((b for b in common if b not in allocated), key=lambda b: order.get(b, len(order))))

    def functions_text(self) -> list[str]:
        return list(self._made.values())
