"""TileLang's emitter of sparse warpgroup products: a block's product with a 2:4 sparse A written out as wgmma, with
operands in swizzled shared tiles or A in a fragment."""

from __future__ import annotations

from typing import Any

from ..ir.expr import Buffer
from ..language import warpgroupinstr
from ..language.alloc import alloc_local
from ..language.matrixdescriptors import alloc_wgmma_desc
from ..language.regions import to_region
from .sparseemitters import SparseTensorCoreIntrinEmitter
from .warpgrouptiles import ROWS, WARPS, WarpgroupTiles


class WGSparseTensorCoreIntrinEmitter(WarpgroupTiles, SparseTensorCoreIntrinEmitter):
    """The tile (block_row_warps · warp_row_tiles, block_col_warps · warp_col_tiles) by sparse wgmma, `warp_k` along K.
    Operands are stored as those of SparseTensorCoreIntrinEmitter."""

    def wgmma_ss(
        self, A_region: Any, E_region: Any, B_region: Any, C_region: Any, clear_accum: Any = False, wg_wait: int = 0
    ) -> None:
        """C (+)= A · B with A and its metadata in shared memory; with wg_wait < 0 the product is not waited for."""
        a_params, desc_a = self.compute_wgmma_a_desc_params(A_region), alloc_wgmma_desc()
        self.init_wgmma_a_desc(desc_a, A_region, a_params)
        majors = (a_params.is_k_major, self.b_transposed)

        def issue(m: int, k: int, *rest: Any) -> None:
            warpgroupinstr.ptx_wgmma_sp_ss(
                self.accum_dtype, self.wgmma_prefix, *majors, self.a_dtype_abbrv, self.b_dtype_abbrv,
                self.accum_dtype_abbrv, desc_a, self._a_units(a_params, m, k), *rest,
            )  # fmt: skip

        self._product(issue, E_region, B_region, to_region(C_region, "the accumulator").buffer, clear_accum, wg_wait)

    def wgmma_rs(
        self, A_region: Any, E_region: Any, B_region: Any, C_region: Any, clear_accum: Any = False, wg_wait: int = 0
    ) -> None:
        """wgmma_ss with A in a fragment."""
        a, c = (to_region(x, "an operand").buffer for x in (A_region, C_region))
        self.wgmma_fence_a(a)

        def issue(m: int, k: int, *rest: Any) -> None:
            warpgroupinstr.ptx_wgmma_sp_rs(
                self.accum_dtype, self.wgmma_prefix, self.b_transposed, self.a_dtype_abbrv, self.b_dtype_abbrv,
                self.accum_dtype_abbrv, a, self._a_start(m, k), *rest,
            )  # fmt: skip

        self._product(issue, E_region, B_region, c, clear_accum, wg_wait)
        self.wgmma_fence_a(a)

    def wgmma(
        self, A_region: Any, E_region: Any, B_region: Any, C_region: Any, clear_accum: Any = False, wg_wait: int = 0
    ) -> None:
        """wgmma_ss or, with A in a fragment, wgmma_rs."""
        held = to_region(A_region, "the first operand").buffer.space == "fragment"
        run = self.wgmma_rs if held else self.wgmma_ss
        run(A_region, E_region, B_region, C_region, clear_accum, wg_wait)

    def _product(self, issue: Any, E_region: Any, B_region: Any, c: Buffer, clear_accum: Any, pending: int) -> None:
        """`issue` takes what follows A in an instruction."""
        params, desc = self.compute_wgmma_b_desc_params(B_region), alloc_wgmma_desc()
        self.init_wgmma_b_desc(desc, B_region, params)
        meta = {
            (m, k): self._metadata(E_region, m, k)
            for m in range(self.wgmma_num_inst_m) for k in range(self.wgmma_num_k_atoms)
        }  # fmt: skip
        self.wgmma_fence_c(c)
        self.wgmma_arrive()
        for m, n, k in self._steps():
            issue(
                m, k, meta[m, k], 0, self.SPARSE_SELECTOR, desc, self._b_units(params, n, k), c, self._c_start(m, n),
                self._keeps(k, clear_accum),
            )  # fmt: skip
        self._close(pending)
        self.wgmma_fence_c(c)

    def _metadata(self, E_region: Any, m: int, k: int) -> Buffer:
        """What each thread gives of the metadata of one instruction: its warp has 16 of the 64 rows."""
        lane, _, warp_m = self.extract_thread_binding(self.get_thread_binding())
        first = (warp_m // WARPS * self.wgmma_num_inst_m + m) * ROWS + warp_m % WARPS * (ROWS // WARPS)
        made = alloc_local((self.local_size_e,), self.e_dtype)
        column = self._k(k, 0, self.e_factor)
        self._load(made, E_region, self._e, lane, (first, 1), column, self.e_transposed, matrices=False)
        return made
