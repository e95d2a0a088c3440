"""Single-role software pipelines: the loop's copies run ahead of their use by depth − 1 trips.

A loop whose copies are asynchronous (or can be staged in registers) gets a ring channel over the copied tiles: the
first trips' copies are issued before the loop, and trip k issues those of trip k + depth − 1 right after waiting for
its own. Groups are committed once a trip, also when there is nothing left to copy, so that the number of groups to wait
for is constant. Loops fed by another role need none of this: their ring runs ahead by itself. """

from __future__ import annotations

from dataclasses import replace as changed

from ..ir.arith import substitute
from ..ir.effects import accesses
from ..ir.expr import Buffer, Expr, Load, Var, compare, const
from ..ir.kernel import Kernel
from ..ir.node import map_children, replace, walk
from ..ir.op import Impl
from ..ir.planned import Acquire, Channel, Commit, Complete, Issue, Release, Role, Wait
from ..ir.stmt import ONE, ZERO, For, If, Let, Stmt
from ..target import Target
from .specialise import NO_LIMIT, stages


def schedule(kernel: Kernel, target: Target) -> Kernel:
    """Pipelined loops of one-role kernels made into prologue and steady loop; rings and versions recorded."""
    made: list[Channel] = []
    notes: list[str] = []
    body = tuple(_role(role, kernel, made, notes) for role in kernel.body)
    channels = (*kernel.channels, *made)
    versions = {b: c.depth for c in channels for b in c.buffers}
    return kernel.with_(body=body, channels=channels, versions=versions, notes=(*kernel.notes, *notes))


def _role(role: Stmt, kernel: Kernel, made: list[Channel], notes: list[str]) -> Stmt:
    if not isinstance(role, Role):
        return role

    def go(s: Stmt) -> Stmt | tuple[Stmt, ...]:
        if isinstance(s, For):
            s = replace(s, body=_flat(s.body))
            limit = int(kernel.attrs.get("stage_limit", NO_LIMIT))
            depth = stages(s, limit) if s.kind == "pipelined" else 0
            if depth >= 2:
                return _pipeline(s, depth, role, made, notes)
            return s
        return map_children(s, lambda c: go(c) if isinstance(c, Stmt) else c)

    def _flat(body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        out: list[Stmt] = []
        for s in body:
            new = go(s)
            out.extend(new if isinstance(new, tuple) else (new,))
        return tuple(out)

    return replace(role, body=_flat(role.body))


def _pipeline(loop: For, depth: int, role: Role, made: list[Channel], notes: list[str]) -> Stmt | tuple[Stmt, ...]:
    copies = [s for s in loop.body if _ahead(s)]
    if not copies:
        return loop
    reason = _why_not(loop, copies, role)
    if reason:
        notes.append(f"the loop at {loop.loc} is not pipelined: {reason}")
        return loop
    staged = any(c.impl.completion == "none" for c in copies)
    depth = 2 if staged else depth
    buffers = tuple(dict.fromkeys(c.op.dst.buffer for c in copies))  # type: ignore[attr-defined]
    completion = "none" if staged else "group"
    name = "_".join(b.name for b in buffers)
    channel = Channel(name, buffers, depth, role.name, (role.name,), completion, loc=loop.loc)
    made.append(channel)
    return _expand(loop, copies, channel, staged)


def _ahead(s: Stmt) -> bool:
    """A copy from global to shared memory that can be in flight: by groups, or staged in registers."""
    if not isinstance(s, Issue) or s.impl.completion == "bytes":
        return False
    src, dst = getattr(s.op, "src", None), getattr(s.op, "dst", None)
    moves = src is not None and dst is not None and (src.buffer.space, dst.buffer.space) == ("global", "shared")
    return moves and (s.impl.completion == "group" or bool(s.impl.detail.get("staged")))


def _why_not(loop: For, copies: list[Issue], role: Role) -> str:
    lets = {s.var for s in loop.body if isinstance(s, Let)}
    moved = {c.op.dst.buffer for c in copies}  # type: ignore[attr-defined]
    for copy in copies:
        for region in (copy.op.src, copy.op.dst):  # type: ignore[attr-defined]
            for e in region.starts:
                for n in walk(e):
                    if n in lets:
                        continue
                    if isinstance(n, Load) and n.buffer.space != "global":
                        return f"a copy's place depends on `{n.buffer.name}`, written in the loop"
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
    if _used_outside(loop, moved, role):
        return "a copied tile is also used outside the loop"
    return ""


def _used_outside(loop: For, moved: set[Buffer], role: Role) -> bool:
    inside = sum(1 for a in accesses(loop.body) if a.buffer in moved)
    everywhere = sum(1 for a in accesses(role.body) if a.buffer in moved)
    return everywhere > inside


def _expand(loop: For, copies: list[Issue], channel: Channel, staged: bool) -> tuple[Stmt, ...]:
    issued = {c.op for c in copies}
    lets = [s for s in loop.body if isinstance(s, Let)]
    rest = tuple(
        s for s in loop.body if s not in copies and not (isinstance(s, Complete) and s.op in issued)
    )  # fmt: skip
    ahead = channel.depth - 1

    def begin(trip: Expr) -> list[Stmt]:
        return [replace(c, op=_at_trip(c.op, loop.var, trip, lets), impl=_in_ring(c.impl)) for c in copies]

    def guard(trip: Expr, *body: Stmt) -> Stmt:
        return If(compare("lt", trip, loop.stop), tuple(body), loc=loop.loc)

    first = Var(f"{loop.var.name}_ahead", loop.var.dtype)
    start = loop.start + first * loop.step
    now = loop.var + loop.step * const(ahead)
    if not staged:
        fetch = (guard(start, Acquire(channel, loc=loop.loc), *begin(start)), Commit(channel, loc=loop.loc))
        steady = (guard(now, Acquire(channel, loc=loop.loc), *begin(now)), Commit(channel, loc=loop.loc))
        body = (Wait(channel, ahead - 1, loc=loop.loc), *steady, *rest, Release(channel, loc=loop.loc))
    else:
        early, later = begin(start), begin(now)
        fetch = (guard(start, *early, Acquire(channel, loc=loop.loc), *_finish(early), Commit(channel, loc=loop.loc)),)
        body = (
            Wait(channel, 0, loc=loop.loc),
            guard(now, *later),
            *rest,
            guard(now, Acquire(channel, loc=loop.loc), *_finish(later), Commit(channel, loc=loop.loc)),
            Release(channel, loc=loop.loc),
        )
    prologue = For(first, ZERO, const(ahead), ONE, fetch, "unroll", loc=loop.loc)
    return (prologue, replace(loop, body=body, kind="serial"))


def _in_ring(impl: Impl) -> Impl:
    return changed(impl, detail={**impl.detail, "ring": True})


def _finish(issues: list[Stmt]) -> list[Stmt]:
    return [Complete(s.op, s.impl, loc=s.loc) for s in issues if isinstance(s, Issue)]


def _at_trip(op: Stmt, var: Var, trip: Expr, lets: list[Let]) -> Stmt:
    """The copy as another trip issues it: scalars of the body are put in by value."""
    for let in reversed(lets):
        op = substitute(op, {let.var: let.value})
    return substitute(op, {var: trip})

