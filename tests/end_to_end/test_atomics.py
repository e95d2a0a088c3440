"""Atomic updates of elements and tiles: every thread or element exactly once."""

from __future__ import annotations

import numpy as np
import pytest

import tileworkbench.ir.instr as I
import tileworkbench.language as T
from tileworkbench.codegen.emit import emit
from tileworkbench.errors import LanguageError, TargetError
from tileworkbench.target import Target

from .harness import everywhere, instructions, integers, lowered


def test_histogram() -> None:
    @T.prim_func
    def kernel(A: T.Tensor((100,), "int32"), H: T.Tensor((8,), "int32")):
        with T.Kernel(4, threads=32) as bx:
            for i in T.Parallel(25):
                T.atomic_add(H[A[bx * 25 + i]], 1)

    a = np.random.default_rng(2).integers(0, 8, 100).astype(np.int32)
    everywhere(kernel, [a], np.bincount(a, minlength=8), initial=[np.zeros(8, np.int32)])


def test_split_k() -> None:
    @T.prim_func
    def kernel(A: T.Tensor((64, 128), "float16"), B: T.Tensor((128, 64), "float16"), C: T.Tensor((64, 64), "float32")):
        with T.Kernel(4, threads=128) as bk:
            A_s = T.alloc_shared((64, 32), "float16")
            B_s = T.alloc_shared((32, 64), "float16")
            C_l = T.alloc_fragment((64, 64), "float32")
            T.copy(A[0, bk * 32], A_s)
            T.copy(B[bk * 32, 0], B_s)
            T.gemm(A_s, B_s, C_l, clear_accum=True)
            T.atomic_add(C, C_l)

    a, b = integers(1, (64, 128), "float16", 4), integers(2, (128, 64), "float16", 4)
    everywhere(kernel, [a, b], a.astype(float) @ b.astype(float), initial=[np.zeros((64, 64), np.float32)])


def test_replicated_once() -> None:
    @T.prim_func
    def kernel(A: T.Tensor((32, 64), "float32"), B: T.Tensor((32,), "float32")):
        with T.Kernel(1, threads=128) as bx:
            F = T.alloc_fragment((32, 64), "float32")
            R = T.alloc_fragment((32,), "float32")
            T.copy(A, F)
            T.reduce_sum(F, R, dim=1)
            T.atomic_add(B, R)
            T.atomic_max(B[0:32], R)

    a = integers(1, (32, 64))
    s = a.sum(1)
    start = integers(3, (32,))
    everywhere(kernel, [a], np.maximum(start + s, s), initial=[start])


def test_previous() -> None:
    @T.prim_func
    def kernel(A: T.Tensor((4, 64), "int32"), Count: T.Tensor((1,), "int32"), Out: T.Tensor((256,), "int32")):
        with T.Kernel(4, threads=64) as bx:
            tx = T.get_thread_binding(0)
            at = T.alloc_var("int32", 0)
            at = T.atomic_add(Count[0], 1, return_prev=True)
            Out[at] = 1

    a = integers(1, (4, 64), "int32")
    everywhere(kernel, [a], [np.array([256]), np.ones(256)], initial=[np.zeros(1, np.int32), np.zeros(256, np.int32)])


def test_previous_parallel() -> None:
    @T.prim_func
    def kernel(A: T.Tensor((64,), "int32"), Count: T.Tensor((1,), "int32"), Out: T.Tensor((64,), "int32")):
        with T.Kernel(1, threads=32) as bx:
            for i in T.Parallel(64):
                if A[i] > 0:
                    at = T.atomic_add(Count[0], 1, return_prev=True, memory_order="acq_rel")
                    Out[at] = 1

    a = integers(1, (64,), "int32")
    n = (a > 0).sum()
    everywhere(
        kernel,
        [a],
        [np.array([n]), (np.arange(64) < n).astype(int)],
        initial=[np.zeros(1, np.int32), np.zeros(64, np.int32)],
    )


def test_orders() -> None:
    @T.prim_func
    def kernel(A: T.Tensor((64,), "int32"), B: T.Tensor((4,), "int32")):
        with T.Kernel(1, threads=64) as bx:
            tx = T.get_thread_binding(0)
            T.atomic_add(B[0], A[tx], memory_order="release")
            T.atomic_max(B[1], A[tx], memory_order="acquire")
            T.atomic_min(B[2], A[tx], memory_order="seq_cst")
            T.atomic_or(B[3], A[tx], memory_order="consume")

    a = integers(1, (64,), "int32")
    everywhere(
        kernel,
        [a],
        np.array([a.sum(), max(a.max(), 0), min(0, a.min()), np.bitwise_or.reduce(a)]),
        initial=[np.zeros(4, np.int32)],
    )


def test_packed() -> None:
    @T.prim_func
    def kernel(
        A: T.Tensor((64, 4), "float32"),
        H: T.Tensor((64, 4), "float16"),
        B: T.Tensor((4,), "float32"),
        C: T.Tensor((2,), "float16"),
    ):
        with T.Kernel(1, threads=64) as bx:
            tx = T.get_thread_binding(0)
            T.atomic_addx4(B[0], A[tx, 0])
            T.atomic_addx2(C[0], H[tx, 2])

    a = integers(1, (64, 4))
    h = integers(2, (64, 4), "float16", 5)
    k = everywhere(
        kernel, [a, h], [a.sum(0), h[:, 2:].sum(0)], initial=[np.zeros(4, np.float32), np.zeros(2, np.float16)]
    )


def test_shared_atomics() -> None:
    @T.prim_func
    def kernel(A: T.Tensor((128,), "int32"), B: T.Tensor((8,), "int32")):
        with T.Kernel(1, threads=64) as bx:
            S = T.alloc_shared((8,), "int32")
            T.clear(S)
            for i in T.Parallel(128):
                T.atomic_add(S[A[i]], 1)
            T.copy(S, B)

    a = np.random.default_rng(2).integers(0, 8, 128).astype(np.int32)
    everywhere(kernel, [a], np.bincount(a, minlength=8))


def test_block_level_atomic() -> None:
    @T.prim_func
    def kernel(A: T.Tensor((4,), "int32"), B: T.Tensor((1,), "int32")):
        with T.Kernel(4, threads=64) as bx:
            T.atomic_add(B[0], A[bx])

    a = integers(1, (4,), "int32")
    everywhere(kernel, [a], np.array([a.sum() * 64]), initial=[np.zeros(1, np.int32)])


def test_by_engine() -> None:
    @T.prim_func
    def kernel(
        A: T.Tensor((4, 64, 64), "float32"),
        V: T.Tensor((4, 256), "float32"),
        B: T.Tensor((64, 64), "float32"),
        W: T.Tensor((256,), "float32"),
    ):
        with T.Kernel(4, threads=128) as bx:
            S = T.alloc_shared((64, 64), "float32")
            R = T.alloc_shared((256,), "float32")
            for i, j in T.Parallel(64, 64):
                S[i, j] = A[bx, i, j] * 2
            T.copy(V[bx, 0:256], R)
            T.atomic_add(B, S, use_tma=True)
            T.atomic_add(W, R, use_tma=True)

    a = integers(1, (4, 64, 64))
    b = integers(2, (64, 64))
    v = integers(3, (4, 256))
    w = integers(4, (256,))
    k = everywhere(kernel, [a, v], [b + 2 * a.sum(0), w + v.sum(0)], ("sm_90a",), initial=[b, w])["sm_90a"]
    assert {s.reduce for s in instructions(k, I.TmaStore, I.BulkStore)} == {"add"}
    with pytest.raises(TargetError, match="copy engine") as error:
        lowered(kernel, "sm_80")
    assert error.value.loc is not None


@pytest.mark.parametrize("dtype", ["int64", "float64", "uint64"])
def test_wide_elements_added_by_the_copy_engine(dtype: str) -> None:
    @T.prim_func
    def line(A: T.Tensor((4, 128), dtype), B: T.Tensor((128,), dtype)):
        with T.Kernel(4, threads=128) as bx:
            S = T.alloc_shared((128,), dtype)
            T.copy(A[bx, 0:128], S)
            T.atomic_add(B, S, use_tma=True)

    a, b = np.abs(integers(1, (4, 128), dtype)), np.abs(integers(2, (128,), dtype))
    k = everywhere(line, [a], b + a.sum(0), ("sm_90a",), initial=[b])["sm_90a"]
    assert [s.reduce for s in instructions(k, I.BulkStore)] == ["add"]


@pytest.mark.parametrize("dtype", ["int16", "int64", "float64"])
def test_tiles_that_the_copy_engine_cannot_add_are_refused(dtype: str) -> None:
    @T.prim_func
    def tile(B: T.Tensor((16, 16), dtype)):
        with T.Kernel(1, threads=128):
            S = T.alloc_shared((16, 16), dtype)
            T.fill(S, 1)
            T.atomic_add(B, S, use_tma=True)

    with pytest.raises(TargetError, match=f"TMA atomic add does not support dtype {dtype}.*supported scalar") as error:
        lowered(tile, "sm_90a")
    assert error.value.loc is not None


@pytest.mark.parametrize("order", ["relaxed", "acquire", "seq_cst"])
@pytest.mark.parametrize("dtype", ["float32", "int64", "bfloat16", "float16"])
def test_loads_and_stores(dtype: str, order: str) -> None:
    @T.prim_func
    def kernel(A: T.Tensor((40, 30), dtype), B: T.Tensor((40, 30), dtype)):
        with T.Kernel(2, threads=64) as bx:
            for i, j in T.Parallel(32, 32):
                if bx * 32 + i < 40 and j < 30:
                    value = T.atomic_load(A[bx * 32 + i, j], memory_order=order)
                    T.atomic_store(B[bx * 32 + i, j], value * 2, "release" if order == "acquire" else order)

    a = integers(1, (40, 30), dtype)
    everywhere(kernel, [a], a + a)


def test_an_atomic_store_makes_a_shared_element_defined() -> None:
    @T.prim_func
    def kernel(A: T.Tensor((64,), "int32"), B: T.Tensor((64,), "int32")):
        with T.Kernel(1, threads=64):
            tx = T.get_thread_binding()
            S = T.alloc_shared((64,), "int32")
            T.atomic_store(S[63 - tx], A[tx])
            T.sync_threads()
            B[tx] = T.atomic_load(S[tx]) + S[tx]

    a = integers(1, (64,), "int32")
    everywhere(kernel, [a], 2 * a[::-1])


@pytest.mark.parametrize(
    ("text", "order"), [("load", "release"), ("load", "acq_rel"), ("store", "acquire"), ("store", "consume")]
)
def test_orders_that_a_load_or_store_cannot_have(text: str, order: str) -> None:
    with pytest.raises(LanguageError, match=f"atomic_{text} does not support memory_order"):

        @T.prim_func
        def kernel(A: T.Tensor((4,), "int32")):
            with T.Kernel(1, threads=32):
                if text == "load":
                    A[0] = T.atomic_load(A[1], memory_order=order)
                else:
                    T.atomic_store(A[1], 1, memory_order=order)


@pytest.mark.parametrize("lanes", [2, 4])
def test_packed_with_the_old_values(lanes: int) -> None:
    add = T.atomic_addx2 if lanes == 2 else T.atomic_addx4

    @T.prim_func
    def kernel(V: T.Tensor((lanes,), "float16"), D: T.Tensor((lanes,), "float16"), P: T.Tensor((lanes,), "float16")):
        with T.Kernel(1, threads=1):
            add(D, V)
            P[0:lanes] = add(D[0:lanes], V[0:lanes], return_prev=True)

    v, d = np.arange(1, lanes + 1, dtype=np.float16), np.full(lanes, 7, np.float16)
    everywhere(kernel, [v], [d + 2 * v, d + v], initial=[d, np.zeros(lanes, np.float16)])


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_packed_on_vectors(dtype: str) -> None:
    @T.prim_func
    def kernel(V: T.Tensor((64,), dtype), D: T.Tensor((64,), dtype), P: T.Tensor((64,), dtype)):
        with T.Kernel(1, threads=16):
            tx = T.get_thread_binding()
            at = T.Ramp(tx * 4, 1, 4)
            old = T.atomic_addx4(D[at], V[at] * 2, return_prev=True)
            P[tx * 4] = T.extract_lane(old, 0)
            P[tx * 4 + 1 : tx * 4 + 4] = old[1:]
            T.atomic_addx2(D[T.Ramp(tx * 4 + 2, -1, 2)], T.Broadcast(3, 2))

    v, d = integers(1, (64,), dtype), integers(2, (64,), dtype)
    added = d + v * 2
    added.reshape(16, 4)[:, 1:3] += 3
    everywhere(kernel, [v], [added, d], initial=[d, np.zeros(64, dtype)])


@pytest.mark.parametrize(
    ("dtype", "wide"), [("float32", {"sm_80": 1, "sm_90a": 2}), ("float16", {"sm_80": 2, "sm_90a": 2})]
)
def test_neighbours_are_added_together(dtype: str, wide: dict[str, int]) -> None:
    """A lane's two neighbours of a product go to memory in one access where the target has that."""

    @T.prim_func
    def kernel(A: T.Tensor((64, 32), "float16"), B: T.Tensor((32, 64), "float16"), C: T.Tensor((70, 64), dtype)):
        with T.Kernel(2, threads=128) as bk:
            A_s = T.alloc_shared((64, 16), "float16")
            B_s = T.alloc_shared((16, 64), "float16")
            C_l = T.alloc_fragment((64, 64), "float32")
            T.copy(A[0, bk * 16], A_s)
            T.copy(B[bk * 16, 0], B_s)
            T.gemm(A_s, B_s, C_l, clear_accum=True)
            for i, j in T.Parallel(64, 64):
                T.atomic_add(C[i + 8, j], C_l[i, j])  # the last two rows are not there

    a, b = integers(1, (64, 32), "float16", 4), integers(2, (32, 64), "float16", 4)
    truth = np.zeros((70, 64))
    truth[8:] = (a.astype(float) @ b.astype(float))[:62]
    made = everywhere(kernel, [a, b], truth, tuple(wide), initial=[np.zeros((70, 64), dtype)])
    for target, count in wide.items():
        assert {s.value.count for s in instructions(made[target], I.AtomicMem)} == {count}


def test_a_row_of_shared_memory_is_added_in_fours() -> None:
    @T.prim_func
    def kernel(A: T.Tensor((4, 512), "float32"), C: T.Tensor((512,), "float32")):
        with T.Kernel(4, threads=128) as bx:
            row = T.alloc_shared((512,), "float32")
            T.copy(A[bx, 0], row)
            T.atomic_add(C, row)

    a = integers(1, (4, 512))
    made = everywhere(kernel, [a], a.sum(0), ("sm_90a",), initial=[np.zeros(512, np.float32)])["sm_90a"]
    assert [s.value.count for s in instructions(made, I.AtomicMem)] == [4]
    assert "red.relaxed.gpu.global.add.v4.f32" in emit(made, Target.of("sm_90a")).text


def test_what_is_read_back_stays_single() -> None:
    """Old values, orders and maxima have no wide form."""

    @T.prim_func
    def kernel(A: T.Tensor((512,), "float32"), C: T.Tensor((512,), "float32")):
        with T.Kernel(1, threads=128):
            for i in T.Parallel(512):
                T.atomic_add(C[i], A[i], memory_order="acq_rel")
            for i in T.Parallel(512):
                T.atomic_max(C[i], A[i] * 3)

    a = integers(1, (512,))
    made = everywhere(kernel, [a], np.maximum(2 * a, 3 * a), ("sm_90a",), initial=[a])["sm_90a"]
    assert {s.value.count for s in instructions(made, I.AtomicMem)} == {1}
