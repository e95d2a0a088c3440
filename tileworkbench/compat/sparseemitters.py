"""TileLang's SparseTensorCoreIntrinEmitter: a block's product with a 2:4 sparse A written out as matrix instructions of
its warps, on arrays of the threads."""

from __future__ import annotations

from typing import Any

from ..errors import ShapeError
from ..ir.expr import Buffer
from ..language.dtypes import dtype
from ..language.matrixinstr import instruction, metadata_run, selector_of
from ..language.regions import to_region
from ..layout.atoms import Atom
from ..layout.mma_sp import metadata_fragment
from .sparse import get_e_factor
from .tirx import DataType
from .warptiles import WarpTiles

STEP_BITS = 512  # of K in one step, as if all elements of A were stored


class SparseTensorCoreIntrinEmitter(WarpTiles):
    """The tile (block_row_warps · warp_row_tiles, block_col_warps · warp_col_tiles) in steps along K, of which a block
    has `warp_k`, by block_row_warps × block_col_warps warps. A is (M, K / 2), or (K / 2, M) with a_transposed; its
    metadata E of e_dtype is (M, K / e_factor), or (K / e_factor, M) with e_transposed; B is (K, N), or (N, K) with
    b_transposed. LanguageError for tiles that are not made of whole instructions, LayoutError for metadata of 32 bits
    with elements of more than 8."""

    SPARSE_FACTOR = 2
    SPARSE_SELECTOR = 0  # the lanes that the others copy: all hold the metadata

    def __init__(
        self, a_dtype: Any = "float16", e_dtype: Any = "uint8", b_dtype: Any = "float16", accum_dtype: Any = "float16",
        a_transposed: bool = False, b_transposed: bool = False, e_transposed: bool = False, block_row_warps: int = 2,
        block_col_warps: int = 2, warp_row_tiles: int = 8, warp_col_tiles: int = 8, warp_k: int = 16,
        reduce_k: int = 1, num_elems_per_byte: int = 1, is_m_first: bool | None = False, thread_var: Any = None,
    ) -> None:  # fmt: skip
        bits = DataType(a_dtype).bits
        self.e_dtype, self.e_transposed, self.warp_k = e_dtype, e_transposed, warp_k
        self.e_factor = get_e_factor(a_dtype, e_dtype)
        super().__init__(
            a_dtype, b_dtype, accum_dtype, a_transposed, b_transposed, block_row_warps, block_col_warps, warp_row_tiles,
            warp_col_tiles, warp_k, reduce_k, num_elems_per_byte, is_m_first, thread_var, m_dim=16,
            k_dim=STEP_BITS // bits,
        )  # fmt: skip
        self._e = metadata_fragment(bits, dtype(e_dtype).bits)
        self.local_size_e = self._e.registers

    def _instruction(self) -> Atom:
        types = (self.a_dtype_abbrv, self.b_dtype_abbrv, self.accum_dtype_abbrv)
        return instruction(self.mma_prefix, *types, sparse=True)

    def ldmatrix_e(self, E_local_buf: Buffer, E_shared_buf: Any, ki: Any, rk: Any = 0) -> None:
        """The metadata of step `ki` of A for this warp into each thread's array."""
        lane, _, warp_m = self.extract_thread_binding(self.get_thread_binding())
        for buffer in (E_local_buf, to_region(E_shared_buf, "the shared metadata").buffer):
            if buffer.dtype.bits != dtype(self.e_dtype).bits or not buffer.dtype.is_int:
                raise ShapeError(
                    f"metadata `{buffer.name}` of {buffer.dtype}", rule=f"the emitter's metadata is {self.e_dtype}",
                    fix="give the emitter the metadata's dtype as e_dtype",
                )  # fmt: skip
        rows = (warp_m * self.warp_row_tiles, self.warp_rows)
        k = self._k(ki, rk, self.e_factor)
        self._load(E_local_buf, E_shared_buf, self._e, lane, rows, k, self.e_transposed, matrices=False)

    def mma_sp(
        self, A_local_buf: Buffer, E_local_buf: Buffer, B_local_buf: Buffer, C_local_buf: Buffer, k_inner: Any = 0
    ) -> None:
        """The step's product, added to each thread's accumulators."""
        selector = selector_of(self.SPARSE_SELECTOR, self.atom)
        for i in range(self.warp_rows):
            meta = metadata_run(E_local_buf, i * self.local_size_e)
            for j in range(self.warp_cols):
                self._products("T.ptx_mma_sp", A_local_buf, B_local_buf, C_local_buf, i, j, meta, selector)
