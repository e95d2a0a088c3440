"""T.Parallel, T.fill and T.copy whose extents are known only at run time."""

from __future__ import annotations

import numpy as np
import pytest

import tileworkbench as tw
import tileworkbench.language as T
from tests.end_to_end.harness import everywhere, integers
from tileworkbench.errors import LaunchError, ShapeError, TargetError


@pytest.mark.parametrize("n", [0, 1, 13, 256, 600])
def test_a_scalar_says_how_many(n):
    @T.prim_func
    def kernel(A: T.Tensor((512,), "float32"), n: T.Tensor((1,), "int32"), B: T.Tensor((512,), "float32")):
        with T.Kernel(1, threads=96):
            for i in T.Parallel(512):
                B[i] = 0.0
            T.sync_threads()  # the loops share the elements out differently
            span = T.min(n[0], 512)
            for i in T.Parallel(span):
                B[i] = A[i] - 1.0

    a, clip = integers(1, (512,)), min(n, 512)
    everywhere(kernel, [a, np.array([n], np.int32)], np.where(np.arange(512) < clip, a - 1, 0))


@pytest.mark.parametrize(("m", "n"), [(3, 5), (0, 4), (17, 300), (40, 1)])
def test_some_of_several_extents(m, n):
    @T.prim_func
    def kernel(A: T.Tensor((40, 4, 300), "int32"), S: T.Tensor((2,), "int32"), B: T.Tensor((40, 4, 300), "int32")):
        with T.Kernel(1, threads=128):
            for i, j, k in T.Parallel(S[0], 4, S[1]):
                B[i, j, k] = A[i, j, k] + i + k

    a = integers(2, (40, 4, 300), "int32")
    i, k = np.arange(40)[:, None, None], np.arange(300)
    want = np.where((i < m) & (k < n), a + i + k, -1)
    everywhere(kernel, [a, np.array([m, n], np.int32)], want, initial=[np.full_like(a, -1)])


def test_each_block_its_own_rows_of_a_shared_tile():
    @T.prim_func
    def kernel(A: T.Tensor((3, 64, 8), "float32"), L: T.Tensor((3,), "int32"), B: T.Tensor((3, 64, 8), "float32")):
        with T.Kernel(3, threads=64) as b:
            tile = T.alloc_shared((64, 8), "float32")
            T.clear(tile)
            for i, j in T.Parallel(L[b], 8):
                tile[i, j] = A[b, i, j] * 2
            T.copy(tile, B[b, 0, 0])

    a, lengths = integers(3, (3, 64, 8)), np.array([0, 64, 21], np.int32)
    want = np.where(np.arange(64)[None, :, None] < lengths[:, None, None], 2 * a, 0)
    everywhere(kernel, [a, lengths], want)


FIRST, LENGTHS = np.array([0, 100, 300, 500], np.int32), np.array([0, 50, 1, 300], np.int32)


def inside(n):
    """Which of `n` elements one of the four stretches holds."""
    at = np.arange(n)[:, None]
    return ((at >= FIRST) & (at < FIRST + LENGTHS)).any(1)


def test_a_fill_of_a_stretch_of_each_block():
    n = T.dynamic("n")

    @T.prim_func
    def kernel(F: T.Tensor((4,), "int32"), L: T.Tensor((4,), "int32"), B: T.Tensor((n,), "int64")):
        with T.Kernel(4, threads=128) as bx:
            first = T.alloc_var("int32", F[bx])
            last = T.alloc_var("int32")
            last = first + L[bx]
            T.fill(B[first:last], 7)

    initial = integers(4, (700,), "int64")  # the last stretch ends behind it
    everywhere(kernel, [FIRST, LENGTHS], np.where(inside(700), 7, initial), initial=[initial])


def test_a_copy_of_a_stretch_of_each_block_converts():
    @T.prim_func
    def kernel(
        A: T.Tensor((800, 3), "float32"),
        F: T.Tensor((4,), "int32"),
        L: T.Tensor((4,), "int32"),
        B: T.Tensor((800, 3), "float16"),
    ):
        with T.Kernel(4, threads=96) as bx:
            T.copy(A[F[bx] : F[bx] + L[bx], :], B[F[bx] : F[bx] + L[bx], :])

    a, initial = integers(5, (800, 3)), integers(7, (800, 3)).astype(np.float16)
    everywhere(kernel, [a, FIRST, LENGTHS], np.where(inside(800)[:, None], a, initial), initial=[initial])


@pytest.mark.parametrize("alloc", (T.alloc_shared, T.alloc_fragment), ids=("shared", "fragment"))
def test_a_stretch_of_a_tile(alloc):
    @T.prim_func
    def kernel(A: T.Tensor((800,), "int32"), L: T.Tensor((4,), "int32"), B: T.Tensor((4, 320), "int32")):
        with T.Kernel(4, threads=64) as bx:
            tile = alloc((320,), "int32")
            T.fill(tile, -1)
            T.copy(A[bx : bx + L[bx]], tile[0 : L[bx]])
            T.copy(tile, B[bx, :])

    a, i = integers(6, (800,), "int32"), np.arange(320)
    want = [np.where(i < L, a[bx + i], -1) for bx, L in enumerate(LENGTHS)]
    everywhere(kernel, [a, LENGTHS], np.array(want))


@pytest.mark.parametrize("how", ("tma", "cp_async"))
def test_no_copy_engine_takes_such_an_extent(how):
    @T.prim_func
    def kernel(A: T.Tensor((800,), "int32"), L: T.Tensor((4,), "int32"), B: T.Tensor((4, 320), "int32")):
        with T.Kernel(4, threads=64) as bx:
            tile = T.alloc_shared((320,), "int32")
            T.copy(A[bx : bx + L[bx]], tile[0 : L[bx]], prefer_instruction=how)
            T.copy(tile, B[bx, :])

    with pytest.raises(TargetError, match=f"cannot use {how} here .*only at run time") as caught:
        tw.compile(kernel, target="sm_90a")
    assert caught.value.loc is not None


def tail_of(n, tile):
    length = T.dynamic("length")

    @T.prim_func
    def kernel(A: T.Tensor((length, 4), "int32"), B: T.Tensor((tile, 4), "int32"), C: T.Tensor((length, 4), "int32")):
        with T.Kernel(1, threads=64):
            near = T.alloc_shared((tile, 4), "int32")
            T.copy(A[0:length, :], near)
            T.copy(near, B)
            T.copy(near, C[0:length, :])

    return kernel


@pytest.mark.parametrize("n", [1, 77, 128])
def test_a_slice_to_the_end_of_a_tensor_beside_a_tile(n):
    a = integers(7, (n, 4), "int32")
    whole = np.zeros((128, 4), np.int32)
    whole[:n] = a
    everywhere(tail_of(n, 128), [a], [whole, a])


def test_a_tile_that_is_too_small_for_such_a_slice():
    a = integers(7, (129, 4), "int32")
    with pytest.raises(LaunchError, match="length elements of `A` are copied as a tile of 128"):
        tw.simulate(tail_of(129, 128), a, np.zeros((128, 4), np.int32), a.copy(), level="tile")
    with pytest.raises(LaunchError, match="length elements of `A` are copied as a tile of 128"):
        tw.simulate(tail_of(129, 128), a, np.zeros((128, 4), np.int32), a.copy(), level="thread", target="sm_90a")


def test_updates_of_a_stretch():
    @T.prim_func
    def kernel(A: T.Tensor((800,), "int32"), L: T.Tensor((4,), "int32"), B: T.Tensor((320,), "int32")):
        with T.Kernel(4, threads=64) as bx:
            T.atomic_add(B[0 : L[bx]], A[bx : bx + L[bx]])

    a, i = integers(6, (800,), "int32"), np.arange(320)
    want = sum(np.where(i < L, a[bx + i], 0) for bx, L in enumerate(LENGTHS))
    everywhere(kernel, [a, LENGTHS], want + 3, initial=[np.full(320, 3, np.int32)])


def test_a_reduction_of_such_a_stretch_is_refused():
    @T.prim_func
    def kernel(A: T.Tensor((64,), "int32"), n: T.int32, B: T.Tensor((1,), "int32")):
        with T.Kernel(1, threads=64):
            tile = T.alloc_shared((64,), "int32")
            top = T.alloc_shared((1,), "int32")
            T.copy(A, tile)
            T.reduce_max(tile[0:n], top)
            T.copy(top, B)

    with pytest.raises(ShapeError, match=r"T\.reduce_max: the size of the slice of `tile`") as caught:
        tw.compile(kernel, target="sm_90a")
    assert caught.value.loc is not None
