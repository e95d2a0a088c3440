"""Atomics, thread-level code, views, warpgroups with barriers of their own."""

import numpy as np

import tileworkbench.language as T
from tests.kernels import collatz, collatz_steps, even_sum, even_sums, ring_sum
from tileworkbench.simulate.tile import run

from .calls import integers, returned


def test_histogram_by_atomics():
    @T.prim_func
    def kernel(A: T.Tensor((100,), "int32"), H: T.Tensor((8,), "int32")):
        with T.Kernel(4, threads=32) as bx:
            for i in T.Parallel(25):
                T.atomic_add(H[A[bx * 25 + i]], 1)

    a = np.random.default_rng(2).integers(0, 8, 100).astype(np.int32)
    h = np.zeros(8, np.int32)
    run(kernel.kernel, [a, h])
    assert np.array_equal(h, np.bincount(a, minlength=8))


def test_split_k_by_atomic_tiles():
    @T.prim_func
    def kernel(A: T.Tensor((32, 64), "float16"), B: T.Tensor((64, 32), "float16"), C: T.Tensor((32, 32), "float32")):
        with T.Kernel(4, threads=32) as bk:
            A_s = T.alloc_shared((32, 16), "float16")
            B_s = T.alloc_shared((16, 32), "float16")
            C_l = T.alloc_fragment((32, 32), "float32")
            T.copy(A[0, bk * 16], A_s)
            T.copy(B[bk * 16, 0], B_s)
            T.gemm(A_s, B_s, C_l, clear_accum=True)
            T.atomic_add(C, C_l)

    a, b = integers(1, (32, 64), "float16"), integers(2, (64, 32), "float16")
    c = np.zeros((32, 32), np.float32)
    run(kernel.kernel, [a, b, c])
    assert np.array_equal(c.astype(int), a.astype(int) @ b.astype(int))


def test_threads_with_private_registers():
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
    got = returned(kernel, (512,), "float32", a)
    assert np.array_equal(got, a.reshape(-1, 4)[:, ::-1].reshape(-1))


def test_block_sum_by_shuffles_and_shared_memory():
    @T.prim_func
    def kernel(A: T.Tensor((3, 96), "int32"), B: T.Tensor((3,), "int32")):
        with T.Kernel(3, threads=96) as bx:
            tx = T.get_thread_binding(0)
            partial = T.alloc_shared((3,), "int32")
            value = T.alloc_var("int32", 0)
            value = A[bx, tx]
            for step in T.unroll(5):
                value = value + T.shfl_xor(value, 1 << step)
            if tx % 32 == 0:
                partial[tx // 32] = value
            T.sync_threads()
            if tx == 0:
                B[bx] = partial[0] + partial[1] + partial[2]

    a = integers(4, (3, 96), "int32", 1000)
    assert np.array_equal(returned(kernel, (3,), "int32", a), a.sum(axis=1))


def test_while_loop_with_a_trip_count_per_thread():
    a = np.arange(1, 65, dtype=np.int32)
    assert returned(collatz(64, 32), (64,), "int32", a).tolist() == [collatz_steps(int(n)) for n in a]


def test_break_and_continue():
    a = integers(6, (4, 10), "int32", 20) + 12
    assert returned(even_sums(4, 10, 32), (4,), "int32", a).tolist() == [even_sum(row) for row in a]


def test_views_share_storage():
    @T.prim_func
    def kernel(A: T.Tensor((64,), "float32"), B: T.Tensor((8, 8), "float32")):
        with T.Kernel(1, threads=32):
            flat = T.alloc_shared((64,), "float32")
            square = T.view(flat, (8, 8))
            T.copy(A, flat)
            for i, j in T.Parallel(8, 8):
                square[i, j] = square[i, j] + 1.0
            for i in T.Parallel(64):
                flat[i] = flat[i] * 2.0
            for i, j in T.Parallel(8, 8):
                B[j, i] = square[i, j]

    a = np.arange(64, dtype=np.float32)
    assert np.array_equal(returned(kernel, (8, 8), "float32", a), ((a + 1) * 2).reshape(8, 8).T)


def test_warpgroups_with_their_own_barriers():
    a = integers(8, (6, 32), "float32", 100)
    assert np.array_equal(returned(ring_sum(), (32,), "float32", a), a.sum(axis=0))


def test_tile_operations_under_a_branch_of_some_threads():
    @T.prim_func
    def kernel(A: T.Tensor((2, 16), "float32"), B: T.Tensor((2, 16), "float32")):
        with T.Kernel(2, threads=64) as bx:
            tx = T.get_thread_binding(0)
            s = T.alloc_shared((16,), "float32")
            T.clear(s)
            if tx < 32:
                T.copy(A[bx, 0:16], s)
                for i in T.Parallel(16):
                    s[i] = s[i] * 2.0
            T.sync_threads()
            if bx == 1:
                T.fill(s, 7.0)
            T.copy(s, B[bx, 0:16])

    a = integers(5, (2, 16), "float32", 100)
    assert np.array_equal(returned(kernel, (2, 16), "float32", a), np.stack([a[0] * 2, np.full(16, 7)]))


def test_private_registers_of_warpgroups():
    """Both groups use one declaration; every thread has its own copy."""

    @T.prim_func
    def kernel(A: T.Tensor((256,), "int32"), B: T.Tensor((256,), "int32")):
        with T.Kernel(1, threads=256):
            tx = T.get_thread_binding(0)
            mine = T.alloc_local((2,), "int32")
            mine[0] = A[tx]
            with T.ws(0):
                mine[1] = mine[0] + 1
                B[tx] = mine[1]
            with T.ws(1):
                mine[1] = mine[0] * 3
                B[tx] = mine[1]

    a = integers(9, (256,), "int32", 1000)
    want = np.concatenate([a[:128] + 1, a[128:] * 3])
    assert np.array_equal(returned(kernel, (256,), "int32", a), want)


def test_a_fill_keeps_the_value_it_was_given():
    @T.prim_func
    def kernel(A: T.Tensor((4,), "float32"), B: T.Tensor((4, 8), "float32")):
        with T.Kernel(4, threads=32) as bx:
            one = T.alloc_shared((1,), "float32")
            row = T.alloc_fragment((8,), "float32")
            T.copy(A[bx : bx + 1], one)
            T.fill(row, one[0])
            one[0] = -5.0
            T.copy(row, B[bx, 0:8])

    a = integers(3, (4,), "float32", 9)
    assert np.array_equal(returned(kernel, (4, 8), "float32", a), np.repeat(a[:, None], 8, 1))
