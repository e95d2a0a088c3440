"""Loops, branches and scalars."""

from __future__ import annotations

from dataclasses import replace

from . import grow_terms as terms
from .grow_base import Scope
from .grow_folds import Folds
from .program import Variable
from .statements import Branch, Let, Loop, SetVar, Statement
from .terms import Name, Number, Pair, Term, To


class Control(Folds):
    """Statements around others."""

    def loop(self, scope: Scope) -> list[Statement]:
        rng = self.rng
        if scope.depth >= 2:
            return []
        kind = rng.choices(("serial", "range", "unroll", "pipelined"), (2, 2, 1, 6))[0]
        trips, stop = self.trip_count(scope)
        if kind == "unroll" and not isinstance(stop, Number):
            kind = "range"
        name = self.loop_name(scope)
        start, step = 0, 1
        if kind in ("serial", "range") and isinstance(stop, Number) and rng.random() < 0.2:
            start, step = rng.randint(0, 2), rng.randint(1, 2)
            stop = Number(start + trips * step)
        inner = Scope(
            scope.depth + 1, scope.trips * max(1, trips), scope.steps, (*scope.loops, name), values=dict(scope.values)
        )
        inner.inner = {**scope.inner, name: (0, max(0, start + trips * step - 1))}
        known = set(self.defined)
        body = self.body(inner, rng.randint(1, 4))
        if rng.random() < 0.5:
            body = self.copy_in(inner) + body
        if rng.random() < 0.3:
            body += self.write_out(inner)
        if not (isinstance(stop, Number) and trips >= 1):
            self.defined = known
        if not body:
            return []
        return [Loop(kind, name, Number(start), stop, step, tuple(body), rng.randint(0, 4))]

    def branch(self, scope: Scope) -> list[Statement]:
        rng = self.rng
        if scope.depth >= 2:
            return []
        place = self.place(scope)
        place.values = {n: v for n, v in scope.values.items() if n.startswith("v")}
        cond = terms.block_condition(rng, place)
        inner = replace(scope, depth=scope.depth + 1, inner=dict(scope.inner), values=dict(scope.values))
        known = set(self.defined)
        then = self.body(inner, rng.randint(1, 2))
        after = set(self.defined)
        self.defined = set(known)
        inner = replace(scope, depth=scope.depth + 1, inner=dict(scope.inner), values=dict(scope.values))
        orelse = self.body(inner, 1) if rng.random() < 0.4 else []
        self.defined = after & self.defined
        return [Branch(cond, tuple(then), tuple(orelse))] if then else []

    def let(self, scope: Scope) -> list[Statement]:
        if not scope.inner:
            return []
        name = self.fresh("x")
        v = self.rng.choice(list(scope.inner))
        low, high = scope.inner[v]
        n = self.rng.randint(1, 3)
        made = self.rng.choice(
            (Pair("*", Name(v), Number(n)), Pair("+", Name(v), Number(n)), Pair("//", Name(v), Number(n)))
        )
        scope.inner[name] = {"*": (low * n, high * n), "+": (low + n, high + n), "//": (low // n, high // n)}[made.op]
        return [Let(name, made)]

    def variable(self, scope: Scope) -> list[Statement]:
        """An alloc_var that is added to or replaced."""
        rng = self.rng
        found = [t for t in self.tiles if isinstance(t, Variable)]
        if not found or rng.random() < 0.3:
            made = Variable(self.fresh("v"), rng.choice(("int32", "int32", "float32")), rng.randint(0, 5))
            self.tiles.append(made)
            found = [made]
        var = rng.choice(found)
        scope.values[var.name] = (var.dtype, -2000, 2000)
        names = list(scope.inner)
        step: Term = Name(rng.choice(names)) if names else Number(2)
        if var.dtype != "int32":
            step = To(step, var.dtype)
        if rng.random() < 0.6:
            return [SetVar(var.name, var.dtype, step, add=True)]
        return [SetVar(var.name, var.dtype, Pair(rng.choice(("+", "max")), step, Number(rng.randint(0, 4)), var.dtype))]
