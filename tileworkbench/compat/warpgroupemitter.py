"""TileLang's emitter of warpgroup products: a block's product written out as wgmma, with operands in swizzled shared
tiles or A in a fragment."""

from __future__ import annotations

from typing import Any

from ..ir.expr import Buffer
from ..language import warpgroupinstr
from ..language.matrixdescriptors import MatrixDescriptor, alloc_wgmma_desc
from ..language.regions import to_region
from .emitters import TensorCoreIntrinEmitter
from .warpgroupoperand import WGMMADescriptorParams
from .warpgrouptiles import WarpgroupTiles


class WGMMATensorCoreIntrinEmitter(WarpgroupTiles, TensorCoreIntrinEmitter):
    """The tile (block_row_warps · warp_row_tiles, block_col_warps · warp_col_tiles) by wgmma, `chunk` along K."""

    # --- whole products -----------------------------------------------------------------------------------------------
    def wgmma(self, A_region: Any, B_region: Any, C_region: Any, clear_accum: Any = False, wg_wait: int = 0) -> None:
        """C (+)= A · B; with wg_wait < 0 the product is not waited for."""
        a = to_region(A_region, "the first operand")
        if a.buffer.space == "fragment":
            self.wgmma_rs(A_region, B_region, C_region, clear_accum, wg_wait)
            return
        a_params, b_params = self.compute_wgmma_a_desc_params(A_region), self.compute_wgmma_b_desc_params(B_region)
        c = to_region(C_region, "the accumulator").buffer
        desc_a, desc_b = alloc_wgmma_desc(), alloc_wgmma_desc()
        self.init_wgmma_a_desc(desc_a, A_region, a_params)
        self.init_wgmma_b_desc(desc_b, B_region, b_params)
        self.wgmma_fence_c(c)
        self.wgmma_arrive()
        for m, n, k in self._steps():
            self.wgmma_ss_atom(desc_a, desc_b, c, m, n, k, a_params, b_params, clear_accum)
        self._close(wg_wait)
        self.wgmma_fence_c(c)

    def wgmma_rs(self, A_region: Any, B_region: Any, C_region: Any, clear_accum: Any = False, wg_wait: int = 0) -> None:
        """C (+)= A · B with A in a fragment; with wg_wait < 0 the product is not waited for."""
        a, c = (to_region(x, "an operand").buffer for x in (A_region, C_region))
        params, desc = self.compute_wgmma_b_desc_params(B_region), alloc_wgmma_desc()
        self.init_wgmma_b_desc(desc, B_region, params)
        self.wgmma_fence_a(a)
        self.wgmma_fence_c(c)
        self.wgmma_arrive()
        for m, n, k in self._steps():
            self.wgmma_rs_atom(a, desc, c, m, n, k, params, clear_accum)
        self._close(wg_wait)
        self.wgmma_fence_c(c)
        self.wgmma_fence_a(a)

    # --- single instructions ------------------------------------------------------------------------------------------
    def wgmma_ss_atom(
        self, desc_a: MatrixDescriptor, desc_b: MatrixDescriptor, C_buf: Buffer, inst_m_idx: Any, inst_n_idx: Any,
        ki: Any, a_params: WGMMADescriptorParams, b_params: WGMMADescriptorParams, clear_accum: Any = False,
    ) -> None:  # fmt: skip
        """The instruction (inst_m_idx, inst_n_idx) of step `ki`, both operands in shared memory."""
        warpgroupinstr.ptx_wgmma_ss(
            self.accum_dtype, self.wgmma_prefix, a_params.is_k_major, b_params.is_k_major, self.a_dtype_abbrv,
            self.b_dtype_abbrv, self.accum_dtype_abbrv, desc_a, self._a_units(a_params, inst_m_idx, ki), desc_b,
            self._b_units(b_params, inst_n_idx, ki), C_buf, self._c_start(inst_m_idx, inst_n_idx),
            self._keeps(ki, clear_accum),
        )  # fmt: skip

    def wgmma_rs_atom(
        self, A_buf: Buffer, desc_b: MatrixDescriptor, C_buf: Buffer, inst_m_idx: Any, inst_n_idx: Any, ki: Any,
        b_params: WGMMADescriptorParams, clear_accum: Any = False,
    ) -> None:  # fmt: skip
        """The instruction (inst_m_idx, inst_n_idx) of step `ki`, A in registers."""
        warpgroupinstr.ptx_wgmma_rs(
            self.accum_dtype, self.wgmma_prefix, b_params.is_k_major, self.a_dtype_abbrv, self.b_dtype_abbrv,
            self.accum_dtype_abbrv, A_buf, self._a_start(inst_m_idx, ki), desc_b,
            self._b_units(b_params, inst_n_idx, ki), C_buf, self._c_start(inst_m_idx, inst_n_idx),
            self._keeps(ki, clear_accum),
        )  # fmt: skip
