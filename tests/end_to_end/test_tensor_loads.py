"""T.tma_load with descriptors that kernels make themselves: boxes, their places and swizzles, and what is outside."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tileworkbench.language as T
from tileworkbench.codegen.emit import emit
from tileworkbench.compat.layouts import make_full_bank_swizzled_layout
from tileworkbench.errors import LayoutError, SimulationError
from tileworkbench.ir.instr import BulkLoad, TmaLoad
from tileworkbench.simulate import thread, tile
from tileworkbench.target import Target

from .harness import everywhere, instructions, integers, lowered

HOPPER = ("sm_90a",)
SPANS = (0, 32, 64, 128)


def corner(swizzle: int, *policy: int, layout: Any = None, at: int = 0, rows: int = 64):
    """The corner of a tensor, half of it outside, by boxes as wide as the swizzle's pattern."""
    wide = SPANS[swizzle] // 2 or 64

    @T.prim_func
    def kernel(A: T.Tensor((128, 128), "float16"), B: T.Tensor((64, 64), "float16")):
        with T.Kernel(1, threads=128):
            S = T.alloc_shared((64, 64), "float16")
            bar = T.alloc_barrier(1)
            if layout is not None:
                T.annotate_layout({S: layout(S)})
            desc = T.create_tma_descriptor(6, 2, A.data, 128, 128, 2, 256, wide, rows, 1, 1, 0, swizzle, 3, 0)
            if T.get_thread_binding() == 0:
                T.mbarrier_arrive_expect_tx(bar[0], 64 * rows * 2)
                for p in T.unroll(64 // wide):
                    T.tma_load(
                        desc,
                        bar[0],
                        T.tvm_access_ptr(T.type_annotation("float16"), S.data, at + p * 64 * wide, rows * wide, 2),
                        96 + p * wide,
                        32,
                        *policy,
                    )
            T.mbarrier_wait_parity(bar[0], 0)
            for i, j in T.Parallel(64, 64):
                B[i, j] = S[i, j]

    return kernel


def cut(a: np.ndarray) -> np.ndarray:
    out = np.zeros((64, 64), np.float16)
    out[:, :32] = a[32:96, 96:128]
    return out


@pytest.mark.parametrize("swizzle", range(4))
def test_boxes_and_their_swizzles(swizzle: int) -> None:
    a = integers(1, (128, 128), "float16")
    made = everywhere(corner(swizzle), [a], cut(a), HOPPER)["sm_90a"]
    (recipe,) = emit(made, Target.of("sm_90a")).maps
    assert (recipe.swizzle, recipe.l2, recipe.fill, recipe.strides) == (SPANS[swizzle], 256, "zero", (256,))
    assert len(instructions(made, TmaLoad)) == (64 * 2 // SPANS[swizzle] if swizzle else 1)


@pytest.mark.parametrize("policy, word", ((0, ""), (1, "0x12f0000000000000"), (2, "0x14f0000000000000")))
def test_eviction_policies(policy: int, word: str) -> None:
    a = integers(1, (128, 128), "float16")
    made = everywhere(corner(3, policy), [a], cut(a), HOPPER)["sm_90a"]
    text = emit(made, Target.of("sm_90a")).text
    assert (word in text) if word else "cache_hint" not in text


def test_a_tile_is_swizzled_as_its_boxes_are() -> None:
    a = integers(1, (128, 128), "float16")
    everywhere(corner(3, layout=make_full_bank_swizzled_layout), [a], cut(a), HOPPER)
    with pytest.raises(
        LayoutError,
        match="as 64-byte swizzle, 2 panels of 32 columns, and it is laid out as 128-byte",
    ):
        lowered(corner(2, layout=make_full_bank_swizzled_layout), "sm_90a")
    with pytest.raises(LayoutError, match="writes `S` as row-major, and it is laid out as 128-byte"):
        lowered(corner(0, layout=make_full_bank_swizzled_layout), "sm_90a")


def test_a_pipeline_of_products() -> None:
    """Stages that one lane fills and warpgroups multiply, as generated programs write it."""
    M, N, K, BK, stages = 128, 128, 256, 64, 3

    @T.prim_func
    def kernel(A: T.Tensor((M, K), "float16"), B: T.Tensor((N, K), "float16"), C: T.Tensor((M, N), "float32")):
        with T.Kernel(1, 2, threads=256) as (bx, by):
            As = T.alloc_shared((stages, 64, BK), "float16")
            Bs = T.alloc_shared((stages, N, BK), "float16")
            acc = T.alloc_fragment((64, N), "float32")
            bars = T.alloc_barrier([1] * stages + [128] * stages)
            if T.get_thread_binding() >= 128:
                for k in range(K // BK):
                    T.mbarrier_wait_parity(bars[k % stages + stages], T.bitwise_xor(k // stages % 2, 1))
                    if T.shuffle_elect(128):
                        T.mbarrier_arrive_expect_tx(bars[k % stages], (64 + N) * BK * 2)
                        T.tma_load(
                            T.create_tma_descriptor(6, 2, A.data, K, M, 2, K * 2, BK, 64, 1, 1, 0, 3, 2, 0),
                            bars[k % stages],
                            T.tvm_access_ptr(T.type_annotation("float16"), As.data, k % stages * 64 * BK, 64 * BK, 2),
                            k * BK,
                            by * 64,
                        )
                        T.tma_load(
                            T.create_tma_descriptor(6, 2, B.data, K, N, 2, K * 2, BK, N, 1, 1, 0, 3, 2, 0),
                            bars[k % stages],
                            T.access_ptr(Bs[k % stages, 0, 0], "w"),
                            k * BK,
                            bx * N,
                            0,
                        )
            else:
                T.clear(acc)
                for k in range(K // BK):
                    T.mbarrier_wait_parity(bars[k % stages], k // stages % 2)
                    T.gemm(As[k % stages, :, :], Bs[k % stages, :, :], acc, transpose_B=True)
                    T.ptx_arrive_barrier(bars[k % stages + stages])
                T.copy(acc, C[by * 64, bx * N])

    a, b = integers(2, (M, K), "float16", 4), integers(3, (N, K), "float16", 4)
    made = everywhere(kernel, [a, b], a.astype(float) @ b.astype(float).T, HOPPER)["sm_90a"]
    assert "wgmma" in emit(made, Target.of("sm_90a")).text


@pytest.mark.parametrize("span", (128, 64, 32))
def test_products_through_descriptors_of_both_kinds(span: int) -> None:
    """The copy engine's descriptors lay the tiles out, the products' descriptors read them so."""
    K, N = span // 2, 40
    mode = {128: 1, 64: 2, 32: 3}[span]

    @T.prim_func
    def kernel(A: T.Tensor((64, K), "float16"), B: T.Tensor((N, K), "float16"), C: T.Tensor((64, N), "float32")):
        with T.Kernel(1, threads=128):
            tx = T.get_thread_binding()
            a = T.alloc_shared((64, K), "float16")
            b = T.alloc_shared((N, K), "float16")
            c = T.alloc_local((N // 2,), "float32")
            bar = T.alloc_barrier(1)
            if tx == 0:
                T.mbarrier_arrive_expect_tx(bar[0], (64 + N) * K * 2)
                of_a = T.create_tma_descriptor(6, 2, A.data, K, 64, 2, span, K, 64, 1, 1, 0, SPANS.index(span), 2, 0)
                of_b = T.create_tma_descriptor(6, 2, B.data, K, N, 2, span, K, N, 1, 1, 0, SPANS.index(span), 2, 0)
                T.tma_load(of_a, bar[0], T.access_ptr(a[0, 0], "w"), 0, 0)
                T.tma_load(of_b, bar[0], T.access_ptr(b[0, 0], "w"), 0, 0)
            T.mbarrier_wait_parity(bar[0], 0)
            da, db = T.alloc_wgmma_desc(), T.alloc_wgmma_desc()
            T.initialize_wgmma_descriptor(da, T.access_ptr(a[0, 0]), mode, 1, 8 * span // 16)
            T.initialize_wgmma_descriptor(db, T.access_ptr(b[0, 0]), mode, 1, 8 * span // 16)
            T.warpgroup_arrive()
            for k in T.unroll(K // 16):
                T.ptx_wgmma_ss(
                    "float32", f"m64n{N}k16", True, True, "fp16", "fp16", "fp32", da, k * 2, db, k * 2, c, 0, k, 1, 1
                )
            T.warpgroup_commit_batch()
            T.warpgroup_wait(0)
            for i in T.serial(N // 8):
                for j in T.serial(4):
                    C[tx // 32 * 16 + tx % 32 // 4 + j // 2 * 8, i * 8 + tx % 4 * 2 + j % 2] = c[i * 4 + j]

    a, b = integers(10, (64, K), "float16", 7), integers(11, (N, K), "float16", 7)
    everywhere(kernel, [a, b], a.astype(float) @ b.astype(float).T, HOPPER)


def test_outside_is_not_a_number_where_it_is_asked_for() -> None:
    @T.prim_func
    def kernel(A: T.Tensor((40, 32), "float32"), B: T.Tensor((16, 32), "int32")):
        with T.Kernel(1, threads=128):
            S = T.alloc_shared((16, 32), "float32")
            bar = T.alloc_barrier(1)
            if T.get_thread_binding() == 0:
                T.mbarrier_arrive_expect_tx(bar[0], 16 * 32 * 4)
                desc = T.create_tma_descriptor("float32", 2, A, 32, 40, 4, 128, 32, 16, 1, 1, 0, 0, 0, 1)
                T.tma_load(desc, bar[0], T.address_of(S[0, 0]), -8, 32, 0)
            T.mbarrier_wait_parity(bar[0], 0)
            for i, j in T.Parallel(16, 32):
                B[i, j] = T.if_then_else(T.isnan(S[i, j]), 1000, T.cast(S[i, j], "int32"))

    a = integers(4, (40, 32))
    truth = np.full((16, 32), 1000)
    truth[:8, 8:] = a[32:40, :24]
    everywhere(kernel, [a], truth, HOPPER)


@pytest.mark.parametrize("sizes", (False, True))
def test_storage_under_another_shape(sizes: bool) -> None:
    """Images of any number as rows of pixels, and a box of three dimensions."""
    n = T.dynamic("n") if sizes else 6

    @T.prim_func
    def kernel(A: T.Tensor((n, 4, 8, 16), "int32"), B: T.Tensor((2, 8, 16), "int32")):
        with T.Kernel(1, threads=64):
            S = T.alloc_shared((2, 8, 16), "int32")
            bar = T.alloc_barrier(1)
            if T.get_thread_binding() == 0:
                T.mbarrier_arrive_expect_tx(bar[0], 2 * 8 * 16 * 4)
                T.tma_load(
                    T.create_tma_descriptor(
                        3, 3, A.data, 16, 8, n * 4, 4, 64, 512, 16, 8, 2, 1, 1, 1, 0, 0, 2, 0
                    ),
                    bar[0], S.data, 0, 4, 7,
                )  # fmt: skip
            T.mbarrier_wait_parity(bar[0], 0)
            T.copy(S, B)

    a = integers(5, (6, 4, 8, 16), "int32")
    truth = np.zeros((2, 8, 16), np.int32)
    truth[:, :4] = a.reshape(24, 8, 16)[7:9, 4:]
    everywhere(kernel, [a], truth, HOPPER)


def test_a_part_of_the_storage() -> None:
    """Every third row of a tensor, its first columns, and the box beyond them."""

    @T.prim_func
    def kernel(A: T.Tensor((30, 24), "int32"), B: T.Tensor((8, 16), "int32")):
        with T.Kernel(1, threads=64):
            S = T.alloc_shared((8, 16), "int32")
            bar = T.alloc_barrier(1)
            if T.get_thread_binding() == 0:
                T.mbarrier_arrive_expect_tx(bar[0], 8 * 16 * 4)
                desc = T.create_tma_descriptor(3, 2, A.data, 20, 10, 4, 3 * 96, 16, 8, 1, 1, 0, 0, 2, 0)
                T.tma_load(desc, bar[0], S.data, 8, 4)
            T.mbarrier_wait_parity(bar[0], 0)
            for i, j in T.Parallel(8, 16):
                B[i, j] = S[i, j]

    a = integers(6, (30, 24), "int32")
    truth = np.zeros((8, 16), np.int32)
    truth[:6, :12] = a[::3, :20][4:10, 8:20]
    everywhere(kernel, [a], truth, HOPPER)


def test_threads_ask_for_boxes_of_their_own() -> None:
    @T.prim_func
    def kernel(A: T.Tensor((16, 32), "float32"), B: T.Tensor((4, 4, 32), "float32")):
        with T.Kernel(1, threads=64):
            S = T.alloc_shared((4, 4, 32), "float32")
            bar = T.alloc_barrier(4)
            tx = T.get_thread_binding()
            desc = T.create_tma_descriptor(7, 2, A.data, 32, 16, 4, 128, 32, 4, 1, 1, 0, 0, 2, 0)
            if tx < 4:
                T.mbarrier_arrive_expect_tx(bar[0], 512)
                T.tma_load(desc, bar[0], T.access_ptr(S[tx, 0, 0], "w"), 0, 12 - tx * 4)
            T.mbarrier_wait_parity(bar[0], 0)
            T.copy(S, B)

    a = integers(7, (16, 32))
    everywhere(kernel, [a], a.reshape(4, 4, 32)[::-1], HOPPER)


def test_bytes_between_two_places() -> None:
    @T.prim_func
    def kernel(A: T.Tensor((4, 64), "float32"), B: T.Tensor((64,), "float32")):
        with T.Kernel(1, threads=64):
            S = T.alloc_shared((64,), "float32")
            bar = T.alloc_barrier(1)
            tx = T.get_thread_binding()
            if tx == 0:
                T.mbarrier_arrive_expect_tx(bar[0], 256)
                T.tma_load(T.access_ptr(S[0], "w"), T.access_ptr(A[2, 0], "r"), bar[0], 256, 0)
            T.mbarrier_wait_parity(bar[0], 0)
            B[tx] = S[63 - tx]

    a = integers(8, (4, 64))
    made = everywhere(kernel, [a], a[2, ::-1], HOPPER)["sm_90a"]
    assert len(instructions(made, BulkLoad)) == 1


def test_places_that_only_the_run_tells() -> None:
    @T.prim_func
    def kernel(A: T.Tensor((8, 32), "int32"), At: T.Tensor((1,), "int32"), B: T.Tensor((16, 32), "int32")):
        with T.Kernel(1, threads=64):
            S = T.alloc_shared((16, 32), "int32")
            bar = T.alloc_barrier(1)
            T.clear(S)
            if T.get_thread_binding() == 0:
                T.fence_proxy_async()
                T.mbarrier_arrive_expect_tx(bar[0], 1024)
                desc = T.create_tma_descriptor(3, 2, A.data, 32, 8, 4, 128, 32, 8, 1, 1, 0, 0, 2, 0)
                T.tma_load(desc, bar[0], T.tvm_access_ptr(T.int32, S.data, At[0], 256, 2), 0, 0)
            T.mbarrier_wait_parity(bar[0], 0)
            T.copy(S, B)

    a, out = integers(9, (8, 32), "int32"), np.zeros((16, 32), np.int32)
    truth = out.copy()
    truth[3:11] = a
    made = everywhere(kernel, [a, np.array([96], np.int32)], truth, HOPPER)["sm_90a"]
    for place, words, done in ((32 * 9, "it leaves `S`", "bounds"), (4, "is between two that a box starts", "128")):
        at = np.array([place], np.int32)
        with pytest.raises(SimulationError, match=words):
            tile.run(kernel.kernel, [a, at, out.copy()])
        with pytest.raises(SimulationError, match=done if done == "128" else "elements"):
            thread.run(made, [a, at, out.copy()], target=Target.of("sm_90a"), outputs=[2])
