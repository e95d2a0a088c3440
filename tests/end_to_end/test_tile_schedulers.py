"""T.PersistentTileScheduler and subclasses of T.BaseTileScheduler: which tiles a resident block works on, in order."""

from __future__ import annotations

import numpy as np
import pytest

import tileworkbench.language as T
from tileworkbench.errors import LanguageError

from .harness import ALL, NVIDIA, everywhere, integers


def order(rows: int, columns: int, swizzle: int, column_major: bool) -> list[tuple[int, int]]:
    """Panels of `swizzle` along the slow axis, each walked along the fast axis, slow lines innermost."""
    fast, slow = (rows, columns) if column_major else (columns, rows)
    panels = [range(first, min(first + swizzle, slow)) for first in range(0, slow, swizzle)]
    walk = [(f, s) for panel in panels for f in range(fast) for s in panel]
    return walk if column_major else [(s, f) for f, s in walk]


@pytest.mark.parametrize(
    ("rows", "columns", "workers", "swizzle", "column_major"),
    [(4, 3, 1, 1, True), (4, 3, 5, 1, False), (5, 7, 3, 2, True), (5, 7, 4, 3, False), (1, 1, 2, 8, True)],
)
def test_each_worker_takes_every_workers_th_tile(rows, columns, workers, swizzle, column_major):
    turns = -(-rows * columns // workers)

    @T.prim_func
    def kernel(A: T.Tensor((rows, columns), "int32"), B: T.Tensor((rows, columns), "int32")):
        with T.Kernel(workers, threads=32) as block:
            sched = T.PersistentTileScheduler(rows, columns, workers, swizzle, column_major, name="sched")
            sched.init(block)
            while sched.valid():
                A[sched.m_idx, sched.n_idx] = sched.current_iter * workers + block
                B[sched.m_idx, sched.n_idx] = sched.linear_idx
                sched.next_tile()

    want = np.zeros((rows, columns), np.int32)
    for number, place in enumerate(order(rows, columns, swizzle, column_major)):
        want[place] = number
    assert want.max() < turns * workers
    everywhere(kernel, [], [want, want], ALL)
    assert "sched_m_idx" in kernel.script()


def test_coordinates_without_state():
    @T.prim_func
    def kernel(A: T.Tensor((6, 5), "int32"), n: T.int32):
        with T.Kernel(30, threads=32) as block:
            sched = T.PersistentTileScheduler(6, 5, num_workers=30, swizzle_size=2, stateful=False)
            bx, by = sched.coord(block)
            A[bx, by] = block

    want = np.zeros((6, 5), np.int32)
    for number, place in enumerate(order(6, 5, 2, True)):
        want[place] = number
    from tileworkbench.simulate import tile

    found = np.zeros((6, 5), np.int32)
    tile.run(kernel.kernel, [found, 1])
    np.testing.assert_array_equal(found, want)
    assert "alloc_var" not in kernel.script()


def test_a_product_by_resident_blocks_with_sizes_known_at_the_call():
    size = T.dynamic("size")

    @T.prim_func
    def kernel(
        A: T.Tensor((size, 32), "float16"), B: T.Tensor((64, 32), "float16"), C: T.Tensor((size, 64), "float32")
    ):
        with T.Kernel(3, threads=128) as block:
            a, b = T.alloc_shared((32, 32), "float16"), T.alloc_shared((32, 32), "float16")
            c = T.alloc_fragment((32, 32), "float32")
            sched = T.PersistentTileScheduler(T.ceildiv(size, 32), 2, num_workers=3, swizzle_size=2)
            sched.init(block)
            while sched.valid():
                bx, by = sched.m_idx, sched.n_idx
                T.copy(A[bx * 32, 0], a)
                T.copy(B[by * 32, 0], b)
                T.gemm(a, b, c, transpose_B=True, clear_accum=True)
                T.copy(c, C[bx * 32, by * 32])
                sched.next_tile()

    a, b = integers(1, (160, 32), "float16", 4), integers(2, (64, 32), "float16", 4)
    everywhere(kernel, [a, b], a.astype("f4") @ b.astype("f4").T, NVIDIA)


def test_clusters_take_rows_of_blocks():
    @T.prim_func
    def kernel(A: T.Tensor((6, 3), "int32")):
        with T.ClusterKernel(4, threads=32, cluster_dims=2) as block:
            rank = T.block_rank_in_cluster()
            sched = T.PersistentTileScheduler(6, 3, num_workers=2, cluster_size=2)
            sched.init(block // 2)
            while sched.valid():
                A[sched.m_idx * 2 + rank, sched.n_idx] = sched.linear_idx * 10 + rank
                sched.next_tile()
            T.cluster_sync()

    want = np.array([[(r // 2 + 3 * c) * 10 + r % 2 for c in range(3)] for r in range(6)])
    everywhere(kernel, [], want, ("sm_90a",))


@T.meta_class
class Diagonal(T.BaseTileScheduler):
    """A subclass as users write it."""

    def __init__(self, side, workers):
        super().__init__(name="diagonal")
        self.side, self.workers = side, workers
        self._total_tiles = side * side

    def update_current_idx(self, linear_idx):
        self._m_idx[0] = linear_idx % self.side
        self._n_idx[0] = (linear_idx + linear_idx // self.side) % self.side


class Plain(T.BaseTileScheduler):
    """One without the decorator."""

    def __init__(self, side, workers):
        super().__init__()
        self.side, self.workers = side, workers
        self._total_tiles = side * side

    def update_current_idx(self, linear_idx):
        self._m_idx[0] = linear_idx % self.side
        self._n_idx[0] = (linear_idx + linear_idx // self.side) % self.side


@pytest.mark.parametrize("scheduler", [Diagonal, Plain])
def test_subclasses_say_which_tile_a_number_means(scheduler):
    @T.prim_func
    def kernel(A: T.Tensor((4, 4), "int32")):
        with T.Kernel(3, threads=32) as block:
            sched = scheduler(4, 3)
            sched.init(block)
            while sched.valid():
                A[sched.m_idx, sched.n_idx] = sched.linear_idx
                sched.next_tile(3)

    want = np.zeros((4, 4), np.int32)
    for n in range(16):
        want[n % 4, (n + n // 4) % 4] = n
    everywhere(kernel, [], want, NVIDIA)


def test_roles_walk_at_their_own_pace():
    @T.prim_func
    def kernel(A: T.Tensor((5, 128), "int32"), B: T.Tensor((5, 128), "int32")):
        with T.Kernel(2, threads=256) as block:
            tx = T.get_thread_binding()
            held = T.alloc_shared((2, 128), "int32")
            full, free = T.alloc_barrier([128] * 2), T.alloc_barrier([128] * 2)
            sched = T.PersistentTileScheduler(5, 1, num_workers=2)
            sched.init(block)
            if tx < 128:
                while sched.valid():
                    turn = sched.current_iter
                    T.mbarrier_wait_parity(free[turn % 2], (turn // 2 + 1) % 2)
                    held[turn % 2, tx] = A[sched.m_idx, tx] + turn
                    T.mbarrier_arrive(full[turn % 2])
                    sched.next_tile()
            else:
                while sched.valid():
                    turn = sched.current_iter
                    T.mbarrier_wait_parity(full[turn % 2], (turn // 2) % 2)
                    B[sched.m_idx, tx - 128] = held[turn % 2, tx - 128] * 2
                    T.mbarrier_arrive(free[turn % 2])
                    sched.next_tile()

    a = integers(3, (5, 128), "int32")
    everywhere(kernel, [a], (a + np.arange(5)[:, None] // 2) * 2, ("sm_90a",))


def test_misuse_is_refused():
    def kernel(make, use):
        @T.prim_func
        def k(A: T.Tensor((4,), "int32")):
            with T.Kernel(1, threads=32):
                sched = make()
                A[0] = use(sched)

        return k

    with pytest.raises(LanguageError, match="swizzle_size=0"):
        kernel(lambda: T.PersistentTileScheduler(2, 2, 1, 0), lambda s: s.m_idx)
    with pytest.raises(LanguageError, match="without state"):
        kernel(lambda: T.PersistentTileScheduler(2, 2, 1, stateful=False), lambda s: s.m_idx)
    with pytest.raises(LanguageError, match="update_current_idx"):
        kernel(lambda: T.BaseTileScheduler(), lambda s: s.init(0))
