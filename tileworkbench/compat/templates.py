"""Carver's templates: configurations recommended for a kind of kernel on a card, by a cost model on its rows."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import ceil, prod
from typing import Any

from ..errors import TargetError
from ..ir.dtype import dtype as to_dtype
from ..tune.costmodel import Product, ranked
from . import equivalents
from .arch import TileDevice, auto_infer_current_arch, is_tensorcore_supported_precision
from .hint import Hint, NoRasterization, Rasterization2DColumn

BYTES = 16  # of one access


@dataclass
class BaseTemplate:
    """`template.with_arch(arch).recommend_hints(topk)`; without an arch the card of this machine."""

    _arch: TileDevice | None = field(default=None, init=False, repr=False)

    @property
    def arch(self) -> TileDevice:
        """The card that configurations are for."""
        if self._arch is None:
            self._arch = auto_infer_current_arch()
        return self._arch

    def with_arch(self, arch: TileDevice) -> Any:
        """This template, for another card."""
        self._arch = arch
        return self

    def has_arch(self) -> bool:
        """Whether a card was given."""
        return self._arch is not None

    def equivalent_function(self) -> Any:
        """The kernel that the template speaks of, as a plain T.prim_func."""
        raise TargetError(
            f"{type(self).__name__}.equivalent_function",
            rule="it needs TVM's tensor expressions, which this compiler does not have",
            fix="recommend_hints works without it",
        )

    def get_hardware_aware_configs(self, arch: TileDevice | None = None, topk: int = 10) -> list[Hint]:
        """The `topk` best configurations, best first."""
        raise NotImplementedError

    def recommend_hints(self, topk: int = 10) -> list[Hint]:
        """The `topk` best configurations on its card, best first."""
        return self.get_hardware_aware_configs(self.arch, topk)


@dataclass
class MatmulTemplate(BaseTemplate):
    """C (M, N) = A (M, K) · B; `trans_B` says that B is stored (N, K)."""

    M: int
    N: int
    K: int
    trans_A: bool = False
    trans_B: bool = True
    in_dtype: Any = "float16"
    out_dtype: Any = "float16"
    accum_dtype: Any = "float16"
    with_bias: bool = False

    def product(self) -> Product:
        """The shape that the cost model takes."""
        operand, accumulator = to_dtype(self.in_dtype), to_dtype(self.accum_dtype)
        out = to_dtype(self.out_dtype).bytes
        return Product(self.M, self.N, self.K, operand.name, operand.bytes, accumulator.bits, out)

    def get_hardware_aware_configs(self, arch: TileDevice | None = None, topk: int = 10) -> list[Hint]:
        on = arch or self.arch
        return [_tile_hint(us, tiling, on, self) for us, tiling in ranked(self.product(), on.target, topk)]

    def equivalent_function(self) -> Any:
        return equivalents.matmul(
            self.M, self.N, self.K, self.trans_A, self.trans_B, str(self.in_dtype), str(self.out_dtype),
            str(self.accum_dtype),
        )  # fmt: skip


def _tile_hint(us: float, tiling: Any, arch: TileDevice, template: MatmulTemplate) -> Hint:
    matrix = is_tensorcore_supported_precision(str(template.in_dtype), str(template.accum_dtype), arch) or (
        is_tensorcore_supported_precision(str(template.in_dtype), "float32", arch)
    )
    grid = ceil(template.M / tiling.block_m), ceil(template.N / tiling.block_n)
    # Panels keep the operands of neighbouring blocks in L2 once the grid is larger than what runs at once.
    panels = prod(grid) > 2 * arch.compute_max_core and min(grid) > 1
    return Hint(
        block=[tiling.block_m, tiling.block_n],
        warp=list(tiling.warp_tile),
        thread=[] if matrix else [tiling.block_m // 8, tiling.block_n // 8],
        rstep=[tiling.block_k],
        use_tc=matrix,
        rasterization_plan=Rasterization2DColumn(8) if panels else NoRasterization(),
        pipeline_stage=tiling.stages,
        use_async=tiling.stages > 1,
        vectorize={name: BYTES // to_dtype(template.in_dtype).bytes for name in ("A_reindex", "B_reindex")},
        shared_scope="shared.dyn",
        arch=arch,
        estimate_us=us,
    )


@dataclass
class ConvTemplate(BaseTemplate):
    """A 2-D convolution as a product of N·H_out·W_out rows, F columns and K²·C terms."""

    N: int
    C: int
    H: int
    W: int
    F: int
    K: int
    S: int = 1
    D: int = 1
    P: int = 0
    in_dtype: Any = "float16"
    out_dtype: Any = "float16"
    accum_dtype: Any = "float16"
    with_bias: bool = False

    def get_hardware_aware_configs(self, arch: TileDevice | None = None, topk: int = 10) -> list[Hint]:
        height, width = ((e + 2 * self.P - self.D * (self.K - 1) - 1) // self.S + 1 for e in (self.H, self.W))
        product = MatmulTemplate(
            self.N * height * width, self.F, self.K * self.K * self.C, in_dtype=self.in_dtype,
            out_dtype=self.out_dtype, accum_dtype=self.accum_dtype,
        )  # fmt: skip
        return product.get_hardware_aware_configs(arch or self.arch, topk)


@dataclass
class FlashAttentionTemplate(BaseTemplate):
    """Attention forward; tiles of queries and keys are chosen as those of the product Q · Kᵀ."""

    batch_size: int = 1
    num_heads: int = 1
    head_dim: int = 1
    seq_length: int = 1
    seq_kv_length: int = 1
    is_causal: bool = False
    in_dtype: Any = "float16"
    out_dtype: Any = "float16"
    accum_dtype: Any = "float16"

    def get_hardware_aware_configs(self, arch: TileDevice | None = None, topk: int = 10) -> list[Hint]:
        on = arch or self.arch
        product = MatmulTemplate(
            self.seq_length, self.seq_kv_length, self.head_dim, in_dtype=self.in_dtype, accum_dtype="float32"
        )
        held = to_dtype(self.in_dtype).bytes * self.head_dim
        hints = product.get_hardware_aware_configs(on, 10_000)
        # Q stays in shared memory while K and V stream through it.
        fit = [h for h in hints if held * (h.block[0] + 2 * h.pipeline_stage * h.block[1]) <= on.smem_cap]
        for hint in fit:
            hint.rstep = [self.head_dim]
        unique = {(*h.block, h.pipeline_stage, *h.warp): h for h in reversed(fit)}
        return sorted(unique.values(), key=lambda h: h.estimate_us or 0.0)[:topk]


class DefaultPolicy:
    """The cost model's choice for a template on a card: `DefaultPolicy(template, arch).emit_config(topk)`."""

    def __init__(self, template: BaseTemplate, arch: TileDevice | None = None) -> None:
        self.template, self.arch = template, arch or template.arch

    def emit_config(self, topk: int = 10) -> list[Hint]:
        """The `topk` best configurations, best first."""
        return self.template.get_hardware_aware_configs(self.arch, topk)


class TensorCorePolicy(DefaultPolicy):
    """The same, of configurations with matrix instructions."""

    def emit_config(self, topk: int = 10) -> list[Hint]:
        return [hint for hint in super().emit_config(10_000) if hint.use_tc][:topk]
