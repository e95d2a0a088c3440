"""Channels on every path of a role: what is acquired is committed, what is waited for is released.

A role's body is run over counts: how many versions the role has acquired and not committed, and holds and has not
released. Both branches of an `if` must agree, a loop's trip must change nothing, and at the end nothing is left open.
Groups of a role's own copies may be committed empty, so for them a guard may skip the acquire alone.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from ..effects import accesses
from ..expr import Buffer
from ..node import walk
from ..op import Op
from ..planned import Acquire, Channel, Commit, Complete, Issue, Release, Role, Wait
from ..stmt import Break, Continue, For, If, Stmt, While
from .failure import broken

_EVEN = "every version acquired is committed, every version waited for is released, on every path"


@dataclass
class Open:
    """Versions open in a role at one point: by (channel, side), side being put or get."""

    counts: dict[tuple[Channel, str], int] = field(default_factory=dict)

    def copy(self) -> Open:
        return Open(dict(self.counts))

    def get(self, channel: Channel, side: str) -> int:
        return self.counts.get((channel, side), 0)

    def add(self, channel: Channel, side: str, change: int) -> int:
        now = self.get(channel, side) + change
        self.counts[(channel, side)] = now
        return now

    def differs(self, other: Open) -> tuple[Channel, str] | None:
        """A place where the two disagree."""
        for key in {**self.counts, **other.counts}:
            if self.counts.get(key, 0) != other.counts.get(key, 0):
                return key
        return None


class RoleChannels:
    """Runs one role's body. `role` is its name, None for a kernel without roles."""

    def __init__(self, role: str | None) -> None:
        self.role = role

    def run(self, body: tuple[Stmt, ...], whole: Stmt | None) -> None:
        """Raises InternalError where a path is uneven; `whole` is what to blame for versions left open at the end."""
        state = Open()
        self.body(body, state, [])
        for (channel, side), count in state.counts.items():
            if count:
                word = "acquired and not committed" if side == "put" else "waited for and not released"
                message = f"channel {channel.name}: {count} versions {word} at the end of role {self.role}"
                raise broken(message, whole if whole is not None else channel, _EVEN)

    def body(self, body: tuple[Stmt, ...], state: Open, exits: list[Open]) -> bool:
        """Runs statements over `state`; False when no path comes through to their end."""
        return all(self.statement(s, state, exits) for s in body)

    def statement(self, s: Stmt, state: Open, exits: list[Open]) -> bool:
        if isinstance(s, (Acquire, Commit, Wait, Release)):
            self.step(s, state)
        elif isinstance(s, (For, While)):
            self.loop(s, state)
        elif isinstance(s, Role):
            RoleChannels(s.name).run(s.body, s)
        elif isinstance(s, If):
            return self.branch(s, state, exits)
        elif isinstance(s, (Break, Continue)):
            exits.append(state.copy())
            return False
        elif isinstance(s, (Issue, Op)):
            self.use(s, state)
        return True

    def step(self, s: Acquire | Commit | Wait | Release, state: Open) -> None:
        channel = s.channel
        put = isinstance(s, (Acquire, Commit))
        if self.role is not None and self.role not in ((channel.producer,) if put else channel.consumers):
            word = "producer" if put else "consumer"
            raise broken(f"role {self.role} is no {word} of channel {channel.name}", s, f"only a {word} does this")
        if isinstance(s, Commit) and channel.completion == "group":
            state.counts[(channel, "put")] = 0
            return
        change = 1 if isinstance(s, (Acquire, Wait)) else -1
        now = state.add(channel, "put" if put else "get", change)
        if now < 0:
            raise broken(f"channel {channel.name} has no open version", s, _EVEN)
        if now > channel.depth:
            raise broken(f"{now} versions of channel {channel.name} open, it has {channel.depth}", s, _EVEN)

    def loop(self, s: For | While, state: Open) -> None:
        before = state.copy()
        exits: list[Open] = []
        through = self.body(s.body, state, exits)
        for after in [state] * through + exits:
            key = before.differs(after)
            if key is not None:
                side = "acquired and committed" if key[1] == "put" else "waited for and released"
                raise broken(f"versions of channel {key[0].name} {side} differ over one trip", s, _EVEN)
        state.counts = before.counts

    def branch(self, s: If, state: Open, exits: list[Open]) -> bool:
        other = state.copy()
        first, second = self.body(s.then, state, exits), self.body(s.orelse, other, exits)
        if not first:
            state.counts = other.counts
            return second
        key = state.differs(other) if second else None
        if key is not None and not (key[0].completion == "group" and key[1] == "put"):
            raise broken(f"the branches leave channel {key[0].name} in different states", s, _EVEN)
        if key is not None:
            state.counts = {
                k: max(state.counts.get(k, 0), other.counts.get(k, 0)) for k in (*state.counts, *other.counts)
            }
        return True

    def use(self, s: Stmt, state: Open) -> None:
        """A ring's buffer is filled while acquired, and read while held."""
        impl = s.impl if isinstance(s, Issue) else None
        for (channel, side), count in state.counts.items():
            if count or side != "get" or self.role is None or channel.producer == self.role:
                continue
            if any(a.buffer in channel.buffers for a in accesses(s)):
                raise broken(
                    f"channel {channel.name} is used outside Wait and Release", s, "a version is read while held"
                )
        if impl is None or impl.completion != "bytes":
            return
        filled = {c for (c, side), count in state.counts.items() if side == "put" and count}
        written = {a.buffer for a in accesses(s) if a.writes and a.buffer.space == "shared"}
        if written and not any(written & set(c.buffers) for c in filled):
            names = ", ".join(b.name for b in written)
            raise broken(f"{names} is filled outside Acquire and Commit", s, "a counted copy belongs to a version")


def check_issues(body: tuple[Stmt, ...]) -> None:
    """Within a role: what completes was issued, and what completes by group is completed, or belongs to a channel."""
    nodes = tuple(walk(body))
    issued = [s for s in nodes if type(s) is Issue]
    completed = [s for s in nodes if type(s) is Complete]
    begun, ended = {_key(s.op) for s in issued}, {_key(s.op) for s in completed}
    rings = {b for s in nodes if type(s) is Acquire for b in s.channel.buffers}
    for s in completed:
        if _key(s.op) not in begun:
            raise broken("completed without being issued", s, "each Complete follows an Issue of its operation")
    for i in issued:
        if i.impl.completion == "group" and _key(i.op) not in ended and not (_written(i.op) & rings):
            raise broken("issued and never completed", i, "an asynchronous operation is completed by its role")


def _key(op: Op) -> tuple[type, frozenset[int]]:
    return type(op), frozenset(id(b) for b in _written(op))


def _written(op: Op) -> set[Buffer]:
    return {a.buffer for a in op.effects() if a.writes}


def check_ends(kernel_channels: tuple[Channel, ...], roles: tuple[Role, ...]) -> None:
    """Every channel's producer and consumers are roles of the kernel, and its depth is positive."""
    names = {n.name for r in roles for n in walk(r) if isinstance(n, Role)}  # some of a role's warps are a role too
    for channel in kernel_channels:
        if channel.depth < 1:
            raise broken(
                f"channel {channel.name} has depth {channel.depth}", channel, "a ring has at least one version"
            )
        for end in (channel.producer, *channel.consumers):
            if names and end not in names:
                raise broken(
                    f"channel {channel.name} ends at {end!r}", channel, f"the roles are {', '.join(sorted(names))}"
                )
        if not channel.consumers:
            raise broken(f"channel {channel.name} has no consumer", channel, "a channel has a producer and consumers")
