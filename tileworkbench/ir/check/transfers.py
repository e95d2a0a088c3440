"""Bytes of barriers: what a phase is told to expect equals what the copies of that phase bring.

Counted over bodies: in a loop of constant trips times the trips, in a loop of unknown trips and in each branch of an
`if` the sums must agree by themselves. A barrier that other blocks' copies arrive on (multicast) is left out, one that
counts copies that the kernel itself asks for, and one whose sum is not constant.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from ..expr import Buffer, Const
from ..instr import BarArrive, BarExpect, BulkLoad, Elect, TmaLoad
from ..kernel import Kernel
from ..node import Node
from ..planned import Role
from ..stmt import For, If, Stmt, While
from .failure import broken

_RULE = "the bytes that a barrier's phase expects are those that its copies bring"


@dataclass
class Sums:
    """Bytes by barrier buffer; `open` are barriers whose sums are not known."""

    expected: dict[Buffer, int] = field(default_factory=dict)
    brought: dict[Buffer, int] = field(default_factory=dict)
    open: set[Buffer] = field(default_factory=set)

    def add(self, other: Sums, times: int = 1) -> None:
        for mine, theirs in ((self.expected, other.expected), (self.brought, other.brought)):
            for b, n in theirs.items():
                mine[b] = mine.get(b, 0) + n * times
        self.open |= other.open

    def uneven(self) -> tuple[Buffer, int, int] | None:
        """A barrier whose two sums differ."""
        for b in {**self.expected, **self.brought}:
            want, got = self.expected.get(b, 0), self.brought.get(b, 0)
            if b not in self.open and want != got:
                return b, want, got
        return None


def check_transfers(kernel: Kernel, nodes: tuple[Node, ...]) -> None:
    """Raises InternalError where a barrier's expected bytes and its transfers differ."""
    loads = [n for n in nodes if isinstance(n, (TmaLoad, BulkLoad))]
    shared = {n.bar.buffer for n in loads if n.asked or getattr(n, "multicast", None) is not None}
    sums = _body(kernel.body, shared)
    found = sums.uneven()
    if found is not None:
        b, want, got = found
        first = next(n for n in nodes if isinstance(n, (BarArrive, TmaLoad, BulkLoad)) and n.bar.buffer is b)
        raise broken(f"barrier {b.name} expects {want} bytes and is brought {got}", first, _RULE)


def _body(body: tuple[Stmt, ...], skipped: set[Buffer]) -> Sums:
    sums = Sums()
    for s in body:
        if isinstance(s, BarArrive):
            _count(sums, sums.expected, s.bar.buffer, 0 if s.bytes is None else s.bytes, skipped)
            if s.remote is not None:
                sums.open.add(s.bar.buffer)
        elif isinstance(s, BarExpect):
            _count(sums, sums.expected, s.bar.buffer, s.bytes, skipped)
        elif isinstance(s, (TmaLoad, BulkLoad)):
            _count(sums, sums.brought, s.bar.buffer, s.bytes, skipped)
        elif isinstance(s, (Elect, Role)):
            sums.add(_body(s.body, skipped))
        elif isinstance(s, For):
            _loop(s, sums, skipped)
        elif isinstance(s, While):
            _even(s, _body(s.body, skipped), sums)
        elif isinstance(s, If):
            for part in (s.then, s.orelse):
                branch = _body(part, skipped)
                sums.open |= branch.open | ({found[0]} if (found := branch.uneven()) else set())
    return sums


def _count(sums: Sums, into: dict[Buffer, int], b: Buffer, size: object, skipped: set[Buffer]) -> None:
    size = size.value if isinstance(size, Const) else size
    if isinstance(size, int) and b not in skipped:
        into[b] = into.get(b, 0) + size
    else:
        sums.open.add(b)


def _loop(s: For, sums: Sums, skipped: set[Buffer]) -> None:
    inner = _body(s.body, skipped)
    if s.trips is not None:
        sums.add(inner, s.trips)
    else:
        _even(s, inner, sums)


def _even(s: Stmt, inner: Sums, sums: Sums) -> None:
    found = inner.uneven()
    if found is not None:
        b, want, got = found
        raise broken(f"barrier {b.name} expects {want} bytes a trip and is brought {got}", s, _RULE)
    sums.open |= inner.open
