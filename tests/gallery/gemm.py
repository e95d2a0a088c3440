"""Dense products: plain, with an epilogue, for any extents, persistent, split over K, and as streams of K steps."""

from __future__ import annotations

from typing import Any

import numpy as np

import tileworkbench as tw
import tileworkbench.language as T
from tests.gallery.entry import Data, Entry, Expected, numbers


@tw.jit(target="cpu")
def product(A, B, BM: int, BN: int, BK: int, stages: int = 3, relu: bool = False, dtype=T.float16):
    M, N, K = T.const("M, N, K")
    A: T.Tensor((M, K), dtype)
    B: T.Tensor((K, N), dtype)
    C = T.empty((M, N), dtype)
    with T.Kernel(T.ceildiv(N, BN), T.ceildiv(M, BM), threads=128) as (bx, by):
        left = T.alloc_shared((BM, BK), dtype)
        right = T.alloc_shared((BK, BN), dtype)
        acc = T.alloc_fragment((BM, BN), T.float32)
        T.clear(acc)
        for step in T.Pipelined(T.ceildiv(K, BK), num_stages=stages):
            T.copy(A[by * BM, step * BK], left)
            T.copy(B[step * BK, bx * BN], right)
            T.gemm(left, right, acc)
        if relu:
            for i, j in T.Parallel(BM, BN):
                acc[i, j] = T.max(acc[i, j], 0)
        T.copy(acc, C[by * BM, bx * BN])
    return C


def transposed(
    M: Any, N: int, K: int, BM: int, BN: int, BK: int, stages: int = 3, threads: int = 256, raster: bool = True
) -> Any:
    """The second operand is (N, K); the result leaves through a shared tile, blocks run in panels."""

    @T.prim_func
    def transposed(A: T.Tensor((M, K), "bfloat16"), B: T.Tensor((N, K), "bfloat16"), C: T.Tensor((M, N), "bfloat16")):
        with T.Kernel(T.ceildiv(N, BN), T.ceildiv(M, BM), threads=threads) as (bx, by):
            left = T.alloc_shared((BM, BK), "bfloat16")
            right = T.alloc_shared((BN, BK), "bfloat16")
            acc = T.alloc_fragment((BM, BN), "float32")
            result = T.alloc_shared((BM, BN), "bfloat16")
            T.use_swizzle(panel_size=8, enable=raster)
            T.clear(acc)
            for step in T.Pipelined(T.ceildiv(K, BK), num_stages=stages):
                T.copy(A[by * BM, step * BK], left)
                T.copy(B[bx * BN, step * BK], right)
                T.gemm(left, right, acc, transpose_B=True, policy=T.GemmWarpPolicy.FullRow)
            T.copy(acc, result)
            T.copy(result, C[by * BM, bx * BN])

    return transposed


@tw.jit(target="cpu")
def any_extents(A, B, BM: int, BN: int, BK: int, stages: int, threads: int):
    m, n, k = T.dynamic("m"), T.dynamic("n"), T.dynamic("k")
    A: T.Tensor((m, k), "float16")
    B: T.Tensor((k, n), "float16")
    C = T.empty((m, n), "float16")
    with T.Kernel(T.ceildiv(n, BN), T.ceildiv(m, BM), threads=threads) as (bx, by):
        left = T.alloc_shared((BM, BK), "float16")
        right = T.alloc_shared((BK, BN), "float16")
        acc = T.alloc_fragment((BM, BN), "float32")
        T.clear(acc)
        for step in T.Pipelined(T.ceildiv(k, BK), num_stages=stages):
            T.copy(A[by * BM, step * BK], left)
            T.copy(B[step * BK, bx * BN], right)
            T.gemm(left, right, acc)
        T.copy(acc, C[by * BM, bx * BN])
    return C


@tw.jit(target="cpu")
def persistent(A, B, BM: int, BN: int, BK: int, stages: int, threads: int, workers: int, primitive: bool):
    M, N, K = T.const("M, N, K")
    A: T.Tensor((M, K), "float16")
    B: T.Tensor((K, N), "float16")
    C = T.empty((M, N), "float16")
    rows, columns, group = T.ceildiv(M, BM), T.ceildiv(N, BN), 8

    @T.macro
    def one(left, right, acc, result, row, column):
        T.clear(acc)
        for step in T.Pipelined(T.ceildiv(K, BK), num_stages=stages):
            T.copy(A[row * BM, step * BK], left)
            T.copy(B[step * BK, column * BN], right)
            T.gemm(left, right, acc)
        T.copy(acc, result)
        T.copy(result, C[row * BM, column * BN])

    with T.Kernel(workers, threads=threads) as worker:
        left = T.alloc_shared((BM, BK), "float16")
        right = T.alloc_shared((BK, BN), "float16")
        acc = T.alloc_fragment((BM, BN), "float32")
        result = T.alloc_shared((BM, BN), "float16")
        if primitive:
            for row, column in T.Persistent([rows, columns], workers, worker):
                one(left, right, acc, result, row, column)
        else:
            for wave in T.serial(T.ceildiv(rows * T.ceildiv(columns, group) * group, workers)):
                ticket = workers * wave + worker
                row = (ticket // group) % rows
                column = ticket % group + ticket // (group * rows) * group
                if column < columns:
                    one(left, right, acc, result, row, column)
    return C


@tw.jit(target="cpu")
def split_k(A, B, C, BM: int, BN: int, BK: int, splits: int, whole: bool):
    """Every part adds to C: one element at a time, or (`whole`) as a tile, which vectorises."""
    M, N, K = T.const("M, N, K")
    A: T.Tensor((M, K), "float16")
    B: T.Tensor((K, N), "float16")
    C: T.Tensor((M, N), "float32")
    share = K // splits
    with T.Kernel(T.ceildiv(N, BN), T.ceildiv(M, BM), splits, threads=128) as (bx, by, bz):
        left = T.alloc_shared((BM, BK), "float16")
        right = T.alloc_shared((BK, BN), "float16")
        acc = T.alloc_fragment((BM, BN), "float32")
        T.clear(acc)
        for step in T.Pipelined(T.ceildiv(share, BK), num_stages=0):
            T.copy(A[by * BM, bz * share + step * BK], left)
            T.copy(B[bz * share + step * BK, bx * BN], right)
            T.gemm(left, right, acc)
        if whole:
            T.atomic_add(C[by * BM, bx * BN], acc)
        else:
            for i, j in T.Parallel(BM, BN):
                T.atomic_add(C[by * BM + i, bx * BN + j], acc[i, j])


def stream_k(M: int, N: int, K: int, BM: int, BN: int, BK: int, workers: int, stages: int = 2) -> Any:
    """All K steps of the first tiles are dealt out evenly, whatever tile they belong to; the other tiles go whole."""
    steps, across = -(-K // BK), -(-N // BN)
    tiles = -(-M // BM) * across
    streamed = tiles % workers + (workers if tiles > 2 * workers - 1 and tiles % workers else 0)
    each, extra = divmod(streamed * steps, workers)
    rounds = (tiles - streamed) // workers

    @T.prim_func
    def stream_k(A: T.Tensor((M, K), "float16"), B: T.Tensor((N, K), "float16"), C: T.Tensor((M, N), "float32")):
        with T.Kernel(workers, threads=128) as worker:
            left = T.alloc_shared((BM, BK), "float16")
            right = T.alloc_shared((BN, BK), "float16")
            acc = T.alloc_fragment((BM, BN), "float32")
            first = T.alloc_local((1,), "int32")
            last = T.alloc_local((1,), "int32")
            first[0] = worker * each + T.min(worker, extra)
            stop = (worker + 1) * each + T.min(worker + 1, extra)
            while first[0] < stop:
                last[0] = T.min(first[0] + (steps - first[0] % steps), stop)
                row = first[0] // steps // across
                column = first[0] // steps % across
                T.clear(acc)
                for step in T.Pipelined(last[0] - first[0], num_stages=stages):
                    T.copy(A[row * BM, (step + first[0] % steps) * BK], left)
                    T.copy(B[column * BN, (step + first[0] % steps) * BK], right)
                    T.gemm(left, right, acc, transpose_B=True)
                if first[0] % steps == 0 and last[0] % steps == 0:
                    T.copy(acc, C[row * BM, column * BN])
                else:
                    for i, j in T.Parallel(BM, BN):
                        T.atomic_add(C[row * BM + i, column * BN + j], acc[i, j])
                first[0] = last[0]
            for turn in T.serial(rounds):
                number = streamed + turn * workers + worker
                T.clear(acc)
                for step in T.Pipelined(steps, num_stages=stages):
                    T.copy(A[number // across * BM, step * BK], left)
                    T.copy(B[number % across * BN, step * BK], right)
                    T.gemm(left, right, acc, transpose_B=True)
                T.copy(acc, C[number // across * BM, number % across * BN])

    return stream_k


def data(M: int, N: int, K: int, relu: bool = False, trans_b: bool = False, **options: Any) -> Data:
    """Integers whose sums stay exact in the result's type."""
    into, dtype = options.get("into", False), options.get("dtype", "float16")
    a, b = numbers(1, (M, K), dtype, 3), numbers(2, (N, K) if trans_b else (K, N), dtype, 3)
    truth = a.astype(float) @ (b.T if trans_b else b).astype(float)
    if dtype == "bfloat16":
        truth = truth.astype(a.dtype).astype(float)
    initial = np.zeros((M, N), np.float32) if into else None
    return Data({"A": a, "B": b}, {"C": Expected(np.maximum(truth, 0) if relu else truth, initial=initial)})


BLOCKS = {"BM": 64, "BN": 64, "BK": 32}
LARGE = {"M": 4096, "N": 4096, "K": 4096, "BM": 128, "BN": 128, "BK": 64}

ENTRIES = [
    Entry(
        "gemm",
        ("gemm/example_gemm.py",),
        product.compile,
        data,
        {"M": 128, "N": 64, "K": 96, **BLOCKS},
        {**LARGE, "BK": 32},
    ),
    Entry(
        "gemm with relu",
        ("quickstart.py",),
        lambda **sizes: product.compile(**sizes, relu=True),
        lambda **sizes: data(**sizes, relu=True),
        {"M": 72, "N": 64, "K": 104, **BLOCKS},
        {**LARGE, "M": 1024},
    ),
    Entry(
        "gemm of tuned shape",
        ("gemm/example_gemm_autotune.py", "gemm/example_gemm_advanced_autotune.py"),
        transposed,
        lambda **sizes: data(**sizes, trans_b=True, dtype="bfloat16"),
        {"M": 128, "N": 96, "K": 96, **BLOCKS, "threads": 128},
        {**LARGE, "BN": 256},
    ),
    Entry(
        "gemm of any extents",
        ("dynamic_shape/example_dynamic.py",),
        lambda M, N, K, **sizes: any_extents.compile(**sizes, stages=2, threads=128),
        data,
        {"M": 75, "N": 72, "K": 88, **BLOCKS},
        LARGE,
    ),
    Entry(
        "persistent gemm",
        ("gemm/example_gemm_persistent.py",),
        lambda **sizes: persistent.compile(**sizes, primitive=True),
        data,
        {"M": 192, "N": 128, "K": 64, **BLOCKS, "stages": 2, "threads": 128, "workers": 3},
        {**LARGE, "BN": 256, "stages": 3, "threads": 256, "workers": 132},
    ),
    Entry(
        "persistent gemm by waves",
        ("gemm/example_gemm_persistent.py",),
        lambda **sizes: persistent.compile(**sizes, primitive=False),
        data,
        {"M": 192, "N": 128, "K": 64, **BLOCKS, "stages": 2, "threads": 128, "workers": 5},
        {**LARGE, "BN": 256, "stages": 3, "threads": 256, "workers": 132},
    ),
    *[
        Entry(
            name,
            (script,),
            lambda whole=whole, **sizes: split_k.compile(**sizes, whole=whole),
            lambda **sizes: data(**sizes, into=True),
            {"M": 64, "N": 128, "K": 128, **BLOCKS, "splits": 2},
            {**LARGE, "BK": 32, "splits": 4},
        )
        for name, script, whole in (
            ("split-k gemm", "gemm_splitk/example_tilelang_gemm_splitk.py", False),
            ("split-k gemm by tiles", "gemm_splitk/example_tilelang_gemm_splitk_vectorize_atomicadd.py", True),
        )
    ],
    Entry(
        "stream-k gemm",
        ("gemm_streamk/example_tilelang_gemm_streamk.py",),
        stream_k,
        lambda **sizes: data(**sizes, trans_b=True, into=True),
        {"M": 192, "N": 128, "K": 96, **BLOCKS, "workers": 4},
        {"M": 256, "N": 1024, "K": 512, "BM": 16, "BN": 128, "BK": 32, "workers": 108},
    ),
]
