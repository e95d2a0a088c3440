"""Walks one role of a planned kernel and emits its thread-level statements: ops by their implementations, channels as
barriers and cursors."""

from __future__ import annotations

from dataclasses import replace as changed
from typing import Any

from ..errors import InternalError, LanguageError
from ..ir.arith import Facts
from ..ir.effects import accesses
from ..ir.expr import Buffer, Call, Const, Expr, Load
from ..ir.instr import CommitGroup, Elect, Instr, SetRegs, Sync, WaitGroup
from ..ir.node import Node, map_children, replace, walk
from ..ir.op import Op
from ..ir.planned import Acquire, Channel, Commit, Complete, Issue, Release, Role, Wait
from ..ir.stmt import Alloc, Break, Continue, For, If, Let, Region, Stmt, Store, While
from ..ir.uniform import Uniformity, narrower, rank
from ..ops.context import Context
from ..ops.elementwise import emit_simt, emit_vector, loop_kind, while_loop
from ..ops.values import expression, thread_scope
from ..ops.warpgroup import SetMaxRegisters
from .facts import after_let
from .rings import Rings
from .touched import own_ring


def _reads(e: Expr) -> bool:
    return any(isinstance(n, (Load, Call)) for n in walk(e))


def _proxies(role: Role) -> tuple[set[Buffer], set[Buffer]]:
    """Tiles that the role reads through the asynchronous proxy, and those that it touches by ordinary accesses."""
    quick: set[Buffer] = set()
    plain: set[Buffer] = set()
    for s in walk(role.body):
        if isinstance(s, Issue):
            for a in accesses(s):
                through = s.impl.proxies.get(a.buffer, "generic")
                if through == "async" and a.reads:
                    quick.add(a.buffer)
                elif through == "generic":
                    plain.add(a.buffer)
        elif isinstance(s, (Load, Store)):
            plain.add(s.buffer)
    return quick, plain


class Lowering:
    """One role, or some of its warpgroups; `barriers`: those of every channel, by channel and purpose."""

    def __init__(self, ctx: Context, role: Role, barriers: dict[tuple[str, str], Buffer]) -> None:
        self.ctx, self._role = ctx, role
        self.rings = Rings(ctx, barriers, *_proxies(role))

    def role(self) -> Role:
        """The role with thread-level statements, its cursors and registers set first."""
        loads_only = self._role.name == "load"
        self.ctx.single = loads_only
        inside = self.body(self._role.body)
        inside = (*self.rings.start(), *inside)
        if loads_only:
            inside = (Elect("role", inside),)
        asked = any(isinstance(s, Issue) and isinstance(s.op, SetMaxRegisters) for s in walk(self._role.body))
        if self._role.registers is not None and not asked:
            direction = "dec" if loads_only else "inc"
            inside = (SetRegs(self._role.registers, direction), *inside)
        return replace(self._role, body=inside)

    def body(self, body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        """The statements one by one; what they learn of scalars and versions ends with the body."""
        version, facts = dict(self.ctx.version), self.ctx.facts
        out: list[Stmt] = []
        for s in body:
            out += self.statement(s)
        self.ctx.version, self.ctx.facts = version, facts
        return tuple(out)

    def _repeated(self, body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        """A loop's body."""
        outer, self.ctx.repeats = self.ctx.repeats, True
        made = self.body(body)
        self.ctx.repeats = outer
        return made

    def statement(self, s: Stmt) -> tuple[Stmt, ...]:
        """What one planned statement becomes."""
        if isinstance(s, Issue):
            return self._issue(s)
        if isinstance(s, Complete):
            return self._complete(s)
        if isinstance(s, (Acquire, Commit, Wait, Release)):
            return self._channel(s)
        if isinstance(s, For):
            return self._for(s)
        if isinstance(s, If):
            pre, cond = self._expression(s.cond)
            cond = self.ctx.facts.simplify(cond)
            if isinstance(cond, Const):
                return (*pre, *self.body(s.then if cond.value else s.orelse))
            facts, flow = self.ctx.facts, self._narrow((s.cond,))
            self.ctx.facts = facts.assuming(cond)
            then = self.body(s.then)
            self.ctx.facts = facts
            orelse = self.body(s.orelse)
            self.ctx.flow = flow
            return (*pre, replace(s, cond=cond, then=then, orelse=orelse))
        if isinstance(s, While):
            pre, cond = self._expression(s.cond)
            flow = self._narrow((s.cond,), s.body)
            body = self._repeated(s.body)
            self.ctx.flow = flow
            return (while_loop(s, pre, cond, body),)
        if isinstance(s, Let):
            return self._let(s)
        if isinstance(s, Role):
            return (self._part(s),)
        if isinstance(s, Alloc):
            return (s,) if s.buffer.attr("address") is not None else ()
        if isinstance(s, (Instr, Break, Continue)):
            return (s,)
        return emit_simt(s, self.ctx)

    def _part(self, s: Role) -> Role:
        """Some of the role's warpgroups: threads, ranges and meetings are theirs."""
        threads = s.warps * self.ctx.target.arch.warp_size
        facts = Facts(self.ctx.facts.ranges, self.ctx.facts.divisors)
        facts.ranges["role_thread"] = (0, threads - 1)
        part = changed(self.ctx, facts=facts, role=s.name, warps=s.warps, flow="role", present=threads, stages={})
        inside = Lowering(part, s, self.rings.barriers)
        body = inside.body(s.body)
        return replace(s, body=(*inside.rings.start(), *body))

    def _issue(self, s: Issue) -> tuple[Stmt, ...]:
        pre, op = self._operands(s.op)
        made = (*pre, *op.issue(s.impl, self.ctx))
        self._undivided(op, made)
        if s.impl.completion in ("group", "manual") and s.impl.engine == "lsu" and not s.impl.detail.get("ring"):
            made = (*made, CommitGroup("copy", loc=s.loc))
        return made if s.pred is None else (If(s.pred, made, loc=s.loc),)

    def _undivided(self, op: Op, made: tuple[Stmt, ...]) -> None:
        """Threads that work together on an op all come to it."""
        flow = self.ctx.flow
        if rank(flow) >= rank("role"):
            return
        for n in walk(made):
            if isinstance(n, Instr) and n.scope != "lane":
                who = n.who if isinstance(n, (Elect, Sync)) else n.scope
                if rank(flow) < rank("warp" if who == "named" else who):
                    raise LanguageError(
                        f"T.{op.name} where only some threads come",
                        rule="the threads of a block work together on it",
                        fix="move it out of the branch on the thread index, or branch on whole warpgroups",
                        loc=op.loc,
                    )

    def _complete(self, s: Complete) -> tuple[Stmt, ...]:
        if s.impl.completion == "group" and s.impl.engine == "lsu":
            return (WaitGroup("copy", s.pending, loc=s.loc),)
        if s.pending:
            return s.op.complete(s.impl, self.ctx, s.pending)  # type: ignore[call-arg]
        return s.op.complete(s.impl, self.ctx)

    def _operands(self, op: Op) -> tuple[list[Stmt], Op]:
        """The op with places and values that are read from memory (a row of a table, say) held in scalars."""
        pre: list[Stmt] = []

        def held(e: Expr) -> Expr:
            before, let = self._bound(Let(self.ctx.var("at", e.dtype), e, loc=op.loc))
            pre.extend((*before, let))
            self.uniform.vars[let.var] = self.uniform.scope(e)
            return let.var

        def settle(c: Node) -> Node:
            if isinstance(c, Expr) and _reads(c):
                return held(c)
            if not isinstance(c, Region) or not any(map(_reads, c.starts)):
                return c
            return replace(c, starts=tuple(held(e) if _reads(e) else e for e in c.starts))

        return pre, map_children(op, settle)

    def _channel(self, s: Any) -> tuple[Stmt, ...]:
        own = self._own(s.channel)
        if isinstance(s, Acquire):
            return self.rings.acquire(s, own)
        if isinstance(s, Commit):
            return self.rings.commit(s)
        return self.rings.wait(s, own) if isinstance(s, Wait) else self.rings.release(s, own)

    def _own(self, channel: Channel) -> bool:
        return own_ring(channel, self._role)

    def _for(self, s: For) -> tuple[Stmt, ...]:
        pre, parts = [], []
        for e in (s.start, s.stop, s.step):
            before, made = self._expression(e)
            pre += before
            parts.append(self.ctx.facts.simplify(made))
        start, stop, step = parts
        loop = replace(s, start=start, stop=stop, step=step)
        trips = loop.trips
        if s.kind == "vector" and trips and loop.step.value == 1 and all(isinstance(x, Store) for x in s.body):  # type: ignore[attr-defined]
            return (*pre, *emit_vector(loop, trips, self.ctx))
        kind = loop_kind(loop)
        if kind == "unroll":
            self.ctx.flat.add(s.var)
        facts, flow = self.ctx.facts, self._narrow((s.start, s.stop, s.step), s.body)
        self.ctx.facts = facts.with_loop(s.var, start, stop, step)
        body = self._repeated(s.body)
        self.ctx.facts, self.ctx.flow = facts, flow
        return (*pre, replace(loop, body=body, kind=kind))

    def _narrow(self, conds: tuple[Expr, ...], loop: tuple[Stmt, ...] = ()) -> str:
        """Enters code that these conditions guard (or a loop's body with its exits); returns the flow around it."""
        outer = self.ctx.flow
        for e in conds:
            self.ctx.flow = narrower(self.ctx.flow, self.uniform.scope(e))
        if loop:
            self.ctx.flow = narrower(self.ctx.flow, self.uniform.exits(loop))
        return outer

    @property
    def uniform(self) -> Uniformity:
        """Which values are the same for whom."""
        if self.ctx.uniform is None:
            raise InternalError("lowering needs to know what is uniform")
        return self.ctx.uniform

    def _let(self, s: Let) -> tuple[Stmt, ...]:
        pre, made = self._bound(s)
        return (*pre, made)

    def _bound(self, s: Let) -> tuple[list[Stmt], Let]:
        pre, value = self._expression(s.value)
        value = self.ctx.facts.simplify(value) if value.dtype.is_int else value
        made = replace(s, value=value)
        self.ctx.facts = after_let(self.ctx.facts, made)
        return pre, made

    def _expression(self, e: Expr) -> tuple[list[Stmt], Expr]:
        scope = thread_scope(self.ctx)
        made = expression(e, scope)
        return scope.pre, made
