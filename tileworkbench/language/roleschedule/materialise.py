"""The kernel of a role schedule: a branch a role, in which the role's steps stand in the order that the schedule has.

A pipeline becomes `depth` versions of its buffers and two arrays of barriers. Each role counts its own cycles: cycle n
works on version n modulo depth, and waits for the phase n // depth of that version's barrier.
"""

from __future__ import annotations

from ...errors import LanguageError, Loc
from ...ir.dtype import INT32
from ...ir.expr import Buffer, Expr, Var, as_expr, compare, logical
from ...ir.node import replace
from ...ir.region import root
from ...ir.stmt import ZERO, Alloc, If, Stmt, Store
from ...ops.warpgroup import SetMaxRegisters
from ..builder import Builder
from ..faults import exact, fault
from .deadlock import check_progress
from .hazards import check_shared, uses
from .pipes import Pipe
from .roles import RoleText
from .schedule import WSRole, WSSchedule, WSScope
from .steps import Steps, touched

INCREASE = 128  # registers from which a warpgroup takes, below it gives


Body = tuple[Stmt, ...]


def materialise(
    builder: Builder, schedule: WSSchedule, loc: Loc | None, body: Body, thread: Var, threads: tuple[int, ...]
) -> tuple[Body, tuple[int, ...]]:
    """(the body by roles, the shape of the threads). LanguageError where the schedule and the kernel do not fit."""
    try:
        return _Made(builder, schedule, body, thread, threads).body()
    except LanguageError as error:
        raise exact(error.at(loc)) if error.loc is None and loc is not None else error from None


class _Made:
    def __init__(
        self, builder: Builder, schedule: WSSchedule, body: tuple[Stmt, ...], thread: Var, threads: tuple[int, ...]
    ) -> None:
        if len([n for n in threads if n > 1]) > 1:
            raise fault("a role schedule with threads of several dimensions", "they have one dimension", "threads=128")
        self.builder, self.schedule, self.thread = builder, schedule, thread
        self.steps = Steps(builder.op_ids, schedule, body)
        self._check_roles()
        self.pipes = [Pipe(p, schedule, builder) for p in schedule.pipelines]
        self._check_tiles(body)
        self.whole = body

    def body(self) -> tuple[Body, tuple[int, ...]]:
        versions = {pair for pipe in self.pipes for pair in pipe.versions.items()}
        swap = dict(versions)
        out: list[Stmt] = []
        for s in self.steps.before:  # allocations, in front of all roles
            out.append(replace(s, buffer=swap.get(s.buffer, s.buffer)) if isinstance(s, Alloc) else s)
        for pipe in self.pipes:
            out += [Alloc(pipe.full, loc=pipe.full.loc), Alloc(pipe.empty, loc=pipe.empty.loc)]
        out += self._registers()
        texts: list[RoleText] = []
        for role in self.schedule.roles:
            text = RoleText(self.builder, role, self.steps, self.pipes)
            inside = text.scope(WSScope.ROOT, self.steps.root, None)
            counters: list[Stmt] = []
            for counter in text.counters.values():
                counters += [Alloc(counter), Store(counter, (ZERO,), as_expr(0, INT32))]
            texts.append(text)
            text.uses = uses(tuple(inside))
            if inside:
                out.append(If(self._within(role.warps_lo, role.warps_hi), (*counters, *inside)))
        self._check_cycles(texts)
        check_progress(list(self.schedule.roles), self.steps, self.pipes)
        check_shared(texts, {made for pipe in self.pipes for made in pipe.versions.values()})
        return tuple(out), (self.schedule.num_warps * 32,)

    def _within(self, first: int, stop: int) -> Expr:
        """Whether the thread is of these warps."""
        low = compare("ge", self.thread, first * 32)
        high = compare("lt", self.thread, stop * 32)
        return high if first == 0 else low if stop == self.schedule.num_warps else logical("land", low, high)

    def _registers(self) -> list[Stmt]:
        """A warpgroup's request, by all of its warps."""
        out: list[Stmt] = []
        donors = [r.max_nreg for r in self.schedule.roles if 0 < r.max_nreg < INCREASE]
        for first in range(0, self.schedule.num_warps, 4):
            asked = {r.max_nreg for r in self.schedule.roles if r.warps_lo < first + 4 and first < r.warps_hi}
            if len(asked) > 1:
                names = ", ".join(r.name for r in self.schedule.roles if r.warps_lo < first + 4 and first < r.warps_hi)
                counts = " and ".join(map(str, sorted(asked)))
                raise fault(
                    f"roles {names} of warpgroup {first // 4} ask for {counts} registers",
                    "setmaxnreg allocates per warpgroup: roles that share one ask for the same max_nreg",
                    "give them one max_nreg",
                )
            count = asked.pop() if asked else min(donors, default=0)  # a warpgroup without a role gives what it can
            if count:
                made = SetMaxRegisters(count, count >= INCREASE)
                made.check()
                out.append(If(self._within(first, first + 4), (made,)))
        return out

    def _check_roles(self) -> None:
        taken: dict[int, WSRole] = {}
        for role in self.schedule.roles:
            if role.warps_hi > self.schedule.num_warps:
                raise fault(
                    f"role {role.name!r} has warps up to {role.warps_hi - 1} of {self.schedule.num_warps}",
                    "a role's warps are the kernel's", "num_warps=…",
                )  # fmt: skip
            for warp in range(role.warps_lo, role.warps_hi):
                if warp in taken:
                    raise fault(
                        f"warp {warp} is of role {role.name!r} and of {taken[warp].name!r}",
                        "a warp has one role", "give each role warps of its own",
                    )  # fmt: skip
                taken[warp] = role

    def _check_cycles(self, texts: list[RoleText]) -> None:
        """Both parties of a pipeline go through its cycles in the same loops."""
        by_name = {text.role.name: text for text in texts}
        for pipe in self.pipes:
            wanted = by_name[pipe.producer.name].of(pipe.name)
            for role in pipe.consumers:
                found = by_name[role.name].of(pipe.name)
                if found != wanted:
                    raise fault(
                        f"pipeline {pipe.name!r}: role {pipe.producer.name!r} fills {_told(wanted)}, "
                        f"role {role.name!r} takes {_told(found)}",
                        "both parties have as many cycles in each scope; else the parity diverges and one waits on",
                        "pair each acquire and commit with a wait and release in the same scope",
                    )  # fmt: skip

    def _check_tiles(self, body: Body) -> None:
        """A pipeline's tiles are its own, used as they are: nothing else is said of them that versions would lose."""
        owners: dict[Buffer, Pipe] = {}
        for pipe in self.pipes:
            for b in pipe.versions:
                if owners.setdefault(b, pipe) is not pipe:
                    raise fault(
                        f"`{b.name}` is in the pipelines {owners[b].name!r} and {pipe.name!r}",
                        "a tile is of one pipeline", "leave it out of one",
                    )  # fmt: skip
        view = next((b for b in touched(body) if b not in owners and root(b) in owners), None)
        if view is not None:
            raise fault(
                f"`{view.name}`, another form of the pipeline's `{root(view).name}`",
                "a pipeline's tiles are used as they are", "name the tile itself", view.loc,
            )  # fmt: skip
        placed = next((b for b in self.builder.attrs.get("layouts", {}) if root(b) in owners), None)
        if placed is not None:
            raise fault(
                f"T.annotate_layout of `{placed.name}`, a tile of a pipeline",
                "the versions of a pipeline's tiles are laid out by the compiler", "leave the layout out",
            )  # fmt: skip


def _told(cycles: dict[str, int]) -> str:
    named = {("the kernel's body" if scope == WSScope.ROOT else scope): n for scope, n in cycles.items()}
    return " and ".join(f"{n} in {scope}" for scope, n in named.items()) or "none"
