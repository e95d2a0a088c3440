"""Values brought to eight or four bits with a scale a row and group, and means of quantised rows."""

from __future__ import annotations

from typing import Any

import numpy as np

import tileworkbench as tw
import tileworkbench.language as T
from tests.gallery.entry import Data, Entry, Expected, dtype, normal

FLOAT, BRAIN, FP8 = "float32", "bfloat16", "float8_e4m3fn"
TOP = 448.0  # the largest value of e4m3


@tw.jit(target="cpu")
def grouped_cast(X, Sizes, capacity: int, rows: int, group: int = 128):
    """Rows of all experts lie one after the other; each expert's go to its own slab, what is left of it is zero."""
    M, N, E = T.const("M, N, E")
    X: T.Tensor((M, N), BRAIN)
    Sizes: T.Tensor((E,), T.int32)
    Y = T.empty((E, capacity, N), FP8)
    Scale = T.empty((E, capacity, T.ceildiv(N, group)), FLOAT)
    with T.Kernel(T.ceildiv(capacity, rows), T.ceildiv(N, group), E, threads=128) as (bx, by, e):
        x = T.alloc_fragment((rows, group), FLOAT)
        narrow = T.alloc_fragment((rows, group), FP8)
        top = T.alloc_fragment((rows,), FLOAT)
        scale = T.alloc_fragment((rows,), FLOAT)
        first = T.alloc_var(T.int32)
        first = 0
        for before in T.serial(e):
            first += Sizes[before]
        T.copy(X[first + bx * rows : first + (bx + 1) * rows, by * group : (by + 1) * group], x)
        T.reduce_absmax(x, top, dim=1)
        for i in T.Parallel(rows):
            top[i] = T.max(top[i], 1e-4)
            scale[i] = T.if_then_else(bx * rows + i < Sizes[e], top[i] / TOP, 0)
        for i, j in T.Parallel(rows, group):
            value = T.clamp(x[i, j] / (top[i] / TOP), -TOP, TOP)
            narrow[i, j] = T.if_then_else(bx * rows + i < Sizes[e], value, 0)
        for i in T.Parallel(rows):
            Scale[e, bx * rows + i, by] = scale[i]
        T.copy(narrow, Y[e, bx * rows : (bx + 1) * rows, by * group : (by + 1) * group])
    return Y, Scale


def exponent_above(x):
    """The least e with x ≤ 2ᵉ, from the bits of a positive float32."""
    bits = T.reinterpret(x, "uint32")
    return T.Cast("int32", ((bits >> 23) & 0xFF) - 127 + T.if_then_else((bits & 0x7FFFFF) != 0, 1, 0))


def power_of_two(e):
    return T.reinterpret((e + 127) << 23, "float32")


@tw.jit(target="cpu", pass_configs={"tl.disable_warp_specialized": True})
def activations(X, group: int, rounded: bool, kind: str, rows: int = 32):
    """`rounded`: scales are powers of two, so that dividing by them is exact."""
    M = T.dynamic("M")
    N = T.const("N")
    X: T.Tensor[(M, N), BRAIN]
    Y = T.empty((M, N), kind)
    Scale = T.empty((M, T.ceildiv(N, group)), FLOAT)
    top_value = TOP if kind == FP8 else 6.0
    with T.Kernel(T.ceildiv(M, rows), T.ceildiv(N, group), threads=128) as (bx, by):
        tile = T.alloc_shared((rows, group), BRAIN)
        x = T.alloc_fragment((rows, group), BRAIN)
        top = T.alloc_fragment((rows,), FLOAT)
        scale = T.alloc_fragment((rows,), FLOAT)
        y = T.alloc_fragment((rows, group), kind)
        result = T.alloc_shared((rows, group), kind)
        for _ in T.Pipelined(1, num_stages=0 if rounded else 2):
            T.copy(X[bx * rows, by * group], tile, disable_tma=True)
            T.copy(tile, x)
            T.reduce_absmax(x, top, dim=1)
            for i in T.Parallel(rows):
                top[i] = T.max(top[i], 1e-4)
                if rounded:
                    scale[i] = power_of_two(exponent_above(top[i] * (1 / top_value)))
                else:
                    scale[i] = top[i] * (1 / top_value)
                Scale[bx * rows + i, by] = scale[i]
            for i, j in T.Parallel(rows, group):
                y[i, j] = T.clamp(x[i, j] / scale[i], -top_value, top_value)
            T.copy(y, result)
            T.copy(result, Y[bx * rows, by * group], disable_tma=True)
    return Y, Scale


@tw.jit(target="cpu")
def block_means(K, Scale, D: int, pool: int, rows: int, threads: int = 256):
    """The mean of every `pool` scaled rows (fewer at the end), quantised again with a scale of its own."""
    n = T.const("n")
    K: T.Tensor[[n, D], FP8]
    Scale: T.Tensor[[n], FLOAT]
    blocks = T.ceildiv(n, pool)
    Means = T.empty((blocks, D), FP8)
    MeanScale = T.empty((blocks,), FLOAT)
    with T.Kernel(blocks, threads=threads) as bx:
        keys = T.alloc_fragment([rows, D], FLOAT)
        scale = T.alloc_fragment([rows], FLOAT)
        mean = T.alloc_fragment([D], FLOAT)
        top = T.alloc_fragment([1], FLOAT)
        T.fill(mean, 0.0)
        first = bx * pool
        count = T.min(pool, n - first)
        for part in T.serial(T.ceildiv(count, rows)):
            T.copy(K[first + part * rows : first + (part + 1) * rows, :], keys)
            for i in T.Parallel(rows):
                scale[i] = Scale[first + part * rows + i]
            for i, j in T.Parallel(rows, D):
                keys[i, j] = T.if_then_else(part * rows + i < count, keys[i, j] * scale[i], 0)
            T.reduce_sum(keys, mean, dim=0, clear=False)
        for j in T.Parallel(D):
            mean[j] = mean[j] * (T.cast(1.0, FLOAT) / T.cast(count, FLOAT))
        T.reduce_absmax(mean, top, dim=0, clear=True)
        whole = T.max(top[0] * T.cast(1 / TOP, FLOAT), T.cast(1e-10, FLOAT))
        for j in T.Parallel(D):
            Means[bx, j] = T.cast(mean[j] * (1.0 / whole), FP8)
        MeanScale[bx] = whole
    return Means, MeanScale


def half_step(x: np.ndarray, kind: str) -> np.ndarray:
    """Half the distance between neighbours of the type at x: what rounding to nearest may cost."""
    bits, least = (3, -6) if kind == FP8 else (1, 0)
    exponent = np.floor(np.log2(np.maximum(np.abs(x), 2.0**least)))
    return 2.0 ** (np.maximum(exponent, least) - bits - 1)


def quantised(x: np.ndarray, kind: str, error: Any = 0.0) -> Expected:
    """The nearest value of the type; `error` of what is rounded, beside float32's own rounding of a quotient."""
    return Expected(x, half_step(x, kind) + np.abs(x) * 2.0**-22 + error)


def grouped_cast_data(sizes: tuple[int, ...], N: int, capacity: int, group: int = 128, **_: Any) -> Data:
    rows = sum(sizes)
    x = normal(1, (rows, N), BRAIN, 4.0)
    values = np.zeros((len(sizes), capacity, N))
    scales = np.zeros((len(sizes), capacity, N // group))
    start = 0
    for e, size in enumerate(sizes):
        part = x[start : start + size].astype(np.float64).reshape(size, N // group, group)
        scales[e, :size] = np.maximum(np.abs(part).max(2), np.float32(1e-4)) / TOP
        values[e, :size] = (part / scales[e, :size, :, None]).reshape(size, N)
        start += size
    outputs = {"Y": quantised(values, FP8), "Scale": Expected(scales)}
    return Data({"X": x, "Sizes": np.array(sizes, np.int32)}, outputs)


def activations_data(M: int, N: int, group: int, rounded: bool, kind: str, **_: Any) -> Data:
    x = normal(1, (M, N), BRAIN, 4.0)
    top_value = TOP if kind == FP8 else 6.0
    groups = x.astype(np.float64).reshape(M, N // group, group)
    top = np.maximum(np.abs(groups).max(2), np.float32(1e-4))
    scale = top / top_value
    if rounded:
        scale = 2.0 ** np.ceil(np.log2(scale))
    values = np.clip(groups / scale[:, :, None], -top_value, top_value).reshape(M, N)
    # The scale is a product with a rounded constant, unless it is rounded up to a power of two.
    scales = Expected(scale, 0 if rounded else scale * 2.0**-22)
    return Data({"X": x}, {"Y": quantised(values, kind), "Scale": scales})


def block_means_data(n: int, D: int, pool: int, **_: Any) -> Data:
    k = normal(1, (n, D), FLOAT, 100).clip(-TOP, TOP).astype(dtype(FP8))
    scale = np.abs(normal(2, (n,), FLOAT)) + np.float32(0.01)
    rows = k.astype(np.float64) * scale.astype(np.float64)[:, None]
    parts = [rows[at : at + pool] for at in range(0, n, pool)]
    means = np.array([part.mean(0) for part in parts])
    terms = np.array([np.abs(part).mean(0) for part in parts])
    whole = np.abs(means).max(1, keepdims=True) / TOP
    # Sums of up to `pool` products, relative to their absolute terms; the largest of them makes the scale.
    error = (pool + 4) * 2.0**-23 * terms
    scale_error = error.max(1) / TOP + 2.0**-22 * whole[:, 0]
    relative = (scale_error / whole[:, 0])[:, None]
    outputs = {
        "Means": quantised(means / whole, FP8, error / whole + np.abs(means / whole) * relative),
        "MeanScale": Expected(whole[:, 0], scale_error),
    }
    return Data({"K": k, "Scale": scale}, outputs)


def cast_kernel(sizes: tuple[int, ...], N: int, **options: Any) -> Any:
    return grouped_cast.compile(M=sum(sizes), N=N, E=len(sizes), **options)


ACTIVATIONS = ("deepseek_v4/act_quant.py",)
ENTRIES = [
    Entry("cast by groups and experts", ("cast/example_group_per_split_token_cast_to_fp8.py",), cast_kernel,
          grouped_cast_data, {"sizes": (5, 0, 9), "N": 256, "capacity": 12, "rows": 4},
          {"sizes": (2048, 6144), "N": 8192, "capacity": 6144, "rows": 8}),
    Entry("activations in eight bits", ACTIVATIONS, lambda M, **o: activations.compile(**o), activations_data,
          {"M": 40, "N": 256, "group": 128, "rounded": True, "kind": FP8},
          {"M": 4096, "N": 7168, "group": 128, "rounded": True, "kind": FP8}),
    Entry("activations in eight bits, any scale", ACTIVATIONS, lambda M, **o: activations.compile(**o),
          activations_data, {"M": 40, "N": 256, "group": 128, "rounded": False, "kind": FP8},
          {"M": 4096, "N": 7168, "group": 128, "rounded": False, "kind": FP8}),
    Entry("activations in four bits", ACTIVATIONS, lambda M, **o: activations.compile(**o), activations_data,
          {"M": 40, "N": 64, "group": 32, "rounded": True, "kind": "float4_e2m1fn"},
          {"M": 4096, "N": 7168, "group": 32, "rounded": True, "kind": "float4_e2m1fn"}),
    Entry("means of blocks", ("dsa_hisa/fp8_block_mean_pooling.py",), block_means.compile, block_means_data,
          {"n": 200, "D": 128, "pool": 64, "rows": 32}, {"n": 65536, "D": 128, "pool": 128, "rows": 64}),
]  # fmt: skip
