"""Fragments read at other places than they are written, in loops and in parts; tiles updated by all threads."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

import tileworkbench.language as T
from tests.end_to_end.harness import integers

from .machines import Machine


@pytest.mark.parametrize(("n", "threads"), [(64, 64), (64, 128), (128, 32), (100, 64), (7, 128)])
def test_tl2948_a_rotated_fragment(machine: Machine, n: int, threads: int) -> None:
    """Into global memory, into another fragment, and by a run-time distance."""

    @T.prim_func
    def kernel(
        A: T.Tensor((n,), "float32"),
        by: T.int32,
        One: T.Tensor((n,), "float32"),
        Other: T.Tensor((n,), "float32"),
        Far: T.Tensor((n,), "float32"),
    ):
        with T.Kernel(1, threads=threads):
            f = T.alloc_fragment((n,), "float32")
            g = T.alloc_fragment((n,), "float32")
            T.copy(A, f)
            for i in T.Parallel(n):
                One[i] = f[(i + 1) % n]
            for i in T.Parallel(n):
                g[i] = f[(i + n - 1) % n] * 2
            T.copy(g, Other)
            for i in T.Parallel(n):
                Far[i] = f[(i + by) % n]

    a = integers(1, (n,))
    loaded = machine.load(kernel)
    for by in (0, 5):
        loaded.check([a, by], [np.roll(a, -1), 2 * np.roll(a, 1), np.roll(a, -by)], note=f"by {by}")


@pytest.mark.parametrize("shape", [(16, 32), (8, 12)])
def test_tl3005_a_fragment_rotated_in_two_dimensions(machine: Machine, shape: tuple[int, int]) -> None:
    m, n = shape

    @T.prim_func
    def kernel(A: T.Tensor(shape, "int32"), B: T.Tensor(shape, "int32"), C: T.Tensor((n, m), "int32")):
        with T.Kernel(1, threads=64):
            f = T.alloc_fragment(shape, "int32")
            g = T.alloc_fragment((n, m), "int32")
            T.copy(A, f)
            for i, j in T.Parallel(m, n):
                B[i, j] = f[(i + 1) % m, (j + 3) % n]
            for i, j in T.Parallel(n, m):
                g[i, j] = f[(j + m - 1) % m, n - 1 - i]
            T.copy(g, C)

    a = integers(1, shape, "int32")
    machine.check(kernel, [a], [np.roll(a, (-1, -3), (0, 1)), np.roll(a, 1, 0).T[::-1]])


@pytest.mark.parametrize("threads", (64, 128))
def test_tl2396_a_fragment_written_in_a_serial_loop(machine: Machine, threads: int) -> None:
    """One element a trip, one row a trip, and an element whose place is known at run time."""
    n = 256 if machine.thorough else 32

    @T.prim_func
    def kernel(
        A: T.Tensor((n,), "float32"),
        at: T.int32,
        B: T.Tensor((n,), "float32"),
        C: T.Tensor((8, n // 8), "float32"),
        D: T.Tensor((n,), "float32"),
    ):
        with T.Kernel(1, threads=threads):
            f = T.alloc_fragment((n,), "float32")
            g = T.alloc_fragment((8, n // 8), "float32")
            for i in T.serial(n):
                f[i] = A[i] * 2
            T.copy(f, B)
            for i in T.serial(8):
                for j in T.Parallel(n // 8):
                    g[i, j] = A[i * (n // 8) + j] + i
            T.copy(g, C)
            f[at] = 1000
            T.copy(f, D)

    a = integers(1, (n,))
    loaded = machine.load(kernel)
    for at in (0, 17, n - 1):
        d = 2 * a
        d[at] = 1000
        rows = (a.reshape(8, -1) + np.arange(8)[:, None]).astype(np.float32)
        loaded.check([a, at], [2 * a, rows, d], note=f"at {at}")


def test_tl1744_a_part_of_a_small_fragment_into_a_larger_shared_tile(machine: Machine) -> None:
    """8 elements on 128 threads, of which 4 are copied down 64 columns, and a box into the middle of a tile."""

    @T.prim_func
    def kernel(
        V: T.Tensor((8,), "bfloat16"),
        M: T.Tensor((4, 8), "float32"),
        D: T.Tensor((4, 64), "bfloat16"),
        E: T.Tensor((16, 64), "float32"),
    ):
        with T.Kernel(1, threads=128):
            v_s = T.alloc_shared((8,), "bfloat16")
            v = T.alloc_fragment((8,), "float32")
            d = T.alloc_shared((4, 64), "bfloat16")
            m = T.alloc_fragment((4, 8), "float32")
            e = T.alloc_shared((16, 64), "float32")
            T.copy(V, v_s)
            T.copy(v_s, v)
            for k in T.serial(64):
                for i in T.Parallel(4):
                    d[i, k] = v[i]
            T.copy(d, D)
            T.copy(M, m)
            T.clear(e)
            T.copy(m[0:2, 4:8], e[10:12, 20:24])
            T.copy(e, E)

    v, m = integers(1, (8,)).astype(ml_dtypes.bfloat16), integers(2, (4, 8))
    e = np.zeros((16, 64), np.float32)
    e[10:12, 20:24] = m[:2, 4:]
    machine.check(kernel, [v, m], [np.repeat(v[:4, None], 64, 1), e])


@pytest.mark.parametrize("kind", ("add", "max", "min"))
def test_tl2959_an_atomic_update_of_a_whole_buffer_by_every_thread(machine: Machine, kind: str) -> None:
    """A value that each thread has for itself is combined 128 times; one that all share, once an element."""
    op = getattr(T, f"atomic_{kind}")

    @T.prim_func
    def kernel(A: T.Tensor((128,), "int32"), Out: T.Tensor((1,), "int32"), Tile: T.Tensor((4, 5), "int32")):
        with T.Kernel(1, threads=128):
            tx = T.get_thread_binding()
            op(Out, A[tx])
            op(Tile, A[3])

    a = integers(1, (128,), "int32")
    fn = {"add": np.add, "max": np.maximum, "min": np.minimum}[kind]
    tile = integers(2, (4, 5), "int32")
    own = fn.reduce([2, *a]).astype(np.int32)[None]
    start = np.array([2], np.int32)
    machine.check(kernel, [a], [own, fn(tile, a[3])], initial=[start, tile])


@pytest.mark.parametrize("threads", (1, 32, 48, 100, 128))
def test_tl2959_each_thread_of_a_block_adds_once(machine: Machine, threads: int) -> None:
    """Also where the threads fill no whole warp and nothing asks for their numbers."""

    @T.prim_func
    def kernel(A: T.Tensor((50,), "int32"), Count: T.Tensor((3,), "int32")):
        with T.Kernel(2, threads=threads):
            s = T.alloc_shared((1,), "int32")
            f = T.alloc_fragment((50,), "int32")
            T.copy(A, f)
            T.clear(s)
            T.atomic_add(Count[0], 1)
            T.atomic_add(s[0], 1)
            for i in T.Parallel(50):
                T.atomic_add(Count[1], f[i])
            T.sync_threads()
            T.atomic_max(Count[2], s[0])

    a = integers(1, (50,), "int32")
    wanted = np.array([2 * threads, 2 * a.sum(), threads], np.int32)
    machine.check(kernel, [a], wanted, initial=[np.zeros(3, np.int32)])


@pytest.mark.parametrize("first", [0, 64])
def test_copies_of_an_element_numbered_by_the_layouts_function(machine: Machine, first: int) -> None:
    """T.Fragment hands the copy's number to forward_fn; half of the block's threads hold the tile."""

    @T.prim_func
    def kernel(A: T.Tensor((4, 512), "float32"), B: T.Tensor((4, 512), "float32")):
        with T.Kernel(1, threads=128):
            x = T.alloc_fragment((4, 512), "float32")
            total = T.alloc_fragment((4,), "float32")
            T.annotate_layout(
                {
                    x: T.Fragment(x.shape, forward_fn=lambda i, j: (first + j // 8, i * 8 + j % 8)),
                    total: T.Fragment(total.shape, forward_fn=lambda i, rep: (first + rep, i), replicate=64),
                }
            )
            for i, j in T.Parallel(4, 512):
                x[i, j] = A[i, j]
            T.reduce_sum(x, total, dim=1)
            for i, j in T.Parallel(4, 512):
                B[i, j] = x[i, j] - total[i]

    a = np.random.default_rng(4).integers(-50, 50, (4, 512)).astype(np.float32)
    machine.check(kernel, [a], a - a.sum(1, keepdims=True))
