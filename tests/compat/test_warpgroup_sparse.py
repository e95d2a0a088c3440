"""Products with a 2:4 sparse operand written out as warpgroup instructions, by TileLang's emitter."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tileworkbench.language as T
from tests.end_to_end.harness import everywhere, instructions
from tests.end_to_end.test_sparse import operands
from tileworkbench.compat.layouts import make_wgmma_swizzled_layout
from tileworkbench.compat.warpgroupsparse import WGSparseTensorCoreIntrinEmitter
from tileworkbench.errors import LanguageError
from tileworkbench.ir.instr import Wgmma


def product(
    M: int, N: int, K: int, dtype: str, meta: str, accum: str, warps: tuple[int, int], tiles: tuple[int, int],
    depth: int, ta: bool, te: bool, tb: bool, held: bool,
) -> Any:  # fmt: skip
    emitter = WGSparseTensorCoreIntrinEmitter(dtype, meta, dtype, accum, ta, tb, te, *warps, *tiles, warp_k=depth)
    BM, BN, factor = warps[0] * tiles[0], warps[1] * tiles[1], emitter.e_factor

    def turned(flag: bool, rows: Any, columns: Any) -> tuple[Any, Any]:
        return (columns, rows) if flag else (rows, columns)

    @T.prim_func
    def kernel(
        A: T.Tensor(turned(ta, M, K // 2), dtype), E: T.Tensor(turned(te, M, K // factor), meta),
        B: T.Tensor(turned(not tb, N, K), dtype), C: T.Tensor((M, N), accum),
    ):  # fmt: skip
        with T.Kernel(T.ceildiv(N, BN), T.ceildiv(M, BM), threads=emitter.threads) as (bx, by):
            a = T.alloc_shared(turned(ta, BM, depth // 2), dtype)
            e = T.alloc_shared(turned(te, BM, depth // factor), meta)
            b = T.alloc_shared(turned(not tb, BN, depth), dtype)
            c = T.alloc_fragment((BM, BN), accum)
            T.annotate_layout({a: make_wgmma_swizzled_layout(a), b: make_wgmma_swizzled_layout(b)})
            T.annotate_layout({c: emitter.make_mma_store_layout(c)})
            if held:
                f = T.alloc_fragment((BM, depth // 2), dtype)
                T.annotate_layout({f: emitter.make_mma_load_layout(f)})
            T.clear(c)
            for ko in T.serial(K // depth):
                T.copy(A[turned(ta, by * BM, ko * (depth // 2))], a)
                T.copy(E[turned(te, by * BM, ko * (depth // factor))], e)
                T.copy(B[turned(not tb, bx * BN, ko * depth)], b)
                if held:
                    T.copy(a, f)
                    emitter.wgmma(f, e, b, c)
                else:
                    emitter.wgmma(a, e, b, c)
            T.copy(c, C[by * BM, bx * BN])

    return kernel


def checked(
    M: int, N: int, K: int, dtype: str = "float16", meta: str = "int16", accum: str = "float32",
    warps: tuple[int, int] = (4, 1), tiles: tuple[int, int] = (16, 64), depth: int = 64, ta: bool = False,
    te: bool = False, tb: bool = True, held: bool = False,
) -> Any:  # fmt: skip
    a, e, b, truth = operands(M, N, K, dtype, meta)
    given = [a.T if ta else a, e.T if te else e, b.T if tb else b]
    kernel = product(M, N, K, dtype, meta, accum, warps, tiles, depth, ta, te, tb, held)
    return everywhere(kernel, [np.ascontiguousarray(x) for x in given], truth, ["sm_90a"])["sm_90a"]


@pytest.mark.parametrize(("ta", "te", "tb"), [(False, False, True), (True, True, False)])
def test_operands_stored_either_way(ta: bool, te: bool, tb: bool) -> None:
    made = instructions(checked(64, 64, 128, ta=ta, te=te, tb=tb), Wgmma)
    assert made and all(s.e is not None for s in made)


@pytest.mark.parametrize(("dtype", "meta", "accum", "depth"), [
    ("bfloat16", "uint8", "float32", 64), ("float32", "int16", "float32", 32), ("int8", "int32", "int32", 128),
    ("int8", "uint8", "int32", 128),
])  # fmt: skip
def test_types(dtype: str, meta: str, accum: str, depth: int) -> None:
    checked(64, 64, 2 * depth, dtype, meta, accum, depth=depth)


@pytest.mark.parametrize("held", [False, True])
@pytest.mark.parametrize(("warps", "tiles"), [((4, 1), (32, 96)), ((8, 1), (16, 64)), ((4, 2), (32, 32))])
def test_shapes(warps: tuple[int, int], tiles: tuple[int, int], held: bool) -> None:
    checked(warps[0] * tiles[0], warps[1] * tiles[1], 128, warps=warps, tiles=tiles, held=held)


def test_tiles_of_no_whole_warpgroups_are_refused() -> None:
    with pytest.raises(LanguageError, match="warpgroup"):
        WGSparseTensorCoreIntrinEmitter("float16", "int16", "float16", "float32", False, True, False, 2, 1, 32, 64, 64)
