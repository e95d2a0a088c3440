"""Kernels that were once compiled wrongly, each named after what was wrong; found by `python -m tests.fuzz` and shrunk.

Every kernel runs on the tile machine and, lowered for three targets, on the thread machine under three schedules."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import tileworkbench.language as T
from tileworkbench.codegen.emit import emit
from tileworkbench.errors import LaunchError
from tileworkbench.ir.check import check
from tileworkbench.pipeline import run_passes
from tileworkbench.runtime.plan import grid_of
from tileworkbench.simulate import thread, tile
from tileworkbench.target import Target

from .harness import everywhere, integers

TARGETS = ("sm_80", "sm_90a", "gfx942")
SCHEDULES = ("eager", "latest", "random")


def numbers(shape: tuple[int, ...], dtype: Any = np.float32, span: int = 6, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(-span, span + 1, shape).astype(dtype)


def agree(func: Any, inputs: Sequence[Any], outputs: Sequence[np.ndarray]) -> None:
    """Bit-equal `outputs` from zeroed arrays behind the inputs, everywhere."""

    def fresh() -> list[Any]:
        return [*[np.array(a) for a in inputs], *[np.zeros_like(o) for o in outputs]]

    def right(where: str, args: list[Any]) -> None:
        for got, wanted in zip(args[len(inputs) :], outputs, strict=True):
            np.testing.assert_array_equal(got.astype(np.float64), wanted.astype(np.float64), where)

    args = fresh()
    tile.run(func.kernel, args)
    right("tile machine", args)
    for name in TARGETS:
        target = Target.of(name)
        kernel = run_passes(func.kernel, target, lambda step, target=target: check(step.after, target=target))
        for schedule in SCHEDULES:
            args = fresh()
            thread.run(kernel, args, schedule=schedule, target=target)
            right(f"{name}, {schedule}", args)


def test_element_of_a_fragment_that_another_thread_holds() -> None:
    """A register index that depends on the thread is no register: the tile goes through shared memory."""

    @T.prim_func
    def kernel(A: T.Tensor((4, 4), "int32"), O: T.Tensor((2, 2), "int32")):  # noqa: E741
        with T.Kernel(1, threads=64) as bx:
            F = T.alloc_fragment((4, 4), "int32")
            G = T.alloc_fragment((2, 2), "int32")
            T.copy(A, F)
            for i, j in T.Parallel(2, 2):
                G[i, j] = F[1, j] + F[i, 3 - j]
            T.copy(G, O)

    a = numbers((4, 4), np.int32)
    agree(kernel, [a], [a[1, :2] + a[:2, ::-1][:, :2]])


def test_part_of_a_fragment_is_written_in_another_layout() -> None:
    """What the loop does not write keeps its value when the fragment is converted for it."""

    @T.prim_func
    def kernel(A: T.Tensor((8, 8), "float32"), O: T.Tensor((8, 8), "float32")):  # noqa: E741
        with T.Kernel(1, threads=64) as bx:
            F = T.alloc_fragment((8, 8), "float32")
            T.copy(A, F)
            for i, j in T.Parallel(4, 4):
                F[i + 2, j + 3] = 7
            T.copy(F, O)

    a = numbers((8, 8))
    wanted = a.copy()
    wanted[2:6, 3:7] = 7
    agree(kernel, [a], [wanted])


def test_element_that_a_select_reads_from_the_end_of_a_tensor() -> None:
    """A guarded load that also needs a fill has both."""

    @T.prim_func
    def kernel(A: T.Tensor((4, 17), "float16"), O: T.Tensor((1, 65), "float16")):  # noqa: E741
        with T.Kernel(1, threads=128) as bx:
            for i, j in T.Parallel(1, 65):
                O[i, j] = T.if_then_else(j < 40, A[1, j], 1)

    a = numbers((4, 17), np.float16)
    wanted = np.ones((1, 65), np.float16)
    wanted[0, :40] = 0
    wanted[0, :17] = a[1]
    agree(kernel, [a], [wanted])


def test_fragment_of_one_element() -> None:
    """Every extent 1: the filled fragment has the loop's rank."""

    @T.prim_func
    def kernel(O: T.Tensor((1, 2), "int32")):  # noqa: E741
        with T.Kernel(1, threads=64) as bx:
            F = T.alloc_fragment((1, 1), "int32")
            T.fill(F, -3)
            for i, j in T.Parallel(1, 1):
                O[i, j + 1] = F[i, j]

    agree(kernel, [], [np.array([[0, -3]], np.int32)])


@pytest.mark.parametrize("dtype", ("float16", "int32"))
def test_cleared_product(dtype: str) -> None:
    """clear_accum on warp products and on multiply-adds."""
    narrow, out = ("float16", "float32") if dtype == "float16" else ("int32", "int32")

    @T.prim_func
    def kernel(A: T.Tensor((16, 16), narrow), B: T.Tensor((16, 16), narrow), O: T.Tensor((16, 16), out)):  # noqa: E741
        with T.Kernel(1, threads=32) as bx:
            S = T.alloc_shared((16, 16), narrow)
            R = T.alloc_shared((16, 16), narrow)
            C = T.alloc_fragment((16, 16), out)
            T.copy(A, S)
            T.copy(B, R)
            T.fill(C, 5)
            for k in T.serial(3):
                T.gemm(S, R, C, clear_accum=k < 2)
            T.copy(C, O)

    a, b = numbers((16, 16), narrow), numbers((16, 16), narrow, seed=1)
    agree(kernel, [a, b], [2 * (a.astype(np.int64) @ b.astype(np.int64)).astype(out)])


def test_staged_and_asynchronous_copies_in_one_pipelined_loop() -> None:
    """A copy that converts is staged in registers; the other one has its own ring and is waited for."""

    @T.prim_func
    def kernel(A: T.Tensor((5, 64), "float32"), B: T.Tensor((5, 64), "int32"), O: T.Tensor((64,), "float32")):  # noqa: E741
        with T.Kernel(1, threads=64) as bx:
            S = T.alloc_shared((64,), "float32")
            R = T.alloc_shared((64,), "float32")
            C = T.alloc_fragment((64,), "float32")
            T.clear(C)
            for k in T.Pipelined(5, num_stages=3):
                T.copy(A[k, 0:64], S)
                T.copy(B[k, 0:64], R)
                for i in T.Parallel(64):
                    C[i] += S[i] * R[63 - i]
            T.copy(C, O)

    a, b = numbers((5, 64)), numbers((5, 64), np.int32, seed=1)
    agree(kernel, [a, b], [(a * b[:, ::-1]).sum(0).astype(np.float32)])


def test_ring_over_the_bytes_of_an_earlier_tile() -> None:
    """The first copies of a ring wait for the readers of the tile whose bytes it takes."""

    @T.prim_func
    def kernel(A: T.Tensor((64, 64), "float16"), B: T.Tensor((128, 64), "float16"), O: T.Tensor((64, 64), "float32")):  # noqa: E741
        with T.Kernel(1, threads=128) as bx:
            R = T.alloc_shared((64, 64), "float16")
            S = T.alloc_shared((64, 64), "float16")
            C = T.alloc_fragment((64, 64), "float32")
            T.copy(A, R)
            for i, j in T.Parallel(64, 64):
                C[i, j] = R[63 - i, j]
            for k in T.Pipelined(2, num_stages=2):
                T.copy(B[k * 64, 0], S)
                for i, j in T.Parallel(64, 64):
                    C[i, j] += S[j, i]
            T.copy(C, O)

    a, b = numbers((64, 64), np.float16), numbers((128, 64), np.float16, seed=1)
    agree(kernel, [a, b], [(a[::-1] + b[:64].T + b[64:].T).astype(np.float32)])


def test_ring_of_an_inner_loop_starts_again() -> None:
    """The first copies of the next round wait for the last reads of the round before."""

    @T.prim_func
    def kernel(A: T.Tensor((6, 64), "float32"), O: T.Tensor((3, 64), "float32")):  # noqa: E741
        with T.Kernel(1, threads=64) as bx:
            S = T.alloc_shared((64,), "float32")
            C = T.alloc_fragment((64,), "float32")
            for r in T.serial(3):
                T.clear(C)
                for k in T.Pipelined(2, num_stages=2):
                    T.copy(A[r * 2 + k, 0:64], S)
                    for i in T.Parallel(64):
                        C[i] = C[i] * 3 + S[63 - i]
                T.copy(C, O[r, 0:64])

    a = numbers((6, 64))
    agree(kernel, [a], [(a[0::2] * 3 + a[1::2])[:, ::-1]])


def test_update_of_a_shared_tile_by_a_replicated_vector() -> None:
    """Replicas of an iteration would read what another one has already changed."""

    @T.prim_func
    def kernel(A: T.Tensor((4, 4), "float32"), V: T.Tensor((4,), "float32"), O: T.Tensor((4, 4), "float32")):  # noqa: E741
        with T.Kernel(1, threads=64) as bx:
            S = T.alloc_shared((4, 4), "float32")
            R = T.alloc_fragment((4,), "float32")
            T.copy(A, S)
            T.copy(V, R)
            for i, j in T.Parallel(4, 4):
                S[i, j] = S[i, j] - R[i]
            T.copy(S, O)

    a, v = numbers((4, 4)), numbers((4,), seed=1)
    agree(kernel, [a, v], [a - v[:, None]])


def test_bulk_store_after_a_meeting_without_a_fence() -> None:
    """The meeting for an ordinary reader does not show ordinary stores to the copy engine."""

    @T.prim_func
    def kernel(O: T.Tensor((4, 6), "int32"), P: T.Tensor((4, 160), "int32")):  # noqa: E741
        with T.Kernel(1, threads=96) as bx:
            S = T.alloc_shared((4, 48), "int32")
            for k in T.serial(3):
                for i, j in T.Parallel(4, 48):
                    S[i, j] = i * 100 + j + k
                T.copy(S[0:4, 0:6], O)
                T.copy(S, P[0:4, k * 48 : k * 48 + 48])

    i, j = np.indices((4, 160))
    p = np.where(j < 144, i * 100 + j % 48 + j // 48, 0).astype(np.int32)
    o = (i[:, :6] * 100 + j[:, :6] + 2).astype(np.int32)
    agree(kernel, [], [o, p])


def test_tile_filled_before_and_inside_a_pipelined_loop_and_read_after_it() -> None:
    """A loaded tile that is also used elsewhere keeps one role and one version."""

    @T.prim_func
    def kernel(A: T.Tensor((64, 62), "float16"), B: T.Tensor((64, 128), "float16"), O: T.Tensor((64, 64), "float32"),  # noqa: E741
               P: T.Tensor((64, 32), "float16")):  # fmt: skip
        with T.Kernel(1, threads=128) as bx:
            S = T.alloc_shared((64, 32), "float16")
            C = T.alloc_fragment((64, 64), "float32")
            T.clear(C)
            T.copy(A[0, 40], S)
            T.gemm(S, S, C, transpose_B=True)
            for k in T.Pipelined(4, num_stages=3):
                T.copy(B[0, k * 32], S)
                T.gemm(S, S, C, transpose_B=True)
            T.copy(C, O)
            T.copy(S, P)

    a, b = numbers((64, 62), np.float16), numbers((64, 128), np.float16, seed=1)
    first, rest = a[:, 40:].astype(np.float64), b.astype(np.float64)
    agree(kernel, [a, b], [(first @ first.T + rest @ rest.T).astype(np.float32), b[:, 96:]])


def test_two_warpgroups_share_the_columns_of_one_swizzle_panel() -> None:
    """A wgmma operand cannot start in the middle of a panel: another layout or instruction is taken."""

    @T.prim_func
    def kernel(A: T.Tensor((64, 16), "float16"), B: T.Tensor((16, 64), "float16"), O: T.Tensor((64, 64), "float32")):  # noqa: E741
        with T.Kernel(1, threads=256) as bx:
            S = T.alloc_shared((64, 16), "float16")
            R = T.alloc_shared((16, 64), "float16")
            C = T.alloc_fragment((64, 64), "float32")
            T.copy(A, S)
            T.copy(B, R)
            T.clear(C)
            T.gemm(S, R, C, policy=T.GemmWarpPolicy.FullCol)
            T.copy(C, O)

    a, b = numbers((64, 16), np.float16), numbers((16, 64), np.float16, seed=1)
    agree(kernel, [a, b], [(a.astype(np.float64) @ b.astype(np.float64)).astype(np.float32)])


def test_threads_that_fill_no_whole_warp() -> None:
    """96 threads are a wave and a half on some targets: layouts count the threads that are launched."""

    @T.prim_func
    def kernel(A: T.Tensor((96, 4), "int32"), O: T.Tensor((4,), "int32")):  # noqa: E741
        with T.Kernel(1, threads=96) as bx:
            F = T.alloc_fragment((96, 4), "int32")
            R = T.alloc_fragment((4,), "int32")
            T.copy(A, F)
            T.reduce_bitxor(F, R, dim=0)
            T.copy(R, O)

    a = numbers((96, 4), np.int32)
    agree(kernel, [a], [np.bitwise_xor.reduce(a, 0)])


def test_narrow_integers_wrap_in_the_simplifier() -> None:
    """max(7, uint8(j)) was taken for 7, since uint8(-1) looked like 255 · j."""

    @T.prim_func
    def narrow(A: T.Tensor((64,), "uint8")):
        with T.Kernel(1, threads=64) as _:
            for i in T.Parallel(64):
                A[i] = T.max(T.cast(7, "uint8"), T.cast(i, "uint8")) % T.cast(6, "uint8")

    agree(narrow, [], [(np.maximum(7, np.arange(64)) % 6).astype(np.uint8)])


def test_boxes_of_tensor_copies_start_at_multiples_of_128_bytes() -> None:
    """Slices of 2 × 4 int32 are 32 bytes apart: one box must take them all."""

    @T.prim_func
    def slices(A: T.Tensor((48, 2, 4), "int32"), B: T.Tensor((48, 2, 4), "int32")):
        with T.Kernel(2, threads=128) as bx:
            tile = T.alloc_shared((24, 2, 4), "int32")
            T.copy(A[bx * 24, 0, 0], tile)
            for i, j, k in T.Parallel(24, 2, 4):
                B[bx * 24 + i, j, k] = tile[i, j, k] * 3

    a = np.arange(48 * 8, dtype=np.int32).reshape(48, 2, 4)
    agree(slices, [a], [a * 3])


def test_engine_loads_over_the_bytes_of_a_staged_ring() -> None:
    """What a ring stored with ordinary stores is fenced before the copy engine takes its bytes."""

    @T.prim_func
    def kernel(A: T.Tensor((32, 9), "float16"), B: T.Tensor((32, 32), "float16"), O: T.Tensor((32, 32), "float32"),  # noqa: E741
               P: T.Tensor((32, 32), "float16")):  # fmt: skip
        with T.Kernel(1, threads=256) as bx:
            S = T.alloc_shared((32, 32), "float16")
            R = T.alloc_shared((32, 32), "float16")
            C = T.alloc_fragment((32, 32), "float32")
            T.clear(C)
            for k in T.Pipelined(4, num_stages=4):
                T.copy(A[0, k * 3], S)
                for i, j in T.Parallel(32, 32):
                    C[i, j] += S[j, i]
            T.copy(B, R)
            T.copy(C, O)
            for i, j in T.Parallel(32, 32):
                P[i, j] = R[j, i]

    a, b = numbers((32, 9), np.float16), numbers((32, 32), np.float16, seed=1)
    padded = np.zeros((32, 48), np.float32)
    padded[:, :9] = a
    agree(kernel, [a, b], [sum(padded[:, k * 3 : k * 3 + 32] for k in range(4)).T, b.T])


def test_block_order_of_a_grid_of_three_dimensions() -> None:
    """T.use_swizzle orders the first two dimensions; the third keeps its place."""

    @T.prim_func
    def ordered(A: T.Tensor((3, 64, 96), "float32"), B: T.Tensor((3, 64, 96), "float32")):
        with T.Kernel(6, 4, 3, threads=64) as (bx, by, bz):
            T.use_swizzle(3)
            for i, j in T.Parallel(16, 16):
                B[bz, by * 16 + i, bx * 16 + j] = A[bz, by * 16 + i, bx * 16 + j] + bz

    a = numbers((3, 64, 96))
    agree(ordered, [a], [(a + np.arange(3)[:, None, None]).astype(np.float32)])


def test_a_shared_tile_that_nothing_touches_takes_no_memory() -> None:
    @T.prim_func
    def idle(A: T.Tensor((32,), "float32"), B: T.Tensor((32,), "float32")):
        with T.Kernel(1, threads=32):
            used = T.alloc_shared(32, "float32")
            unused = T.alloc_shared((512, 512), "float32")  # more than a block has
            T.copy(A, used)
            T.copy(used, B)

    a = numbers((32,))
    agree(idle, [a], [a])
    assert run_passes(idle.kernel, Target.of("sm_90a"), None).shared_bytes < 1024


def test_a_loop_that_loads_and_never_reads_keeps_its_warps_together() -> None:
    """Fuzzer's seed 91033: one warp filled the version twice before another had waited once."""

    @T.prim_func
    def idle(A: T.Tensor((2, 32), "float32"), B: T.Tensor((4, 32), "float32")):
        with T.Kernel(4, threads=64) as bx:
            held = T.alloc_shared((2, 32), "float32")
            for _ in T.Pipelined(bx, num_stages=3):
                T.copy(A[0, 0], held)
            for i in T.Parallel(32):
                B[bx, i] = A[0, i] + bx

    a = numbers((2, 32))
    agree(idle, [a], [(a[0][None] + np.arange(4)[:, None]).astype(np.float32)])


def test_values_bound_in_a_parallel_loop_of_a_written_out_loop() -> None:
    @T.prim_func
    def kernel(A: T.Tensor((8, 32), "int32"), B: T.Tensor((2, 32), "int32")):
        with T.Kernel(1, threads=64):
            f = T.alloc_fragment((8, 32), "int32")
            g = T.alloc_fragment((2, 32), "int32")
            T.copy(A, f)
            for k in range(2):
                for _i, j in T.Parallel(1, 32):
                    twice = f[3, j] * 2
                    g[k, j] = f[k, j] + twice
            T.copy(g, B)

    a = integers(77, (8, 32), "int32")
    everywhere(kernel, [a], a[:2] + 2 * a[3])


@pytest.mark.parametrize(("source", "result"), [("int8", "int32"), ("uint8", "float32"), ("float16", "float32")])
def test_sums_of_narrow_elements_are_taken_in_the_type_of_the_result(source: str, result: str) -> None:
    """int8 wrapped before it was widened; on the tile machine fp16 sums were rounded on their way to float32."""

    @T.prim_func
    def kernel(A: T.Tensor((4, 48), source), R: T.Tensor((4,), result), C: T.Tensor((4, 48), result)):
        with T.Kernel(1, threads=64) as bx:
            F = T.alloc_fragment((4, 48), source)
            S = T.alloc_shared((4, 48), source)
            G = T.alloc_shared((4, 48), result)
            total = T.alloc_fragment((4,), result)
            T.copy(A, F)
            T.copy(A, S)
            T.fill(total, 3)
            T.reduce_sum(F, total, dim=1, clear=False)
            T.copy(total, R)
            T.cumsum(S, G, dim=1)
            T.copy(G, C)

    a = np.abs(numbers((4, 48), np.int64, 60)) + 65
    a[:, 7] += 1 - a.sum(1) % 2  # odd sums, above what fp16 holds exactly
    assert (a.sum(1) > 2048).all()
    agree(kernel, [a.astype(source)], [(a.sum(1) + 3).astype(result), np.cumsum(a, 1).astype(result)])


def test_a_grid_that_no_launch_can_have_is_noted_and_refused_at_its_call() -> None:
    """TileLang's analysis of kernels reads such grids, so building one is no mistake."""

    @T.prim_func
    def kernel(A: T.Tensor((70000,), "float32")):
        with T.Kernel(1, 70000, threads=32) as (_, by):
            A[by] = 1.0

    made = run_passes(kernel.kernel, Target.of("sm_90a"))
    assert any("70000 blocks in y" in note and "65535" in note for note in made.notes)
    with pytest.raises(LaunchError, match="70000 blocks in y"):
        grid_of(emit(made, Target.of("sm_90a")), {})


@pytest.mark.parametrize("product", [True, False])
def test_bytes_that_cp_async_filled_before_the_copy_engine_in_a_loop(product: bool) -> None:
    """Fuzzer's seeds 1000213 and 1000345: the meeting was put before the loop, and the fence forgotten, since neither
    the engine nor wgmma reads the first tile."""

    @T.prim_func
    def kernel(A: T.Tensor((128, 346), "float16"), B: T.Tensor((32, 96), "float16"), O: T.Tensor((32, 32), "float32")):  # noqa: E741
        with T.Kernel(1, threads=128) as bx:
            S = T.alloc_shared((32, 128), "float16")
            Q = T.alloc_shared((32, 32), "float16")
            F = T.alloc_fragment((32, 32), "float32")
            T.clear(F)
            T.copy(A[0, bx * 128], S)
            if product:
                T.gemm(S, S, F, transpose_B=True)
            for k in T.serial(2):
                for _ in T.serial(1):
                    T.copy(B[0, k * 32], Q)
                for i, j in T.Parallel(32, 32):
                    F[i, j] += Q[j, i]
            T.copy(F, O)

    a, b = numbers((128, 346), np.float16), numbers((32, 96), np.float16)
    part = a[:32, :128].astype(np.float32)
    wanted = (b[:, :32] + b[:, 32:64]).T.astype(np.float32) + (part @ part.T if product else 0)
    agree(kernel, [a, b], [wanted])


def test_a_reduction_of_one_column_where_two_kinds_of_layout_put_all_elements_in_the_same_places() -> None:
    """Fuzzer's seed 2001120: the conversion between them moved nothing into the registers that the reduction read."""

    @T.prim_func
    def kernel(A: T.Tensor((300, 1), "float32"), O: T.Tensor((300,), "float32"), P: T.Tensor((300,), "float32")):  # noqa: E741
        with T.Kernel(1, threads=128):
            S = T.alloc_shared((300, 1), "float32")
            F = T.alloc_fragment((300, 1), "float32")
            G = T.alloc_fragment((300,), "float32")
            for i, j in T.Parallel(300, 1):
                S[i, j] = A[i, j]
                S[i, j] += 1
                F[i, j] = A[i, j] * 2
            T.reduce_absmax(F, G, dim=1)
            for i in T.Parallel(300):
                O[i] = G[1]
            T.copy(G, P)

    a = numbers((300, 1))
    wanted = np.abs(2 * a[:, 0])
    agree(kernel, [a], [np.full(300, wanted[1], np.float32), wanted])
