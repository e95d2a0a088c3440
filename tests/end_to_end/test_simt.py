"""Statements of single threads: thread indices, private arrays and variables, exchanges, hazards with tile
operations."""

from __future__ import annotations

import numpy as np

import tileworkbench.language as T
from tileworkbench.ir.expr import Const
from tileworkbench.ir.instr import LoadMem, StoreMem, Sync
from tileworkbench.ir.node import walk
from tileworkbench.ir.stmt import For

from .harness import NVIDIA, everywhere, instructions, integers


def test_local_arrays() -> None:
    @T.prim_func
    def kernel(A: T.Tensor((512,), "float32"), B: T.Tensor((512,), "float32")):
        with T.Kernel(2, threads=64) as bx:
            tx = T.get_thread_binding(0)
            mine = T.alloc_local((4,), "float32")
            for k in T.serial(4):
                mine[k] = A[bx * 256 + tx * 4 + k]
            for k in T.serial(4):
                B[bx * 256 + tx * 4 + k] = mine[3 - k]

    a = np.arange(512, dtype=np.float32)
    everywhere(kernel, [a], a.reshape(-1, 4)[:, ::-1].reshape(-1))


def test_block_sum() -> None:
    @T.prim_func
    def kernel(A: T.Tensor((3, 128), "int32"), B: T.Tensor((3,), "int32")):
        with T.Kernel(3, threads=128) as bx:
            tx = T.get_thread_binding(0)
            partial = T.alloc_shared((128,), "int32")
            partial[tx] = A[bx, tx]
            for step in T.serial(7):
                T.sync_threads()
                if tx < (64 >> step):
                    partial[tx] = partial[tx] + partial[tx + (64 >> step)]
            T.sync_threads()
            if tx == 0:
                B[bx] = partial[0]

    a = integers(4, (3, 128), "int32", 1000)
    everywhere(kernel, [a], a.sum(axis=1))


def test_threads2d() -> None:
    @T.prim_func
    def kernel(A: T.Tensor((16, 32), "float32"), B: T.Tensor((32, 16), "float32")):
        with T.Kernel(1, threads=(32, 16)) as bx:
            tx = T.get_thread_binding(0)
            ty = T.get_thread_binding(1)
            S = T.alloc_shared((16, 32), "float32")
            S[ty, tx] = A[ty, tx]
            B[tx, ty] = S[15 - ty, tx]

    a = integers(6, (16, 32))
    everywhere(kernel, [a], a[::-1].T)


def test_simt_then_tile() -> None:
    @T.prim_func
    def kernel(A: T.Tensor((128,), "float32"), B: T.Tensor((128,), "float32")):
        with T.Kernel(1, threads=128) as bx:
            tx = T.get_thread_binding(0)
            S = T.alloc_shared((128,), "float32")
            F = T.alloc_fragment((128,), "float32")
            if tx % 2 == 0:
                S[127 - tx] = A[tx]
            else:
                S[127 - tx] = -A[tx]
            for i in T.Parallel(128):
                F[i] = S[i] * 2
            for i in T.Parallel(128):
                S[i] = F[i] + 1
            B[tx] = S[127 - tx]

    a = integers(6, (128,))
    want = np.where(np.arange(128) % 2 == 0, a, -a) * 2 + 1
    everywhere(kernel, [a], want)


def test_fill_local() -> None:
    @T.prim_func
    def kernel(A: T.Tensor((128, 4), "float32"), B: T.Tensor((128, 4), "float32")):
        with T.Kernel(1, threads=128) as bx:
            tx = T.get_thread_binding(0)
            L = T.alloc_local((4,), "float32")
            M = T.alloc_local((4,), "float32")
            T.clear(L)
            T.fill(M, 3)
            for k in range(4):
                L[k] += A[tx, k] + M[k]
            T.copy(L, B[tx, 0:4])

    a = integers(6, (128, 4))
    everywhere(kernel, [a], a + 3)


def test_vector_loop() -> None:
    @T.prim_func
    def kernel(A: T.Tensor((128, 4), "float32"), B: T.Tensor((128, 4), "float32")):
        with T.Kernel(1, threads=128) as bx:
            tx = T.get_thread_binding(0)
            L = T.alloc_local((4,), "float32")
            for v in T.vectorized(4):
                L[v] = A[tx, v]
            for v in T.vectorized(4):
                B[tx, v] = L[v] * 2

    a = integers(6, (128, 4))
    k = everywhere(kernel, [a], a * 2)
    assert [n.dst.count for n in instructions(k["sm_80"], LoadMem)] == [4]


def test_dynamic_index() -> None:
    @T.prim_func
    def kernel(A: T.Tensor((64,), "int32"), B: T.Tensor((64,), "int32")):
        with T.Kernel(1, threads=64) as bx:
            tx = T.get_thread_binding(0)
            h = T.alloc_local((5,), "int32")
            T.clear(h)
            for k in T.serial(8):
                h[A[(tx + k) % 64]] += 1
            B[tx] = h[A[tx]] * 10 + h[0]

    a = np.random.default_rng(3).integers(0, 5, (64,)).astype(np.int32)
    want = []
    for t in range(64):
        h = [0] * 5
        for k in range(8):
            h[a[(t + k) % 64]] += 1
        want.append(h[a[t]] * 10 + h[0])
    everywhere(kernel, [a], np.array(want, np.int32))


def test_shuffles() -> None:
    @T.prim_func
    def kernel(A: T.Tensor((64,), "int32"), B: T.Tensor((6, 64), "int32")):
        with T.Kernel(1, threads=64) as bx:
            tx = T.get_thread_binding(0)
            v = T.alloc_var("int32", 0)
            v = A[tx]
            B[0, tx] = T.shfl_xor(v, 3)
            B[1, tx] = T.shfl_down(v, 1)
            B[2, tx] = T.shfl_up(v, 2)
            B[3, tx] = T.shfl_sync(v, 5)
            B[4, tx] = T.warp_reduce_sum(v)
            B[5, tx] = T.warp_reduce_max(v)

    a = integers(6, (64,), "int32")
    w = a.reshape(2, 32)
    lane = np.arange(32)
    rows = [
        w[:, lane ^ 3],
        w[:, np.where(lane + 1 < 32, lane + 1, lane)],
        w[:, np.where(lane - 2 >= 0, lane - 2, lane)],
        w[:, np.full(32, 5)],
        np.repeat(w.sum(1)[:, None], 32, 1),
        np.repeat(w.max(1)[:, None], 32, 1),
    ]
    everywhere(kernel, [a], np.stack([r.reshape(-1) for r in rows]), NVIDIA)


def test_votes() -> None:
    @T.prim_func
    def kernel(A: T.Tensor((64,), "int32"), B: T.Tensor((6, 64), "int32")):
        with T.Kernel(1, threads=64) as bx:
            tx = T.get_thread_binding(0)
            B[0, tx] = T.cast(T.any_sync(A[tx] > 45), "int32")
            B[1, tx] = T.cast(T.all_sync(A[tx] > -45), "int32")
            B[2, tx] = T.cast(T.ballot(A[tx] > 0) & 0xFFFF, "int32")
            B[3, tx] = T.syncthreads_count(A[tx] > 0)
            B[4, tx] = T.cast(T.syncthreads_or(A[tx] > 48), "int32")
            B[5, tx] = T.cast(T.syncthreads_and(A[tx] > -48), "int32")

    a = integers(6, (64,), "int32")
    w = a.reshape(2, 32)
    bits = ((w > 0) * (1 << np.arange(32))).sum(1) & 0xFFFF
    rep = lambda x: np.repeat(np.asarray(x)[:, None], 32, 1).reshape(-1)
    rows = [
        rep((w > 45).any(1)),
        rep((w > -45).all(1)),
        rep(bits),
        np.full(64, (a > 0).sum()),
        np.full(64, (a > 48).any()),
        np.full(64, (a > -48).all()),
    ]
    everywhere(kernel, [a], np.stack([np.asarray(r).astype(np.int32) for r in rows]), NVIDIA)


def test_thread_loop() -> None:
    @T.prim_func
    def kernel(A: T.Tensor((64,), "int32"), B: T.Tensor((64,), "int32")):
        with T.Kernel(1, threads=64):
            for tx in T.thread_binding(0, 64, thread="threadIdx.x"):
                B[63 - tx] = A[tx]

    a = integers(6, (64,), "int32")
    everywhere(kernel, [a], a[::-1])


def test_scalar_simt_store() -> None:
    @T.prim_func
    def kernel(A: T.Tensor((64,), "int32"), B: T.Tensor((4,), "int32")):
        with T.Kernel(1, threads=64) as bx:
            S = T.alloc_shared((4,), "int32")
            s = T.alloc_var("int32", 0)
            for k in T.serial(64):
                s = s + A[k]
                S[k % 4] = s
            for i in T.Parallel(4):
                B[i] = S[i]

    a = integers(6, (64,), "int32")
    everywhere(kernel, [a], np.cumsum(a)[60:])


def test_loops_by_their_older_name_are_spread_over_the_threads():
    """T.parallel in T.parallel is one parallel loop: no trip of it stages a whole fragment."""
    R, C, FROM = 16, 32, 5

    @T.prim_func
    def kernel(A: T.Tensor((R, C), "int32"), First: T.Tensor((1,), "int32"), B: T.Tensor((R, C), "int32")):
        with T.Kernel(1, threads=64):
            f = T.alloc_fragment((R, C), "int32")
            T.copy(A, f)
            for i in T.parallel(R):
                for j in T.parallel(0, C):
                    if i >= First[0]:
                        f[i, j] = T.cast(0, "int32")
            T.copy(f, B)

    a = integers(41, (R, C), "int32")
    wanted = np.where(np.arange(R)[:, None] >= FROM, 0, a)
    for made in everywhere(kernel, [a, np.array([FROM], "int32")], wanted, NVIDIA).values():
        assert not instructions(made, Sync)


def test_a_fragment_that_a_loop_does_not_change_is_staged_once():
    R, C = 16, 64

    @T.prim_func
    def kernel(A: T.Tensor((R, C), "float32"), B: T.Tensor((R, 4), "float32")):
        with T.Kernel(1, threads=64):
            f = T.alloc_fragment((R, C), "float32")
            total = T.alloc_fragment((R, 4), "float32")
            T.copy(A, f)
            T.clear(total)
            for twice in T.serial(2):
                for i, j in T.Parallel(R, C):
                    f[i, j] = f[i, j] + twice
                for k in T.serial(C // 4):
                    for i, j in T.Parallel(R, 4):
                        total[i, j] += f[i, k * 4 + j]
            T.copy(total, B)

    a = integers(42, (R, C))
    truth = sum((a + n).reshape(R, C // 4, 4).sum(1) for n in (0, 1))
    for made in everywhere(kernel, [a], truth, NVIDIA).values():
        inner = [
            n for n in walk(made.body) if isinstance(n, For) and isinstance(n.stop, Const) and n.stop.value == C // 4
        ]
        assert inner and not any(isinstance(n, StoreMem) for loop in inner for n in walk(loop.body))
