"""Kernels that many tests share, as users write them: factories whose arguments are the things tests vary."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import takewhile
from typing import Any

import tileworkbench.language as T

LOG2E = 1.4426950408889634


def add_1d(N: Any, block: int = 256, threads: int = 128, dtype: str = "float32") -> Any:
    @T.prim_func
    def add_1d(A: T.Tensor((N,), dtype), B: T.Tensor((N,), dtype), C: T.Tensor((N,), dtype)):
        with T.Kernel(T.ceildiv(N, block), threads=threads) as bx:
            for i in T.Parallel(block):
                C[bx * block + i] = A[bx * block + i] + B[bx * block + i]

    return add_1d


def add_2d(
    M: Any, N: Any, BM: int = 32, BN: int = 64, threads: int = 128, dtype: str = "float32", staged: bool = True
) -> Any:
    """`staged`: through shared tiles and a fragment (TMA where there is any), else element by element."""

    @T.prim_func
    def add_2d(A: T.Tensor((M, N), dtype), B: T.Tensor((M, N), dtype), C: T.Tensor((M, N), dtype)):
        with T.Kernel(T.ceildiv(N, BN), T.ceildiv(M, BM), threads=threads) as (bx, by):
            if staged:
                A_shared = T.alloc_shared((BM, BN), dtype)
                B_shared = T.alloc_shared((BM, BN), dtype)
                C_local = T.alloc_fragment((BM, BN), dtype)
                T.copy(A[by * BM, bx * BN], A_shared)
                T.copy(B[by * BM, bx * BN], B_shared)
                for i, j in T.Parallel(BM, BN):
                    C_local[i, j] = A_shared[i, j] + B_shared[i, j]
                T.copy(C_local, C[by * BM, bx * BN])
            else:
                for i, j in T.Parallel(BM, BN):
                    C[by * BM + i, bx * BN + j] = A[by * BM + i, bx * BN + j] + B[by * BM + i, bx * BN + j]

    return add_2d


def gemm(
    M: Any,
    N: Any,
    K: Any,
    BM: int = 128,
    BN: int = 128,
    BK: int = 64,
    stages: int = 3,
    threads: int = 128,
    trans_a: bool = False,
    trans_b: bool = False,
    dtype: str = "float16",
    out: str = "float32",
    relu: bool = False,
    panel: int = 0,
    order: str = "row",
    staged_out: bool = False,
) -> Any:
    @T.prim_func
    def gemm(
        A: T.Tensor((K, M) if trans_a else (M, K), dtype),
        B: T.Tensor((N, K) if trans_b else (K, N), dtype),
        C: T.Tensor((M, N), out),
    ):
        with T.Kernel(T.ceildiv(N, BN), T.ceildiv(M, BM), threads=threads) as (bx, by):
            A_shared = T.alloc_shared((BK, BM) if trans_a else (BM, BK), dtype)
            B_shared = T.alloc_shared((BN, BK) if trans_b else (BK, BN), dtype)
            C_local = T.alloc_fragment((BM, BN), "float32")
            T.use_swizzle(max(panel, 1), order, enable=panel > 0)
            T.clear(C_local)
            for k in T.Pipelined(T.ceildiv(K, BK), num_stages=stages):
                if trans_a:
                    T.copy(A[k * BK, by * BM], A_shared)
                else:
                    T.copy(A[by * BM, k * BK], A_shared)
                if trans_b:
                    T.copy(B[bx * BN, k * BK], B_shared)
                else:
                    T.copy(B[k * BK, bx * BN], B_shared)
                T.gemm(A_shared, B_shared, C_local, trans_a, trans_b)
            if relu:
                for i, j in T.Parallel(BM, BN):
                    C_local[i, j] = T.max(C_local[i, j], 0)
            if staged_out:
                C_shared = T.alloc_shared((BM, BN), out)
                T.copy(C_local, C_shared)
                T.copy(C_shared, C[by * BM, bx * BN])
            else:
                T.copy(C_local, C[by * BM, bx * BN])

    return gemm


def softmax(M: Any, N: int, BM: int = 16, threads: int = 128) -> Any:
    @T.prim_func
    def softmax(A: T.Tensor((M, N), "float32"), B: T.Tensor((M, N), "float32")):
        with T.Kernel(T.ceildiv(M, BM), threads=threads) as bx:
            x = T.alloc_fragment((BM, N), "float32")
            row_max = T.alloc_fragment((BM,), "float32")
            row_sum = T.alloc_fragment((BM,), "float32")
            T.copy(A[bx * BM, 0], x)
            T.reduce_max(x, row_max, dim=1)
            for i, j in T.Parallel(BM, N):
                x[i, j] = T.exp2((x[i, j] - row_max[i]) * LOG2E)
            T.reduce_sum(x, row_sum, dim=1)
            for i, j in T.Parallel(BM, N):
                x[i, j] = x[i, j] / row_sum[i]
            T.copy(x, B[bx * BM, 0])

    return softmax


def reduce(kind: str, M: int, N: int, dim: int, threads: int = 128, dtype: str = "float32", clear: bool = True) -> Any:
    size = M if dim == 1 else N
    op = getattr(T, f"reduce_{kind}")

    @T.prim_func
    def reduce(A: T.Tensor((M, N), dtype), B: T.Tensor((size,), dtype)):
        with T.Kernel(1, threads=threads) as _:
            x = T.alloc_fragment((M, N), dtype)
            r = T.alloc_fragment((size,), dtype)
            T.copy(A, x)
            if clear:
                op(x, r, dim=dim)
            else:
                T.fill(r, 5)
                op(x, r, dim=dim, clear=False)
            T.copy(r, B)

    return reduce


def attention(
    B: int,
    H: int,
    S: int,
    D: int,
    BM: int = 64,
    BN: int = 64,
    threads: int = 128,
    stages: int = 2,
    causal: bool = False,
) -> Any:
    """Forward attention, online softmax; tensors are (batch, sequence, head, dim)."""
    scale = D**-0.5 * LOG2E
    dtype, accum = "float16", "float32"

    @T.prim_func
    def attention(
        Q: T.Tensor((B, S, H, D), dtype),
        K: T.Tensor((B, S, H, D), dtype),
        V: T.Tensor((B, S, H, D), dtype),
        O: T.Tensor((B, S, H, D), dtype),  # noqa: E741
    ):
        with T.Kernel(T.ceildiv(S, BM), H, B, threads=threads) as (bx, by, bz):
            Q_shared = T.alloc_shared((BM, D), dtype)
            K_shared = T.alloc_shared((BN, D), dtype)
            V_shared = T.alloc_shared((BN, D), dtype)
            scores = T.alloc_fragment((BM, BN), accum)
            weights = T.alloc_fragment((BM, BN), dtype)
            acc = T.alloc_fragment((BM, D), accum)
            row_max = T.alloc_fragment((BM,), accum)
            row_max_before = T.alloc_fragment((BM,), accum)
            rescale = T.alloc_fragment((BM,), accum)
            row_sum = T.alloc_fragment((BM,), accum)
            total = T.alloc_fragment((BM,), accum)
            T.copy(Q[bz, bx * BM : (bx + 1) * BM, by, :], Q_shared)
            T.fill(acc, 0)
            T.fill(total, 0)
            T.fill(row_max, -T.infinity(accum))
            trips = T.min(T.ceildiv(S, BN), T.ceildiv((bx + 1) * BM, BN)) if causal else T.ceildiv(S, BN)
            for k in T.Pipelined(trips, num_stages=stages):
                T.copy(K[bz, k * BN : (k + 1) * BN, by, :], K_shared)
                if causal:
                    for i, j in T.Parallel(BM, BN):
                        scores[i, j] = T.if_then_else(bx * BM + i >= k * BN + j, 0, -T.infinity(accum))
                else:
                    for i, j in T.Parallel(BM, BN):
                        scores[i, j] = T.if_then_else(k * BN + j >= S, -T.infinity(accum), 0)
                T.gemm(Q_shared, K_shared, scores, transpose_B=True, policy=T.GemmWarpPolicy.FullRow)
                T.copy(row_max, row_max_before)
                T.fill(row_max, -T.infinity(accum))
                T.reduce_max(scores, row_max, dim=1, clear=False)
                for i in T.Parallel(BM):
                    row_max[i] = T.max(row_max[i], row_max_before[i])
                for i in T.Parallel(BM):
                    rescale[i] = T.exp2(row_max_before[i] * scale - row_max[i] * scale)
                for i, j in T.Parallel(BM, BN):
                    scores[i, j] = T.exp2(scores[i, j] * scale - row_max[i] * scale)
                T.reduce_sum(scores, row_sum, dim=1)
                for i in T.Parallel(BM):
                    total[i] = total[i] * rescale[i] + row_sum[i]
                T.copy(scores, weights)
                for i, j in T.Parallel(BM, D):
                    acc[i, j] *= rescale[i]
                T.copy(V[bz, k * BN : (k + 1) * BN, by, :], V_shared)
                T.gemm(weights, V_shared, acc, policy=T.GemmWarpPolicy.FullRow)
            for i, j in T.Parallel(BM, D):
                acc[i, j] /= total[i]
            T.copy(acc, O[bz, bx * BM : (bx + 1) * BM, by, :])

    return attention


def collatz(N: int = 64, threads: int = 64) -> Any:
    """Steps to 1 from each of N numbers: a while loop whose trips differ from thread to thread."""

    @T.prim_func
    def collatz(A: T.Tensor((N,), "int32"), B: T.Tensor((N,), "int32")):
        with T.Kernel(N // threads, threads=threads) as bx:
            tx = T.get_thread_binding(0)
            n = T.alloc_var("int32", 0)
            steps = T.alloc_var("int32", 0)
            n = A[bx * threads + tx]
            while n != 1:
                if n % 2 == 0:
                    n = n // 2
                else:
                    n = 3 * n + 1
                steps = steps + 1
            B[bx * threads + tx] = steps

    return collatz


def collatz_steps(n: int) -> int:
    steps = 0
    while n != 1:
        n, steps = (n // 2 if n % 2 == 0 else 3 * n + 1), steps + 1
    return steps


def even_sums(M: int, N: int, threads: int = 64) -> Any:
    """The sum of each row's even elements up to its first negative one: break and continue."""

    @T.prim_func
    def even_sums(A: T.Tensor((M, N), "int32"), B: T.Tensor((M,), "int32")):
        with T.Kernel(M, threads=threads) as bx:
            total = T.alloc_var("int32", 0)
            for k in T.serial(N):
                if A[bx, k] < 0:
                    break
                if A[bx, k] % 2 == 1:
                    continue
                total = total + A[bx, k]
            B[bx] = total

    return even_sums


def even_sum(row: Iterable[int]) -> int:
    return sum(int(x) for x in takewhile(lambda x: x >= 0, row) if x % 2 == 0)


def ring_sum(M: int = 6, N: int = 32) -> Any:
    """The sum of M rows: a warpgroup fills a ring of two stages, another sums it, with phases kept by hand."""

    @T.prim_func
    def ring_sum(A: T.Tensor((M, N), "float32"), B: T.Tensor((N,), "float32")):
        with T.Kernel(1, threads=256):
            ring = T.alloc_shared((2, N), "float32")
            total = T.alloc_fragment((N,), "float32")
            full = T.alloc_barrier([128, 128])
            empty = T.alloc_barrier([128, 128])
            with T.ws(0):
                for k in T.serial(M):
                    T.mbarrier_wait_parity(empty[k % 2], (k // 2 + 1) % 2)
                    T.copy(A[k, 0:N], ring[k % 2, 0:N])
                    T.mbarrier_arrive(full[k % 2])
            with T.ws(1):
                T.clear(total)
                for k in T.serial(M):
                    T.mbarrier_wait_parity(full[k % 2], k // 2 % 2)
                    for i in T.Parallel(N):
                        total[i] += ring[k % 2, i]
                    T.mbarrier_arrive(empty[k % 2])
                T.copy(total, B)

    return ring_sum
