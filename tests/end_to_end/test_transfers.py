"""Transfers into shared memory that kernels ask for by the instruction itself."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest

import tileworkbench.language as T
from tileworkbench.codegen.emit import emit
from tileworkbench.errors import LanguageError, SimulationError
from tileworkbench.ir.instr import BulkLoad, Sync
from tileworkbench.simulate import thread, tile
from tileworkbench.target import Target

from .harness import everywhere, instructions, integers, lowered

HOPPER = ("sm_90a",)


def test_a_tile_by_one_thread() -> None:
    @T.prim_func
    def kernel(A: T.Tensor((4, 64, 64), "float16"), B: T.Tensor((4, 64, 64), "float16")):
        with T.Kernel(4, threads=128) as bx:
            S = T.alloc_shared((64, 64), "float16")
            bar = T.alloc_barrier(1)
            tx = T.get_thread_binding()
            if tx == 0:
                T.ptx_arrive_barrier_expect_tx(bar[0], 64 * 64 * 2)
                T.ptx_cp_async_bulk("float16", S.data, 0, A.data, bx * 64 * 64, 64 * 64 * 2, bar[0])
            T.ptx_wait_barrier(bar[0])
            for i, j in T.Parallel(64, 64):
                B[bx, i, j] = S[j, i] + S[i, j]

    a = integers(1, (4, 64, 64), "float16", 20)
    made = everywhere(kernel, [a], a + a.transpose(0, 2, 1), HOPPER)["sm_90a"]
    assert len(instructions(made, BulkLoad)) == 1
    assert len(instructions(made, Sync)) == 1, "the barrier orders the tile, no other meeting does"
    text = emit(made, Target.of("sm_90a")).text
    assert "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes" in text


def gather(asking: int = 64, skew: int = 0, expected: int = 64 * 256):
    """Rows of a table, each brought by a thread of its own."""

    @T.prim_func
    def kernel(A: T.Tensor((100, 64), "float32"), Index: T.Tensor((64,), "int32"), B: T.Tensor((64, 64), "float32")):
        with T.Kernel(1, threads=128):
            S = T.alloc_shared((64, 64), "float32")
            bar = T.alloc_barrier(1)
            tx = T.get_thread_binding()
            if tx == 0:
                T.ptx_arrive_barrier_expect_tx(bar[0], expected)
            if tx < asking:
                T.ptx_cp_async_bulk(
                    S.data, tx % 64 * 64, T.address_of(A[Index[tx % 64], 0]), skew, 256, bar[0], dtype="float32"
                )
            T.ptx_wait_barrier(bar[0])
            for i, j in T.Parallel(64, 64):
                B[i, j] = S[j, i]

    return kernel


@cache
def table() -> tuple[np.ndarray, np.ndarray]:
    return integers(2, (100, 64)), np.random.default_rng(3).integers(0, 100, 64).astype(np.int32)


def test_rows_by_threads() -> None:
    a, index = table()
    everywhere(gather(), [a, index], a[index].T, HOPPER)


def test_a_ring_of_runs() -> None:
    """A producer's lane fills two parts of one tile in turn, from the middle of rows on."""

    @T.prim_func
    def kernel(A: T.Tensor((8, 48), "int32"), B: T.Tensor((3, 32), "int32")):
        with T.Kernel(1, threads=256):
            S = T.alloc_shared((2, 4, 8), "int32")
            total = T.alloc_fragment((32,), "int32")
            full = T.alloc_barrier([1] * 2)
            free = T.alloc_barrier([128] * 2)
            tx = T.get_thread_binding()
            if tx < 128:
                for k in T.serial(8):
                    T.barrier_wait(free[k % 2], (k // 2 + 1) % 2)
                    if tx == 0:
                        T.ptx_arrive_barrier_expect_tx(full[k % 2], 128)
                        T.ptx_cp_async_bulk(
                            "int32", T.access_ptr(S[k % 2, 0, 0], "w"), 0, A.data, k * 48 + 8, 128, full[k % 2]
                        )
            else:
                T.clear(total)
                for k in T.serial(8):
                    T.barrier_wait(full[k % 2], k // 2 % 2)
                    for i in T.Parallel(32):
                        total[i] += S[k % 2, i // 8, i % 8]
                    T.barrier_arrive(free[k % 2])
                T.copy(total, B[1, :])
                for i in T.Parallel(32):
                    B[0, i] = total[i] * 2
                    B[2, i] = -total[i]

    a = integers(4, (8, 48), "int32")
    total = a[:, 8:40].sum(0)
    everywhere(kernel, [a], np.stack([total * 2, total, -total]), HOPPER)


def run_both(kernel: Any, *args: np.ndarray) -> tuple[Exception | None, ...]:
    """What the tile machine and the thread machine raise."""
    found: list[Exception | None] = []
    low = lowered(kernel, "sm_90a")
    for run in (
        lambda: tile.run(kernel.kernel, [a.copy() for a in args]),
        lambda: thread.run(low, [a.copy() for a in args], target=Target.of("sm_90a"), outputs=[len(args) - 1]),
    ):
        try:
            run()
            found.append(None)
        except SimulationError as error:
            found.append(error)
    return tuple(found)


def test_what_goes_wrong_is_found() -> None:
    a, index = table()
    out = np.zeros((64, 64), np.float32)
    assert run_both(gather(), a, index, out) == (None, None)
    last = index.copy()
    last[7] = 99
    for broken, rows, meant, done in (
        (gather(asking=128), index, "several of 128 threads bring the same elements of `S`", "is not ordered after"),
        (gather(skew=2), index, "its place in `A` is not a multiple of 16 B", "it starts at a multiple of 16 bytes"),
        (gather(skew=64), last, "it leaves `A`", "element 6400 of 'A', which has 6400 elements"),
    ):
        first, second = run_both(broken, a, rows, out)
        assert meant in str(first) and done in str(second)
    # The tile machine's copies have landed when they are issued: it counts no bytes.
    assert "bytes" in str(run_both(gather(expected=64), a, index, out)[1])


def test_constant_places_are_judged_while_compiling() -> None:
    def kernel(place: int, size: int):
        @T.prim_func
        def made(A: T.Tensor((64,), "float32"), B: T.Tensor((64,), "float32")):
            with T.Kernel(1, threads=32):
                S = T.alloc_shared((64,), "float32")
                bar = T.alloc_barrier(1)
                if T.get_thread_binding() == 0:
                    T.ptx_arrive_barrier_expect_tx(bar[0], size)
                    T.ptx_cp_async_bulk("float32", S.data, 0, A.data, place, size, bar[0])
                T.ptx_wait_barrier(bar[0])
                B[T.get_thread_binding()] = S[T.get_thread_binding()]

        return made

    with pytest.raises(LanguageError, match="its place in `A` is byte 8"):
        lowered(kernel(2, 128), "sm_90a")
    with pytest.raises(LanguageError, match="it leaves `A`"):
        lowered(kernel(48, 128), "sm_90a")
    a = integers(5, (64,))
    truth = np.zeros(64, np.float32)
    truth[:32] = a[16:48]
    everywhere(kernel(16, 128), [a], truth, HOPPER, initial=[np.zeros(64, np.float32)])
