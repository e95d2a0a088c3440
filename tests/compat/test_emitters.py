"""Products written out as matrix instructions, and where their operands lie."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

import tileworkbench.language as T
from tests.end_to_end.harness import NVIDIA, everywhere, instructions, lowered
from tileworkbench.compat import alias_tilelang, mmalayouts
from tileworkbench.compat.emitters import TensorCoreIntrinEmitter
from tileworkbench.compat.intrinsics import make_mma_swizzle_layout
from tileworkbench.errors import LanguageError, LayoutError, ShapeError
from tileworkbench.ir.instr import LdMatrix, Mma


def product(M, N, K, dtype, accum, ta=False, tb=True, tiles=(32, 32), chunk=32, swizzled=True, four=True, **options):
    emitter = TensorCoreIntrinEmitter(
        a_dtype=dtype, b_dtype=dtype, accum_dtype=accum, a_transposed=ta, b_transposed=tb, block_row_warps=2,
        block_col_warps=1, warp_row_tiles=tiles[0], warp_col_tiles=tiles[1], chunk=chunk, **options,
    )  # fmt: skip
    BM, BN, x, y = 2 * tiles[0], tiles[1], emitter.micro_size_x, emitter.micro_size_y
    shape_a, shape_b = (chunk, BM) if ta else (BM, chunk), (BN, chunk) if tb else (chunk, BN)

    @T.prim_func
    def kernel(
        A: T.Tensor((K, M) if ta else (M, K), dtype),
        B: T.Tensor((N, K) if tb else (K, N), dtype),
        C: T.Tensor((M, N), accum),
    ):
        with T.Kernel(T.ceildiv(N, BN), T.ceildiv(M, BM), threads=emitter.threads) as (bx, by):
            a = T.alloc_shared(shape_a, dtype)
            b = T.alloc_shared(shape_b, dtype)
            c = T.alloc_shared((BM // x, BN // y, x, y) if four else (BM, BN), accum)
            a_local = T.alloc_local((emitter.warp_rows * emitter.local_size_a,), dtype)
            b_local = T.alloc_local((emitter.warp_cols * emitter.local_size_b,), dtype)
            c_local = T.alloc_local((emitter.warp_rows * emitter.warp_cols * emitter.local_size_out,), accum)
            if swizzled:
                T.annotate_layout({a: make_mma_swizzle_layout(a), b: make_mma_swizzle_layout(b)})
            T.clear(c_local)
            for ko in T.Pipelined(K // chunk, num_stages=2):
                if ta:
                    T.copy(A[ko * chunk, by * BM], a)
                else:
                    T.copy(A[by * BM, ko * chunk], a)
                if tb:
                    T.copy(B[bx * BN, ko * chunk], b)
                else:
                    T.copy(B[ko * chunk, bx * BN], b)
                for ki in T.serial(chunk // emitter.micro_size_k):
                    emitter.ldmatrix_a(a_local, a, ki)
                    emitter.ldmatrix_b(b_local, b, ki)
                    emitter.mma(a_local, b_local, c_local)
            emitter.stmatrix(c_local, c)
            for i, j in T.Parallel(BM, BN):
                if four:
                    C[by * BM + i, bx * BN + j] = c[i // x, j // y, i % x, j % y]
                else:
                    C[by * BM + i, bx * BN + j] = c[i, j]

    return kernel


KINDS = {"float16": np.float16, "bfloat16": ml_dtypes.bfloat16, "int8": np.int8, "float32": np.float32,
         "float64": np.float64, "float8_e4m3fn": ml_dtypes.float8_e4m3fn}  # fmt: skip


def checked(M, N, K, dtype, accum, targets=NVIDIA, **options):
    rng = np.random.default_rng(1)
    ta, tb = options.get("ta", False), options.get("tb", True)
    a = rng.integers(-4, 5, (K, M) if ta else (M, K)).astype(KINDS[dtype])
    b = rng.integers(-4, 5, (N, K) if tb else (K, N)).astype(KINDS[dtype])
    x, y = a.astype(np.float64), b.astype(np.float64)
    truth = (x.T if ta else x) @ (y.T if tb else y)
    return everywhere(product(M, N, K, dtype, accum, **options), [a, b], truth, targets)


@pytest.mark.parametrize(("ta", "tb"), [(False, True), (True, False), (True, True), (False, False)])
def test_operands_stored_either_way(ta, tb):
    kernels = checked(64, 32, 64, "float16", "float32", ta=ta, tb=tb, swizzled=False)
    assert instructions(kernels["sm_90a"], LdMatrix) and instructions(kernels["sm_90a"], Mma)


@pytest.mark.parametrize(
    ("dtype", "accum", "chunk", "targets"),
    [
        ("bfloat16", "float32", 32, NVIDIA), ("float16", "float16", 32, NVIDIA), ("int8", "int32", 64, NVIDIA),
        ("float32", "float32", 16, NVIDIA), ("float64", "float64", 8, NVIDIA),
        ("float8_e4m3fn", "float32", 32, ["sm_90a"]),
    ],
)  # fmt: skip
def test_types(dtype, accum, chunk, targets):
    checked(64, 32, 128 if chunk == 64 else 64, dtype, accum, targets, chunk=chunk, swizzled=chunk != 8)


def test_bytes_across_the_rows_are_loaded_one_by_one():
    kernels = checked(64, 32, 64, "int8", "int32", tb=False, chunk=32, swizzled=False)
    loads = instructions(kernels["sm_90a"], LdMatrix)
    assert loads and all(x.dst.buffer.name.startswith("a_local") for x in loads)


def test_narrow_tiles_flat_results_and_warps_along_n_first():
    checked(64, 24, 64, "float16", "float32", tiles=(32, 24), four=False, is_m_first=True)


def test_single_instructions_in_loops_of_the_kernel():
    emitter = TensorCoreIntrinEmitter("float16", "float16", "float32", False, True, 1, 1, 32, 16, 16)

    @T.prim_func
    def kernel(A: T.Tensor((32, 16), "float16"), B: T.Tensor((16, 16), "float16"), C: T.Tensor((32, 16), "float32")):
        with T.Kernel(1, threads=32):
            a = T.alloc_shared((32, 16), "float16")
            b = T.alloc_shared((16, 16), "float16")
            a_local = T.alloc_local((2 * emitter.local_size_a,), "float16")
            b_local = T.alloc_local((emitter.local_size_b,), "float16")
            c_local = T.alloc_local((2 * emitter.local_size_out,), "float32")
            T.copy(A, a)
            T.copy(B, b)
            T.clear(c_local)
            emitter.ldmatrix_a(a_local, a[0:32, 0:16], 0)
            emitter.ldmatrix_b(b_local, b, 0)
            for i, j in T.grid(emitter.mma_num_inst_m, emitter.mma_num_inst_n):
                emitter.mma_atom(a_local, b_local, c_local, i, j)
            emitter.stmatrix(c_local, C, 0, 0)

    rng = np.random.default_rng(2)
    a, b = (rng.integers(-4, 5, s).astype(np.float16) for s in ((32, 16), (16, 16)))
    everywhere(kernel, [a, b], a.astype(np.float64) @ b.T.astype(np.float64), NVIDIA)


def test_instructions_by_their_own_names():
    @T.prim_func
    def kernel(A: T.Tensor((16, 16), "float16"), B: T.Tensor((8, 16), "float16"), C: T.Tensor((16, 8), "float32")):
        with T.Kernel(1, threads=32):
            t = T.get_thread_binding()
            a = T.alloc_shared((16, 16), "float16")
            b = T.alloc_shared((8, 16), "float16")
            x = T.alloc_local((8,), "float16")
            y = T.alloc_local((4,), "float16")
            z = T.alloc_local((4,), "float32")
            T.copy(A, a)
            T.copy(B, b)
            T.clear(z)
            T.ptx_ldmatrix(False, 4, T.access_ptr(a[t % 16, t // 16 * 8], "r"), T.access_ptr(x[0], "w"))
            T.ptx_ldmatrix(False, 2, T.access_ptr(b[t % 8, t // 8 % 2 * 8], "r"), T.access_ptr(y[0], "w"))
            T.ptx_mma("float32", "m16n8k16", "row", "col", "fp16", "fp16", "fp32", x.data, 0, y.data, 0, z.data, 0)
            for e in T.unroll(4):
                C[t // 4 + e // 2 * 8, t % 4 * 2 + e % 2] = z[e]

    rng = np.random.default_rng(3)
    a, b = (rng.integers(-4, 5, s).astype(np.float16) for s in ((16, 16), (8, 16)))
    everywhere(kernel, [a, b], a.astype(np.float64) @ b.T.astype(np.float64), NVIDIA)


def test_mistakes_are_said():
    with pytest.raises(LanguageError, match="a warp's tile of 24"):
        TensorCoreIntrinEmitter(warp_row_tiles=24, warp_col_tiles=16)
    with pytest.raises(ShapeError, match="m16n8k16 of fp16 and int8"):
        TensorCoreIntrinEmitter("float16", "int8", "float32", warp_row_tiles=16, warp_col_tiles=16)

    @T.prim_func
    def part(A: T.Tensor((16, 16), "float16"), B: T.Tensor((8,), "float16")):
        with T.Kernel(1, threads=32):
            t = T.get_thread_binding()
            a = T.alloc_shared((16, 16), "float16")
            x = T.alloc_local((8,), "float16")
            T.copy(A, a)
            if t < 7:
                T.ptx_ldmatrix(False, 4, T.access_ptr(a[t, 0], "r"), T.access_ptr(x[0], "w"))
            B[0] = x[0]

    with pytest.raises(LanguageError, match="only some threads of a warp"):
        lowered(part, "sm_90a")


# Where the elements of m16n8k16 lie, from PTX's tables: group = lane / 4, quad = lane % 4.
def test_the_fragments_of_float16_are_ptxs():
    for lane in range(32):
        group, quad = divmod(lane, 4)
        a = [(group + 8 * (i // 2 % 2), quad * 2 + i % 2 + 8 * (i // 4)) for i in range(8)]
        assert [mmalayouts.NAMES["mma_load_a_32x8_to_shared_16x16_layout"](lane, i) for i in range(8)] == a
        b = [(group + 8 * (i // 4), quad * 2 + i % 2 + 8 * (i // 2 % 2)) for i in range(8)]  # two instructions
        assert [mmalayouts.NAMES["mma_load_b_32x8_to_shared_16x16_layout"](lane, i) for i in range(8)] == b
        c = [(group + 8 * (i // 2 % 2), quad * 2 + i % 2 + 8 * (i // 4)) for i in range(8)]
        assert [mmalayouts.mma_store_index_map(lane, i) for i in range(8)] == c
        assert [mmalayouts.NAMES["shared_16x16_to_mma_32x8_layout_sr_a"](*x) for x in a] == [
            (lane, i) for i in range(8)
        ]
        assert mmalayouts.get_ldmatrix_offset("A", lane, 0, 16) == (lane % 16, lane // 16 * 8)
        assert mmalayouts.get_ldmatrix_offset("B", lane, 0, 16, "float16", True) == (
            lane // 16 * 8 + lane % 8, lane // 8 % 2 * 8,
        )  # fmt: skip
    with pytest.raises(LayoutError, match="transposed"):
        mmalayouts.get_ldmatrix_offset("A", 0, 0, 16, "int8", True)


def test_layouts_of_fragments():
    emitter = TensorCoreIntrinEmitter("float16", "float16", "float32", False, True, 2, 2, 32, 32, 32)
    seen = {}

    @T.prim_func
    def kernel(A: T.Tensor((64, 32), "float16")):
        with T.Kernel(1, threads=128):
            a = T.alloc_fragment((64, 32), "float16")
            c = T.alloc_fragment((64, 64), "float32")
            seen["a"], seen["c"] = emitter.make_mma_load_layout(a), emitter.make_mma_store_layout(c)
            T.copy(A, a)
            T.clear(c)

    # thread 37: warp 1 (second along M), lane 5 = group 1, quad 1
    assert seen["c"].coords(37, 0) == (33, 2) and seen["c"].coords(37, 8) == (33, 18)
    assert seen["a"].coords(37, 0) == (33, 2) and seen["a"].coords(37, 8) == (49, 2)
    assert seen["a"].coords(37, 16) == (33, 18) and seen["a"].coords(64 + 37, 16) == (33, 18)
    index = emitter.get_store_index_map()
    assert index.map_indices([5, 3]) == [9, 3] and index.inverse([32, 8]).map_indices([9, 3]) == [5, 3]


def test_tilelangs_paths():
    with alias_tilelang():
        from tilelang.cuda.intrinsics import TensorCoreIntrinEmitter as first
        from tilelang.cuda.intrinsics.layout.mma_layout import shared_16x16_to_mma_32x8_layout_sr_b
        from tilelang.cuda.intrinsics.macro.mma_macro_generator import INT4TensorCoreIntrinEmitter as packed
        from tilelang.intrinsics import get_ldmatrix_offset, mma_store_index_map
        from tvm.tirx import IndexMap

    assert first is packed is TensorCoreIntrinEmitter and mma_store_index_map(0, 0) == (0, 0)
    assert shared_16x16_to_mma_32x8_layout_sr_b(8, 0) == (0, 4) and get_ldmatrix_offset("A", 17, 0, 16) == (1, 8)
    assert IndexMap.from_func(lambda i, j: (j, i)).map_indices([1, 2]) == [2, 1]
