"""T.cumsum and T.cummax: inclusive prefix combination along one dimension."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from ..ir.node import node
from ..ir.op import Access, Op
from ..ir.stmt import Region


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

    def run(self, env: Any) -> None:
        """Sums of narrow floats run in float32; every prefix is rounded once. max skips NaN."""
        dtype = self.src.buffer.dtype
        value, undefined = env.read(self.src), env.undefined(self.src)
        axis = env.lead + self.dim % len(self.src.extents)
        fn: np.ufunc = np.add if self.kind == "sum" else (np.fmax if dtype.is_float else np.maximum)
        out = _prefixes(fn, value, axis, self.reverse)
        if undefined is not None:
            undefined = _prefixes(np.logical_or, undefined, axis, self.reverse)
        env.write(self.dst, env.round(out, dtype), dtype, keep=True, undefined=undefined)

    def text(self, show: Any) -> str:
        reverse = ", reverse=True" if self.reverse else ""
        return f"T.cum{self.kind}({show(self.src)}, {show(self.dst)}, dim={self.dim}{reverse})"


def _prefixes(fn: np.ufunc, value: np.ndarray, axis: int, reverse: bool) -> np.ndarray:
    if reverse:
        return np.flip(fn.accumulate(np.flip(value, axis), axis=axis, dtype=value.dtype), axis)
    return fn.accumulate(value, axis=axis, dtype=value.dtype)
