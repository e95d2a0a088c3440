"""Products whose author gives each group of warps its work: who copies, who multiplies, and the barriers between."""

from __future__ import annotations

from typing import Any

import tileworkbench as tw
import tileworkbench.language as T
from tests.gallery.entry import Entry
from tests.gallery.gemm import data

HALF, FLOAT = "float16", "float32"


@tw.jit(target="cpu")
def ring(A, B, BM: int, BN: int, BK: int, depth: int = 2):
    """Tiles of `depth` steps in a ring; a barrier says that a place is full, another that it is free again."""
    M, N, K = T.const("M, N, K")
    A: T.Tensor((M, K), HALF)
    B: T.Tensor((K, N), HALF)
    C = T.empty((M, N), HALF)
    with T.Kernel(T.ceildiv(N, BN), T.ceildiv(M, BM), threads=256) as (bx, by):
        left = T.alloc_shared((depth, BM, BK), HALF)
        right = T.alloc_shared((depth, BK, BN), HALF)
        acc = T.alloc_fragment((BM, BN), FLOAT)
        full = T.alloc_barrier([128] * depth)
        free = T.alloc_barrier([128] * depth)
        with T.ws(0):
            T.clear(acc)
        for step in range(T.ceildiv(K, BK)):
            place, turn = step % depth, step // depth
            with T.ws(1):
                T.mbarrier_wait_parity(free[place], (turn + 1) % 2)
                T.tma_copy(
                    A[by * BM : (by + 1) * BM, step * BK : (step + 1) * BK], left[place, :, :], barrier=full[place]
                )
                T.tma_copy(
                    B[step * BK : (step + 1) * BK, bx * BN : (bx + 1) * BN], right[place, :, :], barrier=full[place]
                )
                T.mbarrier_arrive(full[place])
            with T.ws(0):
                T.mbarrier_wait_parity(full[place], turn % 2)
                T.gemm(left[place, :, :], right[place, :, :], acc)
                T.mbarrier_arrive(free[place])
        with T.ws(0):
            T.copy(acc, C[by * BM, bx * BN])
    return C


@tw.jit(target="cpu")
def one_place(A, B, BM: int, BN: int, BK: int, copier: int, stages: int):
    """One tile of each operand; `copier`: which group copies; `stages`: of the loop around both groups."""
    M, N, K = T.const("M, N, K")
    A: T.Tensor((M, K), HALF)
    B: T.Tensor((K, N), HALF)
    C = T.empty((M, N), HALF)
    with T.Kernel(T.ceildiv(N, BN), T.ceildiv(M, BM), threads=256) as (bx, by):
        left = T.alloc_shared((BM, BK), HALF)
        right = T.alloc_shared((BK, BN), HALF)
        acc = T.alloc_fragment((BM, BN), FLOAT)
        full = T.alloc_barrier(arrive_count=128)
        free = T.alloc_barrier(arrive_count=128)
        with T.ws(1 - copier):
            T.clear(acc)
        for step in T.Pipelined(T.ceildiv(K, BK), num_stages=stages):
            with T.ws(copier):
                T.barrier_wait(free, (step + 1) % 2)
                T.tma_copy(A[by * BM, step * BK], left, barrier=full)
                T.tma_copy(B[step * BK, bx * BN], right, barrier=full)
                T.barrier_arrive(full)
            with T.ws(1 - copier):
                T.barrier_wait(full, step % 2)
                T.gemm(left, right, acc)
                T.barrier_arrive(free)
        with T.ws(1 - copier):
            T.copy(acc, C[by * BM, bx * BN])
    return C


@tw.jit(target="cpu", pass_configs={})
def halves(A, B, BM: int, BN: int, BK: int):
    """Both groups copy and multiply, each for its half of the columns; the rows of A are for both."""
    M, N, K = T.const("M, N, K")
    A: T.Tensor((M, K), HALF)
    B: T.Tensor((K, N), HALF)
    C = T.empty((M, N), HALF)
    half = BN // 2
    with T.Kernel(T.ceildiv(N, BN), T.ceildiv(M, BM), threads=256) as (bx, by):
        left = T.alloc_shared((BM, BK), HALF, "shared")
        right_0 = T.alloc_shared((BK, half), HALF, "shared")
        right_1 = T.alloc_shared((BK, half), HALF, "shared")
        acc_0 = T.alloc_fragment((BM, half), FLOAT)
        acc_1 = T.alloc_fragment((BM, half), FLOAT)
        with T.ws(0):
            T.clear(acc_0)
        with T.ws(1):
            T.clear(acc_1)
        for step in T.Pipelined(T.ceildiv(K, BK), num_stages=0):
            T.copy(A[by * BM, step * BK], left)
            with T.ws(0):
                T.copy(B[step * BK, bx * BN], right_0)
                T.gemm(left, right_0, acc_0)
            with T.ws(1):
                T.copy(B[step * BK, bx * BN + half], right_1)
                T.gemm(left, right_1, acc_1)
        with T.ws(0):
            T.copy(acc_0, C[by * BM, bx * BN])
        with T.ws(1):
            T.copy(acc_1, C[by * BM, bx * BN + half])
    return C


def entry(name: str, script: str, make: Any, hopper: bool = True, **options: Any) -> Entry:
    """At two by one blocks and five steps; then as large as the scripts."""
    return Entry(
        name,
        (f"warp_specialize/example_warp_specialize_gemm_{script}.py",),
        lambda **sizes: make.compile(**sizes, **options),
        data,
        {"M": 128, "N": 64, "K": 160, "BM": 64, "BN": 64, "BK": 32},
        {"M": 4096, "N": 4096, "K": 4096, "BM": 128, "BN": 128, "BK": 64},
        hopper=hopper,
    )


ENTRIES = [
    entry("gemm by groups, a ring", "barrierpipe_stage2", ring),
    entry("gemm by groups, the first copies", "copy_0_gemm_1", one_place, copier=0, stages=0),
    entry("gemm by groups, the second copies", "softpipe_stage2", one_place, copier=1, stages=2),
    entry("gemm by groups, two halves", "copy_gemm_0_1", halves, hopper=False),
]
