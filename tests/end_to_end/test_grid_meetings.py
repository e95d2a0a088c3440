"""T.sync_grid: all blocks of the grid meet, and see what the others have stored."""

from __future__ import annotations

import numpy as np
import pytest

import tileworkbench.language as T
from tests.end_to_end.harness import ALL, NVIDIA, everywhere, instructions, integers, lowered
from tileworkbench.codegen.emit import emit
from tileworkbench.errors import LanguageError, SimulationError
from tileworkbench.ir.instr import Sync
from tileworkbench.ir.node import map_items, rewrite
from tileworkbench.simulate import thread, tile
from tileworkbench.target import Target


def neighbours(blocks, n, rounds, meet=True):
    """Each round every block adds the tile of the next block to its own: what it reads, another one has written."""

    @T.prim_func
    def kernel(A: T.Tensor((blocks, n), "int32"), W: T.Tensor((rounds + 1, blocks, n), "int32")):
        with T.Kernel(blocks, threads=64) as b:
            mine = T.alloc_fragment((n,), "int32")
            for i in T.Parallel(n):
                mine[i] = A[b, i]
                W[0, b, i] = mine[i]
            for r in T.serial(rounds):
                if meet:
                    T.sync_grid()
                for i in T.Parallel(n):
                    mine[i] = mine[i] + W[r, (b + 1) % blocks, i]
                    W[r + 1, b, i] = mine[i]

    return kernel


def rounds_of(a: np.ndarray, rounds: int) -> np.ndarray:
    found = [a.astype(np.int64)]
    for _ in range(rounds):
        found.append(found[-1] + np.roll(found[-1], -1, axis=0))
    return np.stack(found)


@pytest.mark.parametrize(("blocks", "rounds"), [(1, 1), (5, 3)])
def test_every_block_sees_what_the_others_stored(blocks, rounds):
    a = integers(1, (blocks, 128), "int32")
    kernels = everywhere(neighbours(blocks, 128, rounds), [a], rounds_of(a, rounds), ALL)
    assert all(any(s.who == "grid" for s in instructions(k, Sync)) for k in kernels.values())


def test_without_the_meeting_it_is_a_race():
    kernel = lowered(neighbours(4, 64, 1, meet=False), "sm_90a")
    with pytest.raises(SimulationError, match="which block number"):
        thread.run(kernel, [integers(2, (4, 64), "int32"), np.zeros((2, 4, 64), np.int32)], target=Target.of("sm_90a"))


def test_a_lost_meeting_is_found():
    kernel = lowered(neighbours(4, 64, 1), "sm_90a")
    body = map_items(
        kernel.body, lambda s: rewrite(s, lambda n: None if isinstance(n, Sync) and n.who == "grid" else n)
    )
    args = [integers(2, (4, 64), "int32"), np.zeros((2, 4, 64), np.int32)]
    with pytest.raises(SimulationError, match="which block number"):
        thread.run(kernel.with_(body=body), args, target=Target.of("sm_90a"))


def test_tiles_that_the_copy_engine_stored_are_there():
    @T.prim_func
    def kernel(
        A: T.Tensor((4, 64, 64), "float16"), W: T.Tensor((4, 64, 64), "float16"), C: T.Tensor((64, 256), "float16")
    ):
        with T.Kernel(4, threads=128) as b:
            s = T.alloc_shared((64, 64), "float16")
            T.copy(A[b, 0, 0], s)
            T.copy(s, W[b, 0, 0])
            T.sync_grid()
            T.copy(W[3 - b, 0, 0], s)
            for i, j in T.Parallel(64, 64):
                C[i, b * 64 + j] = s[i, j] * 2

    a = integers(3, (4, 64, 64), "float16")
    everywhere(kernel, [a], [a, np.concatenate(a[::-1] * 2, axis=1)], NVIDIA)


def test_a_pipeline_before_and_after_stays_in_one_role():
    @T.prim_func
    def kernel(
        A: T.Tensor((128, 256), "float16"), P: T.Tensor((2, 64, 64), "float32"), C: T.Tensor((128, 64), "float32")
    ):
        with T.Kernel(2, threads=128) as b:
            a = T.alloc_shared((64, 64), "float16")
            acc = T.alloc_fragment((64, 64), "float32")
            T.clear(acc)
            for k in T.Pipelined(4, num_stages=2):
                T.copy(A[b * 64, k * 64], a)
                T.gemm(a, a, acc, transpose_B=True)
            T.copy(acc, P[b, 0, 0])
            T.sync_grid()
            for i, j in T.Parallel(64, 64):
                C[b * 64 + i, j] = P[0, i, j] + P[1, i, j]

    a = integers(4, (128, 256), "float16", 3)
    parts = np.stack([x.astype(np.float64) @ x.T.astype(np.float64) for x in (a[:64], a[64:])])
    kernels = everywhere(kernel, [a], [parts, np.concatenate([parts.sum(0)] * 2)], NVIDIA)
    assert any("the blocks of the grid meet" in n for n in kernels["sm_90a"].notes)
    source = emit(kernels["sm_90a"], Target.of("sm_90a"))
    assert source.cooperative and source.args[-1].kind == "stream"


def test_meetings_of_some_blocks_are_refused():
    @T.prim_func
    def branch(A: T.Tensor((4, 32), "int32")):
        with T.Kernel(4, threads=32) as b:
            A[b, T.get_thread_binding()] = 1
            if b < 2:
                T.sync_grid()

    @T.prim_func
    def loop(A: T.Tensor((4, 32), "int32")):
        with T.Kernel(4, threads=32) as b:
            for i in T.serial(b):
                A[b, T.get_thread_binding()] = i
                T.sync_grid()

    for kernel in (branch, loop):
        with pytest.raises(LanguageError, match="only some blocks"):
            lowered(kernel, "sm_90a")
        with pytest.raises(SimulationError, match="only some blocks"):
            tile.run(kernel.kernel, [np.zeros((4, 32), np.int32)])
