"""T.alloc_cluster_barrier: barriers on which the other blocks of a cluster arrive, and the cluster's meetings."""

from __future__ import annotations

import numpy as np
import pytest

import tileworkbench.language as T
from tileworkbench.codegen.emit import emit
from tileworkbench.errors import LaunchError, SimulationError, TargetError
from tileworkbench.pipeline import run_passes
from tileworkbench.simulate import thread, tile
from tileworkbench.target import Target

from .harness import everywhere, integers, lowered

HOPPER = ("sm_90a",)


def test_every_block_arrives_on_the_first_ones_barrier():
    @T.prim_func
    def kernel(A: T.Tensor((32,), "int32")):
        with T.ClusterKernel(32, threads=64, cluster_dims=(4, 1, 1)) as bx:
            bar = T.alloc_cluster_barrier([256])
            T.cluster_sync()
            T.mbarrier_arrive(bar, 0)
            if T.block_rank_in_cluster() == 0:
                T.mbarrier_wait_parity(bar, 0)
            if T.get_thread_binding() == 0:
                A[bx] = T.block_rank_in_cluster()
            T.cluster_sync()

    made = everywhere(kernel, [], np.arange(32) % 4, HOPPER)["sm_90a"]
    text = emit(made, Target.of("sm_90a")).text
    assert "mapa.shared::cluster" in text and "mbarrier.arrive.release.cluster.shared::cluster" in text
    assert "try_wait.parity.acquire.cluster" in text and "__cluster_dims__(4, 1, 1)" in text


def handed_on(arrive=True, meet=True):
    """Each block hands its tile to the next of its cluster through device memory."""

    @T.prim_func
    def kernel(A: T.Tensor((4, 64), "int32"), P: T.Tensor((4, 64), "int32"), B: T.Tensor((4, 64), "int32")):
        with T.ClusterKernel(2, 2, threads=64, cluster_dims=(2, 2, 1)) as (bx, by):
            tx = T.get_thread_binding()
            bar = T.alloc_cluster_barrier(64)
            rank = T.block_rank_in_cluster()
            P[rank, tx] = A[rank, tx] * 3
            if arrive:
                T.ptx_arrive_cluster_barrier(bar, (rank + 1) % 4)
                T.mbarrier_wait_parity(bar, 0)
            B[rank, tx] = P[(rank + 3) % 4, tx] + bx + 2 * by
            if meet:
                T.cluster_sync()

    return kernel


def test_a_tile_is_handed_to_the_next_block():
    a = integers(1, (4, 64), "int32")
    want = np.roll(a * 3, 1, axis=0) + np.arange(4)[:, None]
    everywhere(handed_on(), [a], [a * 3, want], HOPPER, initial=[np.zeros_like(a), np.zeros_like(a)])


def test_a_missing_wait_is_a_race():
    a = integers(1, (4, 64), "int32")
    made = lowered(handed_on(arrive=False), "sm_90a")
    with pytest.raises(SimulationError, match=r"race|has (read|written)|never written"):
        thread.run(made, [a, np.zeros_like(a), np.zeros_like(a)], target=Target.of("sm_90a"))


def test_a_meeting_hands_over_what_was_written():
    @T.prim_func
    def kernel(A: T.Tensor((8, 32), "int32"), P: T.Tensor((8, 32), "int32"), B: T.Tensor((8, 32), "int32")):
        with T.ClusterKernel(8, threads=32, cluster_dims=2) as bx:
            tx = T.get_thread_binding()
            P[bx, tx] = A[bx, tx] + 1
            T.cluster_arrive()
            T.cluster_wait()
            B[bx, tx] = P[bx ^ 1, tx]

    a = integers(2, (8, 32), "int32")
    want = (a + 1).reshape(4, 2, 32)[:, ::-1].reshape(8, 32)
    everywhere(kernel, [a], [a + 1, want], HOPPER, initial=[np.zeros_like(a), np.zeros_like(a)])


def test_phases_of_full_and_free_places_between_two_blocks():
    trips = 5

    @T.prim_func
    def kernel(A: T.Tensor((trips, 64), "int32"), P: T.Tensor((2, 64), "int32"), B: T.Tensor((trips, 64), "int32")):
        with T.ClusterKernel(2, threads=64, cluster_dims=(2, 1, 1)) as bx:
            tx = T.get_thread_binding()
            full = T.alloc_cluster_barrier([64] * 2)
            free = T.alloc_cluster_barrier([64] * 2)
            if bx == 0:
                for k in T.serial(trips):
                    T.mbarrier_wait_parity(free[k % 2], (k // 2 + 1) % 2)
                    P[k % 2, tx] = A[k, tx] - k
                    T.mbarrier_arrive(full[k % 2], 1)
            else:
                for k in T.serial(trips):
                    T.mbarrier_wait_parity(full[k % 2], (k // 2) % 2)
                    B[k, tx] = P[k % 2, tx] * 2
                    T.mbarrier_arrive(free[k % 2], 0)
            T.cluster_sync()

    a = integers(3, (trips, 64), "int32")
    b = ((a - np.arange(trips)[:, None]) * 2).astype(np.int32)
    p = np.stack([a[4] - 4, a[3] - 3])
    everywhere(kernel, [a], [p, b], HOPPER, initial=[np.zeros_like(p), np.zeros_like(b)])


def test_selected_warpgroups_and_threads_arrive_where_they_say():
    @T.prim_func
    def kernel(A: T.Tensor((4,), "int32")):
        with T.ClusterKernel(4, threads=256, cluster_dims=(4, 1, 1)) as bx:
            tx = T.get_thread_binding()
            bar = T.alloc_cluster_barrier(4)
            with T.ws(1):
                if tx < 132:
                    T.mbarrier_arrive(bar, tx - 128)
            with T.ws(0):
                T.mbarrier_wait_parity(bar, 0)
                if tx == 0:
                    A[bx] = bx + 5
            T.cluster_sync()

    everywhere(kernel, [], np.arange(4) + 5, HOPPER)


def test_too_few_arrivals_and_blocks_that_have_ended():
    @T.prim_func
    def few(A: T.Tensor((2,), "int32")):
        with T.ClusterKernel(2, threads=32, cluster_dims=(2, 1, 1)) as bx:
            bar = T.alloc_cluster_barrier(65)
            T.mbarrier_arrive(bar, 0)
            if bx == 0:
                T.mbarrier_wait_parity(bar, 0)
            A[bx] = 1

    @T.prim_func
    def late(A: T.Tensor((2,), "int32")):
        with T.ClusterKernel(2, threads=32, cluster_dims=(2, 1, 1)) as bx:
            bar = T.alloc_cluster_barrier(64)
            if bx == 1:
                T.mbarrier_arrive(bar, 0)
            A[bx] = 1

    for kernel, words in ((few, "deadlock"), (late, "has ended")):
        out = [np.zeros(2, np.int32)]
        with pytest.raises(SimulationError, match=words):
            tile.run(kernel.kernel, out)
        with pytest.raises(SimulationError, match=words):
            thread.run(lowered(kernel, "sm_90a"), out, schedule="latest", target=Target.of("sm_90a"))


def test_whole_clusters_and_targets_without_them():
    @T.prim_func
    def kernel(A: T.Tensor((3,), "int32")):
        with T.ClusterKernel(3, threads=32, cluster_dims=(2, 1, 1)) as bx:
            T.cluster_sync()
            A[bx] = 1

    out = [np.zeros(3, np.int32)]
    with pytest.raises(LaunchError, match="whole clusters"):
        tile.run(kernel.kernel, out)
    with pytest.raises(LaunchError, match="whole clusters"):
        thread.run(lowered(kernel, "sm_90a"), out, target=Target.of("sm_90a"))

    @T.prim_func
    def alone(A: T.Tensor((1,), "int32")):
        with T.Kernel(1, threads=32):
            bar = T.alloc_cluster_barrier(32)
            T.mbarrier_arrive(bar, 0)
            T.mbarrier_wait_parity(bar, 0)
            A[0] = 7

    everywhere(alone, [], np.array([7]), HOPPER)
    with pytest.raises(TargetError):
        run_passes(alone.kernel, Target.of("sm_80"))
