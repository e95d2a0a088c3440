"""Counters read beside their updates, tiles between sets of threads, persistent blocks, warpgroups and registers."""

from __future__ import annotations

import numpy as np
import pytest

import tileworkbench.language as T
from tests import kernels
from tests.end_to_end.harness import integers
from tileworkbench.ir.planned import Role
from tileworkbench.pipeline import Step, run_passes
from tileworkbench.target import Target

from .machines import Machine


@pytest.mark.parametrize("space", ("global", "shared"))
def test_tl2595_a_counter_read_before_its_atomic_add_in_a_pipelined_loop(machine: Machine, space: str) -> None:
    """One thread and one element: the value is the one before the addition of the same trip."""

    @T.prim_func
    def kernel(A: T.Tensor((4, 32), "int32"), Out: T.Tensor((4,), "int32"), Count: T.Tensor((1,), "int32")):
        with T.Kernel(1, threads=1):
            S = T.alloc_shared((32,), "int32")
            C = T.alloc_shared((1,), "int32")
            if space == "shared":
                C[0] = Count[0]
            for k in T.Pipelined(4, num_stages=2):
                T.copy(A[k, 0:32], S)
                if space == "shared":
                    before = C[0]
                    T.atomic_add(C[0], S[k])
                else:
                    before = Count[0]
                    T.atomic_add(Count[0], S[k])
                Out[k] = before * 2
            if space == "shared":
                Count[0] = C[0]

    a = integers(1, (4, 32), "int32")
    sums = 7 + np.cumsum([0, *(a[k, k] for k in range(4))])
    wanted = [(2 * sums[:4]).astype(np.int32), sums[4:].astype(np.int32)]
    machine.check(kernel, [a], wanted, initial=[np.zeros(4, np.int32), np.array([7], np.int32)])


@pytest.mark.parametrize("kept", ("name", "variable", "local"))
def test_tl2594_a_counter_read_before_its_atomic_add_and_used_in_an_if(machine: Machine, kept: str) -> None:
    @T.prim_func
    def kernel(n: T.int32, Out: T.Tensor((8,), "int32"), Count: T.Tensor((2,), "int32")):
        with T.Kernel(1, threads=1):
            v = T.alloc_var("int32")
            m = T.alloc_local((1,), "int32")
            for k in T.serial(n):
                if kept == "name":
                    before = Count[0]
                elif kept == "variable":
                    v = Count[0]
                else:
                    m[0] = Count[0]
                T.atomic_add(Count[0], 3)
                T.atomic_max(Count[1], Count[0])
                if (before if kept == "name" else v if kept == "variable" else m[0]) % 2 == 1:
                    Out[k] = before if kept == "name" else v if kept == "variable" else m[0]

    out = np.array([3 * k + 4 if k % 2 else 0 for k in range(8)], np.int32) % 1000
    loaded = machine.load(kernel)
    for trips in (0, 1, 8):
        wanted = np.where((np.arange(8) < trips) & (out % 2 == 1), out, -1).astype(np.int32)
        count = np.array([4 + 3 * trips, max(-5, 4 + 3 * trips if trips else -5)], np.int32)
        before = [np.full(8, -1, np.int32), np.array([4, -5], np.int32)]
        loaded.check([trips], [wanted, count], initial=before, note=f"{trips} trips")


def test_tl1604_a_shared_tile_between_two_sets_of_threads(machine: Machine) -> None:
    """One warp writes what others read, once and in a loop, and back again."""

    @T.prim_func
    def kernel(A: T.Tensor((5, 32), "int32"), Out: T.Tensor((5, 96), "int32"), Back: T.Tensor((5, 32), "int32")):
        with T.Kernel(1, threads=128):
            tx = T.get_thread_binding()
            S = T.alloc_shared((32,), "int32")
            R = T.alloc_shared((96,), "int32")
            for k in T.serial(5):
                if tx < 32:
                    S[tx] = A[k, tx]
                if tx >= 32:
                    Out[k, tx - 32] = S[(tx * 7) % 32]
                    R[tx - 32] = S[31 - tx % 32] + tx
                if tx < 32:
                    Back[k, tx] = R[tx] + R[95 - tx] + S[31 - tx]

    a = integers(1, (5, 32), "int32")
    tx = np.arange(32, 128)
    r = a[:, 31 - tx % 32] + tx
    back = r[:, :32] + r[:, ::-1][:, :32] + a[:, ::-1]
    machine.check(kernel, [a], [a[:, tx * 7 % 32], back.astype(np.int32)])


def test_tl1822_a_tile_written_by_one_branch_and_copied_by_all(machine: Machine) -> None:
    @T.prim_func
    def kernel(A: T.Tensor((64,), "float32"), Out: T.Tensor((3, 64), "float32")):
        with T.Kernel(1, threads=128):
            tx = T.get_thread_binding()
            S = T.alloc_shared((64,), "float32")
            for k in T.serial(3):
                if tx < 64:
                    S[63 - tx] = A[tx] + k
                T.copy(S, Out[k, 0:64])

    a = integers(1, (64,))
    machine.check(kernel, [a], np.stack([a[::-1] + k for k in range(3)]).astype(np.float32))


@pytest.mark.parametrize("order", ("persistent", "row", "column"))
def test_tl2433_each_tile_once_for_any_number_of_column_blocks(machine: Machine, order: str) -> None:
    """3 rows of 1 … 40 column blocks, the number known at run time."""
    n = T.dynamic("n")

    @T.prim_func
    def kernel(Visits: T.Tensor((3, n), "int32")):
        with T.Kernel(*((4,) if order == "persistent" else (n, 3)), threads=32) as at:
            if order == "persistent":
                for i, j in T.Persistent([3, n], 4, at):
                    T.atomic_add(Visits[i, j], 1)
            else:
                T.use_swizzle(4, order)
                T.atomic_add(Visits[at[1], at[0]], 1)

    loaded = machine.load(kernel)
    for columns in machine.some(range(1, 41), 5) + [9]:
        once = np.full((3, columns), 32, np.int32)  # each of a block's threads adds
        loaded.check([], once, initial=[np.zeros_like(once)], note=f"{columns} columns")


def constant_columns(columns: int):  # type: ignore[no-untyped-def]
    @T.prim_func
    def kernel(Visits: T.Tensor((3, columns), "int32")):
        with T.Kernel(4, threads=32) as at:
            for i, j in T.Persistent([3, columns], 4, at):
                T.atomic_add(Visits[i, j], 1)

    return kernel


def test_tl2433_each_tile_once_for_constant_numbers_of_column_blocks(machine: Machine) -> None:
    for columns in machine.some(range(1, 41), 3) + [9]:
        once = np.full((3, columns), 32, np.int32)
        machine.check(constant_columns(columns), [], once, initial=[np.zeros_like(once)])


def test_tl2433_one_thread_counts_its_visits_without_atomics(machine: Machine) -> None:
    """Three dimensions, an element that is read and written by the only thread of a block."""

    @T.prim_func
    def kernel(Visits: T.Tensor((2, 3, 9), "int32")):
        with T.Kernel(5, threads=1) as at:
            for i, j, k in T.Persistent([2, 3, 9], 5, at):
                Visits[i, j, k] += 1
                Visits[i, j, k] = Visits[i, j, k] * 3

    start = np.arange(54, dtype=np.int32).reshape(2, 3, 9)
    machine.check(kernel, [], (start + 1) * 3, initial=[start])


H, D = 2, 32
SCALE = D**-0.5


def backward(length: int, threads: int, BM: int = 64, BN: int = 128):  # type: ignore[no-untyped-def]
    """Attention's gradients; `lse` holds base-2 logarithms of the row sums, `delta` the rows' products with dO."""
    tensor, row = (length, H, D), (H, length)

    @T.prim_func
    def kernel(
        Q: T.Tensor(tensor, "float16"),
        K: T.Tensor(tensor, "float16"),
        V: T.Tensor(tensor, "float16"),
        dO: T.Tensor(tensor, "float16"),
        lse: T.Tensor(row, "float32"),
        delta: T.Tensor(row, "float32"),
        dQ: T.Tensor(tensor, "float32"),
        dK: T.Tensor(tensor, "float32"),
        dV: T.Tensor(tensor, "float32"),
    ):
        with T.Kernel(H, T.ceildiv(length, BN), threads=threads) as (h, by):
            k_s = T.alloc_shared((BN, D), "float16")
            v_s = T.alloc_shared((BN, D), "float16")
            q = T.alloc_shared((BM, D), "float16")
            do = T.alloc_shared((BM, D), "float16")
            lse_s = T.alloc_shared((BM,), "float32")
            delta_s = T.alloc_shared((BM,), "float32")
            p = T.alloc_fragment((BN, BM), "float32")
            p_half = T.alloc_fragment((BN, BM), "float16")
            dp = T.alloc_fragment((BN, BM), "float32")
            ds_half = T.alloc_fragment((BN, BM), "float16")
            ds = T.alloc_shared((BN, BM), "float16")
            dk = T.alloc_fragment((BN, D), "float32")
            dv = T.alloc_fragment((BN, D), "float32")
            dq = T.alloc_fragment((BM, D), "float32")
            T.copy(K[by * BN : (by + 1) * BN, h, :], k_s)
            T.copy(V[by * BN : (by + 1) * BN, h, :], v_s)
            T.clear(dk)
            T.clear(dv)
            for k in T.Pipelined(T.ceildiv(length, BM), num_stages=2):
                T.copy(Q[k * BM : (k + 1) * BM, h, :], q)
                T.gemm(k_s, q, p, transpose_B=True, policy=T.GemmWarpPolicy.FullRow, clear_accum=True)
                T.copy(lse[h, k * BM : (k + 1) * BM], lse_s)
                for i, j in T.Parallel(BN, BM):
                    p[i, j] = T.exp2(p[i, j] * (SCALE * 1.4426950408889634) - lse_s[j])
                T.copy(dO[k * BM : (k + 1) * BM, h, :], do)
                T.gemm(v_s, do, dp, transpose_B=True, policy=T.GemmWarpPolicy.FullRow, clear_accum=True)
                T.copy(delta[h, k * BM : (k + 1) * BM], delta_s)
                T.copy(p, p_half)
                T.gemm(p_half, do, dv, policy=T.GemmWarpPolicy.FullRow)
                for i, j in T.Parallel(BN, BM):
                    ds_half[i, j] = p[i, j] * (dp[i, j] - delta_s[j]) * SCALE
                T.gemm(ds_half, q, dk, policy=T.GemmWarpPolicy.FullRow)
                T.copy(ds_half, ds)
                T.gemm(ds, k_s, dq, transpose_A=True, clear_accum=True)
                for i, j in T.Parallel(BM, D):
                    if k * BM + i < length:
                        T.atomic_add(dQ[k * BM + i, h, j], dq[i, j])
            T.copy(dk, dK[by * BN : (by + 1) * BN, h, :])
            T.copy(dv, dV[by * BN : (by + 1) * BN, h, :])

    return kernel


def gradients(length: int):  # type: ignore[no-untyped-def]
    """Inputs, the three gradients in float64, and bounds: P and dS are rounded to 11 bits before their products."""
    rng = np.random.default_rng(length)
    q, k, v, do = ((rng.standard_normal((length, H, D)) / 2).astype(np.float16) for _ in range(4))
    q64, k64, v64, do64 = (x.astype(np.float64).transpose(1, 0, 2) for x in (q, k, v, do))
    e = np.exp(q64 @ k64.transpose(0, 2, 1) * SCALE)
    sums = e.sum(-1, keepdims=True)
    p = e / sums
    dp = do64 @ v64.transpose(0, 2, 1)
    delta = (p * dp).sum(-1, keepdims=True)
    ds = p * (dp - delta) * SCALE
    truth = [ds @ k64, ds.transpose(0, 2, 1) @ q64, p.transpose(0, 2, 1) @ do64]
    sizes = [abs(ds) @ abs(k64), abs(ds).transpose(0, 2, 1) @ abs(q64), p.transpose(0, 2, 1) @ abs(do64)]
    inputs = [q, k, v, do, np.log2(sums)[..., 0].astype(np.float32), delta[..., 0].astype(np.float32)]
    return inputs, [t.transpose(1, 0, 2) for t in truth], [s.transpose(1, 0, 2) * 2**-10 + 1e-6 for s in sizes]


@pytest.mark.parametrize("length", (248, 250, 252, 254, 256))
def test_tl2567_attention_backward_at_unaligned_lengths(machine: Machine, length: int) -> None:
    if not machine.thorough:
        if length != 250:
            pytest.skip("one length on the slow machine")
        length = 122
    inputs, truth, bounds = gradients(length)
    zeros = [np.zeros((length, H, D), np.float32) for _ in range(3)]
    targets = ("sm_90a",) if not machine.thorough else ("sm_80", "sm_90a")
    machine.check(backward(length, 256), inputs, truth, targets, initial=zeros, bounds=bounds)


@pytest.mark.parametrize("threads", (128, 256, 384))
@pytest.mark.parametrize("make", ("gemm", "attention", "backward"))
def test_tl2567_warpgroups_never_ask_for_more_registers_than_there_are(make: str, threads: int) -> None:
    func = {
        "gemm": lambda: kernels.gemm(384, 384, 192, BM=threads // 2, BN=64, threads=threads),
        "attention": lambda: kernels.attention(1, 1, 384, 64, BM=threads // 2, threads=threads),
        "backward": lambda: backward(250, threads, BN=threads // 2),
    }[make]()
    target = Target.of("sm_90a")
    asked: list[int] = []

    def look(step: Step) -> None:
        roles = [s for s in step.after.body if isinstance(s, Role)]
        if roles:
            asked.append(sum((r.registers or 0) * r.warps * 32 for r in roles))

    run_passes(func.kernel, target, look)
    assert asked and max(asked) <= 65_536
    assert (make, threads) in (("attention", 384), ("backward", 384)) or max(asked) > 0
