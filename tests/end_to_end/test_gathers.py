"""Rows gathered by threads with the kernel's own cp.async, handed to wgmma by a barrier that counts landed copies."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest

import tileworkbench.language as T
from tileworkbench.codegen.emit import emit
from tileworkbench.errors import TileError
from tileworkbench.ir.expr import Const
from tileworkbench.ir.instr import CopyAsync, CopyAsyncArrive, Fence, LoadMem, Sync, WaitGroup
from tileworkbench.ir.kernel import Kernel
from tileworkbench.ir.node import rewrite
from tileworkbench.runtime import disassemble
from tileworkbench.simulate import thread
from tileworkbench.target import Target

from .harness import built, everywhere, instructions, integers, lowered

ROWS, BN, D, TRIPS = 200, 64, 64, 4


def gather(*, predicate: bool = False, waits: bool = True) -> Any:
    """C = A · (selected rows of B)ᵀ, 64 rows a trip; rows out of range, or not wanted, count as zero."""

    @T.prim_func
    def kernel(
        A: T.Tensor((64, D), "float16"),
        B: T.Tensor((ROWS, D), "float16"),
        Index: T.Tensor((TRIPS * BN,), "int32"),
        C: T.Tensor((64, TRIPS * BN), "float32"),
    ):
        with T.Kernel(1, threads=256):
            tile = T.alloc_shared((64, D), "float16")
            rows = T.alloc_shared((2, BN, D), "float16")
            wanted = T.alloc_shared((2, BN), "bool")
            acc = T.alloc_fragment((64, BN), "float32")
            full = T.alloc_barrier([128] * 2)
            free = T.alloc_barrier([128] * 2)
            tx = T.get_thread_binding()
            T.copy(A, tile)
            if tx < 128:
                for k in T.serial(TRIPS // 2):
                    for stage in T.unroll(2):
                        T.barrier_wait(full[stage], k & 1)
                        T.clear(acc)
                        T.gemm(tile, rows[stage, :, :], acc, transpose_B=True)
                        for i, j in T.Parallel(64, BN):
                            acc[i, j] = T.if_then_else(wanted[stage, j], acc[i, j], 0)
                        T.copy(acc, C[0, (k * 2 + stage) * BN])
                        T.barrier_arrive(free[stage])
            else:
                for k in T.serial(TRIPS // 2):
                    for stage in T.unroll(2):
                        T.barrier_wait(free[stage], (k & 1) ^ 1)
                        for r in T.serial(4):
                            row = r * 16 + (tx - 128) // 8
                            at = Index[(k * 2 + stage) * BN + row]
                            wanted[stage, row] = at >= 0
                            if predicate:
                                T.ptx_cp_async(
                                    T.access_ptr(rows[stage, row, (tx - 128) % 8 * 8], "w", 8),
                                    T.access_ptr(B[at, (tx - 128) % 8 * 8], "r", 8),
                                    8,
                                    wanted[stage, row],
                                )
                            elif wanted[stage, row]:
                                T.ptx_cp_async(
                                    T.access_ptr(rows[stage, row, (tx - 128) % 8 * 8], "w", 8),
                                    T.access_ptr(B[at, (tx - 128) % 8 * 8], "r", 8),
                                    8,
                                )
                        if waits:
                            T.cp_async_barrier_noinc(full[stage])
                        else:
                            T.barrier_arrive(full[stage])

    return kernel


@cache
def data() -> tuple[list[np.ndarray], np.ndarray]:
    a, b = integers(1, (64, D), "float16", 4), integers(2, (ROWS, D), "float16", 4)
    index = np.random.default_rng(3).integers(0, ROWS, TRIPS * BN).astype(np.int32)
    late = np.arange(TRIPS * BN) >= 2 * BN  # both tiles have held numbers by then
    index[late & (np.arange(TRIPS * BN) % 7 == 3)] = -1
    chosen = np.where(index[:, None] >= 0, b[np.maximum(index, 0)], 0).astype(float)
    return [a, b, index], a.astype(float) @ chosen.T


@pytest.mark.parametrize("predicate", (False, True))
def test_rows_come_past_the_registers(predicate: bool) -> None:
    inputs, truth = data()
    kernel = everywhere(gather(predicate=predicate), inputs, truth, ("sm_90a",))["sm_90a"]
    copies = [c for c in instructions(kernel, CopyAsync) if c.dst.buffer.name == "rows"]
    assert copies and {c.bytes for c in copies} == {16}
    # A row's flag stays with eight threads of a warp, a gathered element with one thread: no warp waits for another.
    who = [s.who for s in instructions(kernel, Sync)]
    assert who.count("warp") == 2
    producer = emit(kernel, Target.of("sm_90a")).text.split("// role groups_1")[1]
    assert "bar.sync" not in producer and "tw_copy_async16" in producer


def test_the_machine_code_has_them() -> None:
    binary = built(lowered(gather(), "sm_90a"), "sm_90a")
    if binary is None:
        pytest.skip("NVRTC is not installed")
    text = "\n".join(line.text for line in disassemble.sass(binary))
    assert "LDGSTS" in text and "ARRIVES.LDGSTSBAR" in text and not binary.spills


def test_without_the_barrier_they_are_complete_at_once() -> None:
    inputs, truth = data()
    kernel = everywhere(gather(waits=False), inputs, truth, ("sm_90a",))["sm_90a"]
    assert not [c for c in instructions(kernel, CopyAsync) if c.dst.buffer.name == "rows"]


def test_planted_faults_are_found() -> None:
    """The reader's fence left out; the arrival before the copies; the warp's meeting left out."""
    kernel = lowered(gather(predicate=True), "sm_90a")

    def without(kind: type, **fields: Any) -> Kernel:
        def drop(n: Any) -> Any:
            same = isinstance(n, kind) and all(getattr(n, k) == v for k, v in fields.items())
            return () if same else n

        return kernel.with_(body=tuple(rewrite(s, drop) for s in kernel.body))

    def fails(broken: Kernel) -> bool:
        inputs, truth = data()
        for schedule in ("eager", "latest", "random"):
            out = np.zeros_like(truth, dtype=np.float32)
            try:
                thread.run(broken, [*inputs, out], schedule=schedule, target=Target.of("sm_90a"), outputs=[3])
            except TileError:
                return True
            if not np.array_equal(out, truth):
                return True
        return False

    assert not fails(kernel)
    (shown,) = [f for f in instructions(kernel, Fence) if "filled by cp.async" in f.reason]
    assert fails(without(Fence, reason=shown.reason))
    assert fails(without(CopyAsyncArrive))
    assert fails(without(Sync, who="warp"))


def test_a_row_number_is_read_once_and_the_row_in_wide_accesses() -> None:
    """With the row's number written into the index, bound to a name, or under a condition of the whole row."""

    @T.prim_func
    def kernel(
        B: T.Tensor((ROWS, D), "float16"),
        Index: T.Tensor((BN,), "int32"),
        C: T.Tensor((3, BN, D), "float16"),
    ):
        with T.Kernel(1, threads=128):
            rows = T.alloc_shared((BN, D), "float16")
            for i, j in T.Parallel(BN, D):
                rows[i, j] = B[Index[i], j]
            T.copy(rows, C[0, :, :])
            for i, j in T.Parallel(BN, D):
                at = Index[i]
                rows[i, j] = B[at, j]
            T.copy(rows, C[1, :, :])
            for i, j in T.Parallel(BN, D):
                rows[i, j] = T.if_then_else(Index[i] > 50, B[Index[i], j], 1)
            T.copy(rows, C[2, :, :])

    b = integers(2, (ROWS, D), "float16", 4)
    index = np.random.default_rng(3).integers(-20, ROWS + 20, BN).astype(np.int32)
    outside = (index < 0) | (index >= ROWS)
    found = np.where(outside[:, None], 0, b[np.clip(index, 0, ROWS - 1)])
    truth = np.stack([found, found, np.where(index[:, None] > 50, found, 1)])
    made = everywhere(kernel, [b, index], truth, ("sm_80", "sm_90a"))
    for each in made.values():
        loads = instructions(each, LoadMem)
        assert {s.dst.count for s in loads if s.src.buffer.name == "B"} == {8}
        table = [s for s in loads if s.src.buffer.name == "Index"]
        assert len(table) == 4 and all(s.dst.count == 1 and isinstance(s.dst.start, Const) for s in table)


def test_a_table_that_the_loop_changes_is_read_by_every_lane() -> None:
    @T.prim_func
    def kernel(A: T.Tensor((8,), "int32"), B: T.Tensor((8, 4), "int32")):
        with T.Kernel(1, threads=32):
            tx = T.get_thread_binding()
            if tx == 0:
                for i in T.serial(8):
                    for j in T.vectorized(4):
                        B[i, j] = B[0, 0] + A[i] + 1

    a = np.arange(8, dtype=np.int32)
    truth, value = np.zeros((8, 4), np.int32), 0
    for i in range(8):
        for j in range(4):
            truth[i, j] = value + a[i] + 1
            value = truth[0, 0]
    everywhere(kernel, [a], truth, ("sm_90a",), initial=[np.zeros((8, 4), np.int32)])


def pipelined(kind: str) -> Any:
    """C = A · (selected rows of B)ᵀ, the rows brought by a parallel loop inside a pipeline."""

    @T.prim_func
    def kernel(
        B: T.Tensor((ROWS, D), "float16"),
        Index: T.Tensor((TRIPS * BN,), "int32"),
        A: T.Tensor((64, TRIPS * D), "float16"),
        C: T.Tensor((64, TRIPS * BN), "float32"),
    ):
        with T.Kernel(1, threads=128):
            part = T.alloc_shared((64, D), "float16")
            rows = T.alloc_shared((BN, D), "float16")
            acc = T.alloc_fragment((64, BN), "float32")
            for k in T.Pipelined(TRIPS, num_stages=3):
                if kind == "two":  # a copy of the language beside it
                    T.copy(A[0, k * D], part)
                else:
                    for i, j in T.Parallel(64, D):
                        part[i, j] = A[i, k * D + j]
                for i, j in T.Parallel(BN, D):
                    if kind == "named":
                        at = Index[k * BN + i]
                        rows[i, j] = B[at, j]
                    elif kind == "chosen":
                        rows[i, j] = T.if_then_else(Index[k * BN + i] >= 0, B[Index[k * BN + i], j], 0)
                    else:
                        rows[i, j] = B[Index[k * BN + i], j]
                T.gemm(part, rows, acc, transpose_B=True, clear_accum=True)
                T.copy(acc, C[0, k * BN])

    return kernel


@pytest.mark.parametrize("kind", ("plain", "named", "chosen", "two"))
def test_gathered_rows_run_ahead_of_their_loop(kind: str) -> None:
    a, b = integers(1, (64, TRIPS * D), "float16", 4), integers(2, (ROWS, D), "float16", 4)
    index = np.random.default_rng(3).integers(-20, ROWS + 20, TRIPS * BN).astype(np.int32)
    found = np.where(((index < 0) | (index >= ROWS))[:, None], 0, b[np.clip(index, 0, ROWS - 1)]).astype(float)
    parts = [a[:, k * D : (k + 1) * D].astype(float) @ found[k * BN : (k + 1) * BN].T for k in range(TRIPS)]
    made = everywhere(pipelined(kind), [b, index, a], np.concatenate(parts, 1), ("sm_80", "sm_90a"))
    for target, kernel in made.items():
        copies = [c for c in instructions(kernel, CopyAsync) if c.dst.buffer.name == "rows"]
        assert len(copies) == 2 and {c.bytes for c in copies} == {16}, target  # before the loop, and in it
        assert kernel.versions[next(b for b in kernel.versions if b.name == "rows")] == 3


def test_rows_that_do_not_fit_twice_are_brought_when_they_are_needed() -> None:
    @T.prim_func
    def kernel(B: T.Tensor((512, 256), "float16"), Index: T.Tensor((512,), "int32"), C: T.Tensor((2,), "float32")):
        with T.Kernel(1, threads=128):
            rows = T.alloc_shared((256, 256), "float16")
            tx = T.get_thread_binding()
            for k in T.Pipelined(2, num_stages=2):
                for i, j in T.Parallel(256, 256):
                    rows[i, j] = B[Index[k * 256 + i], j]
                if tx == 0:
                    C[k] = T.cast(rows[255, 255], "float32")

    b = integers(1, (512, 256), "float16", 100)
    index = np.random.default_rng(1).permutation(512).astype(np.int32)
    everywhere(kernel, [b, index], b[index[[255, 511]], 255].astype(np.float32), ("sm_80", "sm_90a"), build=False)


@pytest.mark.parametrize("target", ("sm_80", "sm_90a"))
def test_a_gathers_missing_wait_is_found(target: str) -> None:
    kernel = lowered(pipelined("plain"), target)
    waits = [w for w in instructions(kernel, WaitGroup) if w.engine_of == "copy"]
    b, a = np.ones((ROWS, D), np.float16), np.ones((64, TRIPS * D), np.float16)
    index = np.arange(TRIPS * BN, dtype=np.int32) % ROWS
    for gone in waits:
        broken = kernel.with_(body=tuple(rewrite(s, lambda n, gone=gone: () if n is gone else n) for s in kernel.body))
        with pytest.raises(TileError):
            for schedule in ("latest", "random"):
                out = np.zeros((64, TRIPS * BN), np.float32)
                thread.run(broken, [b, index, a, out], schedule=schedule, target=Target.of(target), outputs=[3])


@pytest.mark.parametrize("stages", (0, 1, 2, 3))
@pytest.mark.parametrize("written", ("before", "after"))
@pytest.mark.parametrize("rows", (True, False))
def test_where_a_copy_reads_is_told_by_a_tile_that_changes(rows: bool, written: str, stages: int) -> None:
    """The tile of numbers is read when a copy is issued: by every thread, or by the one that asks the engine."""
    last = 64 if rows else 48

    @T.prim_func
    def kernel(A: T.Tensor((64, 32), "float32"), N: T.Tensor((16,), "int32"), B: T.Tensor((5, 16, 32), "float32")):
        with T.Kernel(1, threads=128):
            n = T.alloc_shared((16,), "int32")
            s = T.alloc_shared((16, 32), "float32")
            T.copy(N, n)
            for k in T.Pipelined(5, num_stages=stages):
                if written == "before":
                    for i in T.Parallel(16):
                        n[i] = (n[i] * 5 + k) % last
                if rows:
                    for i, j in T.Parallel(16, 32):
                        s[i, j] = A[n[i], j]
                else:
                    T.copy(A[n[3], 0], s)
                if written == "after":
                    for i in T.Parallel(16):
                        n[i] = (n[i] * 5 + k) % last
                for i, j in T.Parallel(16, 32):
                    B[k, i, j] = s[15 - i, j] + 1

    a, first = integers(31, (64, 32)), np.arange(16, dtype=np.int32) * 3
    n, want = first.copy(), []
    for k in range(5):
        n = (n * 5 + k) % last if written == "before" else n
        want.append((a[n] if rows else a[n[3] : n[3] + 16])[::-1] + 1)
        n = (n * 5 + k) % last if written == "after" else n
    everywhere(kernel, [a, first], np.stack(want))


def test_what_a_gather_reads_besides_its_rows_is_ordered_too() -> None:
    """Fuzzer's seed 4006563: the tile that the loop also reads is changed in place in the same trip."""

    @T.prim_func
    def kernel(A: T.Tensor((100,), "int32"), B: T.Tensor((100,), "int32"), C: T.Tensor((2, 16), "int32")):
        with T.Kernel(1, threads=192):
            s = T.alloc_shared((100,), "int32")
            t = T.alloc_shared((1, 16), "int32")
            T.copy(A, s)
            for k in T.Pipelined(2, num_stages=2):
                for i, j in T.Parallel(1, 16):
                    first = s[1]
                    t[i, j] = A[j]
                T.cumsum(s, s, dim=0)
                for i, j in T.Parallel(1, 16):
                    C[k, j] = t[i, j]
            T.copy(s, B)

    a = integers(32, (100,), "int32")
    everywhere(kernel, [a], [np.cumsum(np.cumsum(a)), np.stack([a[:16], a[:16]])])
