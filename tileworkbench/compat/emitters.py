"""TileLang's TensorCoreIntrinEmitter: a block's product written out as matrix instructions of its warps, on arrays of
the threads."""

from __future__ import annotations

from typing import Any

from ..ir.expr import Buffer
from ..language.matrixinstr import instruction
from ..layout.atoms import Atom
from .tirx import DataType
from .warptiles import WarpTiles

STEP_BITS = 256  # of K in one step: one row of a matrix instruction's operand in all lanes


class TensorCoreIntrinEmitter(WarpTiles):
    """The tile (block_row_warps · warp_row_tiles, block_col_warps · warp_col_tiles) in steps of `chunk` along K, by
    block_row_warps × block_col_warps warps. A is (M, K), or (K, M) with a_transposed; B is (K, N), or (N, K) with
    b_transposed. LanguageError for tiles that are not made of whole instructions."""

    def __init__(
        self, a_dtype: Any = "float16", b_dtype: Any = "float16", accum_dtype: Any = "float16",
        a_transposed: bool = False, b_transposed: bool = False, block_row_warps: int = 2, block_col_warps: int = 2,
        warp_row_tiles: int = 8, warp_col_tiles: int = 8, chunk: int = 16, reduce_k: int = 1,
        num_elems_per_byte: int = 1, is_m_first: bool | None = False, thread_var: Any = None,
    ) -> None:  # fmt: skip
        bits = DataType(a_dtype).bits
        self.chunk = chunk
        super().__init__(
            a_dtype, b_dtype, accum_dtype, a_transposed, b_transposed, block_row_warps, block_col_warps, warp_row_tiles,
            warp_col_tiles, chunk, reduce_k, num_elems_per_byte, is_m_first, thread_var, m_dim=8 if bits == 64 else 16,
            k_dim=min(STEP_BITS // bits, chunk),
        )  # fmt: skip

    def _instruction(self) -> Atom:
        return instruction(self.mma_prefix, self.a_dtype_abbrv, self.b_dtype_abbrv, self.accum_dtype_abbrv)

    def mma(self, A_local_buf: Buffer, B_local_buf: Buffer, C_local_buf: Buffer, k_inner: Any = 0) -> None:
        """The step's product, added to each thread's accumulators."""
        for i in range(self.warp_rows):
            for j in range(self.warp_cols):
                self.mma_atom(A_local_buf, B_local_buf, C_local_buf, i, j, k_inner)

    def mma_atom(
        self, A_local_buf: Buffer, B_local_buf: Buffer, C_local_buf: Buffer, inst_m_idx: Any, inst_n_idx: Any,
        k_inner: Any = 0,
    ) -> None:  # fmt: skip
        """The part of the step's product at (inst_m_idx, inst_n_idx) of the warp's tile."""
        self._products("T.ptx_mma", A_local_buf, B_local_buf, C_local_buf, inst_m_idx, inst_n_idx)
