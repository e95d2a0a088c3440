"""Hazards on shared tiles: what has happened to them since the last meeting, and what the next statement must wait
for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from dataclasses import replace as changed

from ..ir.expr import Buffer
from ..ir.instr import Fence, Sync
from ..ir.node import walk
from ..ir.planned import Acquire, Channel, Complete, Issue, Role, Wait
from ..ir.stmt import For, Stmt, While
from ..ir.uniform import Uniformity
from ..ops.barrier import BarrierWait
from ..ops.intrinsics import block_meeting, named_meeting
from .touched import own_ring, touched

By = set[Role | None]


@dataclass(frozen=True)
class World:
    """`fences`: the target has proxy fences. `overlaps`: tiles that share bytes with a tile, itself included. `uniform`
    tells where all threads of a role go together. `of_engines`: tiles that the copy engine or wgmma touches, and
    those that share bytes with them."""

    fences: bool
    overlaps: Mapping[Buffer, tuple[Buffer, ...]]
    uniform: Uniformity
    of_engines: frozenset[Buffer]
    rings: frozenset[Buffer] = frozenset()  # tiles that rings fill by ordinary stores or cp.async
    filled: frozenset[Buffer] = frozenset()  # tiles that the kernel's own cp.async fills for others to read
    owners: Mapping[Role, Mapping[Buffer, str]] = field(default_factory=dict)  # tiles whose elements stay with someone
    steady: frozenset[Channel] = frozenset()  # rings whose loop this is: each trip begins with their meeting

    def inside(self, loop: For | While) -> World:
        """The world of a loop's body."""
        rings = {s.channel for s in loop.body if isinstance(s, Wait)}
        return changed(self, steady=self.steady | rings)


@dataclass
class Pending:
    """Accesses to shared tiles since the last meeting of the role: buffer → by whom (the role's own statements: None,
    or a role inside it). `unfenced`: tiles with ordinary stores that no proxy fence has followed yet; a meeting alone
    does not show them to the copy engine. `landed`: tiles that other threads' cp.async has filled, which a fence of
    this role's shows to wgmma and the copy engine. `inside`: what roles inside it have done since they met."""

    reads: dict[Buffer, By] = field(default_factory=dict)
    writes: dict[Buffer, By] = field(default_factory=dict)
    unfenced: set[Buffer] = field(default_factory=set)
    landed: set[Buffer] = field(default_factory=set)
    inside: dict[Role, Pending] = field(default_factory=dict)

    def copy(self) -> Pending:
        """The same state, to go on from apart."""
        reads, writes = ({b: set(by) for b, by in accessed.items()} for accessed in (self.reads, self.writes))
        inside = {role: p.copy() for role, p in self.inside.items()}
        return Pending(reads, writes, set(self.unfenced), set(self.landed), inside)

    def merge(self, other: Pending) -> Pending:
        """What holds after either of two ways."""
        out = self.copy()
        for mine, theirs in ((out.reads, other.reads), (out.writes, other.writes)):
            for buffer, by in theirs.items():
                mine.setdefault(buffer, set()).update(by)
        out.unfenced |= other.unfenced
        out.landed |= other.landed
        for role, p in other.inside.items():
            out.inside[role] = out.inside[role].merge(p) if role in out.inside else p.copy()
        return out

    def take(self, other: Pending) -> None:
        """Becomes the other one."""
        self.reads, self.writes, self.inside = other.reads, other.writes, other.inside
        self.unfenced, self.landed = other.unfenced, other.landed

    def clear(self) -> None:
        """Everyone has met: nothing is pending."""
        self.reads.clear()
        self.writes.clear()
        self.inside.clear()

    def clear_of(self, buffers: Iterable[Buffer]) -> None:
        """A meeting that serves these tiles only."""
        for buffer in buffers:
            self.reads.pop(buffer, None)
            self.writes.pop(buffer, None)

    def note(self, buffer: Buffer, writes: bool, by: Role | None) -> None:
        """An access of some warps (None: of all)."""
        (self.writes if writes else self.reads).setdefault(buffer, set()).add(by)


def by_others(accessed: Mapping[Buffer, By], buffer: Buffer, beside: AbstractSet[Role]) -> bool:
    """True when someone else than these roles has accessed the tile."""
    return not accessed.get(buffer, set()) <= beside


def _meets_each_trip(channel: Channel) -> bool:
    """A ring of several versions whose Wait is a meeting of the role: the version that Acquire takes was last read
    before that meeting."""
    return channel.depth >= 2 and channel.completion in ("group", "none")


def _hands_over(s: Stmt, pending: Pending, world: World) -> list[Stmt]:
    """Before the kernel's own meeting or arrival: ordinary stores to what the engine or wgmma touches are fenced."""
    if not world.fences or not (_arrives(s) or named_meeting(s)):
        return []
    plain = in_order(pending.unfenced & world.of_engines)
    if not plain:
        return []
    pending.unfenced.clear()
    names = ", ".join(f"`{b.name}`" for b in plain)
    return [Fence("proxy_async", f"ordinary stores to {names} before the copy engine or wgmma", loc=s.loc)]


def _shows_landed(s: Stmt, uses: list[tuple[Buffer, bool, str]], pending: Pending, world: World) -> list[Stmt]:
    """Before wgmma or the copy engine reads what cp.async of other threads has brought: they are not of its proxy, and
    those threads do not wait for their copies, so the reader has the fence."""
    read = [b for b, writes, proxy in uses if proxy == "async" and not writes and b in pending.landed]
    if not world.fences or not read:
        return []
    pending.landed.clear()
    return [Fence("proxy_async", f"`{read[0].name}` was filled by cp.async before wgmma or the copy engine", loc=s.loc)]


def _arrives(s: Stmt) -> bool:
    """The kernel's own arrival on a barrier."""
    if not isinstance(s, Issue) or not s.op.manual:
        return False
    return any(a.buffer.space == "barrier" and a.writes for a in s.op.effects())


def in_order(buffers: set[Buffer]) -> list[Buffer]:
    """By name: a set's order differs from process to process."""
    return sorted(buffers, key=lambda b: b.name)


def before(s: Stmt, pending: Pending, role: Role, world: World, beside: frozenset[Role] = frozenset()) -> list[Stmt]:
    """The meeting and fences that `s` needs in front of it, each with its reason; the kernel itself orders it after
    what the roles `beside` it have done."""
    uses = touched(s, role)
    made = _hands_over(s, pending, world)
    fence, reason, within = False, "", ""
    owners = world.owners.get(role, {})
    own: tuple[Buffer, ...] = ()
    if isinstance(s, Acquire) and s.channel in world.steady and _meets_each_trip(s.channel):
        own = s.channel.buffers  # the version that is taken was last used before this trip's meeting
    for tile, writes, proxy in uses:
        for buffer in world.overlaps.get(tile, (tile,)):
            owner = owners.get(buffer, "") if buffer is tile else ""
            if buffer in own or owner == "thread":
                continue
            shared = "" if buffer is tile else f" (its bytes are `{tile.name}`'s now)"
            found = ""
            if by_others(pending.writes, buffer, beside):
                found = f"`{buffer.name}` was written before this {'write' if writes else 'read'}{shared}"
            elif writes and by_others(pending.reads, buffer, beside):
                found = f"`{buffer.name}` is still being read when this writes it{shared}"
            if owner == "warp":
                within = within or found
                continue
            served = buffer is tile and buffer in world.rings  # its Wait has the fence
            if world.fences and proxy == "async" and buffer in pending.unfenced and not served:
                fence = True
                found = found or f"`{buffer.name}` was written by ordinary stores{shared}"
            reason = reason or found
    if not fence:
        made += _shows_landed(s, uses, pending, world)
    if not reason and within:
        made.append(Sync("warp", reason=within, loc=s.loc))
        pending.clear_of(b for b, owner in owners.items() if owner == "warp")
    if not reason:
        return made
    if fence:
        made.append(Fence("proxy_async", f"ordinary stores before the copy engine or wgmma: {reason}", loc=s.loc))
        pending.unfenced.clear()
        pending.landed.clear()
    made.append(Sync("role", reason=reason, loc=s.loc))
    pending.clear()
    return made


def note(s: Stmt, pending: Pending, role: Role, world: World) -> None:
    """Remembers what `s` has done."""
    if world.filled and any(isinstance(n, BarrierWait) for n in walk(s)):
        pending.landed |= world.filled
    if isinstance(s, Wait):
        if own_ring(s.channel, role) and s.channel.completion in ("group", "none") and s.meets:
            pending.clear()  # lowered to a wait and a meeting of the role
        elif own_ring(s.channel, role):  # a phase may pass twice only when every warp has seen it pass once
            for buffer in s.channel.buffers:
                pending.note(buffer, False, None)
        return
    if isinstance(s, Sync) or block_meeting(s):
        pending.clear()
        return
    if isinstance(s, Acquire):
        return
    if isinstance(s, (Issue, Complete)) and s.impl.detail.get("ring") and s.impl.completion != "bytes":
        pending.unfenced |= {a.buffer for a in s.op.effects() if a.writes and a.buffer.space == "shared"}
    for buffer, writes, proxy in touched(s, role, fills=False):  # the kernel waits for what the copy engine brings
        pending.note(buffer, writes, None)
        if writes and proxy == "generic":
            pending.unfenced.add(buffer)
