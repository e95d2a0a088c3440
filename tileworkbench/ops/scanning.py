"""Emission of a scan along one dimension: every line of the tile is walked by one warp, a warp's width at a time;
prefixes inside it by shuffles, the total so far carried on. The tile lies in shared memory meanwhile."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..ir.dtype import DType
from ..ir.expr import Buffer, Expr, Load, as_expr, binary, cast, compare, const, logical, select
from ..ir.instr import LoadMem, Shuffle, StoreMem
from ..ir.stmt import ONE, ZERO, For, Region, Stmt, Store
from .context import Context, run
from .copies.pairs import extent
from .reduction import accumulator_dtype, identity


@dataclass
class Scanning:
    """One scan of the region `src` into `dst`, both in shared memory."""

    kind: str
    src: Region
    dst: Region
    dim: int
    reverse: bool
    ctx: Context

    def emit(self) -> tuple[Stmt, ...]:
        """Lines in turns of as many as the role has warps, all lanes coming along for the shuffles."""
        ctx = self.ctx
        shape = [extent(e) for e in self.src.extents]
        length = shape.pop(self.dim)
        lines = 1
        for e in shape:
            lines *= e
        warps, lanes = ctx.warps, ctx.target.arch.warp_size
        warp, lane = ctx.facts.simplify(ctx.thread // lanes), ctx.facts.simplify(ctx.thread % lanes)
        turn, part = ctx.var("turn"), ctx.var("part")
        dtype = accumulator_dtype(self.src.buffer.dtype, self.dst.buffer.dtype)
        carry, held, other = (ctx.registers(n, 1, dtype) for n in ("carry", "held", "other"))
        outer = ctx.facts
        ctx.facts = ctx.facts.with_range(turn, 0, -(-lines // warps) - 1).with_range(part, 0, -(-length // lanes) - 1)
        line = ctx.facts.simplify(turn * warps + warp)
        place = ctx.facts.simplify(part * lanes + lane)
        inside = logical("land", compare("lt", line, lines), compare("lt", place, length))
        inside = ctx.facts.simplify(inside)
        along = const(length - 1) - place if self.reverse else place
        coords = self._coordinates(line, along, shape)
        body = (
            *self._load(coords, inside, held, dtype),
            *self._prefixes(held, other, lane, lanes),
            Store(held, (ZERO,), self._both(Load(carry, (ZERO,)), Load(held, (ZERO,)), dtype)),
            *self._store(coords, inside, held),
            Shuffle(run(carry), run(held), "idx", const(lanes - 1), lanes),
        )
        start = Store(carry, (ZERO,), identity(self.kind, dtype))
        parts = For(part, ZERO, const(-(-length // lanes)), ONE, body, "serial")
        ctx.facts = outer
        return (For(turn, ZERO, const(-(-lines // warps)), ONE, (start, parts), "serial"),)

    def _coordinates(self, line: Expr, along: Expr, others: list[int]) -> list[Expr]:
        """Row-major coordinates of a line, with the place along it put in."""
        coords: list[Expr] = []
        rest = line
        for e in reversed(others):
            coords.append(self.ctx.facts.simplify(rest % e) if e > 1 else ZERO)
            rest = self.ctx.facts.simplify(rest // e) if e > 1 else rest
        coords.reverse()
        coords.insert(self.dim, along)
        return coords

    def _place(self, region: Region, coords: list[Expr]) -> Any:
        at = tuple(as_expr(s) + c for s, c in zip(region.starts, coords, strict=True))
        return self.ctx.address(region.buffer, at)

    def _load(self, coords: list[Expr], inside: Expr, held: Buffer, dtype: DType) -> tuple[Stmt, ...]:
        source = self.src.buffer.dtype
        raw = self.ctx.registers("raw", 1, source)
        fill = cast(identity(self.kind, dtype), source) if source.is_float else identity(self.kind, source)
        return (
            LoadMem(run(raw), self._place(self.src, coords), inside, fill),
            Store(held, (ZERO,), cast(Load(raw, (ZERO,)), dtype)),
        )

    def _prefixes(self, held: Buffer, other: Buffer, lane: Expr, lanes: int) -> tuple[Stmt, ...]:
        out: list[Stmt] = []
        for bit in range(lanes.bit_length() - 1):
            step = 1 << bit
            mine = Load(held, (ZERO,))
            both = self._both(Load(other, (ZERO,)), mine, held.dtype)
            out += [
                Shuffle(run(other), run(held), "up", const(step), lanes),
                Store(held, (ZERO,), select(compare("ge", lane, step), both, mine)),
            ]
        return tuple(out)

    def _both(self, a: Expr, b: Expr, dtype: DType) -> Expr:
        return cast(a + b if self.kind == "sum" else binary("max", a, b), dtype)

    def _store(self, coords: list[Expr], inside: Expr, held: Buffer) -> tuple[Stmt, ...]:
        made = self.ctx.registers("out", 1, self.dst.buffer.dtype)
        return (
            Store(made, (ZERO,), cast(Load(held, (ZERO,)), made.dtype)),
            StoreMem(self._place(self.dst, coords), run(made), inside),
        )
