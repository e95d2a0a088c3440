"""Random descriptions, grown statement by statement. What may be undefined, inexact or racing is mostly avoided here
and surely refused by the reference, so that every description that is kept has one meaning."""

from __future__ import annotations

import random
from dataclasses import dataclass, field, fields, replace
from typing import Any

from . import grow_terms as terms
from .grow_terms import FLOATS, Place, Readable, plus, scaled
from .program import Buffer, Program, Tensor, Variable, valid
from .statements import Atomic, Box, Branch, Copy, Fill, Gemm, Let, Loop, Parallel, Put, Reduce, Scan, SetVar, Statement
from .terms import EXACT, Get, Name, Number, Pair, Term, Test, To

SIZES = (1, 2, 3, 4, 5, 7, 8, 8, 16, 16, 16, 17, 24, 32, 32, 32, 33, 48, 64, 64, 65, 96, 100, 128, 200, 300)
GEMM_SIZES = (16, 16, 32, 32, 48, 64, 64, 128)
MOST = 4096  # elements of a tile
DTYPES = ("float16", "bfloat16", "float32", "float32", "int8", "int16", "int32", "int32", "uint8")
SPAN = {  # values of inputs, and the greatest absolute value that a tile is meant to hold
    "float16": (12, 900), "bfloat16": (8, 200), "float32": (30, 10**5), "int8": (9, 100), "int16": (40, 9000),
    "int32": (99, 10**6), "uint8": (40, 200), "bool": (1, 1),
}  # fmt: skip
REDUCTIONS = ("sum", "sum", "max", "min", "abssum", "absmax")
STEPS = (
    ("parallel", 9), ("copy in", 4), ("copy", 4), ("fill", 1), ("reduce", 3), ("gemm", 1), ("loop", 3), ("branch", 1),
    ("let", 1), ("variable", 1), ("scan", 1), ("partial", 2), ("atomic", 1), ("write out", 2), ("rows", 2),
)  # fmt: skip
MOSTLY_GEMM = (("gemm loop", 5), ("parallel", 4), ("copy", 2), ("reduce", 1), ("gemm", 2), ("fill", 1), ("loop", 1))


@dataclass
class Scope:
    """What holds while one body grows."""

    depth: int = 0
    trips: int = 1
    steps: tuple[tuple[str, int], ...] = STEPS
    loops: tuple[str, ...] = ()  # tile-level loop variables
    certain: bool = True  # runs at least once
    inner: dict[str, tuple[int, int]] = field(default_factory=dict)  # ranges of scalars in scope
    values: dict[str, tuple[str, int, int]] = field(default_factory=dict)


class Grower:
    """Grows one description from a seed."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.seed = seed
        self.tensors: list[Tensor] = []
        self.tiles: list[Buffer | Variable] = []
        self.defined: set[str] = set()
        self.corner: dict[str, tuple[Term, ...]] = {}
        self.room: dict[str, tuple[int, int]] = {}
        self.scalars: list[tuple[str, int]] = []
        self.outputs: set[str] = set()
        self.mixed: set[str] = set()  # tensors that are updated atomically
        self.count: dict[str, int] = {}

    def fresh(self, stem: str) -> str:
        self.count[stem] = self.count.get(stem, -1) + 1
        return f"{stem}{self.count[stem]}"

    def pick(self, weighted: tuple[tuple[str, int], ...]) -> str:
        names, weights = zip(*weighted, strict=True)
        return self.rng.choices(names, weights)[0]

    # --- the whole
    def program(self) -> Program:
        rng = self.rng
        gemms = rng.random() < 0.25
        self.dims = [rng.choice(GEMM_SIZES if gemms else SIZES) for _ in range(3)]
        self.dtypes = [rng.choice(DTYPES) for _ in range(rng.choice((1, 2, 2, 3)))]
        if gemms:
            self.dtypes = ["float32", rng.choice(("float16", "bfloat16"))]
        axes = rng.choices((1, 2, 3), (5, 4, 1))[0]
        self.grid = [rng.randint(1, 3) for _ in range(axes)]
        while axes > 1 and self.grid[0] * self.grid[1] * (self.grid[2] if axes > 2 else 1) > 6:
            self.grid = [rng.randint(1, 2) for _ in range(axes)]
        threads = rng.choices((32, 64, 96, 128, 192, 256), (1, 3, 1, 6, 1, 2) if not gemms else (1, 2, 0, 8, 0, 3))[0]
        blocks = ("bx", "by", "bz")[:axes]
        scope = Scope(steps=MOSTLY_GEMM if gemms else STEPS)
        scope.inner = {b: (0, n - 1) for b, n in zip(blocks, self.grid, strict=True)}
        if rng.random() < 0.3:
            self.scalars.append(("n", rng.randint(0, 4)))
            scope.inner["n"] = (0, self.scalars[0][1])
        body = self.body(scope, rng.randint(2, 6))
        body += self.write_out(scope)
        grid = tuple((n, str(n)) for n in self.grid)
        made = Program(
            tuple(self.tensors), grid, threads, tuple(self.tiles), tuple(body), tuple(self.scalars), self.seed
        )
        return self.with_symbols(made)

    def with_symbols(self, program: Program) -> Program:
        """Some extents known only at launch; the grid's text follows where it can."""
        rng = self.rng
        whole = {b.buffer for b in _boxes(program.body) if b.form == "whole"}
        free = [at for at, t in enumerate(program.tensors) if t.name not in whole]
        if rng.random() > 0.25 or not free:
            return program
        at = rng.choice(free)
        tensor = program.tensors[at]
        dim = rng.randrange(len(tensor.shape))
        if tensor.shape[dim] < 1:
            return program
        named = replace(tensor, symbols=((dim, "m"),))
        grid = list(program.grid)
        if rng.random() < 0.5:
            n = grid[0][0]
            tile = -(-tensor.shape[dim] // n)
            if -(-tensor.shape[dim] // tile) == n:
                grid[0] = (n, f"T.ceildiv(m, {tile})")
        return replace(program, tensors=(*program.tensors[:at], named, *program.tensors[at + 1 :]), grid=tuple(grid))

    def body(self, scope: Scope, steps: int) -> list[Statement]:
        out: list[Statement] = []
        for _ in range(steps):
            out += self.step(scope)
        return out

    def step(self, scope: Scope) -> list[Statement]:
        name = self.pick(scope.steps)
        return getattr(self, name.replace(" ", "_"))(scope)

    # --- buffers
    def tile(self, shape: tuple[int, ...], dtype: str, space: str | None = None) -> Buffer:
        """A tile of this kind: an old one half of the time."""
        rng = self.rng
        space = space or rng.choice(("shared", "fragment", "fragment"))
        old = [t for t in self.tiles if isinstance(t, Buffer) and (t.shape, t.dtype, t.space) == (shape, dtype, space)]
        if old and rng.random() < 0.5:
            return rng.choice(old)
        made = Buffer(self.fresh("S" if space == "shared" else "F"), space, shape, dtype)
        self.tiles.append(made)
        span = SPAN[dtype][1]
        self.room[made.name] = (0 if dtype in ("uint8", "bool") else -span, span)
        return made

    def shape(self) -> tuple[int, ...]:
        rng = self.rng
        rank = rng.choices((1, 2, 3), (3, 8, 1))[0]
        made: list[int] = []
        for _ in range(rank):
            made.append(rng.choice([n for n in self.dims + [1, 2, 4] if _size(made) * n <= MOST]))
        return tuple(made)

    def dtype(self) -> str:
        return "bool" if self.rng.random() < 0.03 else self.rng.choice(self.dtypes)

    def some_tile(self, scope: Scope, **wanted: Any) -> Buffer | None:
        found = [
            t for t in self.tiles
            if isinstance(t, Buffer) and t.name in self.defined and all(getattr(t, k) in v for k, v in wanted.items())
        ]  # fmt: skip
        return self.rng.choice(found) if found else None

    def place(self, scope: Scope) -> Place:
        made = Place(scalars=dict(scope.inner), values=dict(scope.values))
        for t in self.tiles:
            if isinstance(t, Buffer) and t.name in self.defined:
                made.buffers.append(Readable(t.name, t.space, t.shape, t.dtype, *self.room[t.name]))
        for t in self.tensors:
            if t.name not in self.outputs:
                made.buffers.append(Readable(t.name, "global", t.shape, t.dtype, min(t.low, 0), t.high))
                start = self.corner[t.name]
                known = all(n.name in scope.inner for c in start for n in c.walk() if isinstance(n, Name))
                made.corner[t.name] = start if known else (Number(0),) * len(start)
        return made

    # --- regions of tensors
    def starts(self, scope: Scope, shape: tuple[int, ...]) -> list[tuple[Term, int]]:
        """For each dimension of a tile where it starts in a tensor, and how many such tiles lie side by side."""
        rng = self.rng
        free = [v for v in scope.inner if v in ("bx", "by", "bz") or v in scope.loops]
        out = []
        for n in reversed(shape):
            if free and rng.random() < 0.8:
                v = free.pop(rng.randrange(len(free)) if rng.random() < 0.3 else 0)
                out.append((scaled(Name(v), n), scope.inner[v][1] + 1))
            else:
                out.append((Number(0), 1))
        return out[::-1]

    def input(
        self, scope: Scope, shape: tuple[int, ...], dtype: str, span: int | None = None
    ) -> tuple[Tensor, tuple[Term, ...]]:
        """A tensor to read a tile of `shape` from, and where; leading dimensions may be added."""
        rng = self.rng
        places = self.starts(scope, shape)
        starts = tuple(p for p, _ in places)
        variables = [n for n, v in scope.values.items() if n.startswith("v") and v[0] == "int32"]
        if variables and span is None and rng.random() < 0.3:
            starts = (Name(rng.choice(variables)), *starts[1:])  # outside the tensor it reads zeros
        old = [
            t for t in self.tensors if t.name not in self.outputs and t.dtype == dtype and len(t.shape) == len(shape)
        ]
        if old and span is None and rng.random() < 0.5:
            return rng.choice(old), starts
        extents = [max(1, n * k - self.tail(n)) for n, (_, k) in zip(shape, places, strict=True)]
        span = span or SPAN[dtype][0]
        low = 0 if dtype in ("uint8", "bool") else -span
        made = Tensor(self.fresh("A"), tuple(extents), dtype, low, span)
        self.tensors.append(made)
        self.corner[made.name] = starts
        return made, starts

    def tail(self, n: int) -> int:
        return self.rng.randrange(n) if self.rng.random() < 0.3 else 0

    def source(self, tensor: Tensor, starts: tuple[Term, ...], shape: tuple[int, ...]) -> Box:
        """A region of a tensor, in one of its spellings."""
        rng = self.rng
        if tensor.shape == shape and all(isinstance(s, Number) for s in starts) and rng.random() < 0.5:
            return Box(tensor.name, starts, shape, "whole")
        return Box(tensor.name, starts, shape, "corner" if rng.random() < 0.6 else "slice")

    def whole(self, tile: Buffer) -> Box:
        return Box(tile.name, (None,) * len(tile.shape), tile.shape, "whole")

    # --- statements
    def copy_in(self, scope: Scope, tile: Buffer | None = None, span: int | None = None) -> list[Statement]:
        tile = tile or self.tile(self.shape(), self.dtype())
        dtype = tile.dtype
        if self.rng.random() < 0.15 and span is None:
            dtype = self.rng.choice([d for d in (*self.dtypes, tile.dtype) if SPAN[d][0] <= SPAN[tile.dtype][1]])
            if dtype != "uint8" and tile.dtype == "uint8":
                dtype = "uint8"
        tensor, starts = self.input(scope, tile.shape, dtype, span)
        self.defined.add(tile.name)
        hint = ", disable_tma=True" if self.rng.random() < 0.1 else ""
        return [Copy(self.source(tensor, starts, tile.shape), self.whole(tile), hint)]

    def copy(self, scope: Scope) -> list[Statement]:
        rng = self.rng
        src = self.some_tile(scope)
        if src is None:
            return self.copy_in(scope)
        low, high = self.room[src.name]
        fits = [d for d in {*self.dtypes, src.dtype} if EXACT[d][0] <= low and high <= EXACT[d][1]]
        if src.dtype == "bool":
            fits = ["bool"]
        dst = self.tile(src.shape, rng.choice(sorted(fits)))
        if dst.name == src.name:
            return []
        self.room[dst.name] = _hull(self.room[dst.name], (low, high))
        self.defined.add(dst.name)
        return [Copy(self.whole(src), self.whole(dst))]

    def partial(self, scope: Scope) -> list[Statement]:
        """A part of a tile to a part of another one."""
        rng = self.rng
        src = self.some_tile(scope)
        if src is None or src.dtype == "bool":
            return []
        others = [
            t for t in self.tiles
            if isinstance(t, Buffer) and t.name in self.defined and t.name != src.name
            and len(t.shape) == len(src.shape) and t.dtype != "bool" and EXACT[t.dtype][0] <= self.room[src.name][0]
            and self.room[src.name][1] <= EXACT[t.dtype][1]
        ]  # fmt: skip
        if not others:
            return []
        dst = rng.choice(others)
        extents = tuple(
            rng.choice((min(a, b), max(1, min(a, b) // 2))) for a, b in zip(src.shape, dst.shape, strict=True)
        )
        boxes = []
        for t in (src, dst):
            starts = tuple(
                None if n == e and rng.random() < 0.5 else self.inside(scope, n - e, e)
                for n, e in zip(t.shape, extents, strict=True)
            )
            boxes.append(Box(t.name, starts, extents))
        self.room[dst.name] = _hull(self.room[dst.name], self.room[src.name])
        return [Copy(*boxes)]

    def inside(self, scope: Scope, room: int, step: int) -> Term:
        rng = self.rng
        fits = [v for v, (low, high) in scope.inner.items() if low >= 0 and high * step <= room]
        if fits and rng.random() < 0.4:
            return scaled(Name(rng.choice(fits)), step)
        return Number(rng.choice((0, room, rng.randint(0, room))))

    def fill(self, scope: Scope) -> list[Statement]:
        tile = self.tile(self.shape(), self.dtype())
        return [self.filled(tile)]

    def filled(self, tile: Buffer) -> Statement:
        self.defined.add(tile.name)
        n = self.rng.randint(0 if tile.dtype in ("uint8", "bool") else -3, 1 if tile.dtype == "bool" else 5)
        return Fill(self.whole(tile), Number(n), clear=self.rng.random() < 0.5)

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
        self.room[dst.name] = _hull(self.room[dst.name], got)
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
        self.room[dst.name] = _hull(self.room[dst.name], (low * n, high * n) if kind == "sum" else (low, high))
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
            self.room[t.name] = _hull((0, 0), (-3, 3)) if t.name not in self.defined else self.room[t.name]
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


def _size(shape: list[int]) -> int:
    total = 1
    for n in shape:
        total *= n
    return total


def _hull(a: tuple[int, int], b: tuple[int, int]) -> tuple[int, int]:
    return min(a[0], b[0]), max(a[1], b[1])


def _boxes(body: tuple[Statement, ...]) -> list[Box]:
    """Every region of the body."""
    found = []
    for s in body:
        found += [v for f in fields(s) if isinstance(v := getattr(s, f.name), Box)]
        found += _boxes(tuple(s.children()))
    return found


def _reads(s: Statement) -> set[str]:
    found: set[str] = set()
    for name in ("value", "cond", "target"):
        term = getattr(s, name, None)
        if term is not None:
            found |= {t.buffer for t in term.walk() if isinstance(t, Get)}
    for child in s.children():
        found |= _reads(child)
    return found


def generate(seed: int) -> Program:
    """The seed's description: the first attempt that has a defined, exact meaning."""
    for attempt in range(200):
        program = replace(Grower(seed * 1000 + attempt).program(), seed=seed)
        if program.body and valid(program):
            return program
    raise AssertionError(f"seed {seed} gives no valid description")


__all__ = ["Grower", "Test", "generate"]
