"""Parallel loops and what stands in them."""

from __future__ import annotations

from . import grow_terms as terms
from .grow_base import SPAN, Scope
from .grow_copies import Copies
from .grow_terms import Place, plus, scaled
from .program import Buffer, Tensor
from .statements import Atomic, Box, Branch, Copy, Let, Loop, Parallel, Put, Statement
from .terms import EXACT, Get, Name, Number, Pair, Term


class Elements(Copies):
    """Statements that compute element by element."""

    def parallel(self, scope: Scope, tile: Buffer | None = None) -> list[Statement]:
        """An element loop that writes one or two tiles of one shape."""
        rng = self.rng
        tile = tile or self.tile(self.shape(), self.dtype())
        names = tuple("ijp"[: len(tile.shape)])
        place = self.place(scope)
        place.loops = dict(zip(names, tile.shape, strict=True))
        target = Get(tile.name, tile.dtype, tuple(Name(n) for n in names))
        before: list[Statement] = []
        fresh = tile.name not in self.defined
        place.buffers = [b for b in place.buffers if b.name != tile.name or not fresh]
        place.pinned = {tile.name: target}
        body: list[Statement] = self.lets(place)
        low, high = self.room[tile.name]
        room = 6 * (scope.trips + 1)
        if not fresh and tile.dtype != "bool" and rng.random() < 0.25 and high >= room * 4:
            a = 0 if tile.dtype == "uint8" else -6
            body.append(Put(target, terms.value(rng, place, tile.dtype, a, 6), add=True))
        elif not fresh and rng.random() < 0.2:
            cond = terms.condition(rng, place)
            then: tuple[Statement, ...] = (self.put(target, place, scope),)
            orelse: tuple[Statement, ...] = (self.put(target, place, scope),) if rng.random() < 0.5 else ()
            body.append(Branch(cond, then, orelse))
        elif fresh and rng.random() < 0.1 and tile.dtype != "bool" and len(tile.shape) == 2:
            body += self.inner_sum(place, target)
        else:
            body.append(self.put(target, place, scope))
        if rng.random() < 0.15:
            other = self.tile(tile.shape, self.dtype())
            if other.name != tile.name:
                second = Get(other.name, other.dtype, target.index)
                place.pinned[other.name] = second
                body = [s for s in body if other.name not in _reads(s)]
                place.buffers = [b for b in place.buffers if b.name != other.name]
                if body:
                    body.append(self.put(second, place, scope))
                    self.defined.add(other.name)
        self.defined.add(tile.name)
        return [*before, Parallel(names, tile.shape, tuple(body))]

    def put(self, target: Get, place: Place, scope: Scope) -> Statement:
        low, high = self.room[target.buffer]
        inner = (max(low // 4, low), high // 4) if target.dtype != "bool" else (0, 1)
        dtype = target.dtype
        if self.rng.random() < 0.1 and dtype != "bool":
            dtype = self.rng.choice([d for d in self.dtypes if d != "uint8" or target.dtype == "uint8"] or [dtype])
            inner = (max(inner[0], EXACT[dtype][0]), min(inner[1], EXACT[dtype][1]))
        return Put(target, terms.value(self.rng, place, dtype, *inner))

    def lets(self, place: Place) -> list[Statement]:
        rng = self.rng
        out: list[Statement] = []
        while rng.random() < 0.2:
            dtype = rng.choice(self.dtypes)
            low, high = -100 if dtype != "uint8" else 0, 100
            made = terms.value(rng, place, dtype, low, high, 2)
            if isinstance(made, Number):
                break
            name = self.fresh("t")
            out.append(Let(name, made))
            place.values[name] = (dtype, low, high)
        return out

    def inner_sum(self, place: Place, target: Get) -> list[Statement]:
        """A serial loop inside the parallel one, summing into its element."""
        rng = self.rng
        trips = rng.randint(1, 4)
        name = self.fresh("s")
        place.scalars[name] = (0, trips - 1)
        low = 0 if target.dtype == "uint8" else -5
        step = Put(target, terms.value(rng, place, target.dtype, low, 5, 2), add=True)
        kind = rng.choice(("range", "serial", "unroll"))
        del place.scalars[name]
        return [Put(target, Number(0)), Loop(kind, name, Number(0), Number(trips), 1, (step,))]

    def rows(self, scope: Scope) -> list[Statement]:
        """A row or column vector combined with a tile."""
        tile = self.some_tile(scope)
        if tile is None or len(tile.shape) != 2 or tile.dtype == "bool":
            return self.parallel(scope)
        dim = self.rng.randrange(2)
        vector = self.tile((tile.shape[dim],), tile.dtype)
        out: list[Statement] = []
        if vector.name not in self.defined:
            out += self.parallel(scope, vector)
        if vector.name not in self.defined:
            return out
        index = (Name("i"), Name("j"))
        target = Get(tile.name, tile.dtype, index)
        row = Get(vector.name, tile.dtype, (index[dim],))
        op = self.rng.choice(("max", "min", "-" if tile.dtype != "uint8" else "max"))
        made: Term = Pair(op, target, row, tile.dtype)
        low, high = self.room[tile.name]
        if op == "-":
            made = Pair("max", Pair("min", made, Number(high // 2), tile.dtype), Number(low // 2), tile.dtype)
        return [*out, Parallel(("i", "j"), tile.shape, (Put(target, made),))]

    def atomic(self, scope: Scope) -> list[Statement]:
        """Integer updates of a tensor by iterations and blocks that may meet."""
        rng = self.rng
        src = self.some_tile(scope, dtype=("int32",))
        if src is None:
            return []
        names = tuple("ijp"[: len(src.shape)])
        length = rng.choice((1, 3, 8, 16))
        made = Tensor(self.fresh("Z"), (length,), "int32", -3, 3)
        self.tensors.append(made)
        self.outputs.add(made.name)
        where = Pair("%", Name(names[-1]), Number(length))
        value = Get(src.name, "int32", tuple(Name(n) for n in names))
        small = Pair("%", value, Number(7), "int32")
        put = Atomic(rng.choice(("add", "max", "min")), Get(made.name, "int32", (where,)), small)
        return [Parallel(names, src.shape, (put,))]

    def write_out(self, scope: Scope) -> list[Statement]:
        """A defined tile into a new tensor, every block (and trip) to its own part."""
        rng = self.rng
        tile = self.some_tile(scope)
        if tile is None:
            made = self.parallel(scope) + []
            tile = self.some_tile(scope)
            return made + (self.write_out(scope) if tile else [])
        axes = [v for v in ("bx", "by", "bz") if v in scope.inner] + [v for v in scope.loops if v in scope.inner]
        rng.shuffle(axes)
        starts: list[Term] = []
        extents: list[int] = []
        for n in tile.shape:
            if axes and rng.random() < 0.7:
                v = axes.pop()
                starts.append(scaled(Name(v), n))
                extents.append(max(1, n * (scope.inner[v][1] + 1) - self.tail(n)))
            else:
                starts.append(Number(0))
                extents.append(max(1, n - self.tail(n)))
        lead = axes
        shape = (*[scope.inner[v][1] + 1 for v in lead], *extents)
        corner = (*[Name(v) for v in lead], *starts)
        low, high = SPAN[tile.dtype][0], SPAN[tile.dtype][0]
        made_tensor = Tensor(self.fresh("O"), shape, tile.dtype, 0 if tile.dtype in ("uint8", "bool") else -low, high)
        self.tensors.append(made_tensor)
        self.outputs.add(made_tensor.name)
        if rng.random() < 0.7:
            box = Box(made_tensor.name, corner, (*[1] * len(lead), *tile.shape), rng.choice(("corner", "slice")))
            return [Copy(self.whole(tile), box)]
        names = tuple("ijp"[: len(tile.shape)])
        index = tuple(Name(n) for n in names)
        at = (*corner[: len(lead)], *[plus(s, i) for s, i in zip(corner[len(lead) :], index, strict=True)])
        put = Put(Get(made_tensor.name, tile.dtype, at), Get(tile.name, tile.dtype, index))
        return [Parallel(names, tile.shape, (put,))]


def _reads(s: Statement) -> set[str]:
    found: set[str] = set()
    for name in ("value", "cond", "target"):
        term = getattr(s, name, None)
        if term is not None:
            found |= {t.buffer for t in term.walk() if isinstance(t, Get)}
    for child in s.children():
        found |= _reads(child)
    return found
