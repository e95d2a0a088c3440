"""Statements of single threads and of some warps."""

from __future__ import annotations

from dataclasses import replace

from . import grow_terms as terms
from .grow_base import ONE_SIDE, SPAN, Scope
from .grow_control import Control
from .program import Buffer, Tensor
from .statements import Put, Statement
from .terms import Both, Get, Name, Number, Pair, Term, Test
from .thread_statements import THREADS, EachThread, Warps


class Threads(Control):
    """Statements that ask for the thread index."""

    def each_thread(self, scope: Scope) -> list[Statement]:
        """Some threads store one element each, to a new tensor or to a shared tile."""
        rng = self.rng
        if self.threads < THREADS or "one side" in scope.loops:
            return []
        place = self.place(scope)
        place.loops = {"tx": THREADS}
        tile = self.some_tile(scope, space=("shared",))
        if tile is not None and rng.random() < 0.4:
            index: list[Term] = [Name("tx") if n >= THREADS else Number(rng.randrange(n)) for n in tile.shape]
            by_thread = [d for d, n in enumerate(tile.shape) if n >= THREADS]
            most = THREADS if by_thread else 1
            if by_thread:
                index = [i if d == by_thread[0] else Number(rng.randrange(tile.shape[d])) for d, i in enumerate(index)]
            target = Get(tile.name, tile.dtype, tuple(index))
        else:
            target, most = self.thread_output(scope), THREADS
        place.pinned = {target.buffer: target}
        cond = self.thread_condition(most)
        if cond is None:
            return []
        value = terms.value(rng, place, target.dtype, 0, min(SPAN[target.dtype][1] // 4, 50))
        return [EachThread(cond, (Put(target, value),))]

    def thread_output(self, scope: Scope) -> Get:
        axes = [v for v in (*("bx", "by", "bz"), *scope.loops) if v in scope.inner]
        dtype = self.rng.choice(self.dtypes)
        made = Tensor(self.fresh("O"), (*[scope.inner[v][1] + 1 for v in axes], THREADS), dtype, 0, SPAN[dtype][0])
        self.tensors.append(made)
        self.outputs.add(made.name)
        return Get(made.name, dtype, (*[Name(v) for v in axes], Name("tx")))

    def thread_condition(self, most: int) -> Term | None:
        """Which threads: below `most`, one of them alone when it is 1."""
        rng = self.rng
        if most == 1:
            return Test("==", Name("tx"), Number(rng.choice((0, 0, 1, 31, 32, 63))))
        first = Test("<", Name("tx"), Number(rng.choice((1, 8, 31, 32, 33, 48, most))))
        if rng.random() < 0.3:
            return Both("and", first, Test("==", Pair("%", Name("tx"), Number(rng.randint(2, 5))), Number(1)))
        return first

    def warps(self, scope: Scope) -> list[Statement]:
        """Tile statements for the first warps and others for the rest, each side with tiles of its own."""
        rng = self.rng
        piece = self.piece or rng.choice((32, 64))
        if scope.depth >= 2 or "one side" in scope.loops or self.threads < 2 * piece:
            return []
        tiles, defined = self.tiles, set(self.defined)
        made: list[Buffer] = []
        later: set[str] = set()
        first: set[str] = set()
        sides: list[list[Statement]] = []
        for _ in range(rng.choice((1, 2))):
            seen = [t for t in tiles if isinstance(t, Buffer) and t.space == "shared" and t.name in defined]
            self.tiles, self.defined = [], {t.name for t in seen}
            self.lent = seen
            inner = replace(scope, depth=2, steps=ONE_SIDE, loops=(*scope.loops, "one side"))
            inner.inner, inner.values = dict(scope.inner), dict(scope.values)
            sides.append([*self.copy_in(inner), *self.body(inner, rng.randint(1, 3)), *self.write_out(inner)])
            first = first or {t.name for t in self.tiles if isinstance(t, Buffer)}
            own = {t.name for t in self.tiles if isinstance(t, Buffer) and t.space == "shared"} & self.defined
            later |= own
            made += [t for t in self.tiles if isinstance(t, Buffer)]
        if self.piece:  # fragments of two selections cannot meet in a statement: these are not used again
            self.hidden += [t for t in made if t.space == "fragment"]
        else:  # those of the first side may be: statements outside are then its warps'
            self.hidden += [t for t in made if t.space == "fragment" and t.name not in first]
        made = [t for t in made if t not in self.hidden]
        self.tiles, self.defined, self.lent = [*tiles, *made], defined | later, []
        self.piece = piece
        return [Warps(piece, tuple(sides[0]), tuple(sides[1]) if len(sides) > 1 else ())]
