"""Products of groups of rows, each with a matrix of its own: forward, backward, through tables of pointers, as experts
of a gated layer, and with blocks left out."""

from __future__ import annotations

from typing import Any

import numpy as np

import tileworkbench as tw
import tileworkbench.language as T
from tests.gallery.entry import ROUNDING, Data, Entry, Expected, normal, numbers
from tests.gallery.online import LOG2E

HALF, FLOAT, INT = "float16", "float32", "int32"


def blocks_before(sizes: tuple[int, ...], rows: int) -> list[int]:
    """How many blocks of rows lie before each group, and in all at the end."""
    counts = [0]
    for size in sizes:
        counts.append(counts[-1] + -(-size // rows))
    return counts


@tw.jit(target="cpu")
def grouped(A, B, Sizes, First, Padded, sizes: tuple, trans_b: bool, BM: int, BN: int, BK: int, threads: int = 128):
    """A block finds its group by the padded offsets; rows past the group's end are computed and not stored."""
    K, N = T.const("K, N")
    groups, rows = len(sizes), sum(sizes)
    A: T.Tensor([rows, K], HALF)
    B: T.Tensor([groups, N, K] if trans_b else [groups, K, N], HALF)
    Sizes: T.Tensor([groups], INT)
    First: T.Tensor([groups], INT)
    Padded: T.Tensor([groups], INT)
    C = T.empty([rows, N], HALF)
    with T.Kernel(blocks_before(sizes, BM)[-1], T.ceildiv(N, BN), threads=threads) as (bx, by):
        left = T.alloc_shared([BM, BK], HALF)
        right = T.alloc_shared([BN, BK] if trans_b else [BK, BN], HALF)
        acc = T.alloc_fragment([BM, BN], FLOAT)
        group = T.alloc_var(dtype=INT)
        group = 0
        for g in range(groups):
            group = T.if_then_else(bx * BM >= Padded[g], g, group)
        start = bx * BM - Padded[group] + First[group]
        valid = T.max(0, T.min(BM, Sizes[group] + Padded[group] - bx * BM))
        T.clear(acc)
        for step in T.Pipelined(T.ceildiv(K, BK), num_stages=2):
            T.copy(A[start : start + BM, step * BK : (step + 1) * BK], left)
            if trans_b:
                T.copy(B[group, by * BN : (by + 1) * BN, step * BK : (step + 1) * BK], right)
            else:
                T.copy(B[group, step * BK : (step + 1) * BK, by * BN : (by + 1) * BN], right)
            T.gemm(left, right, acc, transpose_B=trans_b)
        for i, j in T.Parallel(BM, BN):
            if i < valid:
                C[start + i, by * BN + j] = acc[i, j]
    return C


@tw.jit(target="cpu", pass_configs={"tl.disable_tma_lower": True, "tl.disable_warp_specialized": True})
def grouped_backward(A, G, Sizes, First, BM: int, BN: int, BK: int, stages: int = 2):
    """Each group's matrix gets the gradient AᵀG over its own rows, which are as many as run time says."""
    rows, groups, M, N = T.const("rows, groups, M, N")
    A: T.Tensor([rows, M], HALF)
    G: T.Tensor([rows, N], HALF)
    Sizes: T.Tensor([groups], INT)
    First: T.Tensor([groups], INT)
    C = T.empty([groups, M, N], HALF)
    with T.Kernel(T.ceildiv(M, BM), T.ceildiv(N, BN), groups, threads=128) as (bx, by, group):
        left = T.alloc_shared([BK, BM], HALF)
        right = T.alloc_shared([BK, BN], HALF)
        acc = T.alloc_fragment([BM, BN], FLOAT)
        T.clear(acc)
        for step in T.Pipelined(T.ceildiv(Sizes[group], BK), num_stages=stages):
            for i, j in T.Parallel(BK, BM):
                inside = step * BK + i < Sizes[group]
                left[i, j] = T.if_then_else(inside, A[First[group] + step * BK + i, bx * BM + j], 0)
            for i, j in T.Parallel(BK, BN):
                inside = step * BK + i < Sizes[group]
                right[i, j] = T.if_then_else(inside, G[First[group] + step * BK + i, by * BN + j], 0)
            T.gemm(left, right, acc, transpose_A=True)
        T.copy(acc, C[group, bx * BM, by * BN])
    return C


def by_pointers(sizes: tuple[int, ...], K: int, N: int, BM: int, BN: int, BK: int, threads: int = 128) -> Any:
    """Groups are tensors of their own, reached through tables of addresses; all have room for the largest."""
    groups, capacity = len(sizes), max(sizes)

    @T.prim_func
    def by_pointers(
        A: T.Tensor((groups,), T.ptr),
        B: T.Tensor((groups,), T.ptr),
        C: T.Tensor((groups,), T.ptr),
        First: T.Tensor((groups,), INT),
    ):
        with T.Kernel(blocks_before(sizes, BM)[-1], T.ceildiv(N, BN), threads=threads) as (bx, by):
            left = T.alloc_shared((BM, BK), HALF)
            right = T.alloc_shared((BK, BN), HALF)
            acc = T.alloc_fragment((BM, BN), FLOAT)
            group = T.alloc_var(dtype=INT)
            first = T.alloc_var(dtype=INT)
            group = 0
            first = 0
            for g in range(groups):
                first = T.if_then_else(bx >= First[g], First[g], first)
                group = T.if_then_else(bx >= First[g], g, group)
            a = T.make_tensor(A[group], (capacity, K), HALF)
            b = T.make_tensor(B[group], (K, N), HALF)
            c = T.make_tensor(C[group], (capacity, N), HALF)
            T.clear(acc)
            for step in T.Pipelined(T.ceildiv(K, BK), num_stages=1):
                T.copy(a[(bx - first) * BM, step * BK], left)
                T.copy(b[step * BK, by * BN], right)
                T.gemm(left, right, acc)
            T.copy(acc, c[(bx - first) * BM, by * BN])

    return by_pointers


@tw.jit(target="cpu", pass_configs={"tl.disable_warp_specialized": True})
def experts(
    X, Gate, Up, Down, Weights, Sizes, First, Padded, GroupOf, Hidden, Y, sizes: tuple, BM: int, BH: int, BE: int,
    threads: int = 256,
):  # fmt: skip
    """First launch: hidden = silu(x Gateᵀ) · x Upᵀ; second: y = (hidden Downᵀ) · weight. Rows lie by expert."""
    D, E = T.const("D, E")
    groups, rows = len(sizes), sum(sizes)
    blocks = -(-rows // BM) + groups
    X: T.Tensor((rows, D), HALF)
    Gate: T.Tensor((groups, E, D), HALF)
    Up: T.Tensor((groups, E, D), HALF)
    Down: T.Tensor((groups, D, E), HALF)
    Weights: T.Tensor((rows,), HALF)
    Sizes: T.Tensor((groups,), INT)
    First: T.Tensor((groups,), INT)
    Padded: T.Tensor((groups,), INT)
    GroupOf: T.Tensor((blocks,), INT)
    Hidden: T.Tensor((rows, E), HALF)
    Y: T.Tensor((rows, D), HALF)
    with T.Kernel(blocks, T.ceildiv(E, BE), threads=threads) as (bx, by):
        x = T.alloc_fragment((BM, BH), HALF)
        gate = T.alloc_shared((BE, BH), HALF)
        up = T.alloc_shared((BE, BH), HALF)
        gated = T.alloc_fragment((BM, BE), FLOAT)
        raised = T.alloc_fragment((BM, BE), FLOAT)
        T.use_swizzle(10)
        group = GroupOf[bx]
        start = bx * BM - Padded[group] + First[group]
        valid = T.max(0, T.min(BM, Sizes[group] - (bx * BM - Padded[group])))
        T.clear(gated)
        T.clear(raised)
        for step in T.Pipelined(T.ceildiv(D, BH), num_stages=1):
            T.copy(X[start : start + BM, step * BH : (step + 1) * BH], x)
            T.copy(Gate[group, by * BE : (by + 1) * BE, step * BH : (step + 1) * BH], gate)
            T.gemm(x, gate, gated, transpose_B=True)
            T.copy(Up[group, by * BE : (by + 1) * BE, step * BH : (step + 1) * BH], up)
            T.gemm(x, up, raised, transpose_B=True)
        for i, j in T.Parallel(BM, BE):
            raised[i, j] *= gated[i, j] * (1.0 / (1.0 + T.exp2(-gated[i, j] * LOG2E)))
        for i, j in T.Parallel(BM, BE):
            if i < valid:
                Hidden[start + i, by * BE + j] = raised[i, j]
    with T.Kernel(blocks, T.ceildiv(D, BH), threads=threads) as (bx, by):
        hidden = T.alloc_fragment((BM, BE), HALF)
        down = T.alloc_shared((BH, BE), HALF)
        acc = T.alloc_fragment((BM, BH), FLOAT)
        T.use_swizzle(10)
        group = GroupOf[bx]
        start = bx * BM - Padded[group] + First[group]
        valid = T.max(0, T.min(BM, Sizes[group] - (bx * BM - Padded[group])))
        T.clear(acc)
        for step in T.Pipelined(T.ceildiv(E, BE), num_stages=1):
            T.copy(Hidden[start : start + BM, step * BE : (step + 1) * BE], hidden)
            T.copy(Down[group, by * BH : (by + 1) * BH, step * BE : (step + 1) * BE], down)
            T.gemm(hidden, down, acc, transpose_B=True)
        for i, j in T.Parallel(BM, BH):
            if i < valid:
                Y[start + i, by * BH + j] = acc[i, j] * Weights[start + i]


def places(sizes: tuple[int, ...], rows: int) -> dict[str, np.ndarray]:
    """The tables of where groups start: in the rows, and in rows padded to whole blocks."""
    first = np.cumsum([0, *sizes[:-1]])
    padded = np.array(blocks_before(sizes, rows)[:-1]) * rows
    return {"Sizes": np.int32(sizes), "First": first.astype(np.int32), "Padded": padded.astype(np.int32)}


def grouped_data(sizes: tuple[int, ...], K: int, N: int, trans_b: bool, BM: int, **_: Any) -> Data:
    a = numbers(1, (sum(sizes), K), HALF, 3)
    b = numbers(2, (len(sizes), N, K) if trans_b else (len(sizes), K, N), HALF, 3)
    matrices = b.astype(float).transpose(0, 2, 1) if trans_b else b.astype(float)
    mine = np.repeat(np.arange(len(sizes)), sizes)
    truth = np.einsum("mk,mkn->mn", a.astype(float), matrices[mine])
    return Data({"A": a, "B": b, **places(sizes, BM)}, {"C": Expected(truth)})


def grouped_backward_data(sizes: tuple[int, ...], M: int, N: int, **_: Any) -> Data:
    a, g = numbers(1, (sum(sizes), M), HALF, 3), numbers(2, (sum(sizes), N), HALF, 3)
    found = places(sizes, 1)
    parts = [slice(start, start + size) for start, size in zip(found["First"], sizes, strict=True)]
    truth = np.stack([a[part].astype(float).T @ g[part].astype(float) for part in parts])
    return Data({"A": a, "G": g, "Sizes": found["Sizes"], "First": found["First"]}, {"C": Expected(truth)})


def by_pointers_data(sizes: tuple[int, ...], BM: int, **_: Any) -> Data:
    """Addresses of nothing: there is no result without a card's memory."""
    nowhere = {name: np.zeros(len(sizes), np.int64) for name in "ABC"}
    return Data({**nowhere, "First": np.int32(blocks_before(sizes, BM)[:-1])}, {})


def experts_data(sizes: tuple[int, ...], D: int, E: int, BM: int, **_: Any) -> Data:
    rows, groups = sum(sizes), len(sizes)
    x, weights = normal(1, (rows, D)), np.abs(normal(5, (rows,)))
    gate, up = normal(2, (groups, E, D), HALF, D**-0.5), normal(3, (groups, E, D), HALF, D**-0.5)
    down = normal(4, (groups, D, E), HALF, E**-0.5)
    mine = np.repeat(np.arange(groups), sizes)
    G, U, W = (m.astype(float)[mine] for m in (gate, up, down))
    X, unit = x.astype(float), ROUNDING[HALF]
    gated, raised = np.einsum("md,med->me", X, G), np.einsum("md,med->me", X, U)
    hidden = raised * gated / (1 + np.exp(-gated))
    # silu' is below 1.1; the sums of D products are wrong by D 2⁻²³ of their absolute terms.
    sums = D * 2.0**-23
    gated_error = sums * np.einsum("md,med->me", np.abs(X), np.abs(G))
    raised_error = sums * np.einsum("md,med->me", np.abs(X), np.abs(U))
    hidden_error = (
        np.abs(gated) * raised_error + 1.1 * np.abs(raised) * gated_error + (unit + 2.0**-20) * np.abs(hidden)
    )
    hidden_error += 2.0**-25
    y = np.einsum("me,mde->md", hidden, W) * weights.astype(float)[:, None]
    error = np.einsum("me,mde->md", hidden_error + E * 2.0**-23 * np.abs(hidden), np.abs(W))
    bound = error * weights.astype(float)[:, None] + unit * np.abs(y) + 2.0**-25
    found = places(sizes, BM)
    blocks = np.arange(-(-rows // BM) + groups) * BM
    group_of = (np.searchsorted(found["Padded"], blocks, side="right") - 1).astype(np.int32)
    inputs = {"X": x, "Gate": gate, "Up": up, "Down": down, "Weights": weights, **found, "GroupOf": group_of}
    return Data(inputs, {"Hidden": Expected(hidden, hidden_error), "Y": Expected(y, bound)})


def rows_and_groups(function: Any) -> Any:
    return lambda sizes, **options: function.compile(rows=sum(sizes), groups=len(sizes), **options)


BLOCKS = {"BM": 64, "BN": 64, "BK": 32}
LARGE = {"BM": 64, "BN": 128, "BK": 64}
FORWARD, BACKWARD = ("grouped_gemm/example_grouped_gemm_fwd.py",), ("grouped_gemm/example_grouped_gemm_bwd.py",)
ENTRIES = [
    Entry("grouped gemm", FORWARD, grouped.compile, grouped_data,
          {"sizes": (63, 70, 1), "K": 96, "N": 64, "trans_b": False, **BLOCKS},
          {"sizes": (63, 77, 111, 280), "K": 8192, "N": 8192, "trans_b": False, **LARGE, "threads": 256}),
    Entry("grouped gemm, transposed", (*FORWARD, *BACKWARD), grouped.compile, grouped_data,
          {"sizes": (30, 70), "K": 96, "N": 64, "trans_b": True, **BLOCKS},
          {"sizes": (64, 128), "K": 8192, "N": 8192, "trans_b": True, **LARGE, "threads": 256}),
    Entry("grouped gemm backward", BACKWARD, rows_and_groups(grouped_backward), grouped_backward_data,
          {"sizes": (30, 0, 70), "M": 64, "N": 128, **BLOCKS},
          {"sizes": (128, 256), "M": 8192, "N": 8192, **LARGE}),
    Entry("grouped gemm by pointers", ("grouped_gemm/example_grouped_gemm_fwd_ptr.py",), by_pointers, by_pointers_data,
          {"sizes": (16, 33, 64), "K": 128, "N": 96, **BLOCKS},
          {"sizes": (64, 128, 256), "K": 4096, "N": 4096, **LARGE, "threads": 256}, simulated=False),
    Entry("gated experts", ("fusedmoe/example_fusedmoe_tilelang.py",), experts.compile, experts_data,
          {"sizes": (40, 70), "D": 64, "E": 64, "BM": 64, "BH": 64, "BE": 64, "threads": 128},
          {"sizes": (4096,) * 8, "D": 7168, "E": 2048, "BM": 128, "BH": 128, "BE": 128}),
]  # fmt: skip
