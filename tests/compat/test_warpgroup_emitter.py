"""Products written out as warpgroup instructions by TileLang's emitter, on every machine."""

from __future__ import annotations

import importlib
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tileworkbench.language as T
from tests.end_to_end.harness import everywhere, instructions
from tileworkbench.compat import alias_tilelang
from tileworkbench.compat.layouts import make_wgmma_swizzled_layout
from tileworkbench.compat.warpgroupemitter import WGMMATensorCoreIntrinEmitter
from tileworkbench.compat.warpgroupoperand import compute_gmma_descriptor
from tileworkbench.errors import LanguageError, TargetError
from tileworkbench.ir.instr import Wgmma

KINDS = {"float16": np.float16, "bfloat16": ml_dtypes.bfloat16, "int8": np.int8, "float32": np.float32}


def product(
    shape: tuple[int, int, int], warps: tuple[int, int], tiles: tuple[int, int], chunk: int, ta: bool, tb: bool,
    dtype: str = "float16", accum: str = "float32", held: bool = False,
) -> Any:  # fmt: skip
    M, N, K = shape
    emitter = WGMMATensorCoreIntrinEmitter(dtype, dtype, accum, ta, tb, *warps, *tiles, chunk)
    BM, BN = warps[0] * tiles[0], warps[1] * tiles[1]

    @T.prim_func
    def kernel(
        A: T.Tensor((K, M) if ta else (M, K), dtype), B: T.Tensor((N, K) if tb else (K, N), dtype),
        C: T.Tensor((M, N), accum),
    ):  # fmt: skip
        with T.Kernel(T.ceildiv(N, BN), T.ceildiv(M, BM), threads=32 * warps[0] * warps[1]) as (bx, by):
            a = T.alloc_shared((chunk, BM) if ta else (BM, chunk), dtype)
            b = T.alloc_shared((BN, chunk) if tb else (chunk, BN), dtype)
            c = T.alloc_fragment((BM, BN), accum)
            T.annotate_layout({a: make_wgmma_swizzled_layout(a), b: make_wgmma_swizzled_layout(b)})
            T.annotate_layout({c: emitter.make_mma_store_layout(c)})
            if held:
                f = T.alloc_fragment((BM, chunk), dtype)
                T.annotate_layout({f: emitter.make_mma_load_layout(f)})
            T.clear(c)
            for k in T.serial(K // chunk):
                if ta:
                    T.copy(A[k * chunk, by * BM], a)
                else:
                    T.copy(A[by * BM, k * chunk], a)
                if tb:
                    T.copy(B[bx * BN, k * chunk], b)
                else:
                    T.copy(B[k * chunk, bx * BN], b)
                if held:
                    T.copy(a, f)
                    emitter.wgmma(f, b, c)
                else:
                    emitter.wgmma(a, b, c)
            T.copy(c, C[by * BM, bx * BN])

    return kernel


def checked(
    shape: tuple[int, int, int], *args: Any, dtype: str = "float16", accum: str = "float32", **options: Any
) -> Any:
    M, N, K = shape
    ta, tb = args[3:5]
    rng = np.random.default_rng(3)
    a = rng.integers(-5, 6, (K, M) if ta else (M, K)).astype(KINDS[dtype])
    b = rng.integers(-5, 6, (N, K) if tb else (K, N)).astype(KINDS[dtype])
    x, y = a.astype(np.float64), b.astype(np.float64)
    truth = (x.T if ta else x) @ (y.T if tb else y)
    return everywhere(product(shape, *args, dtype, accum, **options), [a, b], truth, ["sm_90a"])["sm_90a"]


@pytest.mark.parametrize(("ta", "tb"), [(False, True), (True, False), (True, True), (False, False)])
def test_operands_stored_either_way(ta: bool, tb: bool) -> None:
    assert instructions(checked((128, 64, 64), (4, 1), (32, 64), 32, ta, tb), Wgmma)


@pytest.mark.parametrize(
    ("shape", "warps", "tiles", "chunk"),
    [
        ((64, 64, 64), (4, 1), (16, 64), 32),
        ((128, 96, 128), (4, 1), (32, 96), 64),
        ((256, 128, 64), (8, 2), (32, 64), 64),
        ((64, 320, 64), (4, 1), (16, 320), 32),
    ],
)
def test_shapes(shape: tuple[int, int, int], warps: tuple[int, int], tiles: tuple[int, int], chunk: int) -> None:
    checked(shape, warps, tiles, chunk, False, True)


@pytest.mark.parametrize(("dtype", "accum"), [("bfloat16", "float32"), ("int8", "int32"), ("float32", "float32")])
def test_types(dtype: str, accum: str) -> None:
    checked((64, 64, 128), (4, 1), (16, 64), 64, False, True, dtype=dtype, accum=accum)


@pytest.mark.parametrize("warps", [(4, 1), (8, 1), (4, 2)])
def test_a_in_a_fragment(warps: tuple[int, int]) -> None:
    checked((128, 64 * warps[1], 128), warps, (128 // warps[0], 64), 64, False, True, held=True)


def test_instructions_one_by_one_on_parts_of_a_tile() -> None:
    """The second half of a tile with two operands of B in it; sums are kept unless they are to be cleared."""
    emitter = WGMMATensorCoreIntrinEmitter("float16", "float16", "float32", False, True, 4, 1, 16, 64, 32)

    @T.prim_func
    def kernel(A: T.Tensor((64, 32), "float16"), B: T.Tensor((128, 32), "float16"), C: T.Tensor((64, 64), "float32")):
        with T.Kernel(1, threads=128):
            a = T.alloc_shared((64, 32), "float16")
            b = T.alloc_shared((128, 32), "float16")
            c = T.alloc_fragment((64, 64), "float32")
            T.annotate_layout({c: emitter.make_mma_store_layout(c)})
            T.annotate_layout({x: make_wgmma_swizzled_layout(x) for x in (a, b)})
            T.copy(A, a)
            T.copy(B, b)
            T.fill(c, 3)
            of_a = emitter.compute_wgmma_a_desc_params(a)
            of_b = emitter.compute_wgmma_b_desc_params(b[64:128, 0:32])
            da, db = T.alloc_wgmma_desc(), T.alloc_wgmma_desc()
            emitter.init_wgmma_a_desc(da, a, of_a)
            emitter.init_wgmma_b_desc(db, b[64:128, 0:32], of_b)
            emitter.wgmma_fence_c(c)
            emitter.wgmma_arrive()
            for n in T.unroll(emitter.wgmma_num_inst_n):
                for m in T.unroll(emitter.wgmma_num_inst_m):
                    for ki in T.unroll(emitter.wgmma_num_k_atoms):
                        emitter.wgmma_ss_atom(da, db, c, m, n, ki, of_a, of_b, T.bool(False))
            emitter.wgmma_commit()
            emitter.wgmma_wait(0)
            emitter.wgmma_fence_c(c)
            T.copy(c, C)

    rng = np.random.default_rng(4)
    a, b = (rng.integers(-5, 6, (n, 32)).astype(np.float16) for n in (64, 128))
    everywhere(kernel, [a, b], a.astype(np.float64) @ b[64:].astype(np.float64).T + 3, ["sm_90a"])


def test_tiles_of_no_whole_warpgroups_are_refused() -> None:
    for warps, rows in ((2, 32), (4, 8)):
        with pytest.raises(LanguageError):
            WGMMATensorCoreIntrinEmitter("float16", "float16", "float32", False, True, warps, 1, rows, 64, 32)


def test_operands_without_a_swizzle_are_refused() -> None:
    emitter = WGMMATensorCoreIntrinEmitter("float16", "float16", "float32", False, True, 4, 1, 16, 64, 32)
    with pytest.raises(LanguageError, match="a warpgroup product on `a`") as caught:

        @T.prim_func
        def kernel(A: T.Tensor((64, 32), "float16")):
            with T.Kernel(1, threads=128):
                a = T.alloc_shared((64, 32), "float16")
                T.copy(A, a)
                emitter.compute_wgmma_a_desc_params(a)

    assert caught.value.loc is not None


def test_names_by_tilelangs_paths() -> None:
    alias_tilelang()
    language = importlib.import_module("tilelang.language")
    intrinsics = importlib.import_module("tilelang.cuda.intrinsics")
    macros = importlib.import_module("tilelang.cuda.intrinsics.macro.wgmma_macro_generator")
    assert macros.TensorCoreIntrinEmitter is language.WGMMATensorCoreIntrinEmitter is WGMMATensorCoreIntrinEmitter
    assert language.wgmma_mma is language.wgmma_gemm and language.JITFunc
    for name, words in (("TCGEN05TensorCoreIntrinEmitter", "sm_100"), ("TensorCoreIntrinEmitterSM120", "sm_120")):
        with pytest.raises(TargetError, match=words):
            getattr(intrinsics, name)()
        with pytest.raises(TargetError, match=words):
            getattr(language, name)


def test_what_a_layout_says_of_an_operand() -> None:
    """K-major: groups of 8 rows of 128 bytes follow one another. Stored (K, MN): panels of 64 columns do."""
    seen = []

    @T.prim_func
    def kernel(A: T.Tensor((64, 128), "float16")):
        with T.Kernel(1, threads=128):
            a = T.alloc_shared((64, 128), "float16")
            T.copy(A, a)
            layout = make_wgmma_swizzled_layout(a)
            seen.extend(compute_gmma_descriptor(layout, a, turned) for turned in (False, True))

    rows, columns = seen
    assert (rows.swizzle_mode, rows.leading_byte_offset, rows.stride_byte_offset, rows.is_k_major) == (1, 1, 64, True)
    assert (columns.swizzle_mode, columns.leading_byte_offset, columns.stride_byte_offset) == (1, 64 * 128 // 16, 64)
    assert rows.k_atom_size == 4 and rows.swizzle_atom_elems == 64 and rows.elems_in_bytes == 2
