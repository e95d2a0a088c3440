"""What TileLang's emitters of warpgroup products share: a tile of C over a block's warpgroups, descriptors of operands
in swizzled shared tiles, layouts of fragments. Layouts and places are this package's; the attributes and methods are
TileLang's."""

from __future__ import annotations

import math
from typing import Any

from ..errors import LanguageError
from ..ir.expr import Buffer, as_expr, compare, logical, logical_not, truth
from ..ir.stmt import Region
from ..language import barrier
from ..language.matrixdescriptors import MatrixDescriptor, increase_descriptor_offset, initialize_wgmma_descriptor
from ..language.pointers import access_ptr
from ..language.regions import to_region
from ..layout.transform import repeat, replicate
from ..layout.wgmma import wgmma_a_fragment, wgmma_accumulator_fragment
from .fragments import with_methods
from .tirx import DataType
from .warpgroupoperand import WGMMADescriptorParams, operand_params
from .warptiles import WarpTiles

ROWS, WARPS = 64, 4  # of one instruction, and of a warpgroup


class WarpgroupTiles(WarpTiles):
    """The tile (block_row_warps · warp_row_tiles, block_col_warps · warp_col_tiles) by wgmma, `depth` along K. Warps
    are taken four at a time: a warpgroup has 4 · warp_row_tiles of the rows. LanguageError for other tiles."""

    a_shared_layout: Any = None
    b_shared_layout: Any = None

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        rows = WARPS * self.warp_row_tiles
        if self.block_row_warps % WARPS or rows % ROWS or self.is_m_first or self.depth % self.k_dim:
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

    def _assign_a_shared_layout(self, layout: Any) -> WarpgroupTiles:
        self.a_shared_layout = layout
        return self

    def _assign_b_shared_layout(self, layout: Any) -> WarpgroupTiles:
        self.b_shared_layout = layout
        return self

    @property
    def _a_step(self) -> int:
        """Elements of a row of A that are stored for one step."""
        return int(self.k_dim // self.SPARSE_FACTOR)

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
        return int(self.depth // self.k_dim)

    @property
    def wgmma_a_regs(self) -> int:
        """32-bit registers of each thread that hold A, where it is a fragment."""
        return self.warp_row_tiles * (self.depth // self.SPARSE_FACTOR) // 32 * self._bits(self.a_dtype) // 32

    @property
    def wgmma_accum_regs(self) -> int:
        """32-bit registers of each thread that hold the accumulators."""
        return self.warp_row_tiles * self.warp_col_tiles // 32 * self._bits(self.accum_dtype) // 32

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
        return operand_params(A_region, self.a_shared_layout, not self.a_transposed, self._a_step)

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

    def _place(self) -> tuple[Any, Any]:
        """The warpgroup's number along M, and the warp's along N."""
        _, column, row = self.extract_thread_binding(self.get_thread_binding())
        return row // WARPS, column

    def _a_units(self, params: WGMMADescriptorParams, m: Any, ki: Any) -> Any:
        first = (self._place()[0] * self.wgmma_num_inst_m + m) * ROWS
        return params.units(first, ki * self._a_step)

    def _a_start(self, m: Any, ki: Any) -> Any:
        return (ki * self.wgmma_num_inst_m + m) * wgmma_a_fragment(self.atom.a_dtype).registers

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
