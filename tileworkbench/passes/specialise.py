"""Roles: a kernel whose pipelined loops are fed by the copy engine gets a warp that only loads.

The load role keeps the loops, branches and scalars that its copies need; everything else is the compute role's. Each
group of copies that is first and last used by the same statements becomes one channel: the load role acquires and
commits it, the compute role waits for it before the first use and releases it after the last. A kernel that cannot be
split so keeps one role, and the reason is noted.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TypeGuard

from ..ir.effects import accesses
from ..ir.expr import Buffer
from ..ir.kernel import Kernel
from ..ir.node import Node, replace, walk
from ..ir.op import Choice, Impl, Op
from ..ir.planned import Acquire, Channel, Commit, Release, Role, Wait
from ..ir.region import root
from ..ir.stmt import Alloc, Break, Continue, For, If, Let, Stmt, While
from ..ops.copy import Copy
from ..ops.warpgroup import SetMaxRegisters
from ..target import Target
from .backward_slice import PRIVATE, Slice, is_private_store
from .blocks import counts_threads, launched_threads
from .grid import check_meetings, meets
from .manual import fit_registers, manual_op, selected
from .plan.asked import fetches_last

LOAD_WARPS = 4  # a whole warpgroup, because registers are handed over by warpgroups
MAIN = "main"
NO_LIMIT = 1 << 30
COMPUTE, LOAD = "compute", "load"


@dataclass
class Site:
    """Copies that one body issues together; they become one channel."""

    loads: list[Copy]
    first: int
    last: int


@dataclass
class Plan:
    """What is decided while the body is walked."""

    choices: dict[Op, Choice]
    roles: tuple[str, str]
    channels: dict[tuple[Buffer, ...], Channel] = field(default_factory=dict)
    refusal: str = ""
    stage_limit: int = NO_LIMIT
    used: Counter[Buffer] = field(default_factory=Counter)

    def note_use(self, site: Site, s: Stmt) -> None:
        """Counts the reads of a site's tiles between its wait and its release; a write is a reason to refuse."""
        tiles = {op.dst.buffer for op in site.loads}
        for a in () if is_load(s, self.choices) else accesses(s):
            if a.buffer in tiles:
                self.used[a.buffer] += 1
                if a.writes:
                    self.refusal = self.refusal or f"`{a.buffer.name}` is written by more than its loads"


def stages(loop: For, limit: int) -> int:
    """Versions that a pipelined loop's tiles get: what the user wrote, up to what the target's memory allows."""
    return max(1, min(int(loop.attr("num_stages", 1) or 1), limit))


def best(choices: dict[Op, Choice], op: Op) -> Impl:
    """The implementation that is preferred for the operation."""
    return choices[op].impls[0]


def is_load(s: Node, choices: dict[Op, Choice]) -> TypeGuard[Copy]:
    """A copy whose completion is counted in bytes on a barrier."""
    return isinstance(s, Op) and best(choices, s).completion == "bytes"


def specialise(kernel: Kernel, target: Target) -> Kernel:
    """One role, or load and compute."""
    check_meetings(kernel, target)
    kernel = selected(kernel, target)
    fit_registers(kernel, target)
    choices = dict(kernel.attrs["choices"])
    lanes = target.arch.warp_size
    warps = -(-kernel.threads // lanes)
    reason = _why_not(kernel, target, choices)
    split = not reason
    limit = int(kernel.attrs.get("stage_limit", NO_LIMIT))
    plan = Plan(choices, (LOAD, COMPUTE) if split else (MAIN, MAIN), stage_limit=limit)
    consumer = _consume(kernel.body, plan, 1, split)
    if split:
        plan.refusal = plan.refusal or _stray(kernel.body, plan)
    if split and not plan.refusal:
        alone = Slice(_produce(kernel.body, plan), kernel)
        plan.refusal = plan.refusal or alone.refusal
    if split and not plan.refusal:
        moves = target.has("setmaxnreg") and kernel.attrs.get("set_max_nreg", True)
        moves = moves and _compute_registers(warps) is not None
        producer, kernel = alone.own(choices)
        roles = (
            Role(LOAD, warps, LOAD_WARPS, producer, _load_registers(warps) if moves else None, loc=kernel.loc),
            Role(COMPUTE, 0, warps, consumer, _compute_registers(warps) if moves else None, loc=kernel.loc),
        )
        return _finish(kernel, roles, plan, (warps + LOAD_WARPS) * lanes, _not_in_order(kernel))
    if split:
        reason, plan = plan.refusal, Plan(choices, (MAIN, MAIN), stage_limit=limit)
        consumer = _consume(kernel.body, plan, 1, False)
    counts = [s.count for s in kernel.body if isinstance(s, SetMaxRegisters)]
    role = Role(MAIN, 0, warps, consumer, counts[-1] if counts else None, loc=kernel.loc)
    notes = (f"one role: {reason}",) if reason else ()
    return _finish(kernel, (role,), plan, launched_threads(kernel, choices, lanes), notes)


def _finish(kernel: Kernel, roles: tuple[Role, ...], plan: Plan, threads: int, notes: tuple[str, ...]) -> Kernel:
    return kernel.with_(
        level="planned", body=roles, channels=tuple(plan.channels.values()), launch_threads=threads,
        notes=(*kernel.notes, *notes),
    )  # fmt: skip


def _not_in_order(kernel: Kernel) -> tuple[str, ...]:
    """Of the user's own schedules: a role that only loads does not wait for the other statements of a trip."""
    loops = (n for n in walk(kernel.body) if isinstance(n, For) and n.kind == "pipelined" and fetches_last(n))
    return tuple(
        f"the pipeline at {loop.loc}: a role of its own issues the copies as soon as a version is free, not after the "
        "other statements as `order` has it" for loop in loops
    )  # fmt: skip


def _why_not(kernel: Kernel, target: Target, choices: dict[Op, Choice]) -> str:
    """Why this kernel keeps one role, or an empty text."""
    if (own := manual_op(kernel)) is not None:
        return f"the kernel controls the hardware itself (T.{own.name})"
    if not (target.has("tma") and target.has("mbarrier")):
        return f"{target.name} has no copy engine that another role could feed"
    if meets(kernel):
        return "the blocks of the grid meet, and a load role would run ahead of the meeting"
    if kernel.attrs.get("no_specialise"):
        return "warp specialisation was turned off"
    warps = -(-kernel.threads // target.arch.warp_size)
    if warps % 4 or kernel.threads + LOAD_WARPS * target.arch.warp_size > target.arch.max_threads:
        return f"{kernel.threads} threads are no whole warpgroups, or leave no room for a load role"
    if kernel.threads % target.arch.warp_size and counts_threads(kernel):
        return f"the {kernel.threads} threads are numbered or counted, and fill no whole warps"
    loops = [n for n in walk(kernel.body) if isinstance(n, For) and n.kind == "pipelined"]
    fed = [loop for loop in loops if any(is_load(n, choices) for n in walk(loop.body))]
    if not fed:
        return "no pipelined loop is fed by the copy engine"
    if not any(loop.attr("num_stages") for loop in fed):  # several blocks beside one another hide more than a load role
        return "no pipelined loop has stages"
    if not set(kernel.thread_vars).isdisjoint(walk(kernel.body)):
        return "the kernel uses thread indices itself"
    return ""


def _load_registers(warps: int) -> int:
    return 24 if warps <= 8 else 32


def _compute_registers(warps: int) -> int | None:
    return {4: 240, 8: 240, 12: 160}.get(warps)


# --- the compute side -------------------------------------------------------------------------------------------------
def _consume(body: tuple[Stmt, ...], plan: Plan, depth: int, split: bool) -> tuple[Stmt, ...]:
    """The body without its loads (they stay, between Acquire and Commit, when there is one role), waits and releases
    put in."""
    sites = _sites(body, plan)
    out: list[Stmt] = []
    for i, s in enumerate(body):
        starting = [site for site in sites if body[i] is site.loads[0]]
        for site in starting:
            if not split:
                channel = _channel(site, plan, depth)
                out += [Acquire(channel, loc=s.loc), *site.loads, Commit(channel, loc=s.loc)]
        out += [Wait(_channel(site, plan, depth), loc=s.loc) for site in sites if site.first == i]
        if not is_load(s, plan.choices):
            out.append(_inner(s, plan, split))
        for site in sites:
            if site.first <= i <= site.last:
                plan.note_use(site, s)
        out += [Release(_channel(site, plan, depth), loc=s.loc) for site in sites if site.last == i]
    return tuple(out)


def _inner(s: Stmt, plan: Plan, split: bool) -> Stmt:
    if isinstance(s, For):
        # A role that feeds itself runs nothing ahead: one version serves, and it is there after the loop too.
        depth = stages(s, plan.stage_limit) if split and s.kind == "pipelined" else 1
        return replace(s, body=_consume(s.body, plan, depth, split))
    if isinstance(s, If):
        return replace(s, then=_consume(s.then, plan, 1, split), orelse=_consume(s.orelse, plan, 1, split))
    if isinstance(s, (While, Role)):
        return replace(s, body=_consume(s.body, plan, 1, split))
    return s


def _stray(body: tuple[Stmt, ...], plan: Plan) -> str:
    """Why some use of a loaded tile stands outside its wait and release, or an empty text."""
    tiles = {b for buffers in plan.channels for b in buffers}
    found: Counter[Buffer] = Counter()
    loads = {n for n in walk(body) if isinstance(n, Op) and is_load(n, plan.choices)}
    for a in accesses(body):
        if root(a.buffer) in tiles:
            found[root(a.buffer)] += 1
    for op in loads:
        found[op.dst.buffer] -= 1
    return next((f"`{b.name}` is used apart from its loads" for b in tiles if found[b] != plan.used[b]), "")


def _sites(body: tuple[Stmt, ...], plan: Plan) -> list[Site]:
    """Groups of loads of this body, by their first and last use after them in it."""
    sites: list[Site] = []
    for i, s in enumerate(body):
        if not is_load(s, plan.choices):
            continue
        buffer = s.dst.buffer
        users = [
            j for j in range(i + 1, len(body))
            if not is_load(body[j], plan.choices) and any(root(a.buffer) is buffer for a in accesses(body[j]))
        ]  # fmt: skip
        again = [
            j for j, later in enumerate(body[i + 1 :], i + 1)
            if is_load(later, plan.choices) and later.dst.buffer is buffer
        ]  # fmt: skip
        if again:
            users = [j for j in users if j < again[0]]
        if any(_loads_into(body[j], buffer, plan) for j in users):
            users = []  # loaded anew inside of a later statement: this load is waited for and released at once
        first, last = (users[0], users[-1]) if users else (i, i)
        near = sites[-1] if sites else None
        together = near is not None and (near.first, near.last) == (first, last) and not any(
            not is_load(body[j], plan.choices) for j in range(body.index(near.loads[0]), i)
        )  # fmt: skip
        if near is not None and together:
            near.loads.append(s)
        else:
            sites.append(Site([s], first, last))
    return sites


def _loads_into(s: Stmt, buffer: Buffer, plan: Plan) -> bool:
    return any(is_load(n, plan.choices) and root(n.dst.buffer) is root(buffer) for n in walk(s))


def _channel(site: Site, plan: Plan, depth: int) -> Channel:
    buffers = tuple(op.dst.buffer for op in site.loads)
    made = plan.channels.get(buffers)
    if made is None:
        clash = [c for c in plan.channels.values() if set(c.buffers) & set(buffers)]
        if clash:
            plan.refusal = f"`{buffers[0].name}` is loaded in different groups"
        nbytes = sum(best(plan.choices, op).bytes for op in site.loads)
        name = "_".join(b.name for b in buffers)
        made = Channel(name, buffers, depth, plan.roles[0], (plan.roles[1],), "bytes", nbytes, loc=site.loads[0].loc)
        plan.channels[buffers] = made
    return made


# --- the load side ----------------------------------------------------------------------------------------------------
def _produce(body: tuple[Stmt, ...], plan: Plan) -> tuple[Stmt, ...]:
    """Loads with their channels, and the control flow and scalars around them."""
    sites = {site.loads[0]: site for site in _sites(body, plan)}
    out: list[Stmt] = []
    for s in body:
        if s in sites:
            channel = _channel(sites[s], plan, 1)
            out += [Acquire(channel, loc=s.loc), *sites[s].loads, Commit(channel, loc=s.loc)]
        elif isinstance(s, (For, While)):
            inner = _produce(s.body, plan)
            ends = isinstance(s, While) or any(isinstance(n, (Break, Continue)) for n in walk(s.body))
            if ends and any(isinstance(n, Acquire) for n in walk(inner)):
                plan.refusal = "a loop with loads has a run-time end (while, break or continue)"
            out.append(replace(s, body=inner))
        elif isinstance(s, If):
            out.append(replace(s, then=_produce(s.then, plan), orelse=_produce(s.orelse, plan)))
        elif isinstance(s, Let) or is_private_store(s) or (isinstance(s, Alloc) and s.buffer.space in PRIVATE):
            out.append(s)
    return tuple(out)
