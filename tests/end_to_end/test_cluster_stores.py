"""T.copy_cluster(dst_block=…): a tile stored to the shared memory of another block of the cluster."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tileworkbench.language as T
from tests.regressions.machines import MACHINES
from tileworkbench.codegen.emit import emit
from tileworkbench.errors import LanguageError, SimulationError, TargetError
from tileworkbench.pipeline import run_passes
from tileworkbench.simulate import thread, tile
from tileworkbench.target import Target

from .harness import everywhere, integers, lowered

HOPPER = ("sm_90a",)
N = 128


def for_the_second(fragment: bool) -> Any:
    @T.prim_func
    def kernel(A: T.Tensor((N,), "float32"), B: T.Tensor((N,), "float32")):
        with T.ClusterKernel(2, threads=128, cluster_dims=(2, 1, 1)) as pid:
            source = T.alloc_fragment((N,), "float32") if fragment else T.alloc_shared((N,), "float32")
            there = T.alloc_shared((N,), "float32")
            bar = T.alloc_cluster_barrier([1])
            T.fill(there, 0)
            T.cluster_sync()
            if pid == 0:
                for i in T.Parallel(N):
                    source[i] = A[i] * 2
                T.copy_cluster(source, there, dst_block=1, remote_barrier=bar[0])
            if pid == 1:
                T.mbarrier_wait_parity(bar[0], 0)
                for i in T.Parallel(N):
                    B[i] = there[i]
            T.cluster_sync()

    return kernel


@pytest.mark.parametrize("fragment", [False, True])
def test_a_tile_for_the_second_block_and_its_barrier(fragment: bool) -> None:
    a = integers(1, (N,), "float32")
    made = everywhere(for_the_second(fragment), [a], a * 2, HOPPER)["sm_90a"]
    text = emit(made, Target.of("sm_90a")).text
    assert "st.shared::cluster" in text and "mbarrier.arrive.release.cluster.shared::cluster" in text


def ring(members: int, dtype: str, meet: bool = True) -> Any:
    """Every block hands its tile to the next and writes what it got; in a wider tile, a slice of it."""

    @T.prim_func
    def kernel(A: T.Tensor((members, 16, 24), dtype), B: T.Tensor((members, 16, 24), dtype)):
        with T.ClusterKernel(members, threads=64, cluster_dims=(members, 1, 1)) as bx:
            mine = T.alloc_shared((16, 32), dtype)
            got = T.alloc_shared((16, 40), dtype)
            rank = T.block_rank_in_cluster()
            T.copy(A[bx, :, :], mine[:, 4:28])
            T.cluster_sync()
            T.copy_cluster(mine[:, 4:28], got[:, 8:32], dst_block=(rank + 1) % members)
            if meet:
                T.cluster_sync()
            T.copy(got[:, 8:32], B[bx, :, :])
            T.cluster_sync()

    return kernel


DTYPES = ("float16", "bfloat16", "int8", "float32", "float64")


def tiles(dtype: str) -> np.ndarray:
    container = {"bfloat16": ml_dtypes.bfloat16}.get(dtype) or np.dtype(dtype)
    return np.random.default_rng(3).integers(-50, 50, (4, 16, 24)).astype(container)


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_block_hands_its_tile_to_the_next(dtype: str) -> None:
    a = tiles(dtype)
    everywhere(ring(4, dtype), [a], np.roll(a, 1, axis=0), HOPPER)


@pytest.mark.gpu
def test_on_a_card() -> None:
    card, a = MACHINES["card"], integers(1, (N,), "float32")
    for fragment in (False, True):
        card.check(for_the_second(fragment), [a], a * 2, HOPPER)
    for dtype in DTYPES:
        card.check(ring(4, dtype), [tiles(dtype)], np.roll(tiles(dtype), 1, axis=0), HOPPER, note=dtype)


def test_a_missing_meeting_is_a_race() -> None:
    made = lowered(ring(2, "float32", meet=False), "sm_90a")
    a = integers(1, (2, 16, 24), "float32")
    with pytest.raises(SimulationError, match=r"race|written"):
        thread.run(made, [a, np.zeros_like(a)], target=Target.of("sm_90a"), outputs=[1])


def test_phases_of_a_tile_that_is_used_again() -> None:
    """A producer block fills the consumer's tile in every trip; a free barrier goes the other way."""
    trips = 5

    @T.prim_func
    def kernel(A: T.Tensor((trips, 64), "int32"), B: T.Tensor((trips, 64), "int32")):
        with T.ClusterKernel(2, threads=64, cluster_dims=(2, 1, 1)) as bx:
            source = T.alloc_shared((64,), "int32")
            got = T.alloc_shared((64,), "int32")
            full = T.alloc_cluster_barrier([1])
            free = T.alloc_cluster_barrier([64])
            T.cluster_sync()
            if bx == 0:
                for k in T.serial(trips):
                    T.copy(A[k, :], source)
                    T.mbarrier_wait_parity(free, (k + 1) % 2)
                    T.copy_cluster(source, got, dst_block=1, remote_barrier=full)
            else:
                for k in T.serial(trips):
                    T.mbarrier_wait_parity(full, k % 2)
                    T.copy(got, B[k, :])
                    T.mbarrier_arrive(free, 0)
            T.cluster_sync()

    a = integers(2, (trips, 64), "int32")
    everywhere(kernel, [a], a, HOPPER)


def test_a_warpgroup_gives_what_another_block_multiplies() -> None:
    """The tile shares no bytes with others, and its stores are shown to the product."""

    @T.prim_func
    def kernel(A: T.Tensor((128, 64), "float16"), B: T.Tensor((64, 64), "float16"), C: T.Tensor((128, 64), "float32")):
        with T.ClusterKernel(2, threads=128, cluster_dims=(2, 1, 1)) as bx:
            a = T.alloc_shared((64, 64), "float16")
            b = T.alloc_shared((64, 64), "float16")
            own = T.alloc_shared((64, 64), "float16")
            c = T.alloc_fragment((64, 64), "float32")
            T.copy(A[bx * 64, 0], a)
            T.cluster_sync()
            if bx == 0:
                T.copy(B, own)
                T.copy_cluster(own, b, dst_block=0)
                T.copy_cluster(own, b, dst_block=1)
            T.cluster_sync()
            T.clear(c)
            T.gemm(a, b, c)
            T.copy(c, C[bx * 64, 0])

    a, b = integers(4, (128, 64), "float16"), integers(5, (64, 64), "float16")
    everywhere(kernel, [a, b], a.astype(np.float64) @ b.astype(np.float64), HOPPER)


def test_blocks_that_are_not_there() -> None:
    @T.prim_func
    def far(n: T.int32, B: T.Tensor((2,), "int32")):
        with T.ClusterKernel(2, threads=32, cluster_dims=(2, 1, 1)) as bx:
            s = T.alloc_shared((32,), "int32")
            T.fill(s, 1)
            T.cluster_sync()
            T.copy_cluster(s, s, dst_block=n)
            T.cluster_sync()
            B[bx] = 1

    for run in (
        lambda args: tile.run(far.kernel, args),
        lambda args: thread.run(lowered(far, "sm_90a"), args, target=Target.of("sm_90a")),
    ):
        with pytest.raises(SimulationError, match="the cluster has 2 blocks"):
            run([2, np.zeros(2, np.int32)])
    with pytest.raises(TargetError, match="clusters"):
        run_passes(far.kernel, Target.of("sm_80"))
    with pytest.raises(LanguageError, match="dst_block=2 in clusters of 2 blocks"):

        @T.prim_func
        def known(B: T.Tensor((2,), "int32")):
            with T.ClusterKernel(2, threads=32, cluster_dims=(2, 1, 1)):
                s = T.alloc_shared((32,), "int32")
                T.copy_cluster(s, s, dst_block=2)
