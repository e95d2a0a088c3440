"""Which shared tiles a statement of a role touches, and how."""

from __future__ import annotations

from ..ir.effects import accesses
from ..ir.expr import Buffer, Expr
from ..ir.node import children
from ..ir.planned import Acquire, Channel, Commit, Complete, Issue, Release, Role, Wait
from ..ir.stmt import Eval, For, If, Stmt, Store, While
from .in_flight import MARK


def own_ring(channel: Channel, role: Role) -> bool:
    """True when the role feeds and empties this channel itself."""
    return channel.producer == role.name and channel.consumers == (role.name,)


def conditions(s: For | While | If) -> tuple[Expr, ...]:
    """What a loop's trips or a branch's side depend on."""
    return (s.start, s.stop, s.step) if isinstance(s, For) else (s.cond,)


def one_access(s: For | While | If, role: Role) -> bool:
    """A cp.async in flight, or a vector loop of stores that reads none of the tiles that it writes: what a thread does
    at once."""
    if isinstance(s, For) and s.attr(MARK):
        return True
    if not isinstance(s, For) or s.kind != "vector" or not all(isinstance(x, Store) for x in s.body):
        return False
    found = touched(s, role)
    return not {b for b, writes, _ in found if writes} & {b for b, writes, _ in found if not writes}


def touched(s: Stmt, role: Role, fills: bool = True) -> list[tuple[Buffer, bool, str]]:
    """(buffer, writes, proxy) of the shared tiles a statement is about to touch; with or without the tiles that its
    tensor copies fill for the kernel's own barriers."""
    if isinstance(s, Acquire):
        if not own_ring(s.channel, role):
            return []
        proxy = "async" if s.channel.completion == "bytes" else "generic"
        return [(b, True, proxy) for b in s.channel.buffers]
    if isinstance(s, (Commit, Wait, Release)):
        return []
    if isinstance(s, For) and s.attr(MARK):
        shared = [a for a in accesses(s) if a.buffer.space == "shared"]
        return [(a.buffer, a.writes, "copy" if a.writes else "generic") for a in shared]
    if isinstance(s, (If, For, While, Role)):
        parts: list[Stmt] = [] if isinstance(s, Role) else [Eval(e) for e in conditions(s)]
        parts += [c for c in children(s) if isinstance(c, Stmt)]
        return [t for part in parts for t in touched(part, role, fills)]
    if isinstance(s, (Issue, Complete)):
        # A copy staged in registers touches its shared tile when it completes; every other op when it is issued.
        if bool(s.impl.detail.get("staged")) is isinstance(s, Issue):
            return _asked(s)
        if s.impl.completion == "bytes" or s.impl.detail.get("ring"):
            return _asked(s)  # its channel's Acquire and Wait answer for the tile
        if engine_fills(s):  # the kernel waits for it on its own barrier, but nobody may still use the tile
            filled = [a.buffer for a in s.op.effects() if a.writes and a.buffer.space == "shared"]
            return [*_asked(s), *((b, True, "async") for b in filled if fills)]
    proxies = s.impl.proxies if isinstance(s, (Issue, Complete)) else None
    found = []
    for a in accesses(s.op if isinstance(s, Complete) else s):
        if a.buffer.space == "shared":
            proxy = proxies.get(a.buffer, "generic") if proxies is not None else a.proxy
            found += [(a.buffer, False, proxy)] if a.reads else []
            found += [(a.buffer, True, proxy)] if a.writes else []
    return found


def _asked(s: Issue | Complete) -> list[tuple[Buffer, bool, str]]:
    """The tiles that say where a copy's elements come from: they are read when it is issued, whatever becomes of those
    that it fills."""
    if isinstance(s, Complete):
        return []
    filled = {a.buffer for a in s.op.effects() if a.writes}
    read = (a.buffer for a in accesses(s.op) if a.reads and a.buffer.space == "shared")
    return [(b, False, "generic") for b in dict.fromkeys(read) if b not in filled]


def engine_fills(s: Stmt) -> bool:
    """A tensor copy into shared memory that the kernel waits for itself."""
    if not isinstance(s, Issue) or s.impl.completion != "manual" or s.impl.engine != "tma":
        return False
    return any(a.writes and a.buffer.space == "shared" for a in s.op.effects())
