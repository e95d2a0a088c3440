"""What every part of the grower needs: names, tiles, and what a body may read."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Any

from .grow_terms import Place, Readable
from .program import Buffer, Tensor, Variable
from .statements import Box, Fill, Statement
from .terms import Name, Number, Term

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
    ("each thread", 2), ("warps", 1),
)  # fmt: skip
ONE_SIDE = (("parallel", 5), ("copy in", 3), ("copy", 2), ("fill", 1), ("reduce", 2), ("rows", 1), ("scan", 1))
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


class Base:
    """State of one description that grows from a seed."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.offsets = random.Random(f"offsets of {seed}")  # of their own: all else of a seed stays as it is
        self.seed = seed
        self.threads = 128
        self.piece = 0
        self.hidden: list[Buffer] = []  # tiles that no later statement uses
        self.lent: list[Buffer] = []  # tiles that may be read here and not written
        self.dims: list[int] = []
        self.dtypes: list[str] = []
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
            made.append(rng.choice([n for n in self.dims + [1, 2, 4] if size(made) * n <= MOST]))
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
        for t in (*self.tiles, *self.lent):
            if isinstance(t, Buffer) and t.name in self.defined:
                made.buffers.append(Readable(t.name, t.space, t.shape, t.dtype, *self.room[t.name]))
        for t in self.tensors:
            if t.name not in self.outputs:
                made.buffers.append(Readable(t.name, "global", t.shape, t.dtype, min(t.low, 0), t.high))
                start = self.corner[t.name]
                known = all(n.name in scope.inner for c in start for n in c.walk() if isinstance(n, Name))
                made.corner[t.name] = start if known else (Number(0),) * len(start)
        return made

    def whole(self, tile: Buffer) -> Box:
        return Box(tile.name, (None,) * len(tile.shape), tile.shape, "whole")

    def filled(self, tile: Buffer) -> Statement:
        self.defined.add(tile.name)
        n = self.rng.randint(0 if tile.dtype in ("uint8", "bool") else -3, 1 if tile.dtype == "bool" else 5)
        return Fill(self.whole(tile), Number(n), clear=self.rng.random() < 0.5)

    def body(self, scope: Scope, steps: int) -> list[Statement]:
        out: list[Statement] = []
        for _ in range(steps):
            out += self.step(scope)
        return out

    def step(self, scope: Scope) -> list[Statement]:
        name = self.pick(scope.steps)
        return getattr(self, name.replace(" ", "_"))(scope)


def size(shape: list[int]) -> int:
    total = 1
    for n in shape:
        total *= n
    return total


def hull(a: tuple[int, int], b: tuple[int, int]) -> tuple[int, int]:
    return min(a[0], b[0]), max(a[1], b[1])
