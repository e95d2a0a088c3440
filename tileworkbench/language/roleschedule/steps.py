"""The straight kernel as a schedule sees it: operations and scheduled loops by id, with the branches around them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

from ...ir.expr import Buffer, Call, Const, Expr, Load, logical_not
from ...ir.node import walk
from ...ir.stmt import Alloc, For, If, Let, Stmt, Store, While
from ..faults import fault
from ..remarks import WSID
from .schedule import WSOpRef, WSSchedule, WSScope


@dataclass(eq=False)
class Step:
    """`name`: its id, "" for a value computed in every role. `inside`: the steps of a scheduled loop."""

    name: str
    stmts: tuple[Stmt, ...]
    guards: tuple[Expr, ...]
    place: int
    loop: For | While | None = None
    inside: list[Step] = field(default_factory=list)


class Steps:
    """The steps of the kernel's body, `before` them what every thread does first; checked against the schedule."""

    def __init__(self, ids: Mapping[Stmt, str], schedule: WSSchedule, body: tuple[Stmt, ...]) -> None:
        self.ids, self.bodies = ids, {s.id: s.bodies for s in schedule.scopes}
        self.before: list[Stmt] = []
        self.count = 0
        if WSScope.ROOT not in self.bodies:
            raise fault("a schedule without T.WSScope.ROOT", "it says what each role does in the kernel's body",
                        "T.WSScope(T.WSScope.ROOT, {…})")  # fmt: skip
        self.seen: dict[str, Step] = {}
        self.root = self._steps(body, ())
        self._check(schedule)

    def _steps(self, body: tuple[Stmt, ...], guards: tuple[Expr, ...]) -> list[Step]:
        out: list[Step] = []
        for name, group in groupby(body, self._name):
            stmts = tuple(group)
            if name in self.bodies:
                out.append(self._scope(name, stmts, guards))
            elif name:
                out.append(self._step(name, tuple(self._hoisted(stmts)), guards))
            else:
                for s in self._hoisted(stmts):
                    out += self._unnamed(s, guards)
        return out

    def _name(self, s: Stmt) -> str:
        found = self.ids.get(s)
        if found is None:
            hints: Any = getattr(s, "attrs", None) or getattr(s, "hints", None) or ()
            found = dict(dict(hints).get("annotations") or {}).get(WSID)
        return found or ""

    def _hoisted(self, stmts: tuple[Stmt, ...]) -> list[Stmt]:
        """The statements without allocations, which stand in front of all roles."""
        self.before += [s for s in stmts if isinstance(s, Alloc)]
        return [s for s in stmts if not isinstance(s, Alloc)]

    def _step(self, name: str, stmts: tuple[Stmt, ...], guards: tuple[Expr, ...], loop: Any = None) -> Step:
        self.count += 1
        made = Step(name, stmts, guards, self.count, loop)
        if name and name in self.seen:
            raise fault(f"the id {name!r} twice", "an id is of one operation", "give each its own id", stmts[0].loc)
        if name:
            self.seen[name] = made
        return made

    def _scope(self, name: str, stmts: tuple[Stmt, ...], guards: tuple[Expr, ...]) -> Step:
        loops = [s for s in stmts if isinstance(s, For | While)]
        if len(loops) != 1 or any(not isinstance(s, For | While | Let) for s in stmts):
            raise fault(f"the scope {name!r} is no loop", "a scope is one loop", "name the loop", stmts[0].loc)
        loop = loops[0]
        if isinstance(loop, For) and loop.kind not in ("serial", "pipelined"):
            raise fault(
                f"the scope {name!r} is a loop of kind {loop.kind}", "a scope must be a serial loop",
                "T.serial or T.Pipelined", loop.loc,
            )  # fmt: skip
        made = self._step(name, tuple(s for s in stmts if isinstance(s, Let)), guards, loop)
        made.inside = self._steps(loop.body, ())
        return made

    def _unnamed(self, s: Stmt, guards: tuple[Expr, ...]) -> list[Step]:
        if isinstance(s, Let) and not any(isinstance(n, Load | Call) for n in walk(s.value)):
            return [self._step("", (s,), guards)]
        if isinstance(s, Store) and s.buffer.space == "var" and isinstance(s.value, Const) and not guards:
            self.before.append(s)
            return []
        if isinstance(s, If) and any(self._name(n) for n in walk(s) if isinstance(n, Stmt)):
            then = self._steps(s.then, (*guards, s.cond))
            return then + self._steps(s.orelse, (*guards, logical_not(s.cond)))
        raise fault(
            "this statement carries no ws op id", "every statement of a scheduled kernel has an id",
            "annotations={T.WSID: …}, or `with T.ws_op(…):` around it", s.loc,
        )  # fmt: skip

    # -- the schedule --------------------------------------------------------------------------------------------------
    def _check(self, schedule: WSSchedule) -> None:
        roles = {r.name for r in schedule.roles}
        if len(roles) != len(schedule.roles):
            raise fault("two roles of one name", "a role's name is its own", "rename one")
        self._check_scope(WSScope.ROOT, self.root, roles)
        for name in self.bodies:
            if name != WSScope.ROOT and name not in self.seen:
                raise _missing(name)

    def _check_scope(self, name: str, steps: list[Step], roles: set[str]) -> None:
        here = {s.name: s for s in steps if s.name}
        placed: set[str] = set()
        for role, body in self.bodies[name].items():
            if role not in roles:
                raise fault(
                    f"scope {name!r} has a body for the unknown role {role!r}", "roles are T.WSRole's", "add it"
                )
            named = [step.id for step in body if isinstance(step, WSOpRef)]
            for one in named:
                if one not in here:
                    raise _elsewhere(name, self.seen[one]) if one in self.seen else _missing(one)
            twice = next((n for n in named if named.count(n) > 1), None)
            if twice is not None:
                raise fault(
                    f"{twice!r} is referenced more than once in the body of {role!r}", "a role does a step once",
                    "leave one out",
                )  # fmt: skip
            placed.update(named)
        for step in steps:
            if step.name and step.name not in placed:
                raise fault(
                    f"the schedule never places {step.name!r}", "some role does every operation",
                    f"name it in a body of scope {name!r}", (step.stmts or (step.loop,))[0].loc,  # type: ignore[union-attr]
                )  # fmt: skip
            if step.loop is not None:
                self._check_scope(step.name, step.inside, roles)


def _missing(name: str) -> Exception:
    return fault(
        f"{name!r}: no statement in the kernel carries this id", "a schedule's ids are the kernel's", "rename it"
    )


def _elsewhere(scope: str, step: Step) -> Exception:
    return fault(
        f"{step.name!r} in scope {scope!r}, where it does not stand", "a scope orders what stands in its loop",
        "name it in the scope that holds it", step.stmts[0].loc if step.stmts else None,
    )  # fmt: skip


def touched(stmts: tuple[Any, ...]) -> set[Buffer]:
    """The buffers that statements name."""
    return {b for n in walk(stmts) for b in [getattr(n, "buffer", None)] if isinstance(b, Buffer)}
