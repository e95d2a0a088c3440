"""Rows brought to a scale: layer norm both ways, root mean square, and a softmax that reads its rows twice."""

from __future__ import annotations

from typing import Any

import numpy as np

import tileworkbench as tw
import tileworkbench.language as T
from tests.gallery.entry import Data, Entry, Expected, normal
from tests.gallery.online import LOG2E

FLOAT, BRAIN = "float32", "bfloat16"
EPS = 1e-5


@tw.jit(out_idx=[-3, -2, -1], target="cpu")
def layer_norm(N: int, D: int, rows: int = 1, threads: int = 256):
    @T.prim_func
    def layer_norm(
        X: T.Tensor((N, D), BRAIN),
        Gain: T.Tensor((D,), BRAIN),
        Shift: T.Tensor((D,), BRAIN),
        Y: T.Tensor((N, D), BRAIN),
        Mean: T.Tensor((N,), FLOAT),
        Rstd: T.Tensor((N,), FLOAT),
    ):
        with T.Kernel(T.ceildiv(N, rows), threads=threads) as bx:
            tile = T.alloc_shared((rows, D), BRAIN)
            gain = T.alloc_shared((D,), BRAIN)
            shift = T.alloc_shared((D,), BRAIN)
            x = T.alloc_fragment((rows, D), FLOAT)
            squares = T.alloc_fragment((rows, D), FLOAT)
            mean = T.alloc_fragment((rows,), FLOAT)
            rstd = T.alloc_fragment((rows,), FLOAT)
            T.copy(X[bx * rows, 0], tile)
            T.copy(Gain, gain)
            T.copy(Shift, shift)
            T.copy(tile, x)
            for i, j in T.Parallel(rows, D):
                squares[i, j] = x[i, j] * x[i, j]
            T.reduce_sum(x, mean, dim=1)
            T.reduce_sum(squares, rstd, dim=1)
            for i in T.Parallel(rows):
                mean[i] = mean[i] * (1.0 / D)
                rstd[i] = T.rsqrt(rstd[i] * (1.0 / D) - mean[i] * mean[i] + T.Cast(FLOAT, EPS))
                Mean[bx * rows + i] = mean[i]
                Rstd[bx * rows + i] = rstd[i]
            for i, j in T.Parallel(rows, D):
                scaled = (x[i, j] - mean[i]) * rstd[i]
                tile[i, j] = T.Cast(BRAIN, scaled * T.Cast(FLOAT, gain[j]) + T.Cast(FLOAT, shift[j]))
            T.copy(tile, Y[bx * rows, 0])

    return layer_norm


def layer_norm_backward(N: int, D: int, rows: int = 32, threads: int = 256) -> Any:
    """A block takes `rows` rows one after the other and adds its share to the gradients of gain and shift."""

    @T.prim_func
    def layer_norm_backward(
        G: T.Tensor((N, D), BRAIN),
        X: T.Tensor((N, D), BRAIN),
        Gain: T.Tensor((D,), BRAIN),
        Mean: T.Tensor((N,), FLOAT),
        Rstd: T.Tensor((N,), FLOAT),
        dX: T.Tensor((N, D), BRAIN),
        dGain: T.Tensor((D,), FLOAT),
        dShift: T.Tensor((D,), FLOAT),
    ):
        with T.Kernel(T.ceildiv(N, rows), threads=threads) as bx:
            g = T.alloc_shared((1, D), BRAIN)
            x = T.alloc_shared((1, D), BRAIN)
            gain = T.alloc_shared((D,), BRAIN)
            dx = T.alloc_shared((1, D), BRAIN)
            hat = T.alloc_fragment((1, D), FLOAT)
            dhat = T.alloc_fragment((1, D), FLOAT)
            both = T.alloc_fragment((1, D), FLOAT)
            sums = T.alloc_fragment((1,), FLOAT)
            products = T.alloc_fragment((1,), FLOAT)
            gains = T.alloc_fragment((D,), FLOAT)
            shifts = T.alloc_fragment((D,), FLOAT)
            T.copy(Gain, gain)
            T.clear(gains)
            T.clear(shifts)
            for k in T.serial(rows):
                row = bx * rows + k
                T.copy(G[row, 0], g)
                T.copy(X[row, 0], x)
                mean, rstd = Mean[row], Rstd[row]
                for i, j in T.Parallel(1, D):
                    hat[i, j] = (T.Cast(FLOAT, x[i, j]) - mean) * rstd
                    dhat[i, j] = T.Cast(FLOAT, g[i, j]) * T.Cast(FLOAT, gain[j])
                    both[i, j] = dhat[i, j] * hat[i, j]
                T.reduce_sum(dhat, sums, dim=1)
                T.reduce_sum(both, products, dim=1)
                for i, j in T.Parallel(1, D):
                    rest = dhat[i, j] - sums[0] * (1.0 / D) - hat[i, j] * (products[0] * (1.0 / D))
                    dx[i, j] = T.Cast(BRAIN, rstd * rest)
                    gains[j] += T.Cast(FLOAT, g[i, j]) * hat[i, j]
                    shifts[j] += T.Cast(FLOAT, g[i, j])
                T.copy(dx, dX[row, 0])
            for j in T.Parallel(D):
                T.atomic_add(dGain[j], gains[j], memory_order="relaxed")
                T.atomic_add(dShift[j], shifts[j], memory_order="relaxed")

    return layer_norm_backward


@tw.jit(target="cpu", pass_configs={"tl.disable_tma_lower": True})
def root_mean_square(A, rows: int):
    M, N = T.const("M, N")
    A: T.Tensor((M, N), FLOAT)
    B = T.empty((M, N), FLOAT)
    with T.Kernel(T.ceildiv(M, rows), threads=128) as bx:
        x = T.alloc_fragment((rows, N), FLOAT)
        squares = T.alloc_fragment((rows, N), FLOAT)
        scale = T.alloc_fragment((rows,), FLOAT)
        T.copy(A[bx * rows : (bx + 1) * rows, :], x)
        for i, j in T.Parallel(rows, N):
            squares[i, j] = x[i, j] * x[i, j]
        T.reduce_sum(squares, scale, dim=1)
        for i in T.Parallel(rows):
            scale[i] = T.rsqrt(scale[i] / N + 1e-12)
        for i, j in T.Parallel(rows, N):
            x[i, j] *= scale[i]
        T.copy(x, B[bx * rows : (bx + 1) * rows, :])
    return B


@tw.jit(target="cpu", pass_configs={"tl.disable_tma_lower": True})
def root_mean_square_by_parts(A, rows: int, columns: int):
    """Rows that do not fit: read once forwards for the sum, once backwards for the result."""
    M, N = T.const("M, N")
    A: T.Tensor((M, N), FLOAT)
    B = T.empty((M, N), FLOAT)
    with T.Kernel(T.ceildiv(M, rows), threads=128) as bx:
        part = T.alloc_shared((rows, columns), FLOAT)
        squares = T.alloc_fragment((rows, columns), FLOAT)
        scale = T.alloc_fragment((rows,), FLOAT)
        parts = T.ceildiv(N, columns)
        T.clear(squares)
        for k in T.Serial(parts):
            T.copy(A[bx * rows, k * columns], part)
            for i, j in T.Parallel(rows, columns):
                squares[i, j] += part[i, j] * part[i, j]
        T.reduce_sum(squares, scale, dim=1)
        for i in T.Parallel(rows):
            scale[i] = T.rsqrt(scale[i] / N + 1e-12)
        for k in T.Serial(parts):
            T.copy(A[bx * rows, (parts - 1 - k) * columns], part)
            for i, j in T.Parallel(rows, columns):
                part[i, j] *= scale[i]
            T.copy(part, B[bx * rows, (parts - 1 - k) * columns])
    return B


@tw.jit(target="cpu")
def softmax(X, rows: int, columns: int):
    """The first reading finds the logarithm of the denominator part by part, the second divides by it."""
    M, N = T.const("M, N")
    X: T.Tensor[[M, N], "float16"]
    Y = T.empty([M, N], "float16")
    with T.Kernel(T.ceildiv(M, rows), threads=128) as bx:
        x = T.alloc_fragment([rows, columns], "float16")
        y = T.alloc_fragment([rows, columns], "float16")
        weights = T.alloc_fragment([rows, columns], FLOAT)
        top = T.alloc_fragment([rows], "float16")
        part = T.alloc_fragment([rows], FLOAT)
        lse = T.alloc_fragment([rows], FLOAT)
        T.fill(lse, -T.infinity(FLOAT))
        for k in T.Pipelined(T.ceildiv(N, columns)):
            T.copy(X[bx * rows, k * columns], x)
            T.reduce_max(x, top, dim=1, clear=True)
            for i, j in T.Parallel(rows, columns):
                weights[i, j] = T.exp2(x[i, j].astype(FLOAT) * LOG2E - top[i].astype(FLOAT) * LOG2E)
            T.reduce_sum(weights, part, dim=1, clear=True)
            for i in T.Parallel(rows):
                high = top[i].astype(FLOAT) * LOG2E
                lse[i] = high + T.log2(T.exp2(lse[i] - high) + part[i])
        for k in T.Pipelined(T.ceildiv(N, columns)):
            T.copy(X[bx * rows, k * columns], x)
            for i, j in T.Parallel(rows, columns):
                y[i, j] = T.exp2(x[i, j].astype(FLOAT) * LOG2E - lse[i])
            T.copy(y, Y[bx * rows, k * columns])
    return Y


def layer_norm_data(N: int, D: int, **_: Any) -> Data:
    x, gain, shift = normal(1, (N, D), BRAIN), normal(2, (D,), BRAIN), normal(3, (D,), BRAIN)
    X, G, S = (a.astype(np.float64) for a in (x, gain, shift))
    mean, power = X.mean(1), (X * X).mean(1)
    spread = power - mean**2 + EPS
    rstd = spread**-0.5
    hat = (X - mean[:, None]) * rstd[:, None]
    y = hat * G + S
    # Sums of D terms, then the difference of two of them under a root.
    mean_error = D * 2.0**-23 * np.abs(X).mean(1)
    rstd_error = rstd * (D * 2.0**-23 * power + 2 * np.abs(mean) * mean_error) / spread + 2.0**-21 * rstd
    hat_error = (mean_error * rstd)[:, None] + np.abs(hat) * (rstd_error / rstd + 2.0**-22)[:, None]
    outputs = {
        "Mean": Expected(mean, mean_error),
        "Rstd": Expected(rstd, rstd_error),
        "Y": Expected(y, np.abs(G) * hat_error + 2.0**-8 * np.abs(y) + 2.0**-22 * (np.abs(hat * G) + np.abs(S))),
    }
    return Data({"X": x, "Gain": gain, "Shift": shift}, outputs)


def layer_norm_backward_data(N: int, D: int, **_: Any) -> Data:
    g, x, gain = normal(1, (N, D), BRAIN), normal(2, (N, D), BRAIN), normal(3, (D,), BRAIN)
    X = x.astype(np.float64)
    mean, rstd = X.mean(1).astype(FLOAT), ((X.var(1) + EPS) ** -0.5).astype(FLOAT)
    m, r, G = mean.astype(np.float64)[:, None], rstd.astype(np.float64)[:, None], g.astype(np.float64)
    hat, dhat = (X - m) * r, G * gain.astype(np.float64)
    c, d = dhat.mean(1, keepdims=True), (dhat * hat).mean(1, keepdims=True)
    dx = r * (dhat - c - hat * d)
    terms = np.abs(dhat) + np.abs(c) + np.abs(hat * d)
    sums = (
        D * 2.0**-23 * (np.abs(dhat).mean(1, keepdims=True) + np.abs(hat) * np.abs(dhat * hat).mean(1, keepdims=True))
    )
    terms_gain = np.abs(G) * (np.abs(X) + np.abs(m)) * r
    zeros = np.zeros(D)
    outputs = {
        "dX": Expected(dx, 2.0**-8 * np.abs(dx) + r * (2.0**-21 * terms + sums)),
        "dGain": Expected((G * hat).sum(0), (N + 4) * 2.0**-23 * terms_gain.sum(0), initial=zeros),
        "dShift": Expected(G.sum(0), N * 2.0**-23 * np.abs(G).sum(0), initial=zeros),
    }
    return Data({"G": g, "X": x, "Gain": gain, "Mean": mean, "Rstd": rstd}, outputs)


def root_mean_square_data(M: int, N: int, **_: Any) -> Data:
    a = normal(1, (M, N), FLOAT, 3.0)
    x = a.astype(np.float64)
    y = x / np.sqrt((x * x).mean(1, keepdims=True) + 1e-12)
    # A sum of N positive terms under a root, then three roundings.
    return Data({"A": a}, {"B": Expected(y, np.abs(y) * (N / 2 + 8) * 2.0**-23)})


def softmax_data(M: int, N: int, **_: Any) -> Data:
    a = normal(1, (M, N), "float16", 3.0)
    x = a.astype(np.float64)
    e = np.exp(x - x.max(1, keepdims=True))
    y = e / e.sum(1, keepdims=True)
    # The result is rounded to float16; exponents of at most 2⁵ in float32 add a few times 2⁻¹⁹, the sum N roundings.
    return Data({"X": a}, {"Y": Expected(y, y * (2.0**-11 + 2.0**-17 + N * 2.0**-23) + 2.0**-25)})


ENTRIES = [
    Entry("layer norm", ("norm/layernorm.py",), layer_norm, layer_norm_data, {"N": 6, "D": 256, "rows": 2},
          {"N": 8192, "D": 4096}),
    Entry("layer norm backward", ("norm/layernorm.py",), layer_norm_backward, layer_norm_backward_data,
          {"N": 8, "D": 256, "rows": 4}, {"N": 8192, "D": 4096}),
    Entry("root mean square", ("norm/rms_norm.py",), root_mean_square.compile, root_mean_square_data,
          {"M": 5, "N": 256, "rows": 2}, {"M": 8192, "N": 8192, "rows": 1}),
    Entry("root mean square by parts", ("norm/rms_norm.py",), root_mean_square_by_parts.compile,
          root_mean_square_data, {"M": 5, "N": 300, "rows": 2, "columns": 128},
          {"M": 8192, "N": 8192, "rows": 1, "columns": 512}),
    Entry("softmax in two readings", ("online_softmax/online_softmax.py",), softmax.compile, softmax_data,
          {"M": 6, "N": 512, "rows": 2, "columns": 128}, {"M": 8192, "N": 8192, "rows": 1, "columns": 8192}),
]  # fmt: skip
