"""Channels on the machine: full and empty barriers, and a cursor per role that counts every use.

A cursor is (index of the version, how often the ring has gone round). The parity to wait for is the round's last bit,
so it never depends on a loop variable; the round itself is the absolute count that the thread machine checks."""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import dataclass

from ..ir.dtype import DTYPES, INT32
from ..ir.expr import Buffer, Expr, Load, Var, compare, const, select
from ..ir.instr import Bar, BarArrive, BarInit, BarWait, CommitGroup, Elect, Fence, Sync, WaitGroup
from ..ir.planned import Acquire, Channel, Commit, Release, Wait
from ..ir.stmt import ONE, ZERO, Let, Stmt, Store
from ..ops.context import Context


@dataclass
class Cursor:
    """One role's place in a ring: registers (index, round). Only barriers need the round."""

    registers: Buffer
    depth: int
    rounds: bool = True

    @property
    def index(self) -> Expr:
        """The version that it points at."""
        return Load(self.registers, (ZERO,)) if self.depth > 1 else ZERO

    @property
    def round(self) -> Expr:
        """How often the ring has gone round."""
        return Load(self.registers, (ONE,))

    def start(self) -> tuple[Stmt, ...]:
        """The cursor at the first version."""
        used = [0] * (self.depth > 1) + [1] * self.rounds
        return tuple(Store(self.registers, (const(i),), ZERO) for i in used)

    def step(self) -> tuple[Stmt, ...]:
        """The cursor moved to the next version."""
        if self.depth == 1:
            return (Store(self.registers, (ONE,), self.round + 1),) if self.rounds else ()
        wraps = compare("eq", self.index, self.depth - 1)
        index = Store(self.registers, (ZERO,), select(wraps, 0, self.index + 1))
        if not self.rounds:
            return (index,)
        return (Store(self.registers, (ONE,), select(wraps, self.round + 1, self.round)), index)


class Rings:
    """Barriers and cursors of all channels of a kernel, as one role sees them. `async_read`: tiles that this role reads
    through the asynchronous proxy; `plain`: tiles that its lanes touch themselves."""

    def __init__(
        self, ctx: Context, barriers: dict[tuple[str, str], Buffer], async_read: Set[Buffer], plain: Set[Buffer]
    ) -> None:
        self.ctx, self.barriers, self.async_read, self.plain = ctx, barriers, async_read, plain
        self.cursors: dict[tuple[Channel, str], Cursor] = {}
        self.held: dict[Channel, Expr] = {}

    def cursor(self, channel: Channel, side: str) -> Cursor:
        """The cursor of one side ("put" or "get") of a channel."""
        key = (channel, side)
        if key not in self.cursors:
            registers = self.ctx.registers(f"{channel.name}_{side}", 2, INT32)
            fed_by_itself = channel.consumers == (channel.producer,)  # then nobody waits for an empty version
            rounds = channel.completion == "bytes" and not (side == "put" and fed_by_itself)
            self.cursors[key] = Cursor(registers, channel.depth, rounds)
        return self.cursors[key]

    def start(self) -> tuple[Stmt, ...]:
        """Initial values of every cursor that was used."""
        return tuple(s for c in self.cursors.values() for s in c.start())

    def barrier(self, channel: Channel, kind: str) -> Buffer:
        """The "full" or "empty" barriers of a channel."""
        return self.barriers[(channel.name, kind)]

    def _take(self, channel: Channel, side: str) -> tuple[Expr, tuple[Stmt, ...]]:
        """The version that the cursor points at, bound to a name, and the step to the next."""
        cursor = self.cursor(channel, side)
        if channel.depth == 1:
            version: Expr = ZERO
            bind: tuple[Stmt, ...] = ()
        else:
            var = Var(self.ctx.name(f"{channel.name}_v"))
            self.ctx.facts = self.ctx.facts.with_range(var, 0, channel.depth - 1)
            version, bind = var, (Let(var, cursor.index),)
        for buffer in channel.buffers:
            self.ctx.version[buffer] = version
        return version, bind

    def acquire(self, s: Acquire, own: bool) -> tuple[Stmt, ...]:
        """Waits until the next version is empty, and announces the bytes that will come."""
        channel = s.channel
        cursor = self.cursor(channel, "put")
        version, bind = self._take(channel, "put")
        out: list[Stmt] = [*bind]
        if channel.completion == "bytes":
            if not own:
                parity, reason = (cursor.round + 1) & 1, f"consumers have released this version of {channel.name}"
                empty = Bar(self.barrier(channel, "empty"), version)
                out.append(BarWait(empty, parity, cursor.round - 1, reason, loc=s.loc))
            full = Bar(self.barrier(channel, "full"), version)
            self.ctx.bar = full
            out += self.ctx.elect(BarArrive(full, channel.bytes, reason=f"{channel.name} is being filled", loc=s.loc))
        return (*out, *cursor.step())

    def commit(self, s: Commit) -> tuple[Stmt, ...]:
        """Ends the copies of a version."""
        self.ctx.bar = None
        return (CommitGroup("copy", loc=s.loc),) if s.channel.completion == "group" else ()

    def wait(self, s: Wait, own: bool) -> tuple[Stmt, ...]:
        """Waits until the next version is full; where threads brought it themselves, they meet."""
        channel = s.channel
        cursor = self.cursor(channel, "get")
        version, bind = self._take(channel, "get")
        self.held[channel] = version
        meet = Sync("role", reason=f"every thread's part of {channel.name} has arrived", loc=s.loc)
        if channel.completion == "bytes":
            full = Bar(self.barrier(channel, "full"), version)
            arrived = (BarWait(full, cursor.round & 1, cursor.round, f"{channel.name} is full", loc=s.loc),)
        else:
            fence = Fence(
                "proxy_async", f"the copies of {channel.name} before wgmma or the copy engine reads", loc=s.loc
            )
            needed = (fence,) if not self.async_read.isdisjoint(channel.buffers) else ()
            landed = (WaitGroup("copy", s.ahead, loc=s.loc),) if channel.completion == "group" else ()
            arrived = (*landed, *needed, *((meet,) if s.meets else ()))
        return (*bind, *arrived, *cursor.step())

    def release(self, s: Release, own: bool) -> tuple[Stmt, ...]:
        """Says that this role is done with the version it holds."""
        if own:
            return ()
        empty = Bar(self.barrier(s.channel, "empty"), self.held[s.channel])
        arrive = BarArrive(empty, reason=f"this warp is done with {s.channel.name}", loc=s.loc)
        if self.plain.isdisjoint(s.channel.buffers):
            return (Elect("warp", (arrive,)),)  # a warp waits for its products as one
        return (Sync("warp", reason=f"all lanes are done with {s.channel.name}", loc=s.loc), Elect("warp", (arrive,)))


def barrier_buffers(channels: tuple[Channel, ...]) -> dict[tuple[str, str], Buffer]:
    """Full (and, between roles, empty) barriers of each byte-counted channel, one per version."""
    out: dict[tuple[str, str], Buffer] = {}
    for channel in channels:
        if channel.completion != "bytes":
            continue
        kinds = ("full",) if channel.consumers == (channel.producer,) else ("full", "empty")
        for kind in kinds:
            out[(channel.name, kind)] = Buffer(f"{channel.name}_{kind}", (channel.depth,), DTYPES["uint64"], "barrier")
    return out


def barrier_inits(
    channels: tuple[Channel, ...], barriers: dict[tuple[str, str], Buffer], warps: dict[str, int]
) -> tuple[Stmt, ...]:
    """One arrival (the producer's, with bytes) fills a version; one arrival a consumer warp empties it."""
    out: list[Stmt] = []
    for channel in channels:
        for kind in ("full", "empty"):
            buffer = barriers.get((channel.name, kind))
            if buffer is not None:
                count = 1 if kind == "full" else sum(warps[c] for c in channel.consumers)
                out += [BarInit(Bar(buffer, const(i)), count, loc=channel.loc) for i in range(channel.depth)]
    return tuple(out)


def own_inits(barriers: Sequence[Buffer]) -> tuple[Stmt, ...]:
    """The barriers that the kernel allocates itself, with its arrival counts."""
    return tuple(
        BarInit(Bar(buffer, const(i)), int(count), loc=buffer.loc)
        for buffer in barriers
        for i, count in enumerate(buffer.attr("count", ()))
    )
