"""Reductions, scans and products."""

from __future__ import annotations

from dataclasses import replace

from . import grow_terms as terms
from .grow_base import MOST, REDUCTIONS, Scope, hull
from .grow_elements import Elements
from .grow_terms import FLOATS, Place, plus
from .statements import Branch, Fill, Gemm, Loop, Parallel, Put, Reduce, Scan, Statement
from .terms import EXACT, Get, Name, Number, Term


class Folds(Elements):
    """Statements that combine many elements."""

    def reduce(self, scope: Scope) -> list[Statement]:
        rng = self.rng
        spaces = ("fragment", "shared") if rng.random() < 0.15 else ("fragment",)
        src = self.some_tile(scope, space=spaces)
        if src is None or src.dtype == "bool":
            return []
        dim = rng.randrange(len(src.shape))
        rest = src.shape[:dim] + src.shape[dim + 1 :]
        if not rest or rng.random() < 0.1:
            rest = src.shape[:dim] + (1,) + src.shape[dim + 1 :]
        kind = rng.choice(REDUCTIONS)
        if src.dtype not in FLOATS and rng.random() < 0.3:
            kind = rng.choice(("bitand", "bitor", "bitxor"))
        dst = self.tile(rest, src.dtype, "fragment")
        if dst.name == src.name:
            return []
        clear = dst.name not in self.defined or rng.random() < 0.7 or kind in ("abssum",)
        n = src.shape[dim] if "sum" in kind else 1
        low, high = self.room[src.name]
        if kind.startswith("abs"):
            low, high = 0, max(abs(low), high)
        if (kind == "sum" and low * n < EXACT[src.dtype][0]) or high * n > EXACT[src.dtype][1]:
            kind = "max" if kind == "sum" else "absmax" if kind == "abssum" else kind
            n = 1
        got = (low * n, high * n) if not kind.startswith("bit") else EXACT[src.dtype]
        if not clear and "sum" in kind:
            if high * n * scope.trips > EXACT[src.dtype][1] // 2:
                clear = True
            got = (low * n * scope.trips, high * n * scope.trips)
        self.room[dst.name] = hull(self.room[dst.name], got)
        self.defined.add(dst.name)
        return [Reduce(kind, self.whole(src), self.whole(dst), dim, clear)]

    def scan(self, scope: Scope) -> list[Statement]:
        rng = self.rng
        src = self.some_tile(scope)
        if src is None or src.dtype == "bool":
            return []
        dim = rng.randrange(len(src.shape))
        low, high = self.room[src.name]
        n = src.shape[dim]
        kind = "sum" if low * n >= EXACT[src.dtype][0] and high * n <= EXACT[src.dtype][1] else "max"
        dst = self.tile(src.shape, src.dtype, src.space)
        self.room[dst.name] = hull(self.room[dst.name], (low * n, high * n) if kind == "sum" else (low, high))
        self.defined.add(dst.name)
        return [Scan(kind, self.whole(src), self.whole(dst), dim, rng.random() < 0.4)]

    def gemm(self, scope: Scope) -> list[Statement]:
        """A product of two defined shared tiles, or of new ones."""
        rng = self.rng
        m, n, k = (rng.choice(self.dims) for _ in range(3))
        if m * n > MOST or m * k > MOST or n * k > MOST or m * n * k > 2**17:
            return []
        narrow = rng.choice([d for d in self.dtypes if d in ("float16", "bfloat16", "float32", "int8")] or ["float16"])
        out = "int32" if narrow == "int8" else "float32"
        ta, tb = rng.random() < 0.3, rng.random() < 0.4
        a = self.tile((k, m) if ta else (m, k), narrow, "shared" if ta or rng.random() < 0.85 else "fragment")
        b = self.tile((n, k) if tb else (k, n), narrow, "shared")
        c = self.tile((m, n), out, "fragment")
        if a.name == b.name or c.name in (a.name, b.name):
            return []
        made: list[Statement] = []
        for t in (a, b):
            made += self.copy_in(scope, t, 3)
            self.room[t.name] = hull((0, 0), (-3, 3)) if t.name not in self.defined else self.room[t.name]
        clear = c.name not in self.defined and rng.random() < 0.3
        if c.name not in self.defined and not clear:
            made.append(self.filled(c))
        self.defined.add(c.name)
        policy = rng.choice(("", "", "FullRow", "FullCol", "Square"))
        made.append(Gemm(self.whole(a), self.whole(b), self.whole(c), ta, tb, clear, policy))
        return made

    def gemm_loop(self, scope: Scope) -> list[Statement]:
        """The usual pipelined product, with what may stand around it."""
        rng = self.rng
        if scope.depth >= 2:
            return []
        k = self.loop_name(scope)
        product = self.gemm(Scope(scope.depth + 1, 1, loops=(k,), inner={**scope.inner, k: (0, 3)}))
        fills = [s for s in product if isinstance(s, Fill)]
        inside = [s for s in product if not isinstance(s, Fill)]
        if not inside:
            return []
        gemm = next(s for s in inside if isinstance(s, Gemm))
        if gemm.clear:
            inside = [replace(s, clear=False) if isinstance(s, Gemm) else s for s in inside]
            fills.append(Fill(gemm.c, Number(0), clear=True))
        if rng.random() < 0.3:
            element = Get(gemm.c.buffer, "float32", (Name("i"), Name("j")))
            more = Put(element, Number(rng.randint(0, 3)), add=True)
            inside.append(Parallel(("i", "j"), gemm.c.extents, (more,)))
        if rng.random() < 0.15:
            inside = [Branch(terms.condition(rng, Place(scalars={k: (0, 3)}), 0), tuple(inside))]
        trips, stop = self.trip_count(scope)
        kind = "pipelined" if rng.random() < 0.85 else "serial"
        return [*fills, Loop(kind, k, Number(0), stop, 1, tuple(inside), rng.randint(0, 4))]

    def trip_count(self, scope: Scope) -> tuple[int, Term]:
        """The greatest number of trips and a term for it: constant, or known only at run time."""
        rng = self.rng
        roll = rng.random()
        if roll < 0.15 and self.scalars:
            return max(1, self.scalars[0][1]), Name("n")
        blocks = [v for v in scope.inner if v in ("bx", "by", "bz")]
        if roll < 0.3 and blocks:
            v = rng.choice(blocks)
            shift = rng.randint(0, 2)
            return scope.inner[v][1] + shift, plus(Name(v), Number(shift))
        trips = rng.choices((0, 1, 2, 3, 4, 5, 6), (1, 2, 4, 4, 3, 2, 1))[0]
        return trips, Number(trips)

    def loop_name(self, scope: Scope) -> str:
        return "kl"[scope.depth] if "kl"[scope.depth] not in scope.inner else self.fresh("k")
