"""Tile operations: the base of everything in ops/, and the records an op answers with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

from ..errors import InternalError
from .expr import Buffer, Expr
from .region import is_whole
from .stmt import Region, Stmt

if TYPE_CHECKING:
    from ..target import Target
    from .arith import Facts


@dataclass(frozen=True)
class Access:
    """One effect of a statement. mode: r, w, rw (accumulates into old contents), atomic.

    proxy: generic (ordinary loads and stores), async (copy engines, wgmma operands). `in_flight`: still being done when
    the statement ends, until its completion. `pred` limits the access; None means always."""

    buffer: Buffer
    mode: str
    region: Region | None = None  # None: any part of the buffer
    pred: Expr | None = None
    proxy: str = "generic"
    in_flight: bool = False

    @property
    def reads(self) -> bool:
        """Whether old contents matter."""
        return self.mode != "w"

    @property
    def writes(self) -> bool:
        """Whether contents change."""
        return self.mode != "r"


class ElementStmt(Stmt):
    """A statement on single elements by every thread that comes to it, which answers what it touches."""

    __slots__ = ()

    def element_access(self) -> tuple[Access, ...]:
        """What may be touched besides what the statement's expressions read."""
        raise InternalError(f"{type(self).__name__} does not say what it touches", loc=self.loc)


@dataclass(frozen=True)
class Refusal:
    """An implementation that was not possible, and the reason shown to the user."""

    name: str
    reason: str


@dataclass(frozen=True)
class Impl:
    """One way to do an op. `name` is shown ("tma", "cp.async", "wgmma m64n128k16", ...).

    engine: tma, lsu, tensor, alu, mufu. scope: thread, warp, warpgroup, role (who must execute it together).
    completion: none (done when it returns), group (commit/wait groups), bytes (a barrier counts transferred bytes).
    layouts: what each operand buffer must or would like to have, in order of preference. proxies: how each operand is
    touched. scratch: shared bytes needed. cost: issue cycles, for ranking. zeros: a tensor that may be read outside its
    extents, where this implementation can give nothing but 0."""

    name: str
    engine: str
    scope: str = "thread"
    completion: str = "none"
    layouts: Mapping[Buffer, tuple[Any, ...]] = field(default_factory=dict)
    proxies: Mapping[Buffer, str] = field(default_factory=dict)
    scratch: int = 0
    cost: float = 0.0
    bytes: int = 0
    zeros: Buffer | None = None
    detail: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Choice:
    """Ranked implementations of one op on one target, best first, with every refused one and its reason."""

    impls: tuple[Impl, ...]
    refused: tuple[Refusal, ...] = ()


@dataclass(frozen=True, eq=False, slots=True)
class Op(Stmt):
    """A tile operation. Subclasses declare their fields and answer the five questions; passes ask, they keep no
    list."""

    name: ClassVar[str] = "op"

    @property
    def manual(self) -> bool:
        """True for statements that control the hardware themselves: a kernel with one keeps the order it was written
        in."""
        return False

    def effects(self) -> tuple[Access, ...]:
        """Every read and write, conservative when unsure."""
        raise InternalError(f"{self.name} answers no effects")

    def reaches(self) -> tuple[Buffer, ...]:
        """Shared tiles that it writes in other blocks of the cluster, whatever those are doing."""
        return ()

    def fills(self, buffer: Buffer) -> bool:
        """True when the op surely writes every element of the buffer without needing its old contents."""
        found = [a for a in self.effects() if a.buffer is buffer]
        return all(a.mode == "w" for a in found) and any(a.region is not None and is_whole(a.region) for a in found)

    def check(self) -> None:
        """Raises a located TileError when the operands do not fit one another (target-independent)."""

    def canonical(self) -> tuple[Stmt, ...]:
        """The simpler statements that this op stands for; the op alone when there are none."""
        return (self,)

    def element_loop(self) -> Op | None:
        """The T.Parallel that this op is where its extents are known only at run time; None where they are known, or
        where there is none."""
        return None

    def impls(self, facts: Facts, target: Target, warps: int) -> Choice:
        """Ranked implementations on a role of `warps` warps; `facts` answers bounds and divisibility."""
        raise InternalError(f"{self.name} has no implementations")

    def ahead(self, facts: Facts, target: Target) -> Impl | None:
        """An asynchronous implementation for a pipelined loop, of an op that is done at once elsewhere."""
        return None

    def infer(self, impl: Impl, known: Mapping[Buffer, Any], threads: int, free: bool) -> Mapping[Buffer, Any]:
        """Fragment layouts that follow from the known ones; with `free` also those that nothing fixes."""
        return {}

    def misfits(self, impl: Impl, known: Mapping[Buffer, Any], threads: int) -> tuple[tuple[Buffer, Any], ...]:
        """Fragments that are not where this op needs them, with the layout that it needs."""
        return ()

    def settle(self, impl: Impl, known: Mapping[Buffer, Any], target: Target, threads: int) -> Impl:
        """The implementation now that all layouts are known; `impl` unless a better one fits them."""
        return impl

    def issue(self, impl: Impl, ctx: Any) -> tuple[Stmt, ...]:
        """Thread-level statements that begin the op (and end it when completion is `none`)."""
        raise InternalError(f"{self.name} cannot be emitted")

    def complete(self, impl: Impl, ctx: Any) -> tuple[Stmt, ...]:
        """Thread-level statements after which an asynchronous op's results may be used by its own agent."""
        return ()

    def run(self, env: Any) -> None:
        """The op's meaning on NumPy arrays (the tile machine's environment)."""
        raise InternalError(f"{self.name} cannot be run")

    def text(self, show: Any) -> str:
        """The op as the user would write it, without its body if it has one; `show` renders an operand."""
        operands, options = [], []
        for key in self._fields:
            value = getattr(self, key)
            if isinstance(value, (Region, Expr, Buffer)):
                operands.append(show(value))
            elif key == "hints":
                options += [f"{name}={show(hint)}" for name, hint in value]
            elif key != "body" and value is not None and value is not False and value != "":
                options.append(f"{key}={show(value)}")
        return f"T.{self.name}({', '.join([*operands, *options])})"
