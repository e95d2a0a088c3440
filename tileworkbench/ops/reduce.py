"""T.reduce_*: reduces a tile over one dimension; the result is replicated over the threads that shared a row."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from ..errors import ShapeError
from ..ir.arith import Facts
from ..ir.expr import Buffer
from ..ir.node import node, replace
from ..ir.op import Access, Choice, Impl, Op
from ..ir.stmt import Alloc, Region, Stmt, whole
from ..layout import Fragment, padded_loop, reduce_dim, same
from ..target import Target
from .context import Context
from .copies.pairs import is_whole, sized_late
from .copy import Copy
from .reduction import Reduction, accumulator_dtype


def _direct(region: Region) -> bool:
    return region.buffer.space == "fragment" and is_whole(region)


def _fragment(region: Region, op: Reduce) -> Region:
    """A whole fragment of the region's extents."""
    base = region.buffer
    if sized_late(region):
        raise ShapeError(
            f"T.reduce_{op.kind}: the size of the slice of `{base.name}` is known only at run time",
            rule="what is reduced has a size known while compiling",
            fix="reduce a whole tile whose other elements do not change the result",
            loc=op.loc,
        )
    return whole(Buffer(f"{base.name}_part", tuple(region.extents), base.dtype, "fragment", loc=op.loc))


@node
class Reduce(Op):
    """`dst = kind(src, axis=dim)`; dst lacks that dim or has extent 1 there. kind: sum, max, min, abssum, absmax,
    bitand, bitor, bitxor. clear=False combines with the old dst (once). max and min ignore NaN unless nan_propagate."""

    name: ClassVar[str] = "reduce"
    kind: str
    src: Region
    dst: Region
    dim: int
    clear: bool = True
    nan_propagate: bool = False

    def effects(self) -> tuple[Access, ...]:
        mode = "w" if self.clear else "rw"
        return Access(self.src.buffer, "r", self.src), Access(self.dst.buffer, mode, self.dst)

    @property
    def axis(self) -> int:
        """The reduced dimension, counted from 0."""
        return self.dim % len(self.src.extents)

    def canonical(self) -> tuple[Stmt, ...]:
        """Anything but whole fragments goes through fragments of the regions' extents."""
        before: list[Stmt] = []
        after: list[Stmt] = []
        src, dst = self.src, self.dst
        if not _direct(src):
            src = _fragment(src, self)
            before += [Alloc(src.buffer, loc=self.loc), Copy(self.src, src, loc=self.loc)]
        if not _direct(dst):
            dst = _fragment(dst, self)
            before.append(Alloc(dst.buffer, loc=self.loc))
            if not self.clear:
                before.append(Copy(self.dst, dst, loc=self.loc))
            after.append(Copy(dst, self.dst, loc=self.loc))
        return (*before, replace(self, src=src, dst=dst), *after)

    def impls(self, facts: Facts, target: Target, warps: int) -> Choice:
        return Choice((Impl("shuffle", "alu", "role"),))

    def result_layout(self, source: Fragment) -> Fragment:
        """Where the result lies when the tile lies as `source` says."""
        return reduce_dim(source, self.axis, keep=self.dst.buffer.rank == self.src.buffer.rank)

    def infer(self, impl: Impl, known: Mapping[Buffer, Any], threads: int, free: bool) -> Mapping[Buffer, Any]:
        src, dst = self.src.buffer, self.dst.buffer
        out: dict[Buffer, Any] = {}
        if src not in known and free:
            out[src] = padded_loop(tuple(src.shape), threads, max(1, 16 // src.dtype.bytes))
        source = known.get(src, out.get(src))
        if source is not None and dst not in known:
            out[dst] = self.result_layout(self._reducible(source, threads))
        return out

    def _reducible(self, source: Any, threads: int) -> Fragment:
        """The tile's layout, or the mode form that a layout without modes is converted to."""
        direct = isinstance(source, Fragment) and not source.base
        return source if direct else padded_loop(tuple(self.src.buffer.shape), threads, 1)

    def misfits(self, impl: Impl, known: Mapping[Buffer, Any], threads: int) -> tuple[tuple[Buffer, Any], ...]:
        src, dst = self.src.buffer, self.dst.buffer
        source = self._reducible(known[src], threads)
        out: list[tuple[Buffer, Any]] = [] if source is known[src] else [(src, source)]
        wanted = self.result_layout(source)
        if not same(known[dst], wanted):
            out.append((dst, wanted))
        return tuple(out)

    def issue(self, impl: Impl, ctx: Context) -> tuple[Stmt, ...]:
        src, dst = self.src.buffer, self.dst.buffer
        return Reduction(
            self.kind, self.axis, ctx.layouts[src], ctx.layouts[dst], ctx.reg(src), ctx.reg(dst), self.clear,
            self.nan_propagate, ctx, self.loc,
        ).emit()  # fmt: skip

    def run(self, env: Any) -> None:
        """Sums of narrow floats run in float32 and are rounded once, those of integers in the result's type where it
        is wider; max and min skip NaN unless `nan_propagate`."""
        dtype, to = self.src.buffer.dtype, self.dst.buffer.dtype
        acc = accumulator_dtype(dtype, to)
        value, undefined = env.convert(env.read(self.src), dtype, acc), env.undefined(self.src)
        axis = env.lead + self.dim % len(self.src.extents)
        shape = env.extents(self.dst)
        if self.kind in ("abssum", "absmax"):
            value = np.abs(value)
        out = self._combine(value, axis)
        out = out.reshape(out.shape[: env.lead] + shape)
        if undefined is not None:
            undefined = undefined.any(axis=axis)
            undefined = undefined.reshape(undefined.shape[: env.lead] + shape)
        if not self.clear:
            old, mark = env.convert(env.read(self.dst), to, acc), env.undefined(self.dst)
            if to is dtype:  # rounded before it meets the old value, as two operations would
                out = env.convert(env.convert(out, acc, to), to, acc)
            out = self._pair()(old, out)
            undefined = mark if undefined is None else (undefined if mark is None else undefined | mark)
        env.write(self.dst, env.convert(out, acc, to), to, keep=True, undefined=undefined)

    def _pair(self) -> np.ufunc:
        floats = self.src.buffer.dtype.is_float and not self.nan_propagate
        if self.kind in ("max", "absmax"):
            return np.fmax if floats else np.maximum
        if self.kind == "min":
            return np.fmin if floats else np.minimum
        return {"bitand": np.bitwise_and, "bitor": np.bitwise_or, "bitxor": np.bitwise_xor}.get(self.kind, np.add)

    def _combine(self, value: np.ndarray, axis: int) -> np.ndarray:
        """All elements of the axis together, in the dtype they have (bools count as truth values)."""
        fn = self._pair()
        if fn is not np.fmax and fn is not np.fmin:
            made: np.ndarray = fn.reduce(value, axis=axis, dtype=value.dtype)
            return made
        # NumPy's maximum is several times faster than fmax; NaN in the result tells whether the difference matters.
        fast: np.ndarray = (np.maximum if fn is np.fmax else np.minimum).reduce(value, axis=axis)
        exact: np.ndarray = fn.reduce(value, axis=axis) if np.isnan(fast).any() else fast
        return exact

    def text(self, show: Any) -> str:
        options = "" if self.clear else ", clear=False"
        options += ", nan_propagate=True" if self.nan_propagate else ""
        return f"T.reduce_{self.kind}({show(self.src)}, {show(self.dst)}, dim={self.dim}{options})"
