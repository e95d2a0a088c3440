"""Copies between every two memories, whole and in part, by every instruction; hints are constraints."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tileworkbench.ir.instr as I
import tileworkbench.language as T
from tileworkbench.compat.intrinsics import get_swizzle_layout
from tileworkbench.compat.layouts import Layout
from tileworkbench.errors import LanguageError, SimulationError, TargetError
from tileworkbench.ir.kernel import Kernel
from tileworkbench.simulate import thread, tile
from tileworkbench.target import Target

from .harness import NVIDIA, everywhere, instructions, integers, lowered


def chosen(kernel: Kernel) -> dict[str, str]:
    """What the plan says that each operation became."""
    return {d.op: d.chosen for d in kernel.decisions}


def test_shared_to_shared() -> None:
    @T.prim_func
    def kernel(A: T.Tensor((64, 64), "float16"), B: T.Tensor((64, 64), "float16"), C: T.Tensor((32, 64), "float32")):
        with T.Kernel(1, threads=128):
            S = T.alloc_shared((64, 64), "float16")
            R = T.alloc_shared((64, 64), "float16")
            Q = T.alloc_shared((32, 64), "float32")
            T.copy(A, S)
            T.copy(S, R)
            T.copy(S[32:64, 0:64], Q)
            T.copy(R, B)
            T.copy(Q, C)

    a = integers(1, (64, 64), "float16")
    everywhere(kernel, [a], [a, a[32:]])


def test_shared_slices() -> None:
    @T.prim_func
    def kernel(A: T.Tensor((64, 64), "float32"), B: T.Tensor((64, 64), "float32")):
        with T.Kernel(1, threads=128):
            S = T.alloc_shared((64, 64), "float32")
            T.copy(A[0:32, 0:32], S[32:64, 32:64])
            T.copy(A[32:64, 0:32], S[0:32, 32:64])
            T.copy(A[0:32, 32:64], S[32:64, 0:32])
            T.copy(A[32:64, 32:64], S[0:32, 0:32])
            T.copy(S, B)

    a = integers(1, (64, 64))
    everywhere(kernel, [a], np.block([[a[32:, 32:], a[32:, :32]], [a[:32, 32:], a[:32, :32]]]))


def test_fragment_slices() -> None:
    @T.prim_func
    def kernel(A: T.Tensor((64, 64), "float32"), B: T.Tensor((64, 64), "float32"), C: T.Tensor((64, 32), "float32")):
        with T.Kernel(1, threads=128):
            F = T.alloc_fragment((64, 64), "float32")
            S = T.alloc_shared((64, 32), "float32")
            T.copy(A, F)
            T.fill(F[0:32, 0:64], 3)
            T.copy(A[0:16, 0:32], F[48:64, 32:64])
            T.copy(F[0:64, 16:48], S)
            T.copy(F, B)
            T.copy(S, C)

    a = integers(1, (64, 64))
    w = a.copy()
    w[:32] = 3
    w[48:, 32:] = a[:16, :32]
    everywhere(kernel, [a], [w, w[:, 16:48]])


def test_mma_roundtrip() -> None:
    @T.prim_func
    def kernel(A: T.Tensor((64, 64), "float16"), B: T.Tensor((64, 64), "float16"), C: T.Tensor((64, 64), "float16")):
        with T.Kernel(1, threads=128):
            As = T.alloc_shared((64, 64), "float16")
            Bs = T.alloc_shared((64, 64), "float16")
            Cs = T.alloc_shared((64, 64), "float16")
            Af = T.alloc_fragment((64, 64), "float16")
            acc = T.alloc_fragment((64, 64), "float32")
            out = T.alloc_fragment((64, 64), "float16")
            T.copy(A, As)
            T.copy(B, Bs)
            T.copy(As, Af)
            T.gemm(Af, Bs, acc, clear_accum=True)
            T.copy(acc, out)
            T.copy(out, Cs)
            T.copy(Cs, C)

    a, b = integers(1, (64, 64), "float16", 4), integers(2, (64, 64), "float16", 4)
    k = everywhere(kernel, [a, b], a.astype(float) @ b.astype(float))
    assert chosen(k["sm_80"])["copy(out, Cs)"] == "vector"
    assert chosen(k["sm_80"])["copy(As, Af)"] == "ldmatrix"
    assert chosen(k["sm_90a"])["copy(As, Af)"] == "ldmatrix"
    assert chosen(k["sm_90a"])["copy(out, Cs)"] == "stmatrix"


def test_acc_to_shared_cast() -> None:
    @T.prim_func
    def kernel(A: T.Tensor((64, 64), "float16"), B: T.Tensor((64, 64), "float16"), C: T.Tensor((64, 64), "float16")):
        with T.Kernel(1, threads=128):
            As = T.alloc_shared((64, 64), "float16")
            Bs = T.alloc_shared((64, 64), "float16")
            Cs = T.alloc_shared((64, 64), "float16")
            acc = T.alloc_fragment((64, 64), "float32")
            T.copy(A, As)
            T.copy(B, Bs)
            T.gemm(As, Bs, acc, clear_accum=True)
            T.copy(acc, Cs)
            T.copy(Cs, C)

    a, b = integers(1, (64, 64), "float16", 4), integers(2, (64, 64), "float16", 4)
    k = everywhere(kernel, [a, b], a.astype(float) @ b.astype(float))
    assert chosen(k["sm_90a"])["copy(acc, Cs)"] == "stmatrix"
    assert "`Cs` was written" in instructions(k["sm_90a"], I.Fence)[-1].reason
    assert len(instructions(k["sm_90a"], I.TmaStore)) == 1


def test_bulk_1d() -> None:
    @T.prim_func
    def kernel(A: T.Tensor((4096,), "float32"), B: T.Tensor((4096,), "float32")):
        with T.Kernel(4, threads=128) as bx:
            S = T.alloc_shared((1024,), "float32")
            T.copy(A[bx * 1024], S)
            for i in T.Parallel(1024):
                S[i] = S[i] + 1
            T.copy(S, B[bx * 1024])

    a = integers(1, (4096,))
    k = everywhere(kernel, [a], a + 1)
    assert chosen(k["sm_90a"]) == {"copy(A, S)": "bulk", "copy(S, B)": "bulk"}


@pytest.mark.parametrize("ev", (None, "evict_first", "evict_last", "evict_normal"))
@pytest.mark.parametrize(("pref", "want"), (("tma", I.TmaLoad), ("cp_async", I.CopyAsync), ("sync", I.LoadMem)))
def test_hints(pref, want, ev):  # type: ignore[no-untyped-def]
    @T.prim_func
    def kernel(A: T.Tensor((64, 64), "float16"), B: T.Tensor((64, 64), "float16")):
        with T.Kernel(1, threads=128):
            S = T.alloc_shared((64, 64), "float16")
            T.copy(A, S, prefer_instruction=pref, eviction_policy=ev)
            T.copy(S, B, disable_tma=True, eviction_policy=ev)

    a = integers(1, (64, 64), "float16")
    k = everywhere(kernel, [a], a, ("sm_90a",))["sm_90a"]
    found = instructions(k, want)
    assert found, pref
    if pref == "tma":
        assert found[0].hint == ("" if ev in (None, "evict_normal") else ev)
    if pref == "sync":
        assert found[0].cache == ("cs" if ev == "evict_first" else "")
    assert not instructions(k, I.TmaStore)


def test_async_store() -> None:
    @T.prim_func
    def kernel(A: T.Tensor((64, 64), "float16"), B: T.Tensor((64, 64), "float16")):
        with T.Kernel(1, threads=128):
            S = T.alloc_shared((64, 64), "float16")
            F = T.alloc_fragment((64, 64), "float16")
            for k in T.serial(2):
                T.copy(A[k * 32, 0], F[0:32, :])
                for i, j in T.Parallel(32, 64):
                    S[i, j] = A[k * 32 + i, j] * 2
                T.copy(S[0:32, :], B[k * 32, 0])

    a = integers(1, (64, 64), "float16")
    k = everywhere(kernel, [a], a * 2, ("sm_90a",))


def test_ranks() -> None:
    @T.prim_func
    def kernel(A: T.Tensor((4, 3, 32, 2, 64), "float16"), B: T.Tensor((4, 3, 32, 2, 64), "float16")):
        with T.Kernel(4, 3, 2, threads=64) as (bx, by, bz):
            S = T.alloc_shared((32, 64), "float16")
            T.copy(A[bx, by, :, bz, :], S)
            T.copy(S, B[bx, by, :, bz, :])

    a = integers(1, (4, 3, 32, 2, 64), "float16")
    everywhere(kernel, [a], a)


@pytest.mark.parametrize("columns", [16, 32, 64, 128])
def test_a_swizzle_written_as_a_function_is_what_the_copy_engine_writes(columns: int) -> None:
    def swizzled(i: Any, j: Any) -> list[Any]:
        return [*get_swizzle_layout(i, j, columns, "float16")]

    @T.prim_func
    def kernel(A: T.Tensor((64, 2 * columns), "float16"), C: T.Tensor((64, 2 * columns), "float16")):
        with T.Kernel(1, threads=64):
            a = T.alloc_shared((64, columns), "float16")
            T.annotate_layout({a: Layout((64, columns), swizzled)})
            for k in T.serial(2):
                T.copy(A[0, k * columns], a)
                for i, j in T.Parallel(64, columns):
                    C[i, k * columns + j] = a[i, j] * 2

    a = integers(11, (64, 2 * columns), "float16")
    kernels = everywhere(kernel, [a], a * 2, NVIDIA)
    assert instructions(kernels["sm_90a"], I.TmaLoad)


@pytest.mark.parametrize(
    ("place", "moved"),
    [
        (lambda i, j: [j, i], 0),  # elements of a row lie apart: ordinary stores
        (lambda i, j: [i, j // 4, 1 - j % 4 // 2, j % 2], 4),  # pairs change places
        (lambda i, j: [j // 8, i, j % 8], 16),
    ],
)
def test_asynchronous_copies_keep_to_an_annotated_layout(place, moved) -> None:  # type: ignore[no-untyped-def]
    @T.prim_func
    def kernel(A: T.Tensor((32, 32), "float16"), B: T.Tensor((32, 32), "float16")):
        with T.Kernel(1, threads=64) as _:
            s = T.alloc_shared((32, 32), "float16")
            T.annotate_layout({s: T.Layout([32, 32], place)})
            T.copy(A, s)
            for i, j in T.Parallel(32, 32):
                B[i, j] = s[i, 31 - j]

    a = integers(3, (32, 32), "float16")
    made = everywhere(kernel, [a], a[:, ::-1], ("sm_80", "sm_90a"))
    for lowered_kernel in made.values():
        assert {s.bytes for s in instructions(lowered_kernel, I.CopyAsync)} == ({moved} if moved else set())


def test_a_start_that_has_a_name_keeps_what_is_known_of_it() -> None:
    @T.prim_func
    def kernel(A: T.Tensor((128, 128), "float16"), B: T.Tensor((128, 128), "float16")):
        with T.Kernel(2, threads=64) as bx:
            s = T.alloc_shared((128, 32), "float16")
            for k in T.Pipelined(2, num_stages=2):
                row, column = 0, bx * 64 + k * 32
                T.copy(A[row, column], s)
                T.copy(s, B[row, column])

    a = integers(4, (128, 128), "float16")
    made = everywhere(kernel, [a], a, ("sm_80",))
    assert {s.bytes for s in instructions(made["sm_80"], I.CopyAsync)} == {16}


@pytest.mark.parametrize("moving", [False, True])
def test_copies_at_a_place_that_a_variable_holds(moving: bool) -> None:
    """A variable that the loop leaves alone is no reason not to run copies ahead; one that it changes is."""

    @T.prim_func
    def kernel(First: T.Tensor((2,), "int32"), A: T.Tensor((160, 32), "float16"), B: T.Tensor((3, 32, 32), "float32")):
        with T.Kernel(1, threads=64) as _:
            s = T.alloc_shared((32, 32), "float16")
            at = T.alloc_var("int32")
            at = 0
            for i in T.serial(2):
                at = T.max(at, First[i])
            for k in T.Pipelined(3, num_stages=2):
                T.copy(A[at + k * 32, 0], s)
                for i, j in T.Parallel(32, 32):
                    B[k, i, j] = s[i, 31 - j] * 2
                if moving:
                    at = at + 1

    a, first = integers(4, (160, 32), "float16"), np.int32([5, 33])
    rows = [33 + k * (33 if moving else 32) for k in range(3)]
    truth = np.stack([a[row : row + 32, ::-1].astype(float) * 2 for row in rows])
    made = everywhere(kernel, [first, a], truth, ("sm_80", "sm_90a"))
    assert any("is not pipelined" in note for note in made["sm_80"].notes) == moving


@pytest.mark.parametrize(
    ("rows", "columns", "step_rows", "step_columns"),
    [(64, 256, 64, 64), (64, 128, 8, 128), (32, 128, 16, 64), (64, 64, 64, 32), (16, 96, 8, 32)],
)
def test_parts_of_a_tile_by_the_copy_engine(rows: int, columns: int, step_rows: int, step_columns: int) -> None:
    down, across = rows // step_rows, columns // step_columns

    @T.prim_func
    def kernel(A: T.Tensor((rows, columns), "float16"), C: T.Tensor((rows, columns), "float16")):
        with T.Kernel(1, threads=128):
            a = T.alloc_shared((rows, columns), "float16")
            full = T.alloc_barrier(arrive_count=[128] * (down * across))
            for i in T.unroll(down):
                for j in T.unroll(across):
                    T.tma_copy(
                        A[i * step_rows : (i + 1) * step_rows, j * step_columns : (j + 1) * step_columns],
                        a[i * step_rows : (i + 1) * step_rows, j * step_columns : (j + 1) * step_columns],
                        barrier=full[i * across + j],
                    )
                    T.barrier_arrive(full[i * across + j])
            for p in T.serial(down * across):
                T.barrier_wait(full[p], 0)
            for i, j in T.Parallel(rows, columns):
                a[i, j] = a[i, j] * 2
            T.fence_proxy_async()
            T.sync_threads()
            for j in T.unroll(across):
                T.copy(a[0:rows, j * step_columns : (j + 1) * step_columns],
                       C[0:rows, j * step_columns : (j + 1) * step_columns], prefer_instruction="tma")  # fmt: skip

    a = integers(12, (rows, columns), "float16")
    kernels = everywhere(kernel, [a], a * 2, ["sm_90a"])
    assert len(instructions(kernels["sm_90a"], I.TmaLoad)) >= down * across
    assert instructions(kernels["sm_90a"], I.TmaStore)


@pytest.mark.parametrize(("first", "count", "word"), [(8, 16, "no boxes"), (0, 20, "16 B"), (4, 72, "no boxes")])
def test_parts_that_no_box_writes_are_refused(first: int, count: int, word: str) -> None:
    rows = count == 72

    @T.prim_func
    def kernel(A: T.Tensor((128, 64), "float16"), C: T.Tensor((128, 64), "float16")):
        with T.Kernel(1, threads=128):
            a = T.alloc_shared((128, 64), "float16")
            full = T.alloc_barrier(arrive_count=128)
            if rows:
                T.tma_copy(A[0:count, 0:32], a[first : first + count, 0:32], barrier=full)
            else:
                T.tma_copy(A[0:128, 0:count], a[0:128, first : first + count], barrier=full)
            T.barrier_arrive(full)
            T.barrier_wait(full, 0)
            T.copy(a, C)

    with pytest.raises(TargetError, match=word):
        lowered(kernel, "sm_90a")


def test_a_smaller_slice_of_a_tensor_fills_the_first_part_of_a_larger_one() -> None:
    @T.prim_func
    def kernel(A: T.Tensor((64, 32), "float32"), B: T.Tensor((64, 32), "float32")):
        with T.Kernel(1, threads=64):
            T.copy(A[:, :2], B[:, :3])

    a = integers(1, (64, 32))
    want = np.full_like(a, -1)
    want[:, :2] = a[:, :2]
    everywhere(kernel, [a], want, initial=[np.full_like(a, -1)])


@pytest.mark.parametrize("threads", (64, 128))
def test_trips_written_out_have_copies_of_their_own(threads: int) -> None:
    """Fuzzer's seed 20952: what the copies bring does not depend on the trip; where the fragment is read does."""

    @T.prim_func
    def kernel(A: T.Tensor((32, 32), "float32"), B: T.Tensor((4, 32), "float32"), C: T.Tensor((4, 32), "float32")):
        with T.Kernel(1, threads=threads):
            s = T.alloc_shared((32, 32), "float32")
            f = T.alloc_fragment((4, 32), "float32")
            T.copy(B, f)
            for k in T.unroll(4):
                T.copy(A, s)
                for i in T.Parallel(32):
                    C[k, i] = s[31 - i, k] + f[k, i]
                for i, j in T.Parallel(32, 32):
                    s[i, j] = 7

    a, b = integers(13, (32, 32)), integers(14, (4, 32))
    kernels = everywhere(kernel, [a, b], a[::-1, :4].T + b)
    assert len(instructions(kernels["sm_90a"], I.TmaLoad)) == 4


@pytest.mark.parametrize(("dtype", "first"), [("float16", 1), ("float16", 4), ("float32", 3), ("uint8", 5)])
def test_columns_that_begin_inside_of_16_bytes_are_not_the_copy_engines(dtype: str, first: int) -> None:
    """The engine's instruction is illegal there, for loads and stores, constant or not."""
    whole = 16 // np.dtype(dtype).itemsize

    @T.prim_func
    def kernel(A: T.Tensor((64, 256), dtype), B: T.Tensor((64, 256), dtype), C: T.Tensor((2, 64, 64), dtype)):
        with T.Kernel(2, threads=128) as bx:
            s = T.alloc_shared((64, 64), dtype)
            T.copy(A[0, first + bx * 64], s)
            T.copy(s, B[0:64, bx * 128 + first : bx * 128 + first + 64])
            T.copy(A[0, bx * (first + 8)], s)
            T.copy(s, C[bx, 0:64, 0:64])

    @T.prim_func
    def aligned(A: T.Tensor((64, 256), dtype), B: T.Tensor((64, 256), dtype)):
        with T.Kernel(2, threads=128) as bx:
            s = T.alloc_shared((64, 64), dtype)
            T.copy(A[0, whole + bx * 64], s)
            T.copy(s, B[0:64, bx * 128 + whole : bx * 128 + whole + 64])

    a = integers(15, (64, 256), dtype, 60)
    b = np.zeros_like(a)
    for x in (0, 1):
        b[:, x * 128 + first : x * 128 + first + 64] = a[:, first + x * 64 : first + x * 64 + 64]
    c = np.stack([a[:, :64], a[:, first + 8 : first + 72]])
    made = everywhere(kernel, [a], [b, c], ("sm_80", "sm_90a"), initial=[np.zeros_like(b), np.zeros_like(c)])
    assert not instructions(made["sm_90a"], I.TmaLoad)
    assert {x.map for x in instructions(made["sm_90a"], I.TmaStore)} == {"C_map"}
    b = np.zeros_like(a)
    for x in (0, 1):
        b[:, x * 128 + whole : x * 128 + whole + 64] = a[:, whole + x * 64 : whole + x * 64 + 64]
    made = everywhere(aligned, [a], b, ("sm_90a",), initial=[np.zeros_like(b)])
    assert instructions(made["sm_90a"], I.TmaLoad) and instructions(made["sm_90a"], I.TmaStore)


def test_a_box_that_begins_inside_of_16_bytes_is_a_fault_of_the_machine() -> None:
    """Where only the run tells; a constant is refused, and so is a copy that must be the engine's."""

    def loads(first: int, late: bool) -> Any:
        @T.prim_func
        def kernel(A: T.Tensor((64, 128), "float16"), N: T.Tensor((1,), "int32"), B: T.Tensor((64, 64), "float16")):
            with T.Kernel(1, threads=128):
                s = T.alloc_shared((64, 64), "float16")
                bar = T.alloc_barrier(1)
                d = T.create_tma_descriptor(6, 2, A.data, 128, 64, 2, 256, 64, 64, 1, 1, 0, 0, 2, 0)
                if T.get_thread_binding() == 0:
                    T.mbarrier_arrive_expect_tx(bar[0], 64 * 64 * 2)
                    T.tma_load(d, bar[0], T.access_ptr(s[0, 0], "w"), N[0] if late else first, 0)
                T.mbarrier_wait_parity(bar[0], 0)
                T.copy(s, B)

        return kernel

    a, out = integers(16, (64, 128), "float16"), np.zeros((64, 64), np.float16)
    late = loads(0, True)
    everywhere(late, [a, np.array([16], np.int32)], a[:, 16:80], ("sm_90a",))
    for machine in (
        lambda args: tile.run(late.kernel, args),
        lambda args: thread.run(lowered(late, "sm_90a"), args, target=Target.of("sm_90a")),
    ):
        with pytest.raises(SimulationError, match=r"(a|the) box begins"):
            machine([a, np.array([12], np.int32), out])
    with pytest.raises(LanguageError, match="begins at byte 24 of a row of `A`"):
        lowered(loads(12, False), "sm_90a")

    @T.prim_func
    def asked(A: T.Tensor((64, 128), "float16"), B: T.Tensor((64, 64), "float16")):
        with T.Kernel(1, threads=128):
            s = T.alloc_shared((64, 64), "float16")
            bar = T.alloc_barrier(128)
            T.tma_copy(A[0:64, 12:76], s, barrier=bar)
            T.barrier_arrive(bar)
            T.barrier_wait(bar, 0)
            T.copy(s, B)

    with pytest.raises(TargetError, match="tma_copy") as caught:
        lowered(asked, "sm_90a")
    assert "multiple of 16 B of a row of `A`" in str(caught.value)
