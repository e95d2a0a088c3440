"""T.gemm: C (+)= op(A) · op(B) on tiles."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Any, ClassVar

import numpy as np

from ...errors import ShapeError, TargetError
from ...ir.arith import Facts
from ...ir.expr import Buffer, Const, Expr
from ...ir.node import node
from ...ir.op import Access, Choice, Impl, Op, Refusal
from ...ir.stmt import Region, Stmt
from ...layout import same
from ...target import Target
from ..context import Context
from . import mma, scalar, wgmma
from .rules import check_dtypes, check_memories, check_packing, is_private


@node
class Gemm(Op):
    """A is (M, K), or (K, M) with transpose_a; B is (K, N), or (N, K) with transpose_b; C is (M, N). The inner two dims
    of each region count, leading ones have extent 1. `clear` (a truth value) ignores the old C.

    policy: square, full_row, full_col: how warps split M × N. hints: k_pack, force ("wgmma": T.wgmma_gemm,
    asynchronous)."""

    name: ClassVar[str] = "gemm"
    a: Region
    b: Region
    c: Region
    transpose_a: bool
    transpose_b: bool
    clear: Expr
    policy: str = "square"
    hints: tuple[tuple[str, Any], ...] = field(default=())

    def hint(self, key: str, default: Any = None) -> Any:
        return dict(self.hints).get(key, default)

    @property
    def manual(self) -> bool:
        """The kernel itself waits for this product."""
        return self.hint("force") is not None

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
        a = self._operand(env, self.a, self.transpose_a)
        b = self._operand(env, self.b, self.transpose_b)
        env.require(self.clear, "a gemm's clear flag", self.loc)
        multiply(env, self.c, a, b, env.scalar(self.clear))

    def _operand(self, env: Any, region: Region, transposed: bool) -> np.ndarray:
        value = env.read(region, sink="a gemm")
        value = value.reshape(value.shape[: env.lead] + value.shape[-2:])
        if transposed:
            value = value.swapaxes(-1, -2)
        made: np.ndarray = env.operand(value, region.buffer.dtype)
        return made

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
        options = [f"{flag}=True" for flag in ("transpose_A", "transpose_B") if getattr(self, flag.lower())]
        if not (isinstance(self.clear, Const) and not self.clear.value):
            options.append(f"clear_accum={show(self.clear)}")
        if self.policy != "square":
            options.append(f"policy={show(self.policy)}")
        options += [f"{key}={show(value)}" for key, value in self.hints]
        return f"T.gemm({', '.join([show(self.a), show(self.b), show(self.c), *options])})"

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
        ranked = tuple(i for i in found if isinstance(i, Impl))
        refused = tuple(r for r in found if isinstance(r, Refusal))
        if not ranked:
            raise TargetError(
                f"T.gemm has no instruction on {target}: " + "; ".join(f"{r.name}: {r.reason}" for r in refused),
                rule="a product needs tiles that an instruction takes",
                fix="change the tile's extents, the dtypes or the thread count",
                loc=self.loc,
            )
        return Choice(ranked, refused)

    def infer(self, impl: Impl, known: Mapping[Buffer, Any], threads: int, free: bool) -> Mapping[Buffer, Any]:
        if impl.engine == "alu":
            return scalar.infer_layouts(self, known, threads, free)
        return {b: ranked[0] for b, ranked in impl.layouts.items() if b.space == "fragment" and b not in known}

    def misfits(self, impl: Impl, known: Mapping[Buffer, Any], threads: int) -> tuple[tuple[Buffer, Any], ...]:
        wanted = [(b, ranked[0]) for b, ranked in impl.layouts.items() if b.space == "fragment"]
        return tuple((b, best) for b, best in wanted if b in known and not same(known[b], best))

    def issue(self, impl: Impl, ctx: Context) -> tuple[Stmt, ...]:
        family = wgmma if impl.scope == "warpgroup" else mma if impl.engine == "tensor" else scalar
        made: tuple[Stmt, ...] = family.issue(self, impl, ctx)
        return made

    def complete(self, impl: Impl, ctx: Context, pending: int = 0) -> tuple[Stmt, ...]:
        return wgmma.complete(self, impl, ctx, pending) if impl.scope == "warpgroup" else ()


def multiply(env: Any, c: Region, a: np.ndarray, b: np.ndarray, clear: Any) -> None:
    """c (+)= a · b on the tile machine; old contents do not count in the blocks where `clear` holds."""
    if not np.any(clear):
        env.add_product(c, a, b)
        return
    to = c.buffer.dtype
    total = env.product(a, b)
    if to.is_int:
        total = total.astype(np.int64)
    total = total.astype(env.container(to)).reshape(total.shape[: env.lead] + env.extents(c))
    if not np.all(clear):  # in some blocks only
        kept = np.logical_not(clear).reshape(np.shape(clear) + (1,) * len(c.extents))
        total = np.where(kept, env.read(c) + total, total)
    env.write(c, env.round(total, to), to, keep=True)
