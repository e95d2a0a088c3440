"""Products with a 2:4 sparse operand written out as matrix instructions, by TileLang's emitter."""

from __future__ import annotations

import numpy as np
import pytest

import tileworkbench.language as T
from tests.end_to_end.harness import NVIDIA, everywhere, instructions, lowered
from tests.end_to_end.test_sparse import operands
from tileworkbench.compat import alias_tilelang
from tileworkbench.compat.intrinsics import make_mma_swizzle_layout
from tileworkbench.compat.sparseemitters import SparseTensorCoreIntrinEmitter
from tileworkbench.errors import LanguageError, LayoutError, ShapeError, TargetError
from tileworkbench.ir.instr import LdMatrix, MmaSparse


def product(
    M, N, K, dtype="float16", meta="int16", accum="float32", ta=False, te=False, tb=True, tiles=(32, 32), depth=None,
    swizzled=True, b_dtype=None, warps=(2, 1), **options,
):  # fmt: skip
    other = b_dtype or dtype
    emitter = SparseTensorCoreIntrinEmitter(
        a_dtype=dtype, e_dtype=meta, b_dtype=other, accum_dtype=accum, a_transposed=ta, b_transposed=tb,
        e_transposed=te, block_row_warps=warps[0], block_col_warps=warps[1], warp_row_tiles=tiles[0],
        warp_col_tiles=tiles[1], warp_k=depth or 2 * (512 // T.dtype(dtype).bits), **options,
    )  # fmt: skip
    BM, BN, BK, factor = warps[0] * tiles[0], warps[1] * tiles[1], emitter.warp_k, emitter.e_factor

    def turned(flag, rows, columns):
        return (columns, rows) if flag else (rows, columns)

    @T.prim_func
    def kernel(
        A: T.Tensor(turned(ta, M, K // 2), dtype),
        E: T.Tensor(turned(te, M, K // factor), meta),
        B: T.Tensor(turned(not tb, N, K), other),
        C: T.Tensor((M, N), accum),
    ):
        with T.Kernel(T.ceildiv(N, BN), T.ceildiv(M, BM), threads=emitter.threads) as (bx, by):
            a = T.alloc_shared(turned(ta, BM, BK // 2), dtype)
            e = T.alloc_shared(turned(te, BM, BK // factor), meta)
            b = T.alloc_shared(turned(not tb, BN, BK), other)
            c = T.alloc_shared((BM, BN), accum)
            a_local = T.alloc_local((emitter.warp_rows * emitter.local_size_a,), dtype)
            e_local = T.alloc_local((emitter.warp_rows * emitter.local_size_e,), meta)
            b_local = T.alloc_local((emitter.warp_cols * emitter.local_size_b,), other)
            c_local = T.alloc_local((emitter.warp_rows * emitter.warp_cols * emitter.local_size_out,), accum)
            if swizzled:
                T.annotate_layout({a: make_mma_swizzle_layout(a), b: make_mma_swizzle_layout(b)})
            T.clear(c_local)
            for ko in T.Pipelined(K // BK, num_stages=2):
                T.copy(A[turned(ta, by * BM, ko * (BK // 2))], a)
                T.copy(E[turned(te, by * BM, ko * (BK // factor))], e)
                T.copy(B[turned(not tb, bx * BN, ko * BK)], b)
                for ki in T.serial(BK // emitter.micro_size_k):
                    emitter.ldmatrix_a(a_local, a, ki)
                    emitter.ldmatrix_e(e_local, e, ki)
                    emitter.ldmatrix_b(b_local, b, ki)
                    emitter.mma_sp(a_local, e_local, b_local, c_local)
            emitter.stmatrix(c_local, c)
            T.copy(c, C[by * BM, bx * BN])

    return kernel


def checked(M, N, K, targets=NVIDIA, **options):
    dtype, meta = options.get("dtype", "float16"), options.get("meta", "int16")
    a, e, b, truth = operands(M, N, K, dtype, meta)
    given = [x.T if flag else x for x, flag in ((a, options.get("ta")), (e, options.get("te")))]
    given.append(b.T if options.get("tb", True) else b)
    return everywhere(product(M, N, K, **options), [np.ascontiguousarray(x) for x in given], truth, targets)


@pytest.mark.parametrize(
    ("ta", "te", "tb"), [(False, False, True), (True, True, False), (True, False, True), (False, True, False)]
)
def test_operands_stored_either_way(ta, te, tb):
    kernels = checked(128, 64, 128, ta=ta, te=te, tb=tb)
    assert instructions(kernels["sm_90a"], LdMatrix) and instructions(kernels["sm_90a"], MmaSparse)


# Where the lanes' metadata comes from depends on the widths of operands and metadata alone.
@pytest.mark.parametrize(
    ("dtype", "meta", "accum", "targets"),
    [
        ("float16", "uint8", "float16", NVIDIA), ("bfloat16", "uint16", "float32", NVIDIA),
        ("float32", "int8", "float32", NVIDIA), ("float32", "int16", "float32", NVIDIA),
        ("int8", "int8", "int32", NVIDIA), ("uint8", "int16", "int32", NVIDIA), ("int8", "int32", "int32", NVIDIA),
        ("float8_e4m3fn", "uint8", "float32", ["sm_90a"]),
    ],
)  # fmt: skip
def test_types(dtype, meta, accum, targets):
    depth = 2 * (512 // T.dtype(dtype).bits)
    checked(64, 32, 2 * depth, targets, dtype=dtype, meta=meta, accum=accum)


@pytest.mark.parametrize("dtype", ["int8", "float32"])
def test_elements_across_the_rows_are_loaded_one_by_one(dtype):
    accum = "int32" if dtype == "int8" else "float32"
    kernels = checked(64, 32, 128, ("sm_80",), dtype=dtype, accum=accum, ta=True, te=True, tb=False, swizzled=False)
    assert not instructions(kernels["sm_80"], LdMatrix)


def test_several_warps_narrow_tiles_and_warps_along_n_first():
    checked(64, 48, 64, tiles=(32, 24), warps=(2, 2))
    checked(64, 32, 64, tiles=(16, 8), warps=(4, 2), is_m_first=True, swizzled=False)


def test_parts_of_tiles_and_results_in_tensors():
    """Stages of shared tiles, a warp's steps by `rk`, and results stored at a block's place."""
    emitter = SparseTensorCoreIntrinEmitter(
        "float16", "int16", "float16", "float32", False, True, False, 1, 1, 16, 16, warp_k=32
    )

    @T.prim_func
    def kernel(
        A: T.Tensor((32, 32), "float16"), E: T.Tensor((32, 4), "int16"), B: T.Tensor((16, 64), "float16"),
        C: T.Tensor((32, 16), "float32"),
    ):  # fmt: skip
        with T.Kernel(2, threads=32) as by:
            a = T.alloc_shared((2, 16, 32), "float16")
            e = T.alloc_shared((2, 16, 4), "int16")
            b = T.alloc_shared((16, 64), "float16")
            a_local = T.alloc_local((emitter.local_size_a,), "float16")
            e_local = T.alloc_local((emitter.local_size_e,), "int16")
            b_local = T.alloc_local((emitter.local_size_b,), "float16")
            c_local = T.alloc_local((emitter.local_size_out,), "float32")
            T.copy(A[by * 16, 0], a[1, :, :])
            T.copy(E[by * 16, 0], e[1, :, :])
            T.copy(B, b)
            T.clear(c_local)
            for rk in range(2):
                emitter.ldmatrix_a(a_local, a[1, 0:16, 0:32], 0, rk)
                emitter.ldmatrix_e(e_local, e[1, 0:16, 0:4], 0, rk)
                emitter.ldmatrix_b(b_local, b, 0, rk)
                emitter.mma_sp(a_local, e_local, b_local, c_local)
            emitter.stmatrix(c_local, C, by, 0)

    a, e, b, truth = operands(32, 16, 64, "float16", "int16")
    everywhere(kernel, [a, e, np.ascontiguousarray(b.T)], truth, NVIDIA)


def test_sizes_are_those_of_one_step():
    """Elements a thread: A half of 16 × K over 32 lanes, E 32 bits, B 16 × K, C 16 × 16."""
    for dtype, meta, accum, k, sizes in (
        ("float16", "int16", "float32", 32, (8, 2, 16, 8)), ("float32", "uint8", "float32", 16, (4, 4, 8, 8)),
        ("int8", "int32", "int32", 64, (16, 1, 32, 8)),
    ):  # fmt: skip
        emitter = SparseTensorCoreIntrinEmitter(dtype, meta, dtype, accum, warp_row_tiles=16, warp_col_tiles=16)
        found = (emitter.local_size_a, emitter.local_size_e, emitter.local_size_b, emitter.local_size_out)
        assert found == sizes and emitter.micro_size_k == k and emitter.mma_prefix == f"m16n8k{k}"
        assert emitter.threads == 128 and (emitter.warp_rows, emitter.warp_cols) == (1, 1)


def test_layouts_of_fragments():
    emitter = SparseTensorCoreIntrinEmitter(
        "float16", "int16", "float16", "float32", False, True, False, 2, 2, 32, 32, warp_k=64
    )
    seen = {}

    @T.prim_func
    def kernel(A: T.Tensor((64, 32), "float16")):
        with T.Kernel(1, threads=128):
            a = T.alloc_fragment((64, 32), "float16")
            b = T.alloc_fragment((64, 64), "float16")
            c = T.alloc_fragment((64, 64), "float32")
            seen["a"], seen["b"] = emitter.make_mma_load_layout(a), emitter.make_mma_load_layout(b, "B")
            seen["c"] = emitter.make_mma_store_layout(c)
            T.copy(A, a)
            T.clear(b)
            T.clear(c)

    # thread 37: warp 1 (second along M), lane 5 = group 1, quad 1; thread 101: warp 3 (second along N too)
    assert seen["a"].coords(37, 0) == (33, 2) and seen["a"].coords(101, 16) == (33, 18)
    assert seen["b"].coords(37, 0) == (1, 2) and seen["b"].coords(101, 32) == (33, 34)
    assert seen["c"].coords(37, 0) == (33, 2)


def test_mistakes_are_said():
    with pytest.raises(LanguageError, match="a warp's tile of 24"):
        SparseTensorCoreIntrinEmitter(warp_row_tiles=24, warp_col_tiles=16)
    with pytest.raises(LayoutError, match="metadata of 32 bits for operands of 16 bits"):
        SparseTensorCoreIntrinEmitter("float16", "int32", warp_row_tiles=16, warp_col_tiles=16)
    with pytest.raises(ShapeError, match=r"T\.ptx_mma_sp m16n8k32 of fp16 and int8"):
        SparseTensorCoreIntrinEmitter("float16", "int16", "int8", "float32", warp_row_tiles=16, warp_col_tiles=16)
    with pytest.raises(ShapeError, match="sparse operands of float64"):
        SparseTensorCoreIntrinEmitter("float64", "int16")
    emitter = SparseTensorCoreIntrinEmitter("float16", "int16", warp_row_tiles=16, warp_col_tiles=16)
    with pytest.raises(ShapeError, match="metadata `e` of int8") as caught:

        @T.prim_func
        def kernel(C: T.Tensor((16,), "float32")):
            with T.Kernel(1, threads=128):
                e = T.alloc_shared((32, 8), "int8")
                e_local = T.alloc_local((2,), "int16")
                emitter.ldmatrix_e(e_local, e, 0)

    assert caught.value.loc is not None
    with pytest.raises(TargetError, match=r"mma\.sp"):
        lowered(product(64, 32, 64), "sm_75")


def test_tilelangs_paths():
    with alias_tilelang():
        import tilelang.language as language
        from tilelang.cuda.intrinsics import SparseTensorCoreIntrinEmitter as first
        from tilelang.cuda.intrinsics.macro.mma_sp_macro_generator import SparseTensorCoreIntrinEmitter as second
        from tilelang.cuda.language import TensorCoreIntrinEmitter, get_ldmatrix_offset

        assert language.SparseTensorCoreIntrinEmitter is SparseTensorCoreIntrinEmitter
        assert language.TensorCoreIntrinEmitter is TensorCoreIntrinEmitter
        assert language.get_ldmatrix_offset is get_ldmatrix_offset
    assert first is second is SparseTensorCoreIntrinEmitter
