"""Indices past 32 bits, negative indices, and accesses at the edges of tensors of any length."""

from __future__ import annotations

import ctypes
import re

import ml_dtypes
import numpy as np
import pytest

import tileworkbench.language as T
from tests.codegen import on_host
from tests.end_to_end.harness import ALL, CARD_TARGETS, integers, lowered
from tileworkbench.codegen.emit import emit
from tileworkbench.errors import SimulationError, TargetError
from tileworkbench.ir.instr import BulkLoad, TmaLoad
from tileworkbench.ir.node import walk
from tileworkbench.pipeline import run_passes
from tileworkbench.simulate import thread, tile
from tileworkbench.target import Target

from .machines import Machine

FAR = 2**31


@T.prim_func
def far_bytes(base: T.int64, step: T.int32, A: T.Tensor((FAR + 64,), "uint8"), B: T.Tensor((3, 64), "uint8")):
    """Both sides of 2^31, by constants, a run-time base and the product of small numbers."""
    with T.Kernel(1, threads=64):
        for i in T.Parallel(64):
            B[0, i] = A[FAR + i]
        for i in T.Parallel(64):
            B[1, i] = A[base + i]
        for i in T.Parallel(64):
            B[2, i] = A[step * 1048576 + i]
        for i in T.Parallel(64):
            A[base - 64 + i] = i
        for i in T.Parallel(64):
            A[step * 1048576 - 128 + i] = 100 + i


def far_values() -> tuple[np.ndarray, np.ndarray]:
    """The last 192 bytes before and after; base is 2^31, step 2048."""
    before = np.concatenate([np.zeros(128, np.uint8), np.arange(7, 71, dtype=np.uint8)])
    after = np.concatenate([100 + np.arange(64), np.arange(64), before[128:]]).astype(np.uint8)
    return before, after


def test_tl2560_indices_above_two_to_the_31_in_text_run_on_this_machine(tmp_path) -> None:  # type: ignore[no-untyped-def]
    """Compiled for this processor, on an array of which only the last page is ever touched."""
    before, after = far_values()
    a, b = np.zeros(FAR + 64, np.uint8), np.zeros((3, 64), np.uint8)
    a[-192:] = before
    on_host.run(lowered(far_bytes, "gfx942"), tmp_path, a, b, ctypes.c_longlong(FAR), ctypes.c_int(2048))
    np.testing.assert_array_equal(b, np.stack([before[128:]] * 3))
    np.testing.assert_array_equal(a[-192:], after)


@pytest.mark.parametrize("target", ("sm_80", "sm_90a", "gfx942"))
def test_tl2560_every_index_into_a_large_tensor_has_64_bits(target: str) -> None:
    text = emit(lowered(far_bytes, target), Target.of(target)).text
    places = [line.split("A[", 1)[1] for line in text.splitlines() if " A[" in line]
    assert len(places) == 5 and all("(long long)tid" in place for place in places)
    assert "(long long)step * 1048576" in text and not re.search(r"(?<!\(long long\))step \*", text)


@pytest.mark.gpu
@pytest.mark.parametrize("target", CARD_TARGETS)
def test_tl2560_a_byte_tensor_of_more_than_two_to_the_31(target: str) -> None:
    torch = pytest.importorskip("torch")
    from tileworkbench.runtime import nvrtc
    from tileworkbench.runtime.launch import Launcher

    goal = Target.of(CARD_TARGETS[target])
    source = emit(run_passes(far_bytes.kernel, goal), goal)
    before, after = far_values()
    a = torch.zeros(FAR + 64, dtype=torch.uint8, device="cuda")
    a[-192:] = torch.from_numpy(before).cuda()
    b = torch.full((3, 64), 0xA5, dtype=torch.uint8, device="cuda")
    Launcher([(source, nvrtc.build(source))])(FAR, 2048, a, b)
    np.testing.assert_array_equal(b.cpu().numpy(), np.stack([before[128:]] * 3))
    np.testing.assert_array_equal(a[-192:].cpu().numpy(), after)
    assert int(a[:-192].count_nonzero()) == 0


def gather(guard: str):  # type: ignore[no-untyped-def]
    @T.prim_func
    def kernel(A: T.Tensor((50, 32), "float32"), I: T.Tensor((16,), "int32"), B: T.Tensor((16, 32), "float32")):  # noqa: E741
        with T.Kernel(16, threads=32) as bx:
            s = T.alloc_shared((32,), "float32")
            row = I[bx]
            if guard == "select":
                for j in T.Parallel(32):
                    B[bx, j] = T.if_then_else(row >= 0, A[row, j], 0)
            elif guard == "branch":
                T.clear(s)
                if row >= 0:
                    T.copy(A[row, 0:32], s)
                T.copy(s, B[bx, 0:32])
            elif guard == "copy":
                T.copy(A[row, 0:32], s)
                T.copy(s, B[bx, 0:32])
            else:
                for j in T.Parallel(32):
                    B[bx, j] = A[row, j]

    return kernel


ROWS = np.array([3, -1, 49, 0, -1, 7, 8, 9, -1, 1, 2, 48, 47, 46, -1, 5], np.int32)


@pytest.mark.parametrize("guard", ("select", "branch", "copy", "none"))
def test_tl1209_an_index_of_minus_one_marks_no_entry(machine: Machine, guard: str) -> None:
    """Rows outside of the tensor are 0, also where the kernel leaves the guard to the compiler."""
    a = integers(1, (50, 32))
    loaded = machine.load(gather(guard))
    loaded.check([a, ROWS], np.where(ROWS[:, None] >= 0, a[ROWS], 0))
    if guard in ("copy", "none"):
        loaded.check([a, np.where(ROWS < 0, 50, ROWS).astype(np.int32)], np.where(ROWS[:, None] >= 0, a[ROWS], 0))


@pytest.mark.parametrize("place", (-1, 32))
def test_tl1209_an_index_out_of_range_on_chip_is_found_with_its_line(place: int) -> None:
    """Shared tiles have no guard: the simulators name the line, the tile and the index."""

    @T.prim_func
    def kernel(A: T.Tensor((32,), "float32"), at: T.int32, B: T.Tensor((32,), "float32")):
        with T.Kernel(1, threads=32):
            s = T.alloc_shared((32,), "float32")
            T.copy(A, s)
            for j in T.Parallel(32):
                B[j] = s[j] + s[at]

    a, b = integers(1, (32,)), np.zeros(32, np.float32)
    tile.run(kernel.kernel, [a, 5, b])
    np.testing.assert_array_equal(b, a + a[5])
    runs = [lambda: tile.run(kernel.kernel, [a, place, b])]
    for name in ALL:
        lower, target = lowered(kernel, name), Target.of(name)
        runs.append(lambda lower=lower, target=target: thread.run(lower, [a, place, b], target=target))
    for run in runs:
        with pytest.raises(SimulationError) as error:
            run()
        assert error.value.loc is not None and error.value.loc.source_line().strip() == "B[j] = s[j] + s[at]"
        assert str(place) in str(error.value)


@pytest.mark.parametrize("stages", (0, 2))
def test_tl460_rows_that_the_copy_engine_cannot_take(machine: Machine, stages: int) -> None:
    """1733 float32 are 6932 bytes, no multiple of 16 (nor are 333): another way of copying is taken."""
    rows, columns = (40, 1733) if machine.thorough else (5, 333)

    @T.prim_func
    def kernel(A: T.Tensor((rows, columns), "float32"), B: T.Tensor((rows, columns), "float32")):
        with T.Kernel(T.ceildiv(rows, 32), threads=128) as bx:
            s = T.alloc_shared((32, 256), "float32")
            for k in T.Pipelined(T.ceildiv(columns, 256), num_stages=stages):
                T.copy(A[bx * 32, k * 256], s)
                for i, j in T.Parallel(32, 256):
                    s[i, j] = s[i, j] * 2
                T.copy(s, B[bx * 32, k * 256])

    a = integers(1, (rows, columns))
    if not machine.thorough:
        assert not [n for n in walk(lowered(kernel, "sm_90a").body) if isinstance(n, (TmaLoad, BulkLoad))]
    machine.check(kernel, [a], 2 * a, ("sm_80", "sm_90a") if machine.thorough else ("sm_90a",))


def test_tl1931_the_copy_engine_asked_for_by_name_says_what_the_pitch_must_be() -> None:
    @T.prim_func
    def kernel(A: T.Tensor((40, 1733), "float32"), B: T.Tensor((40, 64), "float32")):
        with T.Kernel(1, threads=128):
            s = T.alloc_shared((32, 64), "float32")
            T.copy(A[0, 64], s, prefer_instruction="tma")
            T.copy(s, B[0, 0])

    with pytest.raises(TargetError) as error:
        lowered(kernel, "sm_90a")
    assert error.value.loc is not None and error.value.loc.source_line().strip().startswith("T.copy(A[0, 64], s")
    assert "16" in str(error.value)


@pytest.mark.parametrize("style", ("elements", "tiles", "guarded"))
def test_tl968_a_first_kernel_of_any_length(machine: Machine, style: str) -> None:
    """bf16 addition with a run-time N, every N from 1 to 300."""
    n = T.dynamic("n")

    @T.prim_func
    def kernel(A: T.Tensor((n,), "bfloat16"), B: T.Tensor((n,), "bfloat16"), C: T.Tensor((n,), "bfloat16")):
        with T.Kernel(T.ceildiv(n, 128), threads=64) as bx:
            if style == "tiles":
                a = T.alloc_fragment((128,), "bfloat16")
                b = T.alloc_shared((128,), "bfloat16")
                T.copy(A[bx * 128], a)
                T.copy(B[bx * 128], b)
                for i in T.Parallel(128):
                    a[i] += b[i]
                T.copy(a, C[bx * 128])
            else:
                for i in T.Parallel(128):
                    if style == "elements" or bx * 128 + i < n:
                        C[bx * 128 + i] = A[bx * 128 + i] + B[bx * 128 + i]

    loaded = machine.load(kernel)
    for length in machine.some(range(1, 301), 7):
        a, b = (integers(s, (length,), "float32", 60).astype(ml_dtypes.bfloat16) for s in (1, 2))
        loaded.check([a, b], (a.astype(int) + b.astype(int)).astype(ml_dtypes.bfloat16), note=f"N = {length}")
