"""What T.gemm and T.gemm_sp share: hints, meaning on the tile machine, ranking, fragments, and how they are written."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from ...errors import TargetError
from ...ir.expr import Buffer, Const, Expr
from ...ir.op import Choice, Impl, Op, Refusal
from ...ir.stmt import Region, Stmt
from ...layout import same
from ...target import Target
from ..context import Context
from . import wgmma


class Product(Op):
    """C (+)= op(A) · op(B) on tiles. `clear` (a truth value) ignores the old C. policy: square, full_row, full_col: how
    warps split M × N. hints: k_pack, force ("wgmma": the kernel itself waits)."""

    __slots__ = ()
    sink: ClassVar[str]  # what reads the operands, in the simulator's messages
    a: Region
    b: Region
    c: Region
    transpose_a: bool
    transpose_b: bool
    clear: Expr
    policy: str
    hints: tuple[tuple[str, Any], ...]

    @property
    def called(self) -> str:
        """What the user wrote."""
        return f"T.wgmma_{self.name}" if self.manual else f"T.{self.name}"

    @property
    def mnk(self) -> tuple[int, int, int]:
        """M, N and K of the product."""
        raise NotImplementedError

    def hint(self, key: str, default: Any = None) -> Any:
        """The user's hint of this name."""
        return dict(self.hints).get(key, default)

    @property
    def manual(self) -> bool:
        """The kernel itself waits for this product."""
        return self.hint("force") is not None

    def matrix(self, env: Any, region: Region, transposed: bool) -> np.ndarray:
        """An operand's values on the tile machine, (…, rows, columns) as the product has them."""
        value: np.ndarray = env.read(region, sink=self.sink)
        value = value.reshape(value.shape[: env.lead] + value.shape[-2:])
        return value.swapaxes(-1, -2) if transposed else value

    def multiply(self, env: Any, a: np.ndarray, b: np.ndarray) -> None:
        """C (+)= a · b on the tile machine; old contents do not count in the blocks where `clear` holds."""
        env.require(self.clear, f"{self.sink}'s clear flag", self.loc)
        c, to, clear = self.c, self.c.buffer.dtype, env.scalar(self.clear)
        if not np.any(clear):
            env.add_product(c, a, b)
            return
        total = env.product(a, b)
        if to.is_int:
            total = total.astype(np.int64)
        total = total.astype(env.container(to)).reshape(total.shape[: env.lead] + env.extents(c))
        if not np.all(clear):  # in some blocks only
            kept = np.logical_not(clear).reshape(np.shape(clear) + (1,) * len(c.extents))
            total = np.where(kept, env.read(c) + total, total)
        env.write(c, env.round(total, to), to, keep=True)

    def ranked(self, found: list[Impl | Refusal], target: Target, rule: str, fix: str) -> Choice:
        """What was found, best first; TargetError with every reason when nothing fits."""
        impls = tuple(i for i in found if isinstance(i, Impl))
        refused = tuple(r for r in found if isinstance(r, Refusal))
        if not impls:
            reasons = "; ".join(f"{r.name}: {r.reason}" for r in refused)
            raise TargetError(
                f"{self.called} has no instruction on {target}: {reasons}", rule=rule, fix=fix, loc=self.loc
            )
        return Choice(impls, refused)

    def infer(self, impl: Impl, known: Mapping[Buffer, Any], threads: int, free: bool) -> Mapping[Buffer, Any]:
        return {b: best for b, best in fragments(impl) if b not in known}

    def misfits(self, impl: Impl, known: Mapping[Buffer, Any], threads: int) -> tuple[tuple[Buffer, Any], ...]:
        return tuple((b, best) for b, best in fragments(impl) if b in known and not same(known[b], best))

    def complete(self, impl: Impl, ctx: Context, pending: int = 0) -> tuple[Stmt, ...]:
        return wgmma.complete(self, impl, ctx, pending) if impl.scope == "warpgroup" else ()

    def shown(self, operands: tuple[Region, ...], flags: tuple[str, ...], show: Any) -> str:
        """The call as the user would write it, without options that are as by default."""
        options = [f"{flag}=True" for flag in flags if getattr(self, flag.lower())]
        if not (isinstance(self.clear, Const) and not self.clear.value):
            options.append(f"clear_accum={show(self.clear)}")
        if self.policy != "square":
            options.append(f"policy={show(self.policy)}")
        options += [f"{key}={show(value)}" for key, value in self.hints]
        return f"T.{self.name}({', '.join([*map(show, operands), *options])})"


def fragments(impl: Impl) -> list[tuple[Buffer, Any]]:
    """The fragments of an implementation with the layouts it prefers."""
    return [(b, layouts[0]) for b, layouts in impl.layouts.items() if b.space == "fragment"]
