"""TileLang's emitter of warpgroup products: a block's product written out as wgmma, with operands in swizzled shared
tiles or A in a fragment. Layouts and places are this package's; the attributes and methods are TileLang's."""

from __future__ import annotations

import math
from typing import Any

from ..errors import LanguageError
from ..ir.expr import Buffer, as_expr, compare, logical, logical_not, truth
from ..ir.stmt import Region
from ..language import barrier, warpgroupinstr
from ..language.matrixdescriptors import (
    MatrixDescriptor,
    alloc_wgmma_desc,
    increase_descriptor_offset,
    initialize_wgmma_descriptor,
)
from ..language.pointers import access_ptr
from ..language.regions import to_region
from ..layout.transform import repeat, replicate
from ..layout.wgmma import wgmma_a_fragment, wgmma_accumulator_fragment
from .emitters import TensorCoreIntrinEmitter
from .fragments import with_methods
from .tirx import DataType
from .warpgroupoperand import WGMMADescriptorParams, operand_params

ROWS, WARPS = 64, 4  # of one instruction, and of a warpgroup


class WGMMATensorCoreIntrinEmitter(TensorCoreIntrinEmitter):
    """The tile (block_row_warps · warp_row_tiles, block_col_warps · warp_col_tiles) by wgmma, `chunk` along K. Warps
    are taken four at a time: a warpgroup has 4 · warp_row_tiles of the rows. LanguageError for other tiles."""

    a_shared_layout: Any = None
    b_shared_layout: Any = None

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        rows = WARPS * self.warp_row_tiles
        if self.block_row_warps % WARPS or rows % ROWS or self.is_m_first or self.chunk % self.k_dim:
            raise LanguageError(
                f"a warpgroup's tile of {rows} rows by {self.block_row_warps} warps along M",
                rule="four warps along M have 64 rows each, and K is made of whole steps",
                fix="choose block_row_warps and warp_row_tiles so, and leave is_m_first out",
            )
        columns = self.warp_col_tiles
        step = 16 if columns % 16 == 0 else 8
        self.wgmma_inst_m = ROWS
        self.wgmma_inst_n = next((n for n in range(256, 0, -step) if columns % n == 0), math.gcd(columns, 256))
        self.wgmma_prefix = f"m{ROWS}n{self.wgmma_inst_n}k{self.k_dim}"

    def _assign_a_shared_layout(self, layout: Any) -> WGMMATensorCoreIntrinEmitter:
        self.a_shared_layout = layout
        return self

    def _assign_b_shared_layout(self, layout: Any) -> WGMMATensorCoreIntrinEmitter:
        self.b_shared_layout = layout
        return self

    @property
    def wgmma_num_inst_m(self) -> int:
        """Instructions of a warpgroup along M."""
        return WARPS * self.warp_row_tiles // ROWS

    @property
    def wgmma_num_inst_n(self) -> int:
        """Instructions of a warpgroup along N."""
        return int(self.warp_col_tiles // self.wgmma_inst_n)

    @property
    def wgmma_num_k_atoms(self) -> int:
        """Steps along K."""
        return int(self.chunk // self.k_dim)

    @property
    def wgmma_a_regs(self) -> int:
        """32-bit registers of each thread that hold A, where it is a fragment."""
        return self.warp_row_tiles * self.chunk // 32 * self._bits(self.a_dtype) // 32

    @property
    def wgmma_accum_regs(self) -> int:
        """32-bit registers of each thread that hold the accumulators."""
        return self.warp_row_tiles * self.warp_col_tiles // 32 * self._bits(self.accum_dtype) // 32

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

    def _steps(self) -> list[tuple[int, int, int]]:
        m, n, k = self.wgmma_num_inst_m, self.wgmma_num_inst_n, self.wgmma_num_k_atoms
        return [(i, j, s) for j in range(n) for i in range(m) for s in range(k)]

    def _close(self, pending: int) -> None:
        self.wgmma_commit()
        if pending >= 0:
            self.wgmma_wait(pending)

    # --- descriptors --------------------------------------------------------------------------------------------------
    def compute_wgmma_a_desc_params(self, A_region: Any) -> WGMMADescriptorParams:
        """What the descriptor of A says."""
        return operand_params(A_region, self.a_shared_layout, not self.a_transposed, self.k_dim)

    def compute_wgmma_b_desc_params(self, B_region: Any) -> WGMMADescriptorParams:
        """What the descriptor of B says."""
        return operand_params(B_region, self.b_shared_layout, self.b_transposed, self.k_dim)

    def init_wgmma_a_desc(self, desc_a: MatrixDescriptor, A_region: Any, a_params: WGMMADescriptorParams) -> None:
        """Initialises the descriptor of A."""
        self._init(desc_a, to_region(A_region, "a shared operand"), a_params)

    def init_wgmma_b_desc(self, desc_b: MatrixDescriptor, B_region: Any, b_params: WGMMADescriptorParams) -> None:
        """Initialises the descriptor of B."""
        self._init(desc_b, to_region(B_region, "a shared operand"), b_params)

    def _init(self, desc: MatrixDescriptor, region: Region, params: WGMMADescriptorParams) -> None:
        first = Region(region.buffer, (*region.starts[:-2], as_expr(0), as_expr(0)), (1,) * region.buffer.rank)
        initialize_wgmma_descriptor(desc, access_ptr(first, "r"), params.swizzle_mode, params.leading_byte_offset,
                                    params.stride_byte_offset)  # fmt: skip
        if params.slice_byte_offset:
            increase_descriptor_offset(desc, params.slice_byte_offset)

    # --- order --------------------------------------------------------------------------------------------------------
    def wgmma_fence_a(self, A_buf: Buffer) -> None:
        """T.warpgroup_fence_operand of A."""
        barrier.warpgroup_fence_operand(A_buf)

    def wgmma_fence_c(self, C_buf: Buffer) -> None:
        """T.warpgroup_fence_operand of the accumulators."""
        barrier.warpgroup_fence_operand(C_buf)

    def wgmma_arrive(self) -> None:
        """T.warpgroup_arrive."""
        barrier.warpgroup_arrive()

    def wgmma_commit(self) -> None:
        """T.warpgroup_commit_batch."""
        barrier.warpgroup_commit_batch()

    def wgmma_wait(self, n: int = 0) -> None:
        """T.warpgroup_wait."""
        barrier.warpgroup_wait(n)

    # --- single instructions ------------------------------------------------------------------------------------------
    def wgmma_ss_atom(
        self, desc_a: MatrixDescriptor, desc_b: MatrixDescriptor, C_buf: Buffer, inst_m_idx: Any, inst_n_idx: Any,
        ki: Any, a_params: WGMMADescriptorParams, b_params: WGMMADescriptorParams, clear_accum: Any = False,
    ) -> None:  # fmt: skip
        """The instruction (inst_m_idx, inst_n_idx) of step `ki`, both operands in shared memory."""
        group = self._place()[0]
        first = (group * self.wgmma_num_inst_m + inst_m_idx) * ROWS
        warpgroupinstr.ptx_wgmma_ss(
            self.accum_dtype, self.wgmma_prefix, a_params.is_k_major, b_params.is_k_major, self.a_dtype_abbrv,
            self.b_dtype_abbrv, self.accum_dtype_abbrv, desc_a, a_params.units(first, ki * self.k_dim), desc_b,
            self._b_units(b_params, inst_n_idx, ki), C_buf, self._c_start(inst_m_idx, inst_n_idx),
            self._keeps(ki, clear_accum),
        )  # fmt: skip

    def wgmma_rs_atom(
        self, A_buf: Buffer, desc_b: MatrixDescriptor, C_buf: Buffer, inst_m_idx: Any, inst_n_idx: Any, ki: Any,
        b_params: WGMMADescriptorParams, clear_accum: Any = False,
    ) -> None:  # fmt: skip
        """The instruction (inst_m_idx, inst_n_idx) of step `ki`, A in registers."""
        held = wgmma_a_fragment(self.atom.a_dtype).registers
        start = (ki * self.wgmma_num_inst_m + inst_m_idx) * held
        warpgroupinstr.ptx_wgmma_rs(
            self.accum_dtype, self.wgmma_prefix, b_params.is_k_major, self.a_dtype_abbrv, self.b_dtype_abbrv,
            self.accum_dtype_abbrv, A_buf, start, desc_b, self._b_units(b_params, inst_n_idx, ki), C_buf,
            self._c_start(inst_m_idx, inst_n_idx), self._keeps(ki, clear_accum),
        )  # fmt: skip

    def _place(self) -> tuple[Any, Any]:
        """The warpgroup's number along M, and the warp's along N."""
        _, column, row = self.extract_thread_binding(self.get_thread_binding())
        return row // WARPS, column

    def _b_units(self, params: WGMMADescriptorParams, n: Any, ki: Any) -> Any:
        first = (self._place()[1] * self.wgmma_num_inst_n + n) * self.wgmma_inst_n
        return params.units(first, ki * self.k_dim)

    def _c_start(self, m: Any, n: Any) -> Any:
        return m * (self.warp_col_tiles // 2) + n * (self.wgmma_inst_n // 2)

    def _keeps(self, ki: Any, clear_accum: Any) -> Any:
        """Old sums are left out by the first step of a product that clears."""
        later = compare("ne", as_expr(ki), 0)
        return logical("lor", later, logical_not(truth(as_expr(clear_accum))))

    # --- layouts ------------------------------------------------------------------------------------------------------
    def make_mma_store_layout(self, local_buf: Buffer) -> Any:
        """The fragment of C: a warpgroup's instructions along M one after the other in each thread."""
        groups, columns = self.block_row_warps // WARPS, self.block_col_warps
        self._require_fragment(local_buf, (self.block_row_warps * self.warp_row_tiles, columns * self.warp_col_tiles))
        own = repeat(wgmma_accumulator_fragment(self.warp_col_tiles), 0, self.wgmma_num_inst_m, "reg")
        return with_methods(repeat(repeat(own, 0, groups, "thread"), 1, columns, "thread"))

    def make_mma_load_layout(self, local_buf: Buffer, matrix: str = "A") -> Any:
        """The fragment of A: a warpgroup's instructions along M, then steps along K; the same in warpgroups side by
        side."""
        if matrix != "A" or self.a_transposed:
            raise LanguageError(
                f"a fragment of {matrix} for a warpgroup product", rule="only a K-major A may be in registers",
                fix="keep the other operand in shared memory",
            )  # fmt: skip
        groups, steps = self.block_row_warps // WARPS, self.wgmma_num_k_atoms
        own = repeat(wgmma_a_fragment(self.atom.a_dtype), 0, self.wgmma_num_inst_m, "reg")
        whole = replicate(repeat(repeat(own, 1, steps, "reg"), 0, groups, "thread"), self.block_col_warps)
        self._require_fragment(local_buf, whole.shape)
        return with_methods(whole)

    @staticmethod
    def _bits(dtype: Any) -> int:
        return int(DataType(dtype).bits)
