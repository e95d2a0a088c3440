"""Where threads of a role must meet: a walk over each role's statements that remembers which shared tiles have been
read and written since the last meeting, and puts a Sync (with a proxy fence where the copy engine or wgmma is involved)
in front of the statement that would race.

Loops are walked twice, the second time with what their own end leaves behind, so hazards across trips are met too.
Channels protect their own tiles: a Wait that meets the role counts as a meeting, Acquire is a write that is about to
happen.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import takewhile

from ..ir.expr import Buffer, const
from ..ir.instr import Fence, Sync
from ..ir.kernel import Kernel
from ..ir.node import replace, walk
from ..ir.op import ElementStmt
from ..ir.planned import Issue, Role
from ..ir.stmt import Break, Continue, Eval, For, If, Stmt, While
from ..ir.uniform import Uniformity, rank
from ..ops.barrier import BarrierWait
from ..target import Target
from .hazards import Pending, World, before, in_order, note
from .in_flight import filled, with_copies_in_flight
from .owners import owners
from .shared_plan import overlaps
from .touched import conditions, one_access, touched


def place_sync(kernel: Kernel, target: Target) -> Kernel:
    """Sync and Fence statements put in; each names the hazard that it serves."""
    kernel = with_copies_in_flight(kernel, target)
    uniform = Uniformity(kernel, target.arch.warp_size)
    rings = frozenset(b for c in kernel.channels if c.completion != "bytes" for b in c.buffers)
    roles = [n for n in walk(kernel.body) if isinstance(n, Role)]
    stay = {role: owners(role, kernel, target.arch.warp_size) for role in roles}
    beside = overlaps(kernel.attrs["places"])
    world = World(
        target.has("proxy_fence"), beside, uniform, _of_engines(kernel, beside), rings,
        filled=filled(kernel), owners=stay,
    )  # fmt: skip
    return kernel.with_(body=tuple(_role(r, world) if isinstance(r, Role) else r for r in kernel.body))


def _of_engines(kernel: Kernel, beside: Mapping[Buffer, tuple[Buffer, ...]]) -> frozenset[Buffer]:
    """Tiles that the copy engine or wgmma reads or writes, and those that share bytes with them."""
    own: set[Buffer] = set()
    for n in walk(kernel.body):
        if isinstance(n, Issue):
            own |= {a.buffer for a in n.op.effects() if n.impl.proxies.get(a.buffer) == "async"}
        elif isinstance(n, ElementStmt):
            own |= {a.buffer for a in n.element_access() if a.proxy == "async"}
    return frozenset(b for tile in own for b in beside.get(tile, (tile,)))


def _role(role: Role, world: World) -> Role:
    return replace(role, body=_body(role.body, Pending(), role, world))


def _body(body: tuple[Stmt, ...], pending: Pending, role: Role, world: World) -> tuple[Stmt, ...]:
    out: list[Stmt] = []
    for at, s in enumerate(body):
        if isinstance(s, Role):
            if at == 0 or not isinstance(body[at - 1], Role) or s.after:
                rest = takewhile(lambda r: isinstance(r, Role) and not r.after, body[at + 1 :])
                run = (s, *(r for r in rest if isinstance(r, Role)))
                out += _side_by_side(run, pending, role, world)
            continue
        if isinstance(s, (For, While, If)) and (one_access(s, role) or _divides(s, role, world)):
            # Threads part here, or the loop is one wide access: they meet before, not inside.
            out += before(s, pending, role, world)
            out.append(s)
            note(s, pending, role, world)
            continue
        if isinstance(s, (For, While, If)):
            asked = _asked(s)
            out += before(asked, pending, role, world)
            note(asked, pending, role, world)
        if isinstance(s, (For, While)):
            out += _loop(s, pending, role, world)
            continue
        if isinstance(s, If):
            other = pending.copy()
            then, orelse = _body(s.then, pending, role, world), _body(s.orelse, other, role, world)
            pending.take(pending.merge(other))
            out.append(replace(s, then=then, orelse=orelse))
            continue
        out += before(s, pending, role, world)
        out.append(s)
        note(s, pending, role, world)
    return tuple(out)


def _loop(s: For | While, pending: Pending, role: Role, world: World) -> list[Stmt]:
    """The loop, behind a meeting where one there saves meetings in every trip."""
    inner, after = _trips(s, pending, role, world)
    made: list[Stmt] = []
    if _meetings(inner) and (pending.reads or pending.writes):
        alone, then = _trips(s, Pending(landed=set(pending.landed)), role, world)
        if _meetings(alone) < _meetings(inner):
            reason = next(n.reason for n in walk(inner) if isinstance(n, Sync))
            shown = in_order(pending.unfenced & world.of_engines)
            if world.fences and shown:
                text = f"ordinary stores to `{shown[0].name}` before the copy engine or wgmma"
                made.append(Fence("proxy_async", text, loc=s.loc))
                pending.unfenced.clear()
            made.append(Sync("role", reason=f"{reason}, in every trip of the loop", loc=s.loc))
            pending.clear()
            inner, after = alone, then
    pending.take(pending.merge(after))
    return [*made, replace(s, body=inner)]


def _meetings(body: tuple[Stmt, ...]) -> int:
    return sum(isinstance(n, Sync) and n.who == "role" for n in walk(body))


def _trips(s: For | While, pending: Pending, role: Role, world: World) -> tuple[tuple[Stmt, ...], Pending]:
    """The body of a loop that begins with what is pending, and what is pending after it."""
    trial, inside = pending.copy(), world.inside(s)
    _body(s.body, trial, role, inside)
    entry = pending.merge(trial)
    leaves = any(isinstance(n, (Break, Continue)) for n in walk(s.body))
    if leaves:  # a trip may end before its meetings
        note(If(const(True), s.body), entry, role, world)
    left = entry.copy()
    inner = _body(s.body, entry, role, inside)
    entry = entry.merge(left) if leaves else entry
    if isinstance(s, While):
        asked = _asked(s)
        inner = (*inner, *before(asked, entry, role, world))
        note(asked, entry, role, world)
    return inner, entry


def _side_by_side(run: tuple[Role, ...], pending: Pending, role: Role, world: World) -> list[Stmt]:
    """Roles of some warpgroups each: everyone meets before them if need be; among themselves the kernel orders them,
    from one trip of a loop around them to the next too where each of them waits for its barriers."""
    every = If(const(True), tuple(x for r in run for x in r.body))
    waits = all(any(isinstance(n, BarrierWait) for n in walk(r.body)) for r in run)
    out = before(every, pending, role, world, frozenset(run) if waits else frozenset())
    unfenced = set(pending.unfenced)
    for r in run:
        own = Pending(unfenced=set(unfenced)).merge(pending.inside.get(r, Pending()))
        out.append(replace(r, body=_body(r.body, own, r, world)))
        pending.inside[r] = own
        pending.unfenced |= own.unfenced
        pending.landed |= own.landed
        for buffer, writes, _ in touched(If(const(True), r.body), role):
            pending.note(buffer, writes, r)
    return out


def _asked(s: For | While | If) -> Stmt:
    """The reads of a loop's bounds or a branch's condition, as a statement."""
    conds = conditions(s)
    return If(conds[0], tuple(Eval(e) for e in conds[1:]), loc=s.loc)


def _divides(s: For | While | If, role: Role, world: World) -> bool:
    """True when some threads of the role may go another way here than others."""
    if not all(world.uniform.uniform(e, "role") for e in conditions(s)):
        return True
    return not isinstance(s, If) and rank(world.uniform.exits(s.body)) < rank("role")
