"""T.cumsum and T.cummax: inclusive prefix combination along one dimension."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from ..errors import ShapeError
from ..ir.arith import Facts
from ..ir.expr import Buffer
from ..ir.node import node, replace
from ..ir.op import Access, Choice, Impl, Op
from ..ir.stmt import Alloc, Region, Stmt, whole
from ..target import Target
from .context import Context
from .copies.pairs import extent
from .copy import Copy
from .reduction import accumulator_dtype
from .scanning import Scanning


def _tile(region: Region, op: Scan) -> Region:
    """A whole shared tile of the region's extents."""
    base = region.buffer
    shape = tuple(extent(e) for e in region.extents)
    return whole(Buffer(f"{base.name}_line", shape, base.dtype, "shared", loc=op.loc))


@node
class Scan(Op):
    """kind: sum or max; `reverse` scans from the end. src and dst may be the same buffer."""

    name: ClassVar[str] = "scan"
    kind: str
    src: Region
    dst: Region
    dim: int
    reverse: bool = False

    def effects(self) -> tuple[Access, ...]:
        return Access(self.src.buffer, "r", self.src), Access(self.dst.buffer, "w", self.dst)

    def canonical(self) -> tuple[Stmt, ...]:
        """Tiles that are not in shared memory go through it."""
        before: list[Stmt] = []
        after: list[Stmt] = []
        src, dst = self.src, self.dst
        if src.buffer.space != "shared":
            src = _tile(src, self)
            before += [Alloc(src.buffer, loc=self.loc), Copy(self.src, src, loc=self.loc)]
        if dst.buffer.space != "shared":
            if dst.buffer.dtype is src.buffer.dtype and before:
                dst = src
            else:
                dst = _tile(dst, self)
                before.append(Alloc(dst.buffer, loc=self.loc))
            after.append(Copy(dst, self.dst, loc=self.loc))
        return (*before, replace(self, src=src, dst=dst), *after)

    def check(self) -> None:
        if not all(isinstance(extent(e), int) for e in self.src.extents):
            raise ShapeError(
                f"T.cum{self.kind} of a region whose extents are known only at run time",
                rule="a scan works on a tile of constant shape",
                fix="slice with constant sizes",
                loc=self.loc,
            )

    def impls(self, facts: Facts, target: Target, warps: int) -> Choice:
        return Choice((Impl("shuffle", "alu", "warp"),))

    def issue(self, impl: Impl, ctx: Context) -> tuple[Stmt, ...]:
        return Scanning(self.kind, self.src, self.dst, self.dim % len(self.src.extents), self.reverse, ctx).emit()

    def run(self, env: Any) -> None:
        """Sums of narrow floats run in float32, every prefix is rounded once; those of integers in the result's type
        where it is wider. max skips NaN."""
        dtype, to = self.src.buffer.dtype, self.dst.buffer.dtype
        acc = accumulator_dtype(dtype, to)
        value, undefined = env.convert(env.read(self.src), dtype, acc), env.undefined(self.src)
        axis = env.lead + self.dim % len(self.src.extents)
        fn: np.ufunc = np.add if self.kind == "sum" else (np.fmax if dtype.is_float else np.maximum)
        out = _prefixes(fn, value, axis, self.reverse)
        if undefined is not None:
            undefined = _prefixes(np.logical_or, undefined, axis, self.reverse)
        env.write(self.dst, env.convert(out, acc, to), to, keep=True, undefined=undefined)

    def text(self, show: Any) -> str:
        reverse = ", reverse=True" if self.reverse else ""
        return f"T.cum{self.kind}({show(self.src)}, {show(self.dst)}, dim={self.dim}{reverse})"


def _prefixes(fn: np.ufunc, value: np.ndarray, axis: int, reverse: bool) -> np.ndarray:
    if reverse:
        return np.flip(fn.accumulate(np.flip(value, axis), axis=axis, dtype=value.dtype), axis)
    return fn.accumulate(value, axis=axis, dtype=value.dtype)
