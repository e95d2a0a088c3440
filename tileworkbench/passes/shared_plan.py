"""Where the shared tiles lie: tiles that are never alive together share bytes.

A tile is alive from the first to the last top-level statement of its role that touches it; a loop counts as one
statement, and so do selections of warps side by side, so tiles of one loop or of two such selections never share. A
tile that another role's copies fill may give its bytes to later tiles (its consumer has waited for everything) but
takes none: its producer does not meet the role that used them before.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from ..ir.effects import accesses
from ..ir.expr import Buffer
from ..ir.kernel import Kernel
from ..ir.node import walk
from ..ir.planned import Acquire, Issue, Release, Role, Wait
from ..ir.region import root
from ..ir.stmt import Alloc, Stmt
from ..target import Target

MIN_ALIGNMENT = 16
ENGINE_ALIGNMENT = 128  # of what the copy engine moves


@dataclass(frozen=True)
class Life:
    """First and last top-level statement that touches a tile; `late`: it may start where another tile ended."""

    first: int
    last: int
    late: bool

    def meets(self, other: Life) -> bool:
        """Both hold contents at some time, or the later one must not follow the earlier one's use."""
        if self.first <= other.last and other.first <= self.last:
            return True
        later = self if self.first > other.first else other
        return not later.late


ALWAYS = Life(-1, sys.maxsize, False)


def shared_plan(kernel: Kernel, target: Target) -> Kernel:
    """`attrs["places"]`: tile → (offset, bytes) from the start of shared memory."""
    lives = _lives(kernel)
    places: dict[Buffer, tuple[int, int]] = {}
    apart = bool(kernel.attrs.get("no_shared_reuse"))  # every tile in bytes of its own
    moved = _moved_by_engine(kernel)
    alignment = {b: max(_alignment(kernel, b), ENGINE_ALIGNMENT if b in moved else 0) for b in lives}
    order = sorted(lives, key=lambda b: (-alignment[b], -_bytes(kernel, b)))
    for buffer in order:
        taken = sorted(places[b] for b in places if apart or lives[b].meets(lives[buffer]))
        places[buffer] = (_first_gap(taken, _bytes(kernel, buffer), alignment[buffer]), _bytes(kernel, buffer))
    shared = dict.fromkeys(n for n in walk(kernel.body) if isinstance(n, Buffer) and n.space == "shared")
    views = [b for b in shared if root(b) is not b]
    places |= {view: (places[root(view)][0], _bytes(kernel, view)) for view in views if root(view) in places}
    return kernel.with_(attrs={**kernel.attrs, "places": places})


def _moved_by_engine(kernel: Kernel) -> set[Buffer]:
    """Tiles that the copy engine or wgmma reads or writes."""
    issued = (n for n in walk(kernel.body) if isinstance(n, Issue))
    return {root(b) for s in issued for b, proxy in s.impl.proxies.items() if proxy == "async"}


def _alignment(kernel: Kernel, buffer: Buffer) -> int:
    return max(MIN_ALIGNMENT, int(kernel.layouts[buffer].alignment))


def _bytes(kernel: Kernel, buffer: Buffer) -> int:
    return int(kernel.layouts[buffer].size * kernel.versions.get(buffer, 1) * buffer.dtype.bytes)


def _first_gap(taken: list[tuple[int, int]], size: int, alignment: int) -> int:
    at = 0
    for start, length in taken:
        if at + size <= start:
            break
        at = max(at, -(-(start + length) // alignment) * alignment)
    return at


def _lives(kernel: Kernel) -> dict[Buffer, Life]:
    foreign = dict.fromkeys(b for c in kernel.channels if c.consumers != (c.producer,) for b in c.buffers)
    found: dict[Buffer, Life] = {}
    for role in kernel.body:
        if not isinstance(role, Role):
            continue
        for i, s in _positions(role.body):
            for buffer in _touched(s):
                before = found.get(buffer)
                late = buffer not in foreign
                found[buffer] = Life(min(before.first, i), max(before.last, i), late) if before else Life(i, i, late)
    # Positions of different roles cannot be compared: what two roles touch lives all the time.
    for buffer in (b for b in foreign if b in found):
        consumer = next(r for r in kernel.body if isinstance(r, Role) and r.name in _consumers(kernel, buffer))
        spans = [i for i, s in _positions(consumer.body) if buffer in _touched(s)]
        found[buffer] = Life(-1, max(spans, default=len(consumer.body)), False)
    # Other blocks may write at any time.
    issued = (n.op for n in walk(kernel.body) if isinstance(n, Issue))
    found |= {root(b): ALWAYS for op in issued for b in op.reaches() if root(b) in found}
    return found


def _positions(body: tuple[Stmt, ...]) -> Iterator[tuple[int, Stmt]]:
    """Statements with their places in time: roles side by side run at the same time."""
    at = -1
    for before, s in zip((None, *body), body, strict=False):
        at += not (isinstance(s, Role) and isinstance(before, Role))
        yield at, s


def _consumers(kernel: Kernel, buffer: Buffer) -> tuple[str, ...]:
    return next(c.consumers for c in kernel.channels if buffer in c.buffers)


def _touched(s: Stmt) -> dict[Buffer, None]:
    """In program order: a set's order hangs on addresses, and the plan on the order, so a kernel would be placed anew,
    and built anew, in every process."""
    if isinstance(s, Alloc):
        return {}
    if isinstance(s, (Acquire, Wait, Release)):
        return dict.fromkeys(s.channel.buffers)
    out = dict.fromkeys(root(a.buffer) for a in accesses(s) if a.buffer.space == "shared")
    for inner in _nested(s):
        out |= _touched(inner)
    return out


def _nested(s: Stmt) -> tuple[Stmt, ...]:
    bodies = (getattr(s, name, ()) for name in ("body", "then", "orelse"))
    return tuple(inner for body in bodies for inner in body)


def overlaps(places: Mapping[Buffer, tuple[int, int]]) -> dict[Buffer, tuple[Buffer, ...]]:
    """Each tile with those that share bytes with it, itself first."""
    out: dict[Buffer, tuple[Buffer, ...]] = {}
    for a, (start, size) in places.items():
        others = [b for b, (at, n) in places.items() if b is not a and start < at + n and at < start + size]
        out[a] = (a, *others)
    return out
