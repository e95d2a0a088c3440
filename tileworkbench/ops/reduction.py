"""Emission of a reduction over one dimension of a fragment: registers first, then lanes by shuffles, then warps through
shared memory. The result lies in every thread that held a part of its row."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from ..errors import Loc
from ..ir.dtype import FLOAT32, DType
from ..ir.expr import Buffer, Const, Expr, Load, Value, as_expr, binary, cast, const, logical, select, unary
from ..ir.expr import compare as compare_
from ..ir.instr import Addr, LoadMem, Shuffle, StoreMem, Sync
from ..ir.stmt import ONE, ZERO, For, Stmt, Store
from ..layout import Fragment, Mode
from .context import Context, run


def accumulator_dtype(source: DType, result: DType) -> DType:
    """What elements are combined in: the result's type where that holds more than theirs, float32 for narrow floats,
    which are rounded once at the end."""
    if result.is_float and (result.bits > 32 or not source.is_float):
        return result if result.bits >= 32 else FLOAT32
    if source.is_float:
        return FLOAT32 if source.bits < 32 else source
    return result if result.is_int and result.bits > source.bits else source


def identity(kind: str, dtype: DType) -> Expr:
    """The value that changes nothing."""
    if kind in ("sum", "abssum", "bitor", "bitxor", "absmax"):
        return const(0, dtype)
    if kind == "bitand":
        return const(-1, dtype) if dtype.is_int else const(True, dtype)
    low = kind == "max"
    if dtype.is_float:
        return const(-math.inf if low else math.inf, dtype)
    return const(dtype.min_value() if low else dtype.max_value(), dtype)


def combine(kind: str, a: Expr, b: Expr, nan_propagate: bool) -> Expr:
    """`a` and `b` together; max and min ignore NaN unless it propagates."""
    if kind == "prod":
        return binary("mul", a, b)
    if kind in ("sum", "abssum"):
        return a + b
    if kind in ("bitand", "bitor", "bitxor"):
        return binary({"bitand": "and", "bitor": "or", "bitxor": "xor"}[kind], a, b)
    best = binary("min" if kind == "min" else "max", a, b)
    if nan_propagate and a.dtype.is_float:
        return select(compare_("ne", a, a), a, select(compare_("ne", b, b), b, best))
    return best


@dataclass
class Reduction:
    """What one reduction works on: layouts, registers and the combining rule."""

    kind: str
    dim: int
    source: Fragment
    result: Fragment
    src: Buffer
    dst: Buffer
    clear: bool
    nan_propagate: bool
    ctx: Context
    loc: Loc | None = None

    def emit(self) -> tuple[Stmt, ...]:
        """All statements of the reduction, meetings of the warps that share rows included."""
        dtype = accumulator_dtype(self.src.dtype, self.dst.dtype)
        acc = self.ctx.registers("acc", self.result.registers, dtype)
        return (
            *self._each(lambda d: (Store(acc, (d,), identity(self.kind, dtype)),)),
            *self._own(acc),
            *self._lanes(acc),
            *self._warps(acc),
            *self._each(lambda d: (self._finish(acc, d),)),
        )

    def _each(self, body: Any) -> tuple[Stmt, ...]:
        """`body` for every register of the result."""
        count = self.result.registers
        if count == 1:
            return tuple(body(ZERO))
        d = self.ctx.var("d")
        return (For(d, ZERO, const(count), ONE, tuple(body(d)), "unroll"),)

    def _own(self, acc: Buffer) -> tuple[Stmt, ...]:
        """Every thread's own registers, loops over the register modes of the source."""
        modes = self.source.reg_modes
        digits = tuple(self.ctx.var("r") for _ in modes)
        kept = [digit for digit, mode in zip(digits, modes, strict=True) if mode.dim != self.dim]
        target: Value = self.result.register(kept) if kept else 0
        at = as_expr(target)
        value: Expr = cast(Load(self.src, (as_expr(self.source.register(digits)) if digits else ZERO,)), acc.dtype)
        if self.kind in ("abssum", "absmax"):
            value = unary("abs", value)
        for part in self.source.guards(self.ctx.thread, digits):
            value = select(as_expr(part), value, identity(self.kind, acc.dtype))
        new = combine(self.kind, Load(acc, (at,)), value, self.nan_propagate)
        body: tuple[Stmt, ...] = (Store(acc, (at,), new),)
        for digit, mode in reversed(list(zip(digits, modes, strict=True))):
            body = (For(digit, ZERO, const(mode.extent), ONE, body, "unroll"),)
        return body

    def _along(self) -> tuple[list[Mode], list[Mode]]:
        """Thread modes along the dimension: those inside a warp that halve, and the others."""
        warp = self.ctx.target.arch.warp_size
        inside: list[Mode] = []
        across: list[Mode] = []
        for mode in self.source.thread_modes:
            if mode.dim != self.dim:
                continue
            room = warp // mode.stride if mode.stride < warp else 0
            if mode.extent & (mode.extent - 1) or warp % max(1, mode.stride):
                across.append(mode)
            elif room >= mode.extent:
                inside.append(mode)
            elif room > 1:
                inside.append(Mode(room, "thread", mode.stride, mode.dim, mode.step))
                across.append(Mode(mode.extent // room, "thread", mode.stride * room, mode.dim, mode.step * room))
            else:
                across.append(mode)
        return inside, across

    def _lanes(self, acc: Buffer) -> tuple[Stmt, ...]:
        inside, _ = self._along()
        out: list[Stmt] = []
        for mode in inside:
            for bit in range(mode.extent.bit_length() - 1):
                other = self.ctx.registers("other", 1, acc.dtype)
                mask = const(mode.stride << bit)

                def step(d: Expr, other: Buffer = other, mask: Expr = mask) -> tuple[Stmt, ...]:
                    both = combine(self.kind, Load(acc, (d,)), Load(other, (ZERO,)), self.nan_propagate)
                    width = self.ctx.target.arch.warp_size
                    return (Shuffle(run(other), run(acc, d), "xor", mask, width, loc=self.loc), Store(acc, (d,), both))

                out += self._each(step)
        return tuple(out)

    def _warps(self, acc: Buffer) -> tuple[Stmt, ...]:
        """Partial results of other warps, through scratch memory: scratch[register][thread], one of the lanes that hold
        the same."""
        inside, across = self._along()
        if not across:
            return ()
        ctx = self.ctx
        slots, weights = self._slots(inside, across)
        scratch = ctx.scratch("partials", slots * self.result.registers, acc.dtype)
        loops = [(ctx.var("w"), mode) for mode in across]
        mine: Expr = ZERO
        place: Expr = ZERO
        for mode, weight in weights:
            digit = ctx.thread // mode.stride % mode.extent
            mine = mine + digit * weight
            place = place + next((v for v, m in loops if m is mode), digit) * weight
        mine, place = ctx.facts.simplify(mine), ctx.facts.simplify(place)
        alone: Expr = const(True)
        for mode in inside:
            alone = logical("land", alone, compare_("eq", ctx.thread // mode.stride % mode.extent, 0))
        if self.source.threads < ctx.threads:  # the others hold nothing
            alone = logical("land", alone, compare_("lt", ctx.thread, self.source.threads))
        holds = ctx.facts.simplify(alone)
        pred = None if isinstance(holds, Const) else holds
        part = ctx.registers("part", 1, acc.dtype)

        def gather(d: Expr) -> tuple[Stmt, ...]:
            both = combine(self.kind, Load(acc, (d,)), Load(part, (ZERO,)), self.nan_propagate)
            body: tuple[Stmt, ...] = (
                LoadMem(run(part), Addr(scratch, d * slots + place), loc=self.loc), Store(acc, (d,), both),
            )  # fmt: skip
            for var, mode in loops:
                body = (For(var, ZERO, const(mode.extent), ONE, body, "unroll"),)
            return (Store(acc, (d,), identity(self.kind, acc.dtype)), *body)

        meet = Sync("role", reason="earlier partial results have been read", loc=self.loc)
        again = (meet,) if ctx.used_before(scratch) else ()
        return (
            *again,
            *self._each(lambda d: (StoreMem(Addr(scratch, d * slots + mine), run(acc, d), pred, loc=self.loc),)),
            Sync("role", reason="partial results of all warps are there", loc=self.loc),
            *self._each(gather),
        )

    def _slots(self, inside: list[Mode], across: list[Mode]) -> tuple[int, list[tuple[Mode, int]]]:
        """Places for the threads' values, and the weight of each thread mode but those inside a warp."""
        kept = [m for m in self.source.thread_modes if m.dim != self.dim]
        weights: list[tuple[Mode, int]] = []
        count = 1
        for mode in sorted((*kept, *across), key=lambda m: m.stride):
            weights.append((mode, count))
            count *= mode.extent
        return count, weights

    def _finish(self, acc: Buffer, d: Expr) -> Stmt:
        value = Load(acc, (d,))
        if self.clear:
            return Store(self.dst, (d,), cast(value, self.dst.dtype))
        old = cast(Load(self.dst, (d,)), acc.dtype)
        if self.dst.dtype is self.src.dtype:  # rounded before it meets the old value, as two operations would
            value = cast(cast(value, self.dst.dtype), acc.dtype)  # type: ignore[assignment]
        kind = {"absmax": "max", "abssum": "sum"}.get(self.kind, self.kind)
        return Store(self.dst, (d,), cast(combine(kind, old, value, self.nan_propagate), self.dst.dtype))
