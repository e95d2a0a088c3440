"""T.gemm: C (+)= op(A) · op(B) on tiles."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Any, ClassVar

from ...errors import ShapeError, TargetError
from ...ir.arith import Facts
from ...ir.expr import Buffer, Expr
from ...ir.node import node
from ...ir.op import Access, Choice, Impl, Refusal
from ...ir.stmt import Region, Stmt
from ...target import Target
from ..context import Context
from . import mma, scalar, wgmma
from .product import Product
from .rules import check_dtypes, check_memories, check_packing, is_private


@node
class Gemm(Product):
    """A is (M, K), or (K, M) with transpose_a; B is (K, N), or (N, K) with transpose_b; C is (M, N). The inner two dims
    of each region count, leading ones have extent 1."""

    name: ClassVar[str] = "gemm"
    sink: ClassVar[str] = "a gemm"
    a: Region
    b: Region
    c: Region
    transpose_a: bool
    transpose_b: bool
    clear: Expr
    policy: str = "square"
    hints: tuple[tuple[str, Any], ...] = field(default=())

    @property
    def mnk(self) -> tuple[int, int, int]:
        """M, N and K of the tile product."""
        m, n = self.c.extents[-2:]
        k = self.a.extents[-2] if self.transpose_a else self.a.extents[-1]
        return m, n, k

    def effects(self) -> tuple[Access, ...]:
        return (
            Access(self.a.buffer, "r", self.a),
            Access(self.b.buffer, "r", self.b),
            Access(self.c.buffer, "rw", self.c),
        )

    def run(self, env: Any) -> None:
        """Products of narrow floats are exact in float32 and summed there; integers are exact in float64."""
        a = env.operand(self.matrix(env, self.a, self.transpose_a), self.a.buffer.dtype)
        b = env.operand(self.matrix(env, self.b, self.transpose_b), self.b.buffer.dtype)
        self.multiply(env, a, b)

    def check(self) -> None:
        m, n, k = self.mnk
        a_shape = (k, m) if self.transpose_a else (m, k)
        b_shape = (n, k) if self.transpose_b else (k, n)
        for letter, region, want in (("A", self.a, a_shape), ("B", self.b, b_shape)):
            if tuple(region.extents[-2:]) != want:
                raise ShapeError(
                    f"T.gemm: {letter} `{region.buffer.name}` is {region.extents[-2:]}, C is ({m}, {n})",
                    rule=f"with C ({m}, {n}) and K = {k}, {letter} must be {want}",
                    fix=f"change the tile's shape or the transpose_{letter} flag",
                    loc=self.loc,
                )
        check_memories(self)
        check_dtypes(self)
        check_packing(self)

    def text(self, show: Any) -> str:
        return self.shown((self.a, self.b, self.c), ("transpose_A", "transpose_B"), show)

    def impls(self, facts: Facts, target: Target, warps: int) -> Choice:
        if is_private(self):
            raise TargetError(
                f"T.gemm of `{self.a.buffer.name}`, each thread's own array",
                rule=f"products of private arrays are for the targets c and llvm, whose blocks are one thread, not "
                f"{target.name}",
                fix="use T.alloc_shared for A and B, and T.alloc_fragment for C",
                loc=self.loc,
            )
        found = [wgmma.wgmma_impl(self, facts, target, warps), mma.mma_impl(self, target, warps)]
        if self.hint("force") == "wgmma" and isinstance(found[0], Refusal):
            raise TargetError(
                f"T.wgmma_gemm: {found[0].reason}", rule="wgmma was asked for", fix="T.gemm", loc=self.loc
            )
        if self.a.buffer.space == self.b.buffer.space == "shared":
            found.append(scalar.scalar_impl(self))
        rule = "a product needs tiles that an instruction takes"
        return self.ranked(found, target, rule, "change the tile's extents, the dtypes or the thread count")

    def infer(self, impl: Impl, known: Mapping[Buffer, Any], threads: int, free: bool) -> Mapping[Buffer, Any]:
        if impl.engine == "alu":
            return scalar.infer_layouts(self, known, threads, free)
        return Product.infer(self, impl, known, threads, free)

    def issue(self, impl: Impl, ctx: Context) -> tuple[Stmt, ...]:
        family = wgmma if impl.scope == "warpgroup" else mma if impl.engine == "tensor" else scalar
        made: tuple[Stmt, ...] = family.issue(self, impl, ctx)
        return made
