"""Single-role software pipelines: the loop's copies run ahead of their use by depth − 1 trips.

A loop whose copies are asynchronous (or can be staged in registers) gets a ring channel over the copied tiles: the
first trips' copies are issued before the loop, and trip k issues those of trip k + depth − 1 right after waiting for
its own. Groups are committed once a trip, also when there is nothing left to copy, so that the number of groups to wait
for is constant. Loops fed by another role need none of this: their ring runs ahead by itself."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from dataclasses import replace as changed

from ..ir.arith import Facts, substitute
from ..ir.effects import accesses
from ..ir.expr import Buffer, Expr, Load, Var, compare, const
from ..ir.kernel import Kernel
from ..ir.node import map_children, replace, walk
from ..ir.op import Impl, Op
from ..ir.planned import Acquire, Channel, Commit, Complete, Issue, Release, Role, Wait
from ..ir.region import overlap, root
from ..ir.stmt import ONE, ZERO, For, If, Let, Region, Stmt
from ..target import Target
from .facts import after_let, inside_loop, kernel_facts
from .own_writes import after_writes
from .plan.asked import fetches_last
from .specialise import NO_LIMIT, stages


def schedule(kernel: Kernel, target: Target) -> Kernel:
    """Pipelined loops of one-role kernels made into prologue and steady loop; rings and versions recorded."""
    made: list[Channel] = []
    notes: list[str] = []
    body = tuple(_role(role, role, kernel, target, made, notes) for role in kernel.body)
    channels = (*kernel.channels, *made)
    versions = {b: c.depth for c in channels for b in c.buffers}
    return kernel.with_(body=body, channels=channels, versions=versions, notes=(*kernel.notes, *notes))


def _role(role: Stmt, whole: Stmt, kernel: Kernel, target: Target, made: list[Channel], notes: list[str]) -> Stmt:
    """The role's loops; `whole` is the outermost role around it, whose other warps may use the same tiles."""
    if not isinstance(role, Role) or not isinstance(whole, Role):
        return role

    def go(s: Stmt) -> Stmt | tuple[Stmt, ...]:
        if isinstance(s, For):
            written = s
            s = replace(s, body=_flat(s.body))
            limit = int(kernel.attrs.get("stage_limit", NO_LIMIT))
            depth = stages(s, limit) if s.kind == "pipelined" else 0
            if depth >= 2:
                facts = kernel_facts(kernel, target, warps=role.warps)
                early = s if kernel.attrs.get("rows_at_once") else _with_rows(s, facts, target)
                return _pipeline(early, written, depth, role, whole, made, notes, s)
            return s
        if isinstance(s, Role):  # some of the role's warps: their rings are their own
            return _role(s, whole, kernel, target, made, notes)
        return map_children(s, lambda c: go(c) if isinstance(c, Stmt) else c)

    def _flat(body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        out: list[Stmt] = []
        for s in body:
            new = go(s)
            out.extend(new if isinstance(new, tuple) else (new,))
        return tuple(out)

    return replace(role, body=_flat(role.body))


def _pipeline(
    loop: For, written: For, depth: int, role: Role, whole: Role, made: list[Channel], notes: list[str], plain: For
) -> Stmt | tuple[Stmt, ...]:
    """The loop with its copies ahead; `plain` (without rows among them) where it is not to be."""
    copies = [s for s in loop.body if isinstance(s, Issue) and _ahead(s)]
    if not copies:
        return plain
    reason = _why_not(loop, copies, whole) or _used_outside(written, copies, whole)
    if reason and loop is not plain:
        return _pipeline(plain, written, depth, role, whole, made, notes, plain)
    if reason:
        notes.append(f"the loop at {loop.loc} is not pipelined: {reason}")
        return loop
    rings = []
    # Registers hold one trip's tile, so that staged copies run one trip ahead.
    for completion, versions in (("none", 2), ("group", depth)):
        mine = [c for c in copies if c.impl.completion == completion]
        if mine:
            buffers = tuple(dict.fromkeys(c.op.dst.buffer for c in mine))  # type: ignore[attr-defined]
            name = "_".join(b.name for b in buffers)
            channel = Channel(name, buffers, versions, role.name, (role.name,), completion, loc=loop.loc)
            rings.append(Ring(channel, mine, loop))
    made += [ring.channel for ring in rings]
    return _expand(loop, rings)


def _with_rows(loop: For, facts: Facts, target: Target) -> For:
    """The loop with element loops that copy rows as asynchronous copies."""
    facts = inside_loop(facts, loop)
    body: list[Stmt] = []
    for s in loop.body:
        impl = s.op.ahead(facts, target) if isinstance(s, Issue) and s.pred is None else None
        body.append(replace(s, impl=impl) if isinstance(s, Issue) and impl is not None else s)
        facts = after_let(facts, s) if isinstance(s, Let) else facts
    same = all(a is b for a, b in zip(body, loop.body, strict=True))
    return loop if same else replace(loop, body=tuple(body))


def _ahead(s: Issue) -> bool:
    """A copy from global to shared memory that can be in flight: by groups, or staged in registers."""
    if s.impl.completion == "bytes":
        return False
    src, dst = getattr(s.op, "src", None), getattr(s.op, "dst", None)
    moves = src is not None and dst is not None and (src.buffer.space, dst.buffer.space) == ("global", "shared")
    return moves and (s.impl.completion == "group" or bool(s.impl.detail.get("staged")))


def _why_not(loop: For, copies: list[Issue], role: Role) -> str:
    for n in walk(loop.body):
        if isinstance(n, Op) and n.manual:
            return f"its body controls the hardware itself (T.{n.name})"
    lets = {s.var for s in loop.body if isinstance(s, Let)}
    moved = {c.op.dst.buffer for c in copies}  # type: ignore[attr-defined]
    named = {root(b) for b in moved}
    if any(a.buffer is not root(a.buffer) and root(a.buffer) in named for a in accesses(role.body)):
        return "a copied tile is also seen through a view"
    changed = {root(a.buffer) for a in accesses(loop.body) if a.writes}
    for copy in copies:
        for n in (n for e in _asked(copy.op) for n in walk(e)):
            if n in lets or not isinstance(n, Load) or n.buffer.space == "global":
                continue
            if n.buffer.space not in ("var", "local") or root(n.buffer) in changed:
                return f"a copy's place depends on `{n.buffer.name}`, written in the loop"
    written = after_writes(loop)
    for copy in copies:
        if copy.op in written:
            return f"`{written[copy.op].buffer.name}` is read and written"
    reason = _partly(copies)
    if reason:
        return reason
    completes = {s.op for s in loop.body if isinstance(s, Complete)}
    seen: set[Buffer] = set()
    for s in loop.body:
        if isinstance(s, Issue) and s in copies:
            if s.op.dst.buffer in seen:  # type: ignore[attr-defined]
                return f"`{s.op.dst.buffer.name}` is used before it is copied"  # type: ignore[attr-defined]
            continue
        if isinstance(s, Complete) and s.op in completes and _ahead(Issue(s.op, s.impl)):
            continue
        for a in accesses(s):
            if a.buffer in moved:
                seen.add(a.buffer)
                if a.writes:
                    return f"`{a.buffer.name}` is written by more than the copy"
    return ""


def _asked(op: Op) -> tuple[Expr, ...]:
    """What says where, and whether, a copy reads and writes."""
    return (*op.src.starts, *op.dst.starts, *getattr(op, "conditions", ()))  # type: ignore[attr-defined]


def _partly(copies: list[Issue]) -> str:
    """Why the copies do not make each tile anew every trip, or an empty text."""
    regions: dict[Buffer, list[Region]] = {}
    for copy in copies:
        regions.setdefault(copy.op.dst.buffer, []).append(copy.op.dst)  # type: ignore[attr-defined]
    for buffer, parts in regions.items():
        size = sum(math.prod(part.extents) for part in parts)
        if any(overlap(a, b) is not False for i, a in enumerate(parts) for b in parts[:i]):
            return f"two copies meet in `{buffer.name}`"
        if size != math.prod(buffer.shape):
            return f"the copies fill only a part of `{buffer.name}`"
    return ""


def _used_outside(written: For, copies: list[Issue], role: Role) -> str:
    """Why other statements than this loop (as it stood before anything in it was pipelined) need a copied tile."""
    moved = {c.op.dst.buffer for c in copies}  # type: ignore[attr-defined]
    inside = Counter(a.buffer for a in accesses(written) if a.buffer in moved)
    everywhere = Counter(a.buffer for a in accesses(role.body) if a.buffer in moved)
    found = next((b for b in moved if everywhere[b] != inside[b]), None)
    return f"`{found.name}` is also used outside the loop" if found is not None else ""


@dataclass(frozen=True)
class Ring:
    """The copies of one loop that share a channel: asynchronous ones by groups, or those staged in registers."""

    channel: Channel
    copies: list[Issue]
    loop: For

    @property
    def ahead(self) -> int:
        """Trips that the copies run ahead."""
        return self.channel.depth - 1

    @property
    def staged(self) -> bool:
        """Whether the copies go through registers."""
        return self.channel.completion == "none"

    def begin(self, trip: Expr) -> list[Stmt]:
        """The copies of another trip."""
        lets = [s for s in self.loop.body if isinstance(s, Let)]
        var = self.loop.var
        return [replace(c, op=_at_trip(c.op, var, trip, lets), impl=_in_ring(c.impl)) for c in self.copies]

    def guard(self, trip: Expr, *body: Stmt) -> Stmt:
        """The statements where the loop has such a trip."""
        return If(compare("lt", trip, self.loop.stop), tuple(body), loc=self.loop.loc)

    def fetch(self, trip: Expr) -> tuple[Stmt, ...]:
        """Asynchronous copies of a trip; the group is closed also when the trip does not exist."""
        loc = self.loop.loc
        return (self.guard(trip, Acquire(self.channel, loc=loc), *self.begin(trip)), Commit(self.channel, loc=loc))

    def arrive(self, issues: list[Stmt]) -> tuple[Stmt, ...]:
        """Staged copies go from registers into the next version."""
        loc = self.loop.loc
        done = [Complete(s.op, s.impl, loc=s.loc) for s in issues if isinstance(s, Issue)]
        return (Acquire(self.channel, loc=loc), *done, Commit(self.channel, loc=loc))

    def prologue(self) -> Stmt:
        """The copies of the first trips, before the loop."""
        first = Var(f"{self.loop.var.name}_ahead", self.loop.var.dtype)
        start = self.loop.start + first * self.loop.step
        issues = self.begin(start)
        body = (self.guard(start, *issues, *self.arrive(issues)),) if self.staged else self.fetch(start)
        return For(first, ZERO, const(self.ahead), ONE, body, "unroll", loc=self.loop.loc)


def _expand(loop: For, rings: list[Ring]) -> tuple[Stmt, ...]:
    issued = {c.op for ring in rings for c in ring.copies}
    rest = tuple(s for s in loop.body if not (isinstance(s, (Issue, Complete)) and s.op in issued))
    waits, starts, ends = [], [], []
    for ring in rings:
        last = ring is rings[-1]  # one meeting serves all waits in a row
        waits.append(Wait(ring.channel, 0 if ring.staged else ring.ahead - 1, last, loc=loop.loc))
        trip = loop.var + loop.step * const(ring.ahead)
        if ring.staged:
            issues = ring.begin(trip)
            starts.append(ring.guard(trip, *issues))
            ends.append(ring.guard(trip, *ring.arrive(issues)))
        else:
            starts += ring.fetch(trip)
    releases = [Release(ring.channel, loc=loop.loc) for ring in rings]
    work = (*rest, *starts) if fetches_last(loop) else (*starts, *rest)
    body = (*waits, *work, *ends, *releases)
    return (*[ring.prologue() for ring in rings], replace(loop, body=body, kind="serial"))


def _in_ring(impl: Impl) -> Impl:
    return changed(impl, detail={**impl.detail, "ring": True})


def _at_trip(op: Op, var: Var, trip: Expr, lets: list[Let]) -> Op:
    """The copy as another trip issues it: scalars of the body are put in by value."""
    for let in reversed(lets):
        op = substitute(op, {let.var: let.value})
    made: Op = substitute(op, {var: trip})
    return made
