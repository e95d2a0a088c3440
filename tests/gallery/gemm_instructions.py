"""Products whose author chooses the instructions: matrix instructions on arrays of each thread's own, and an operand
without half of its elements."""

from __future__ import annotations

from typing import Any

import numpy as np

import tileworkbench as tw
import tileworkbench.language as T
from tests.gallery.entry import Data, Entry, Expected, numbers
from tests.gallery.gemm import data
from tileworkbench.compat.emitters import TensorCoreIntrinEmitter
from tileworkbench.compat.layouts import make_swizzled_layout

HALF, FLOAT, META = "float16", "float32", "int16"


@tw.jit(target="cpu")
def by_warps(A, B, warps: int, tile: int, BK: int):
    """`warps` by `warps` warps, each with a `tile` by `tile` part of the result in its threads' arrays."""
    M, N, K = T.const("M, N, K")
    A: T.Tensor((M, K), HALF)
    B: T.Tensor((N, K), HALF)
    C = T.empty((M, N), HALF)
    size = warps * tile
    emitter = TensorCoreIntrinEmitter(
        a_dtype=HALF, b_dtype=HALF, accum_dtype=FLOAT, a_transposed=False, b_transposed=True, block_row_warps=warps,
        block_col_warps=warps, warp_row_tiles=tile, warp_col_tiles=tile, chunk=BK,
    )  # fmt: skip
    each = tile // 16
    with T.Kernel(T.ceildiv(N, size), T.ceildiv(M, size), threads=32 * warps * warps) as (bx, by):
        left = T.alloc_shared((size, BK), HALF)
        right = T.alloc_shared((size, BK), HALF)
        result = T.alloc_shared((size // 16, size // 16, 16, 16), HALF)
        mine_left = T.alloc_local((each * 8,), HALF)
        mine_right = T.alloc_local((each * 8,), HALF)
        mine = T.alloc_local((each * each * 8,), FLOAT)
        T.annotate_layout({tile: make_swizzled_layout(tile) for tile in (left, right)})
        T.use_swizzle(panel_size=10)
        T.clear(mine)
        for step in T.Pipelined(K // BK, num_stages=2):
            for i, k in T.Parallel(size, BK):
                left[i, k] = A[by * size + i, step * BK + k]
            for j, k in T.Parallel(size, BK):
                right[j, k] = B[bx * size + j, step * BK + k]
            for k in T.serial(BK // 16):
                emitter.ldmatrix_a(mine_left, left, k)
                emitter.ldmatrix_b(mine_right, right, k)
                emitter.mma(mine_left, mine_right, mine)
        emitter.stmatrix(mine, result)
        for i, j in T.Parallel(size, size):
            C[by * size + i, bx * size + j] = result[i // 16, j // 16, i % 16, j % 16]
    return C


def half_kept(M: int, N: int, K: int, BM: int, BN: int, BK: int, stages: int = 2, threads: int = 128) -> Any:
    """Of every four elements of a row of A two are there; E says which."""

    @T.prim_func
    def half_kept(
        A: T.Tensor((M, K // 2), HALF),
        E: T.Tensor((M, K // 16), META),
        B: T.Tensor((K, N), HALF),
        C: T.Tensor((M, N), FLOAT),
    ):
        with T.Kernel(T.ceildiv(N, BN), T.ceildiv(M, BM), threads=threads) as (bx, by):
            left = T.alloc_shared((BM, BK // 2), HALF)
            places = T.alloc_shared((BM, BK // 16), META)
            right = T.alloc_shared((BK, BN), HALF)
            acc = T.alloc_fragment((BM, BN), FLOAT)
            result = T.alloc_shared((BM, BN), FLOAT)
            T.clear(acc)
            T.disable_warp_group_reg_alloc()
            T.use_swizzle(panel_size=10)
            for step in T.Pipelined(T.ceildiv(K, BK), num_stages=stages):
                T.copy(A[by * BM, step * BK // 2], left)
                T.copy(E[by * BM, step * BK // 16], places)
                T.copy(B[step * BK, bx * BN], right)
                T.gemm_sp(left, places, right, acc, transpose_A=False, transpose_E=False, transpose_B=False)
            T.copy(acc, result)
            T.copy(result, C[by * BM, bx * BN])

    return half_kept


def half_kept_data(M: int, N: int, K: int, **_: Any) -> Data:
    rng = np.random.default_rng(3)
    held, b = numbers(1, (M, K // 4, 2), HALF, 3), numbers(2, (K, N), HALF, 3)
    places = np.sort(np.argsort(rng.random((M, K // 4, 4)), axis=-1)[..., :2], axis=-1)
    dense = np.zeros((M, K // 4, 4))
    np.put_along_axis(dense, places, held.astype(float), axis=-1)
    # A field of four bits a group, the lower place first; four fields a word, the first lowest.
    fields = (places[..., 0] | places[..., 1] << 2).reshape(M, -1, 4)
    words = (fields << np.arange(0, 16, 4)).sum(-1).astype(np.uint16).view(np.int16)
    truth = dense.reshape(M, K) @ b.astype(float)
    return Data({"A": held.reshape(M, -1), "E": words, "B": b}, {"C": Expected(truth)})


ENTRIES = [
    Entry("gemm by matrix instructions", ("gemm/example_gemm_intrinsics.py",), by_warps.compile,
          lambda **sizes: data(**sizes, trans_b=True),
          {"M": 64, "N": 128, "K": 96, "warps": 2, "tile": 32, "BK": 32},
          {"M": 4096, "N": 4096, "K": 4096, "warps": 2, "tile": 64, "BK": 32}),
    Entry("gemm with half of A", ("gemm_sp/example_gemm_sp.py",), half_kept, half_kept_data,
          {"M": 64, "N": 64, "K": 192, "BM": 64, "BN": 64, "BK": 64},
          {"M": 16384, "N": 16384, "K": 16384, "BM": 128, "BN": 256, "BK": 128, "threads": 256}),
]  # fmt: skip
