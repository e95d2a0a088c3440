"""Attention with a sink and a window, backward: heads first, whole tiles added, and the sinks' own gradient."""

from __future__ import annotations

from typing import Any

import numpy as np

import tileworkbench.language as T
from tests.gallery.entry import ROUNDING, Data, Entry, Expected, normal
from tests.gallery.gradients import push
from tests.gallery.online import LOG2E
from tests.gallery.references import backward

BRAIN, FLOAT = "bfloat16", "float32"


def tiled(tensor: Any) -> Any:
    """Eight by eight elements lie together."""
    return T.Layout(tensor.shape, lambda b, h, s, d: [b, h, s // 8, d // 8, s % 8, d % 8])


def gradients(B: int, H: int, S: int, D: int, window: int | None, BM: int, BN: int, stages: int, threads: int) -> Any:
    scale = D**-0.5

    def seen(key, query):
        return (key <= query) & (key > query - window) if window else key <= query

    @T.prim_func
    def gradients(
        Q: T.Tensor((B, H, S, D), BRAIN),
        K: T.Tensor((B, H, S, D), BRAIN),
        V: T.Tensor((B, H, S, D), BRAIN),
        G: T.Tensor((B, H, S, D), BRAIN),
        Lse: T.Tensor((B, H, S), FLOAT),
        Delta: T.Tensor((B, H, S), FLOAT),
        dQ: T.Tensor((B, H, S, D), FLOAT),
        dK: T.Tensor((B, H, S, D), BRAIN),
        dV: T.Tensor((B, H, S, D), BRAIN),
    ):
        with T.Kernel(H, T.ceildiv(S, BM), B, threads=threads) as (h, by, b):
            key = T.alloc_shared((BM, D), BRAIN)
            value = T.alloc_shared((BM, D), BRAIN)
            query = T.alloc_shared((BN, D), BRAIN)
            g = T.alloc_shared((BN, D), BRAIN)
            lse = T.alloc_shared((BN,), FLOAT)
            delta = T.alloc_shared((BN,), FLOAT)
            ds_tile = T.alloc_shared((BM, BN), BRAIN)
            result = T.alloc_shared((BM, D), BRAIN)
            narrow = T.alloc_fragment((BM, BN), BRAIN)
            dk = T.alloc_fragment((BM, D), FLOAT)
            dv = T.alloc_fragment((BM, D), FLOAT)
            dq = T.alloc_fragment((BN, D), FLOAT)
            T.annotate_layout({dQ: tiled(dQ)})
            T.copy(K[b, h, by * BM : (by + 1) * BM, :], key)
            T.copy(V[b, h, by * BM : (by + 1) * BM, :], value)
            T.clear(dk)
            T.clear(dv)
            last = T.min(T.ceildiv((by + 1) * BM + window, BN), T.ceildiv(S, BN)) if window else T.ceildiv(S, BN)
            for n in T.Pipelined(by * BM // BN, last, num_stages=stages):
                push(
                    (
                        Q[b, h, n * BN : (n + 1) * BN, :], G[b, h, n * BN : (n + 1) * BN, :],
                        Lse[b, h, n * BN : (n + 1) * BN], Delta[b, h, n * BN : (n + 1) * BN],
                    ),
                    (key, value, query, g, lse, delta, ds_tile), (narrow, narrow), (dk, dv, dq), scale,
                    (by * BM, n * BN), seen,
                )  # fmt: skip
                T.atomic_add(dQ[b, h, n * BN : (n + 1) * BN, :], dq)
            T.copy(dv, result)
            T.copy(result, dV[b, h, by * BM : (by + 1) * BM, :])
            T.copy(dk, result)
            T.copy(result, dK[b, h, by * BM : (by + 1) * BM, :])

    return gradients


def narrowed(B: int, H: int, S: int, D: int, rows: int = 64) -> Any:
    @T.prim_func
    def narrowed(dQ: T.Tensor((B, H, S, D), FLOAT), dQ_half: T.Tensor((B, H, S, D), BRAIN)):
        with T.Kernel(T.ceildiv(S, rows), H, B, threads=128) as (bx, h, b):
            T.annotate_layout({dQ: tiled(dQ)})
            T.copy(dQ[b, h, bx * rows : (bx + 1) * rows, :], dQ_half[b, h, bx * rows : (bx + 1) * rows, :])

    return narrowed


def of_sinks(B: int, H: int, S: int, rows: int = 128) -> Any:
    """Every row's share: minus the sink's weight times the row's product of result and gradient."""

    @T.prim_func
    def of_sinks(
        Sinks: T.Tensor((H,), BRAIN),
        Delta: T.Tensor((B, H, S), FLOAT),
        Lse: T.Tensor((B, H, S), FLOAT),
        dSinks: T.Tensor((B, H, S), FLOAT),
    ):
        with T.Kernel(H, T.ceildiv(S, rows), B, threads=128) as (h, by, b):
            lse = T.alloc_fragment((rows,), FLOAT)
            delta = T.alloc_fragment((rows,), FLOAT)
            share = T.alloc_fragment((rows,), FLOAT)
            sink = Sinks[h]
            T.copy(Lse[b, h, by * rows : (by + 1) * rows], lse)
            T.copy(Delta[b, h, by * rows : (by + 1) * rows], delta)
            for i in T.Parallel(rows):
                share[i] = -T.exp2(sink.astype(FLOAT) * LOG2E - lse[i]) * delta[i]
            T.copy(share, dSinks[b, h, by * rows : (by + 1) * rows])

    return of_sinks


def backward_pass(
    B: int, H: int, S: int, D: int, window: int | None, BM: int = 64, BN: int = 64, stages: int = 1, threads: int = 128
) -> tuple[Any, Any, Any]:
    return gradients(B, H, S, D, window, BM, BN, stages, threads), narrowed(B, H, S, D), of_sinks(B, H, S)


def data(B: int, H: int, S: int, D: int, window: int | None, **_: Any) -> Data:
    q, k, v, g = (normal(seed, (B, H, S, D), BRAIN) for seed in (1, 2, 3, 4))
    sinks = normal(5, (H,), BRAIN)
    row, column = np.arange(S)[:, None], np.arange(S)
    mask = (row >= column) & (row < column + (window or S))
    found = backward(q, k, v, g, D**-0.5, mask, sinks.astype(float)[:, None, None], BRAIN)
    lse, delta = found.lse.astype(FLOAT), found.delta.astype(FLOAT)
    inputs = {"Q": q, "K": k, "V": v, "G": g, "Sinks": sinks, "Lse": lse, "Delta": delta}
    inputs["dQ"] = np.zeros(q.shape, FLOAT)
    outputs = {}
    for name, (value, error) in (("dQ_half", found.dq), ("dK", found.dk), ("dV", found.dv)):
        outputs[name] = Expected(value, error + ROUNDING[BRAIN] * np.abs(value))
    share = -np.exp(sinks.astype(float)[:, None] - lse.astype(float) * np.log(2)) * delta
    # An exponent below 2⁵ in float32, exp2's 2 ulp and a product.
    outputs["dSinks"] = Expected(share, np.abs(share) * 2.0**-17 + 2.0**-40)
    return Data(inputs, outputs)


SCRIPT = ("attention_sink/example_mha_sink_bwd_bhsd.py",)
LARGE = {"B": 1, "H": 16, "S": 2048, "D": 128, "stages": 2, "BM": 128, "BN": 32, "threads": 256}
ENTRIES = [
    Entry("attention with a sink, backward", SCRIPT, backward_pass, data,
          {"B": 1, "H": 1, "S": 128, "D": 64, "window": 64}, {**LARGE, "window": 128}),
]  # fmt: skip
