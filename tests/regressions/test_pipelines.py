"""Pipelined loops: rings read after the loop, guards, scratch tiles, tails, and the order of counters."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

import tileworkbench.language as T
from tests.end_to_end.harness import integers
from tileworkbench.errors import SimulationError
from tileworkbench.simulate import tile

from .machines import Machine


@pytest.mark.parametrize("stages", (0, 1, 2, 3, 4))
def test_tl3039_last_stage_after_the_loop(machine: Machine, stages: int) -> None:
    """The tile of the last trip, for 0 … 4 trips; without a trip, what the tile held before."""

    @T.prim_func
    def kernel(A: T.Tensor((5, 64), "float32"), n: T.int32, Out: T.Tensor((64,), "float32")):
        with T.Kernel(1, threads=64):
            S = T.alloc_shared((64,), "float32")
            T.copy(A[4, 0:64], S)
            for k in T.Pipelined(n, num_stages=stages):
                T.copy(A[k, 0:64], S)
            T.copy(S, Out)

    a = integers(1, (5, 64))
    loaded = machine.load(kernel)
    for trips in range(5):
        loaded.check([a, trips], a[trips - 1], note=f"{trips} trips")


@pytest.mark.parametrize("threads", (64, 128))
@pytest.mark.parametrize("place", ("behind the use", "guarded", "inner loop"))
def test_tl3039_tiles_loaded_at_two_depths(machine: Machine, place: str, threads: int) -> None:
    """Filled before the loop and inside of it, used on both sides of each load."""

    @T.prim_func
    def kernel(
        A: T.Tensor((5, 64), "float32"), B: T.Tensor((5, 64), "float32"), n: T.int32, Out: T.Tensor((64,), "float32")
    ):
        with T.Kernel(1, threads=threads):
            S = T.alloc_shared((64,), "float32")
            R = T.alloc_shared((64,), "float32")
            C = T.alloc_fragment((64,), "float32")
            T.clear(C)
            T.copy(A[4, 0:64], S)
            T.copy(B[4, 0:64], R)
            for k in T.Pipelined(n, num_stages=3):
                if place == "guarded":
                    if k % 2 == 0:
                        T.copy(A[k, 0:64], S)
                        T.copy(B[k, 0:64], R)
                elif place == "inner loop":
                    for j in T.serial(2):
                        T.copy(A[k + j, 0:64], S)
                        T.copy(B[k, 0:64], R)
                        for i in T.Parallel(64):
                            C[i] += S[63 - i] * R[i]
                for i in T.Parallel(64):
                    C[i] = C[i] * 2 + S[63 - i] - R[i]
                if place == "behind the use":
                    T.copy(A[k, 0:64], S)
                    T.copy(B[k, 0:64], R)
            for i in T.Parallel(64):
                C[i] = C[i] * 2 + S[63 - i] - R[i]
            T.copy(C, Out)

    a, b = integers(1, (5, 64)), integers(2, (5, 64))
    loaded = machine.load(kernel)
    for trips in machine.some(range(4), 3):
        s, r, c = a[4], b[4], np.zeros(64)
        for k in range(trips):
            for j in range(2 if place == "inner loop" else 0):
                s, r = a[k + j], b[k]
                c = c + s[::-1] * r
            if place == "guarded" and k % 2 == 0:
                s, r = a[k], b[k]
            c = c * 2 + s[::-1] - r
            if place == "behind the use":
                s, r = a[k], b[k]
        loaded.check([a, b, trips], (c * 2 + s[::-1] - r).astype(np.float32), note=f"{trips} trips")


@pytest.mark.parametrize("read", ("copy", "fragment", "gemm"))
def test_tl3039_constant_trips_and_other_readers(machine: Machine, read: str) -> None:
    @T.prim_func
    def kernel(
        A: T.Tensor((4, 64, 64), "float16"), Out: T.Tensor((64, 64), "float16"), C: T.Tensor((64, 64), "float32")
    ):
        with T.Kernel(1, threads=128):
            S = T.alloc_shared((64, 64), "float16")
            F = T.alloc_fragment((64, 64), "float16")
            acc = T.alloc_fragment((64, 64), "float32")
            T.clear(acc)
            for k in T.Pipelined(4, num_stages=3):
                T.copy(A[k, 0:64, 0:64], S)
                T.gemm(S, S, acc, transpose_B=True)
            if read == "copy":
                T.copy(S, Out)
            else:
                T.copy(S, F)
                T.copy(F, Out)
            if read == "gemm":
                T.gemm(S, S, acc, transpose_B=True)
            T.copy(acc, C)

    a = integers(2, (4, 64, 64), "float16", 4)
    products = np.einsum("kij,klj->kil", a.astype(np.int64), a.astype(np.int64))
    total = products.sum(0) + (products[3] if read == "gemm" else 0)
    machine.check(kernel, [a], [a[3], total.astype(np.float32)])


def test_tl3039_a_loop_without_trips_leaves_the_tile_unwritten() -> None:
    @T.prim_func
    def kernel(A: T.Tensor((4, 64), "float32"), n: T.int32, Out: T.Tensor((64,), "float32")):
        with T.Kernel(1, threads=64):
            S = T.alloc_shared((64,), "float32")
            for k in T.Pipelined(n, num_stages=3):
                T.copy(A[k, 0:64], S)
            T.copy(S, Out)

    a, out = integers(1, (4, 64)), np.zeros(64, np.float32)
    tile.run(kernel.kernel, [a, 2, out])
    np.testing.assert_array_equal(out, a[1])
    with pytest.raises(SimulationError) as error:
        tile.run(kernel.kernel, [a, 0, out])
    assert error.value.loc is not None and "`S`" in str(error.value)


@pytest.mark.parametrize("stages", (0, 1, 2, 3, 4))
def test_tl3031_one_scratch_tile_twice_a_trip(machine: Machine, stages: int) -> None:
    @T.prim_func
    def kernel(A: T.Tensor((5, 64), "float32"), B: T.Tensor((5, 64), "float32"), Out: T.Tensor((64,), "float32")):
        with T.Kernel(1, threads=64):
            S = T.alloc_shared((64,), "float32")
            C = T.alloc_fragment((64,), "float32")
            T.clear(C)
            for k in T.Pipelined(5, num_stages=stages):
                T.copy(A[k, 0:64], S)
                for i in T.Parallel(64):
                    C[i] += S[63 - i]
                T.copy(B[k, 0:64], S)
                for i in T.Parallel(64):
                    C[i] = C[i] * 2 - S[(i + 7) % 64]
            T.copy(C, Out)

    a, b = integers(1, (5, 64)), integers(2, (5, 64))
    c = np.zeros(64)
    for k in range(5):
        c = (c + a[k, ::-1]) * 2 - np.roll(b[k], -7)
    machine.check(kernel, [a, b], c.astype(np.float32))


MASKS = list(product((0, 1), repeat=6))


def masked(patterns: int, stages: int, inside: bool):  # type: ignore[no-untyped-def]
    @T.prim_func
    def kernel(
        A: T.Tensor((6, 32), "float32"), M: T.Tensor((patterns, 6), "int32"), Out: T.Tensor((patterns, 32), "float32")
    ):
        with T.Kernel(patterns, threads=32) as bx:
            S = T.alloc_shared((32,), "float32")
            C = T.alloc_fragment((32,), "float32")
            T.fill(C, 1)
            for k in T.Pipelined(6, num_stages=stages):
                if inside:
                    if M[bx, k] != 0:
                        T.copy(A[k, 0:32], S)
                        for i in T.Parallel(32):
                            C[i] = C[i] * 3 + S[31 - i]
                else:
                    T.copy(A[k, 0:32], S)
                    if M[bx, k] != 0:
                        for i in T.Parallel(32):
                            C[i] = C[i] * 3 + S[31 - i]
            T.copy(C, Out[bx, 0:32])

    return kernel


@pytest.mark.parametrize("inside", (True, False), ids=("copy inside", "copy outside"))
@pytest.mark.parametrize("stages", (0, 1, 2, 3, 4))
def test_tl2876_tiles_skipped_by_a_mask(machine: Machine, stages: int, inside: bool) -> None:
    """Every pattern of six trips."""
    patterns = machine.some(MASKS, 12)
    a, m = integers(1, (6, 32)), np.array(patterns, np.int32)
    wanted = np.ones((len(patterns), 32), np.float32)
    for row, k in product(range(len(patterns)), range(6)):
        if m[row, k]:
            wanted[row] = wanted[row] * 3 + a[k, ::-1]
    machine.check(masked(len(patterns), stages, inside), [a, m], wanted)


@pytest.mark.parametrize("stages", (1, 2, 3, 4))
def test_tl1799_a_guard_that_hangs_on_the_loop_index(machine: Machine, stages: int) -> None:
    """Products in a pipelined loop, guarded by the index, a run-time limit and the mask at once."""

    @T.prim_func
    def kernel(
        A: T.Tensor((192, 64), "float16"),
        M: T.Tensor((6,), "int32"),
        limit: T.int32,
        Out: T.Tensor((2, 64, 64), "float32"),
    ):
        with T.Kernel(2, threads=128) as bx:
            S = T.alloc_shared((32, 64), "float16")
            C = T.alloc_fragment((64, 64), "float32")
            T.clear(C)
            for k in T.Pipelined(6, num_stages=stages):
                if k * 32 + bx * 16 < limit and M[k] != 0:
                    T.copy(A[k * 32, 0], S)
                    T.gemm(S, S, C, transpose_A=True)
            T.copy(C, Out[bx, 0:64, 0:64])

    a = integers(1, (192, 64), "float16", 4)
    tiles = a.astype(np.int64).reshape(6, 32, 64)
    products = np.einsum("kri,krj->kij", tiles, tiles)
    loaded = machine.load(kernel)
    for limit, mask in machine.some([(113, 0b011110), (0, 63), (1, 63), (97, 63), (500, 63), (192, 0b101101)], 2):
        m = np.array([mask >> k & 1 for k in range(6)], np.int32)
        taken = [[bool(m[k]) and k * 32 + b * 16 < limit for k in range(6)] for b in range(2)]
        wanted = np.stack([products[np.array(t)].sum(0) for t in taken]).astype(np.float32)
        loaded.check([a, m, limit], wanted, note=f"limit {limit}, mask {mask:06b}")


@pytest.mark.parametrize(("stages", "specialised"), [(0, True), (2, True), (3, True), (3, False)])
def test_tl2548_a_pipelined_loop_inside_while(machine: Machine, stages: int, specialised: bool) -> None:
    """Stream-K: every program takes an even share of all trips, across the borders of tiles."""
    tiles, trips, programs, block = 2, 4, 3, 32

    @T.prim_func
    def kernel(
        A: T.Tensor((64, trips * block), "float16"),
        B: T.Tensor((tiles * 64, trips * block), "float16"),
        C: T.Tensor((64, tiles * 64), "float32"),
    ):
        with T.Kernel(programs, threads=128) as pid:
            if not specialised:
                T.annotate_pass_configs({"tl.disable_warp_specialized": True})
            a = T.alloc_shared((64, block), "float16")
            b = T.alloc_shared((64, block), "float16")
            acc = T.alloc_fragment((64, 64), "float32")
            start = T.alloc_local((1,), "int32")
            end = T.alloc_local((1,), "int32")
            start[0] = pid * tiles * trips // programs
            last = (pid + 1) * tiles * trips // programs
            while start[0] < last:
                end[0] = T.min(start[0] + (trips - start[0] % trips), last)
                tile_id = start[0] // trips
                first = start[0] % trips
                T.clear(acc)
                for k in T.Pipelined(end[0] - start[0], num_stages=stages):
                    T.copy(A[0, (k + first) * block], a)
                    T.copy(B[tile_id * 64, (k + first) * block], b)
                    T.gemm(a, b, acc, transpose_B=True)
                if first == 0 and end[0] % trips == 0:
                    T.copy(acc, C[0, tile_id * 64])
                else:
                    for i, j in T.Parallel(64, 64):
                        T.atomic_add(C[i, tile_id * 64 + j], acc[i, j])
                start[0] = end[0]

    a, b = integers(1, (64, trips * block), "float16", 4), integers(2, (tiles * 64, trips * block), "float16", 4)
    product = (a.astype(np.int64) @ b.astype(np.int64).T).astype(np.float32)
    machine.check(kernel, [a, b], product, ("sm_80", "sm_90a"), initial=[np.zeros_like(product)])


@pytest.mark.parametrize(("stages", "rows"), [(1, 50), (2, 1), (2, 63), (3, 50)])
def test_cl3241_a_predicated_copy_in_a_pipeline(machine: Machine, stages: int, rows: int) -> None:
    """Rows behind the end are 0, whatever lies there."""

    @T.prim_func
    def kernel(
        A: T.Tensor((rows, 96), "float16"),
        Side: T.Tensor((96, 64), "float16"),
        Out: T.Tensor((64, 64), "float32"),
        P: T.Tensor((64, 96), "float16"),
    ):
        with T.Kernel(1, threads=128):
            a = T.alloc_shared((64, 32), "float16")
            i = T.alloc_shared((32, 64), "float16")
            acc = T.alloc_fragment((64, 64), "float32")
            T.clear(acc)
            for k in T.Pipelined(3, num_stages=stages):
                T.copy(A[0, k * 32], a)
                T.copy(Side[k * 32, 0], i)
                T.gemm(a, i, acc)
                T.copy(a, P[0, k * 32])
            T.copy(acc, Out)

    a, i = integers(1, (rows, 96), "float16", 4), integers(2, (96, 64), "float16", 4)
    padded = np.zeros((64, 96), np.float16)
    padded[:rows] = a
    machine.check(kernel, [a, i], [(padded.astype(np.int64) @ i.astype(np.int64)).astype(np.float32), padded])
