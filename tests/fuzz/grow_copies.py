"""Copies between tensors and tiles, of wholes and of parts."""

from __future__ import annotations

from .grow_base import SPAN, Base, Scope, hull
from .grow_terms import plus, scaled
from .program import Buffer, Tensor
from .statements import Box, Copy, Statement
from .terms import EXACT, Name, Number, Term


class Copies(Base):
    """Statements that move tiles."""

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
        """A region of a tensor, in one of its spellings, now and then from another column on."""
        rng = self.rng
        if tensor.shape == shape and all(isinstance(s, Number) for s in starts) and rng.random() < 0.5:
            return Box(tensor.name, starts, shape, "whole")
        if self.offsets.random() < 0.15:
            starts = (*starts[:-1], plus(starts[-1], Number(self.offsets.choice((1, 2, 3, 4, 8)))))
        return Box(tensor.name, starts, shape, "corner" if rng.random() < 0.6 else "slice")

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
        self.room[dst.name] = hull(self.room[dst.name], (low, high))
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
        self.room[dst.name] = hull(self.room[dst.name], self.room[src.name])
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
