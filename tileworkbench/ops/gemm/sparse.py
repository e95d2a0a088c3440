"""T.gemm_sp: C (+)= op(A) · op(B) where A is stored without half of its elements, and E says which they are."""

from __future__ import annotations

from dataclasses import field
from typing import Any, ClassVar

import numpy as np

from ...errors import ShapeError, SimulationError
from ...ir.arith import Facts
from ...ir.expr import Expr
from ...ir.node import node
from ...ir.op import Access, Choice, Impl
from ...ir.stmt import Region, Stmt
from ...layout import metadata_elements
from ...target import Target
from ..context import Context
from . import mma_sp, wgmma_sp
from .product import Product

OPERANDS = ("float16", "bfloat16", "float32", "tfloat32", "int8", "uint8", "float8_e4m3fn", "float8_e5m2")
METADATA = ("int8", "uint8", "int16", "uint16", "int32", "uint32")


@node
class GemmSparse(Product):
    """A is (M, K / 2), or (K / 2, M) with transpose_a: of each group of four elements along K the two that are held, of
    two 32-bit elements the one. E is (M, K / f), or (K / f, M) with transpose_e: integers whose 4-bit fields, lowest
    first, place them (two 2-bit indices in rising order; for 32-bit elements 0b0100 or 0b1110). B is (K, N), or (N, K)
    with transpose_b; C is (M, N). `clear`, policy and hints are those of T.gemm."""

    name: ClassVar[str] = "gemm_sp"
    sink: ClassVar[str] = "a sparse gemm"
    a: Region
    e: Region
    b: Region
    c: Region
    transpose_a: bool
    transpose_e: bool
    transpose_b: bool
    clear: Expr
    policy: str = "square"
    hints: tuple[tuple[str, Any], ...] = field(default=())

    @property
    def mnk(self) -> tuple[int, int, int]:
        """M, N and K of the product; K counts A's elements as if all were stored."""
        m, n = self.c.extents[-2:]
        return m, n, 2 * (self.a.extents[-2] if self.transpose_a else self.a.extents[-1])

    @property
    def factor(self) -> int:
        """Elements of a row of A that one element of E speaks of."""
        return metadata_elements(self.a.buffer.dtype.bits, self.e.buffer.dtype.bits)

    def effects(self) -> tuple[Access, ...]:
        read = (self.a, self.e, self.b)
        return (*(Access(r.buffer, "r", r) for r in read), Access(self.c.buffer, "rw", self.c))

    def check(self) -> None:
        a, e, b = (r.buffer.dtype for r in (self.a, self.e, self.b))
        if a.name not in OPERANDS or b.name not in OPERANDS or a.bits != b.bits or a.is_int != b.is_int:
            raise ShapeError(
                f"{self.called}: A is {a}, B is {b}",
                rule=f"both are of one kind and width, of {', '.join(OPERANDS)}",
                fix="copy one of them to a tile of the other's dtype first",
                loc=self.loc,
            )
        if e.name not in METADATA:
            raise ShapeError(
                f"{self.called}: the metadata E `{self.e.buffer.name}` is {e}",
                rule=f"metadata is {', '.join(METADATA)}",
                fix="compress A with another metadata dtype",
                loc=self.loc,
            )
        m, n, k = self.mnk
        fields = k // self.factor
        for letter, region, want, turned in (
            ("A", self.a, (m, k // 2), self.transpose_a),
            ("E", self.e, (m, fields), self.transpose_e),
            ("B", self.b, (k, n), self.transpose_b),
        ):
            if tuple(region.extents[-2:]) != (want[::-1] if turned else want) or k % self.factor:
                raise ShapeError(
                    f"{self.called}: {letter} `{region.buffer.name}` is {region.extents[-2:]}, C is ({m}, {n})",
                    rule=f"with C ({m}, {n}) and K = {k} (twice A's), {letter} must be {want[::-1] if turned else want}"
                    + (f": one {e} speaks of {self.factor} elements of a row" if letter == "E" else ""),
                    fix=f"change the tile's shape or the transpose_{letter} flag",
                    loc=self.loc,
                )

    def run(self, env: Any) -> None:
        """The dense rows of A are made, then multiplied as T.gemm does."""
        a = env.operand(self._dense(env), self.a.buffer.dtype)
        self.multiply(env, a, env.operand(self.matrix(env, self.b, self.transpose_b), self.b.buffer.dtype))

    def _dense(self, env: Any) -> np.ndarray:
        """A with zeros where nothing is held; SimulationError for metadata that places no element."""
        held, words = self.matrix(env, self.a, self.transpose_a), self.matrix(env, self.e, self.transpose_e)
        lead = np.broadcast_shapes(held.shape[:-2], words.shape[:-2])
        held = np.broadcast_to(held, (*lead, *held.shape[-2:]))
        words = np.broadcast_to(words, (*lead, *words.shape[-2:]))
        dense, wrong = expand(held, words, self.e.buffer.dtype.bits, self.a.buffer.dtype.bits)
        if wrong.any() and env.happens(wrong):
            raise SimulationError(
                f"{self.called}: the metadata E `{self.e.buffer.name}` places two elements at once",
                rule="a field holds two rising 2-bit indices (for 32-bit elements it is 0b0100 or 0b1110)",
                fix="make A and E by one compression, with this metadata dtype",
                loc=self.loc,
            )
        return dense

    def text(self, show: Any) -> str:
        flags = ("transpose_A", "transpose_E", "transpose_B")
        return self.shown((self.a, self.e, self.b, self.c), flags, show)

    def impls(self, facts: Facts, target: Target, warps: int) -> Choice:
        found = [wgmma_sp.wgmma_sparse_impl(self, target, warps)]
        if not self.manual:
            found.append(mma_sp.sparse_impl(self, target, warps))
        rule = "a sparse product needs tiles that mma.sp or wgmma.sp takes"
        fix = "T.gemm_sp" if self.manual else "change the tile's extents, the dtypes or the thread count"
        return self.ranked(found, target, rule, fix)

    def issue(self, impl: Impl, ctx: Context) -> tuple[Stmt, ...]:
        if impl.scope == "warpgroup":
            return wgmma_sp.issue(self, impl, ctx)
        return mma_sp.issue(self, impl, ctx)


def expand(held: np.ndarray, words: np.ndarray, width: int, bits: int) -> tuple[np.ndarray, np.ndarray]:
    """(rows with zeros where nothing is held, which groups are placed wrongly). `held` (…, M, K / 2), `words`
    (…, M, K / f) of `width` bits; elements of A have `bits`. A group of zeros may have any metadata."""
    count, size = (1, 2) if bits == 32 else (2, 4)
    shifts = np.arange(0, width, 4)
    fields = words[..., None].astype(np.int64) >> shifts & 15
    fields = fields.reshape(*words.shape[:-1], -1)
    values = held.reshape(*held.shape[:-1], -1, count)
    if count == 1:
        places, wrong = (fields >> 3)[..., None], (fields != 0b0100) & (fields != 0b1110)
    else:
        places = np.stack([fields & 3, fields >> 2], axis=-1)
        wrong = places[..., 0] >= places[..., 1]
    dense = np.zeros((*fields.shape, size), held.dtype)
    np.put_along_axis(dense, places, values, axis=-1)
    return dense.reshape(*held.shape[:-1], -1), wrong & (values != 0).any(axis=-1)
