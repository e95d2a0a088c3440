"""Residual streams: the mixes of several streams from one product, made doubly stochastic by Sinkhorn's steps, and the
streams put together again."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import tileworkbench as tw
import tileworkbench.language as T
from tests.gallery.entry import Data, Entry, Expected, normal, numbers
from tileworkbench.compat.layouts import make_swizzled_layout

FLOAT, BRAIN = "float32", "bfloat16"
EPS = 1e-6


@tw.jit(target="cpu")
def product_and_power(X, W, Out, Power, mixes: int, width: int, rows: int = 32, columns: int = 256):
    """x Wᵀ in TF32 beside the sum of squares of every row, for a run-time number of rows."""
    n = T.dynamic("n")
    X: T.Tensor((n, width), BRAIN)
    W: T.Tensor((mixes, width), "tfloat32")
    Out: T.Tensor((n, mixes), FLOAT)
    Power: T.Tensor((n,), FLOAT)
    with T.Kernel(T.ceildiv(n, rows), threads=128) as bx:
        acc = T.alloc_fragment((rows, 32), FLOAT)
        partial = T.alloc_fragment((rows, 4), FLOAT)
        power = T.alloc_fragment((rows,), FLOAT)
        T.clear(acc)
        T.clear(partial)
        for k in T.Pipelined(width // columns, num_stages=2):
            x = T.alloc_shared((rows, columns), BRAIN)
            w = T.alloc_shared((32, columns), "tfloat32")
            x_half = T.alloc_fragment((rows, columns), BRAIN)
            x_full = T.alloc_fragment((rows, columns), "tfloat32")
            T.annotate_layout({x: make_swizzled_layout(x)})
            T.copy(X[bx * rows, k * columns], x)
            T.copy(W[0, k * columns], w)
            T.copy(x, x_half)
            T.copy(x_half, x_full)
            for quad in T.serial(columns // 4):
                for i, j in T.Parallel(rows, 4):
                    partial[i, j] += x_full[i, quad * 4 + j] * x_full[i, quad * 4 + j]
            T.gemm(x_full, w, acc, transpose_B=True)
        T.reduce_sum(partial, power)
        for i in T.Parallel(rows):
            Power[bx * rows + i] = power[i]
        for i, j in T.Parallel(rows, 32):
            if j < mixes:
                Out[bx * rows + i, j] = acc[i, j]


@tw.jit(target="cpu", pass_configs={"tl.disable_warp_specialized": True})
def mix(
    Product, Power, Scale, Base, Streams, Post, Comb, Input, hidden: int, streams: int = 4, steps: int = 20,
    splits: int = 2,
):  # fmt: skip
    """One warp makes the combination matrix while the others blend the streams."""
    n, mixes = T.dynamic("n"), streams * (2 + streams)
    block = math.gcd(512, hidden)
    Product: T.Tensor[[splits, n, mixes], FLOAT]
    Power: T.Tensor[[splits, n], FLOAT]
    Scale: T.Tensor[[3], FLOAT]
    Base: T.Tensor[[mixes], FLOAT]
    Streams: T.Tensor[[n, streams, hidden], BRAIN]
    Post: T.Tensor[[n, streams], FLOAT]
    Comb: T.Tensor[[n, streams * streams], FLOAT]
    Input: T.Tensor[[n, hidden], BRAIN]
    with T.Kernel(n, threads=96) as token:
        norm = T.alloc_fragment(1, FLOAT)
        logits = T.alloc_fragment(mixes, FLOAT)
        shared_logits = T.alloc_shared(mixes, FLOAT)
        norm[0] = 0
        for part in T.serial(splits):
            norm[0] += Power[part, token]
        norm[0] = T.rsqrt(norm[0] / (streams * hidden) + EPS)
        for j in T.Parallel(mixes):
            logits[j] = 0
            for part in T.serial(splits):
                logits[j] += Product[part, token, j]
            logits[j] *= norm[0]
        T.copy(logits, shared_logits)
        if T.get_thread_binding() < 32:
            comb = T.alloc_fragment((streams, streams), FLOAT)
            rows = T.alloc_fragment(streams, FLOAT)
            columns = T.alloc_fragment(streams, FLOAT)
            for j in T.Parallel(streams):
                Post[token, j] = 2.0 * T.sigmoid(shared_logits[streams + j] * Scale[1] + Base[streams + j])
            for j, k in T.Parallel(streams, streams):
                at = streams * (2 + j) + k
                comb[j, k] = shared_logits[at] * Scale[2] + Base[at]
            T.reduce_max(comb, rows, dim=1)
            for j, k in T.Parallel(streams, streams):
                comb[j, k] = T.exp(comb[j, k] - rows[j])
            T.reduce_sum(comb, rows, dim=1)
            for j, k in T.Parallel(streams, streams):
                comb[j, k] = comb[j, k] / rows[j] + EPS
            T.reduce_sum(comb, columns, dim=0)
            for j, k in T.Parallel(streams, streams):
                comb[j, k] = comb[j, k] / (columns[k] + EPS)
            for _ in T.serial(steps - 1):
                T.reduce_sum(comb, rows, dim=1)
                for j, k in T.Parallel(streams, streams):
                    comb[j, k] = comb[j, k] / (rows[j] + EPS)
                T.reduce_sum(comb, columns, dim=0)
                for j, k in T.Parallel(streams, streams):
                    comb[j, k] = comb[j, k] / (columns[k] + EPS)
            for j, k in T.Parallel(streams, streams):
                Comb[token, j * streams + k] = comb[j, k]
        else:
            weights = T.alloc_shared(streams, FLOAT)
            for j in T.Parallel(streams):
                weights[j] = T.sigmoid(shared_logits[j] * Scale[0] + Base[j]) + EPS
            for part in T.Pipelined(hidden // block, num_stages=2):
                tile = T.alloc_shared((streams, block), FLOAT)
                values = T.alloc_fragment((streams, block), FLOAT)
                blend = T.alloc_fragment(block, FLOAT)
                T.copy(Streams[token, 0, part * block], tile)
                T.copy(tile, values)
                T.clear(blend)
                for s in T.serial(streams):
                    weight = weights[s]
                    for j in T.Parallel(block):
                        blend[j] += weight * values[s, j]
                T.copy(blend, Input[token, part * block])


@tw.jit(target="cpu", pass_configs={"tl.disable_warp_specialized": True, "tl.ptxas_register_usage_level": 10})
def put_together(Comb, Streams, Post, Layer, Out, streams: int, hidden: int, threads: int = 128, block: int = 1024):
    """Every stream of the result: the layer's output by its weight, and the old streams by the matrix."""
    n, block = T.dynamic("n"), math.gcd(hidden, block)
    Comb: T.Tensor((n, streams, streams), FLOAT)
    Streams: T.Tensor((n, streams, hidden), BRAIN)
    Post: T.Tensor((n, streams), FLOAT)
    Layer: T.Tensor((n, hidden), BRAIN)
    Out: T.Tensor((n, streams, hidden), BRAIN)
    with T.Kernel(n, threads=threads) as token:
        old_tile = T.alloc_shared((streams, block), BRAIN)
        layer_tile = T.alloc_shared(block, BRAIN)
        result = T.alloc_shared((streams, block), BRAIN)
        old = T.alloc_fragment((streams, block), FLOAT)
        layer = T.alloc_fragment(block, FLOAT)
        new = T.alloc_fragment((streams, block), FLOAT)
        comb = T.alloc_fragment((streams, streams), FLOAT)
        post = T.alloc_fragment(streams, FLOAT)
        T.copy(Comb[token, 0, 0], comb)
        T.copy(Post[token, 0], post)
        for part in T.Pipelined(T.ceildiv(hidden, block), num_stages=2):
            T.copy(Streams[token, 0, part * block], old_tile)
            T.copy(Layer[token, part * block], layer_tile)
            T.copy(old_tile, old)
            T.copy(layer_tile, layer)
            for i, j in T.Parallel(streams, block):
                new[i, j] = post[i] * layer[j]
                for s in T.serial(streams):
                    new[i, j] += comb[s, i] * old[s, j]
            T.copy(new, result)
            T.copy(result, Out[token, 0, part * block])


def product_and_power_data(n: int, mixes: int, width: int, **_: Any) -> Data:
    """Integers: products and squares are exact in TF32 and their sums in float32."""
    x, w = numbers(1, (n, width), BRAIN), numbers(2, (mixes, width), FLOAT)
    X = x.astype(np.float64)
    return Data({"X": x, "W": w}, {"Out": Expected(X @ w.T.astype(float)), "Power": Expected((X * X).sum(1))})


def sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


def mix_data(n: int, hidden: int, streams: int = 4, steps: int = 20, splits: int = 2) -> Data:
    mixes = streams * (2 + streams)
    product, power = normal(1, (splits, n, mixes), FLOAT, 20), normal(2, (splits, n), FLOAT) ** 2 * hidden + 1
    scale, base = normal(3, (3,), FLOAT), normal(4, (mixes,), FLOAT)
    old = normal(5, (n, streams, hidden), BRAIN)
    norm = (power.astype(float).sum(0) / (streams * hidden) + EPS) ** -0.5
    spread = np.repeat(scale.astype(float), [streams, streams, streams * streams])
    raw = product.astype(float)
    logits = raw.sum(0) * norm[:, None] * spread + base
    # Sums of `splits` terms, the root, three products: roundings relative to the absolute terms.
    error = (splits + 8) * 2.0**-23 * (np.abs(raw).sum(0) * norm[:, None] * np.abs(spread) + np.abs(base))
    pre, post = sigmoid(logits[:, :streams]) + EPS, 2 * sigmoid(logits[:, streams : 2 * streams])
    comb = logits[:, 2 * streams :].reshape(n, streams, streams)
    comb = np.exp(comb - comb.max(2, keepdims=True))
    comb = comb / comb.sum(2, keepdims=True) + EPS
    comb = comb / (comb.sum(1, keepdims=True) + EPS)
    for _ in range(steps - 1):
        comb = comb / (comb.sum(2, keepdims=True) + EPS)
        comb = comb / (comb.sum(1, keepdims=True) + EPS)
    # A step divides sums of positive terms, so relative errors pass at most twofold into the fixed point.
    relative = 4 * error.max() + 2 * steps * (streams + 2) * 2.0**-23
    blend = (pre[:, :, None] * old.astype(float)).sum(1)
    terms = (pre[:, :, None] * np.abs(old.astype(float))).sum(1)
    outputs = {
        "Post": Expected(post, 2 * error.max() + 2.0**-21),
        "Comb": Expected(comb.reshape(n, -1), relative * comb.reshape(n, -1) + 2.0**-30),
        "Input": Expected(blend, 2.0**-8 * np.abs(blend) + (2 * error.max() + 2.0**-20) * terms),
    }
    inputs = {"Product": product, "Power": power, "Scale": scale, "Base": base, "Streams": old}
    return Data(inputs, outputs)


def put_together_data(n: int, streams: int, hidden: int, **_: Any) -> Data:
    comb, post = normal(1, (n, streams, streams), FLOAT), normal(2, (n, streams), FLOAT)
    old, layer = normal(3, (n, streams, hidden), BRAIN), normal(4, (n, hidden), BRAIN)
    first = post.astype(float)[:, :, None] * layer.astype(float)[:, None]
    rest = comb.astype(float)[:, :, :, None] * old.astype(float)[:, :, None]
    out = first + rest.sum(1)
    terms = np.abs(first) + np.abs(rest).sum(1)
    bound = 2.0**-8 * np.abs(out) + (streams + 1) * 2.0**-23 * terms
    return Data({"Comb": comb, "Streams": old, "Post": post, "Layer": layer}, {"Out": Expected(out, bound)})


def sized(function: Any) -> Any:
    """A factory of an eager function whose number of rows is known at launch."""
    return lambda n, **sizes: function.compile(**sizes)


PRE, POST = ("deepseek_mhc/example_mhc_pre.py",), ("deepseek_mhc/example_mhc_post.py",)
ENTRIES = [
    Entry("product and power of rows", PRE, sized(product_and_power), product_and_power_data,
          {"n": 32, "mixes": 24, "width": 128, "columns": 64}, {"n": 4096, "mixes": 24, "width": 4 * 4096}),
    Entry("mixes of streams", PRE, sized(mix), mix_data, {"n": 4, "hidden": 512}, {"n": 4096, "hidden": 4096}),
    Entry("streams put together", POST, sized(put_together), put_together_data, {"n": 3, "streams": 4, "hidden": 512},
          {"n": 4096, "streams": 4, "hidden": 4096}),
]  # fmt: skip
