"""Attention backward: one block a tile of keys, the gradient of the queries gathered by atomics into a tensor whose
layout suits them, and the small kernels before and after."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

import tileworkbench.language as T
from tests.gallery.attention import split_heads
from tests.gallery.entry import ROUNDING, Data, Entry, Expected, normal
from tests.gallery.gradients import push
from tests.gallery.references import backward

HALF, FLOAT = "float16", "float32"


def row_products(B: int, S: int, H: int, D: int, rows: int = 32, columns: int = 32) -> Any:
    """Before the backward pass: the product of every row of the result with its gradient."""

    @T.prim_func
    def row_products(
        Out: T.Tensor((B, S, H, D), HALF), G: T.Tensor((B, S, H, D), HALF), Delta: T.Tensor((B, H, S), FLOAT)
    ):
        with T.Kernel(H, T.ceildiv(S, rows), B) as (h, by, b):
            out = T.alloc_fragment((rows, columns), HALF)
            g = T.alloc_fragment((rows, columns), HALF)
            products = T.alloc_fragment((rows, columns), FLOAT)
            delta = T.alloc_fragment((rows,), FLOAT)
            T.clear(products)
            for part in range(T.ceildiv(D, columns)):
                T.copy(Out[b, by * rows : (by + 1) * rows, h, part * columns : (part + 1) * columns], out)
                T.copy(G[b, by * rows : (by + 1) * rows, h, part * columns : (part + 1) * columns], g)
                for i, j in T.Parallel(rows, columns):
                    products[i, j] += out[i, j].astype(FLOAT) * g[i, j]
            T.reduce_sum(products, delta, 1)
            T.copy(delta, Delta[b, h, by * rows : (by + 1) * rows])

    return row_products


def tiled(tensor: Any) -> Any:
    """Eight by eight elements lie together, as the threads of a product hold them."""
    return T.Layout(tensor.shape, lambda b, s, h, d: [b, h, s // 8, d // 8, s % 8, d % 8])


def by_heads(tensor: Any) -> Any:
    """Heads first, so that a tile of rows is one piece of memory."""
    return T.Layout(tensor.shape, lambda b, s, h, d: [b, h, s, d])


def gradients(
    B: int, H: int, S: int, D: int, causal: bool, groups: int = 1, adds: str = "elements", BM: int = 64, BN: int = 64,
    stages: int = 2, threads: int = 128,
) -> Any:  # fmt: skip
    """`adds`: what an atomic addition takes: elements, tiles, or tiles by the copy engine ("bulk"). With grouped heads
    the gradients of keys and values are sums over blocks too."""
    scale = D**-0.5
    layout = by_heads if adds == "bulk" else tiled

    @T.prim_func
    def gradients(
        Q: T.Tensor((B, S, H, D), HALF),
        K: T.Tensor((B, S, H // groups, D), HALF),
        V: T.Tensor((B, S, H // groups, D), HALF),
        G: T.Tensor((B, S, H, D), HALF),
        Lse: T.Tensor((B, H, S), FLOAT),
        Delta: T.Tensor((B, H, S), FLOAT),
        dQ: T.Tensor((B, S, H, D), FLOAT),
        dK: T.Tensor((B, S, H // groups, D), FLOAT),
        dV: T.Tensor((B, S, H // groups, D), FLOAT),
    ):
        with T.Kernel(H, T.ceildiv(S, BM), B, threads=threads) as (h, by, b):
            key = T.alloc_shared((BM, D), HALF)
            value = T.alloc_shared((BM, D), HALF)
            query = T.alloc_shared((BN, D), HALF)
            g = T.alloc_shared((BN, D), HALF)
            lse = T.alloc_shared((BN,), FLOAT)
            delta = T.alloc_shared((BN,), FLOAT)
            narrow_p = T.alloc_fragment((BM, BN), HALF)
            narrow_ds = T.alloc_fragment((BM, BN), HALF)
            ds_tile = T.alloc_shared((BM, BN), HALF)
            dk = T.alloc_fragment((BM, D), FLOAT)
            dv = T.alloc_fragment((BM, D), FLOAT)
            dq = T.alloc_fragment((BN, D), FLOAT)
            if adds == "bulk":
                dq_tile = T.alloc_shared((BN, D), FLOAT)
            T.annotate_layout({dQ: layout(dQ)})
            T.copy(K[b, by * BM : (by + 1) * BM, h // groups, :], key)
            T.copy(V[b, by * BM : (by + 1) * BM, h // groups, :], value)
            T.clear(dk)
            T.clear(dv)
            for n in T.Pipelined(by * BM // BN if causal else 0, T.ceildiv(S, BN), num_stages=stages):
                push(
                    (
                        Q[b, n * BN : (n + 1) * BN, h, :], G[b, n * BN : (n + 1) * BN, h, :],
                        Lse[b, h, n * BN : (n + 1) * BN], Delta[b, h, n * BN : (n + 1) * BN],
                    ),
                    (key, value, query, g, lse, delta, ds_tile), (narrow_p, narrow_ds), (dk, dv, dq), scale,
                    (by * BM, n * BN), operator.le if causal else None,
                )  # fmt: skip
                if adds == "elements":
                    for i, j in T.Parallel(BN, D):
                        T.atomic_add(dQ[b, n * BN + i, h, j], dq[i, j])
                elif adds == "tiles":
                    T.atomic_add(dQ[b, n * BN : (n + 1) * BN, h, :], dq)
                else:
                    T.copy(dq, dq_tile)
                    T.atomic_add(dQ[b, n * BN : (n + 1) * BN, h, :], dq_tile, use_tma=True)
            out_tile = T.alloc_shared((BM, D), FLOAT)
            T.copy(dv, out_tile)
            put(out_tile, dV[b, by * BM : (by + 1) * BM, h // groups, :], groups == 1, adds == "bulk")
            T.copy(dk, out_tile)
            put(out_tile, dK[b, by * BM : (by + 1) * BM, h // groups, :], groups == 1, adds == "bulk")

    return gradients


@T.macro
def put(tile, place, alone, bulk):
    """A block that is alone with its rows stores them, others add."""
    if alone:
        T.copy(tile, place)
    elif bulk:
        T.atomic_add(place, tile, use_tma=True)
    else:
        T.atomic_add(place, tile)


def narrowed(B: int, S: int, H: int, D: int, groups: int, layout: Any, rows: int = 64) -> Any:
    """After the backward pass: the sums in the type of their tensors, in two launches."""

    @T.prim_func
    def narrowed(
        dQ: T.Tensor((B, S, H, D), FLOAT),
        dK: T.Tensor((B, S, H // groups, D), FLOAT),
        dV: T.Tensor((B, S, H // groups, D), FLOAT),
        dQ_half: T.Tensor((B, S, H, D), HALF),
        dK_half: T.Tensor((B, S, H // groups, D), HALF),
        dV_half: T.Tensor((B, S, H // groups, D), HALF),
    ):
        with T.Kernel(T.ceildiv(S, rows), H, B, threads=128) as (bx, h, b):
            T.annotate_layout({dQ: layout(dQ)})
            T.copy(dQ[b, bx * rows : (bx + 1) * rows, h, :], dQ_half[b, bx * rows : (bx + 1) * rows, h, :])
        with T.Kernel(T.ceildiv(S, rows), H // groups, B, threads=128) as (bx, h, b):
            T.copy(dK[b, bx * rows : (bx + 1) * rows, h, :], dK_half[b, bx * rows : (bx + 1) * rows, h, :])
            T.copy(dV[b, bx * rows : (bx + 1) * rows, h, :], dV_half[b, bx * rows : (bx + 1) * rows, h, :])

    return narrowed


def backward_pass(groups: int = 1, adds: str = "elements", **sizes: Any) -> tuple[Any, Any]:
    """The gradients, then the narrower copies. The layout of dQ in between is the two kernels' own affair."""
    made = gradients(groups=groups, adds=adds, **sizes)
    outer = {name: sizes[name] for name in ("B", "S", "H", "D")}
    return made, narrowed(**outer, groups=groups, layout=by_heads if adds == "bulk" else tiled)


def row_products_data(B: int, S: int, H: int, D: int, **_: Any) -> Data:
    out, g = normal(1, (B, S, H, D)), normal(2, (B, S, H, D))
    terms = out.astype(np.float64) * g.astype(np.float64)
    # A float32 sum of D exact products.
    bound = D * 2.0**-23 * np.abs(terms).sum(-1).transpose(0, 2, 1)
    return Data({"Out": out, "G": g}, {"Delta": Expected(terms.sum(-1).transpose(0, 2, 1), bound)})


def gradients_data(
    B: int, H: int, S: int, D: int, causal: bool, groups: int = 1, adds: str = "elements", **_: Any
) -> Data:
    q, g = normal(1, (B, S, H, D)), normal(4, (B, S, H, D))
    k, v = normal(2, (B, S, H // groups, D)), normal(3, (B, S, H // groups, D))
    mask = np.tril(np.ones((S, S), bool)) if causal else None
    spread = [split_heads(x, copies) for x, copies in ((q, 1), (k, groups), (v, groups), (g, 1))]
    found = backward(*spread, D**-0.5, mask)
    inputs = {"Q": q, "K": k, "V": v, "G": g, "Lse": found.lse.astype(FLOAT), "Delta": found.delta.astype(FLOAT)}
    inputs["dQ"] = np.zeros(q.shape, FLOAT)
    inputs |= {name: np.zeros(k.shape, FLOAT) for name in ("dK", "dV")}
    outputs = {}
    for name, (value, error), shared in (("dQ", found.dq, 1), ("dK", found.dk, groups), ("dV", found.dv, groups)):
        value, error = (split_heads(x.reshape(B, H // shared, shared, S, D).sum(2)) for x in (value, error))
        outputs[f"{name}_half"] = Expected(value, error + ROUNDING[HALF] * np.abs(value))
    return Data(inputs, outputs)


SMALL = {"B": 1, "H": 2, "S": 128, "D": 64}
LARGE = {"B": 1, "H": 16, "S": 2048, "D": 128}
BACKWARD = "flash_attention/example_mha_bwd_bshd.py"
GROUPED = ("flash_attention/example_gqa_bwd.py", "flash_attention/example_gqa_bwd_tma_reduce.py")
ENTRIES = [
    Entry("products of rows", (BACKWARD, *GROUPED), row_products, row_products_data, {**SMALL, "S": 100}, LARGE),
    Entry(
        "attention backward", (BACKWARD,), backward_pass, gradients_data, {**SMALL, "H": 1, "causal": True},
        {**LARGE, "D": 64, "causal": True},
    ),
    Entry(
        "attention backward, grouped heads", GROUPED[:1], backward_pass, gradients_data,
        {**SMALL, "causal": False, "groups": 2, "adds": "tiles", "S": 64},
        {**LARGE, "causal": False, "groups": 16, "adds": "tiles", "BM": 128, "BN": 32, "threads": 256},
    ),
    Entry(
        "attention backward, additions by the copy engine", GROUPED[1:], backward_pass, gradients_data,
        {**SMALL, "causal": True, "groups": 2, "adds": "bulk", "S": 64},
        {**LARGE, "causal": True, "groups": 16, "adds": "bulk", "BM": 128, "BN": 32, "threads": 256},
        hopper=True,
    ),
]  # fmt: skip
