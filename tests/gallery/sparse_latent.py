"""Attention of many heads to rows that an index selected: forward and backward over sequences laid end to end, and with
sinks. Keys are the whole row, values its first part."""

from __future__ import annotations

from typing import Any

import tileworkbench as tw
import tileworkbench.language as T
from tests.gallery.online import LOG2E, absorb, begin, divide

FLOAT, BRAIN, INT = "float32", "bfloat16", "int32"
ROW, COLUMN = T.GemmWarpPolicy.FullRow, T.GemmWarpPolicy.FullCol


@tw.jit(target="cpu")
def selected(Q, KV, Index, Starts, Tokens, H: int, D: int, tail: int, topk: int, BN: int = 32, threads: int = 128):
    """`Tokens`: the sequence and the position of every row; a row sees selected rows up to itself, −1 is none."""
    sequences, rows = T.dynamic("sequences"), T.dynamic("rows")
    Q: T.Tensor([rows, H, D + tail], BRAIN)
    KV: T.Tensor([rows, D + tail], BRAIN)
    Index: T.Tensor([rows, topk], INT)
    Starts: T.Tensor([sequences], INT)
    Tokens: T.Tensor([rows, 2], INT)
    Out = T.empty([rows, H, D], BRAIN)
    Lse = T.empty([rows, H], FLOAT)
    BH = min(H, 64)
    scale = (D + tail) ** -0.5 * LOG2E
    with T.Kernel(rows * (H // BH), threads=threads) as bx:
        query = T.alloc_shared([BH, D], BRAIN)
        query_tail = T.alloc_shared([BH, tail], BRAIN)
        value = T.alloc_shared([BN, D], BRAIN)
        key_tail = T.alloc_shared([BN, tail], BRAIN)
        weights = T.alloc_shared([BH, BN], BRAIN)
        seen = T.alloc_fragment([BN], "bool")
        scores = T.alloc_fragment([BH, BN], FLOAT)
        acc = T.alloc_fragment([BH, D], FLOAT)
        top = T.alloc_fragment([BH], FLOAT)
        total = T.alloc_fragment([BH], FLOAT)
        begin(acc, total, top)
        token, head = bx // (H // BH), bx % (H // BH) * BH
        first, place = Starts[Tokens[token, 0]], Tokens[token, 1]
        T.copy(Q[first + place, head : head + BH, :D], query)
        T.copy(Q[first + place, head : head + BH, D:], query_tail)
        for n in T.Pipelined(T.ceildiv(topk, BN), num_stages=2):
            for j in T.Parallel(BN):
                index = Index[first + place, n * BN + j]
                seen[j] = (index <= place) & (index != -1)
            for j, d in T.Parallel(BN, D):
                value[j, d] = KV[first + T.max(Index[first + place, n * BN + j], 0), d]
            for j, d in T.Parallel(BN, tail):
                key_tail[j, d] = KV[first + T.max(Index[first + place, n * BN + j], 0), D + d]
            for i, j in T.Parallel(BH, BN):
                scores[i, j] = T.if_then_else(seen[j], 0, -T.infinity(FLOAT))
            T.gemm(query, value, scores, transpose_B=True, policy=ROW)
            T.gemm(query_tail, key_tail, scores, transpose_B=True, policy=ROW)
            absorb(scores, weights, acc, total, top, scale, True)
            T.gemm(weights, value, acc, policy=ROW)
        divide(acc, total)
        for i in T.Parallel(BH):
            total[i] = T.log2(total[i]) + top[i] * scale
        T.copy(acc, Out[first + place, head : head + BH, :])
        T.copy(total, Lse[first + place, head : head + BH])
    return Out, Lse


@tw.jit(target="cpu", pass_configs={"tl.disable_tma_lower": True, "tl.disable_warp_specialized": True})
def selected_backward(
    Q, KV, G, Index, Lse, Delta, Starts, Tokens, dKV, H: int, D: int, tail: int, topk: int, BN: int = 32,
    threads: int = 128,
):  # fmt: skip
    """The gradient of the shared rows is gathered by atomics, half a tile at a time in the tile of the rows itself."""
    sequences, rows = T.dynamic("sequences"), T.dynamic("rows")
    Q: T.Tensor([rows, H, D + tail], BRAIN)
    KV: T.Tensor([rows, D + tail], BRAIN)
    G: T.Tensor([rows, H, D], BRAIN)
    Index: T.Tensor([rows, topk], INT)
    Lse: T.Tensor([rows, H], FLOAT)
    Delta: T.Tensor([rows, H], FLOAT)
    Starts: T.Tensor([sequences], INT)
    Tokens: T.Tensor([rows, 2], INT)
    dKV: T.Tensor([rows, D + tail], FLOAT)
    dQ = T.empty([rows, H, D + tail], BRAIN)
    scale, half = (D + tail) ** -0.5, BN // 2
    with T.Kernel(rows, threads=threads) as token:
        query = T.alloc_shared([H, D], BRAIN)
        query_tail = T.alloc_shared([H, tail], BRAIN)
        value = T.alloc_shared([BN, D], BRAIN)
        key_tail = T.alloc_shared([BN, tail], BRAIN)
        g = T.alloc_shared([H, D], BRAIN)
        p_tile = T.alloc_shared([H, BN], BRAIN)
        ds_tile = T.alloc_shared([H, BN], BRAIN)
        seen = T.alloc_fragment([BN], "bool")
        p = T.alloc_fragment([H, BN], FLOAT)
        ds = T.alloc_fragment([H, BN], FLOAT)
        dq = T.alloc_fragment([H, D], FLOAT)
        dq_tail = T.alloc_fragment([H, tail], FLOAT)
        dkv = T.alloc_fragment([BN, D], FLOAT)
        dkv_tail = T.alloc_fragment([BN, tail], FLOAT)
        staged = T.view(value, shape=[half, D], dtype=FLOAT)
        staged_tail = T.view(key_tail, shape=[half, tail], dtype=FLOAT)
        first, place = Starts[Tokens[token, 0]], Tokens[token, 1]
        T.copy(Q[first + place, 0:H, :D], query)
        T.copy(Q[first + place, 0:H, D:], query_tail)
        T.copy(G[first + place, 0:H, :], g)
        T.clear(dq)
        T.clear(dq_tail)
        for n in T.Pipelined(T.ceildiv(topk, BN), num_stages=0):
            for j in T.Parallel(BN):
                index = Index[first + place, n * BN + j]
                seen[j] = (index <= place) & (index != -1)
            for i, j in T.Parallel(H, BN):
                p[i, j] = T.if_then_else(seen[j], 0, -T.infinity(FLOAT))
            for j, d in T.Parallel(BN, D):
                value[j, d] = KV[first + T.max(Index[first + place, n * BN + j], 0), d]
            for j, d in T.Parallel(BN, tail):
                key_tail[j, d] = KV[first + T.max(Index[first + place, n * BN + j], 0), D + d]
            T.gemm(query, value, p, transpose_B=True, policy=COLUMN)
            T.gemm(query_tail, key_tail, p, transpose_B=True, policy=COLUMN)
            for i, j in T.Parallel(H, BN):
                p[i, j] = T.exp2(p[i, j] * (scale * LOG2E) - Lse[first + place, i])
            T.copy(p, p_tile)
            T.gemm(g, value, ds, transpose_B=True, policy=COLUMN, clear_accum=True)
            for i, j in T.Parallel(H, BN):
                ds[i, j] = p[i, j] * (ds[i, j] - Delta[first + place, i]) * scale
            T.copy(ds, ds_tile)
            T.gemm(ds_tile, value, dq, policy=COLUMN)
            T.gemm(ds_tile, key_tail, dq_tail, policy=COLUMN)
            T.gemm(ds_tile, query, dkv, transpose_A=True, policy=COLUMN, clear_accum=True)
            T.gemm(p_tile, g, dkv, transpose_A=True, policy=COLUMN)
            T.gemm(ds_tile, query_tail, dkv_tail, transpose_A=True, policy=COLUMN, clear_accum=True)
            for s in range(2):
                for j, d in T.Parallel(BN, D):
                    if j < half:
                        staged[j, d] = dkv[j + s * half, d]
                for j, d in T.Parallel(BN, tail):
                    if j < half:
                        staged_tail[j, d] = dkv_tail[j + s * half, d]
                for j, d in T.Parallel(half, D):
                    row = first + T.max(Index[first + place, n * BN + s * half + j], 0)
                    T.atomic_add(dKV[row, d], staged[j, d])
                for j, d in T.Parallel(half, tail):
                    row = first + T.max(Index[first + place, n * BN + s * half + j], 0)
                    T.atomic_add(dKV[row, D + d], staged_tail[j, d])
        T.copy(dq, query)
        T.copy(dq_tail, query_tail)
        T.copy(query, dQ[first + place, 0:H, :D])
        T.copy(query_tail, dQ[first + place, 0:H, D:])
    return dQ


def selected_with_sinks(B: int, S: int, rows: int, H: int, D: int, topk: int, BN: int = 64, threads: int = 256) -> Any:
    """Keys and values are the same rows; padding (−1) is no key; every head has a sink."""
    scale, BH = D**-0.5 * LOG2E, 64

    @T.prim_func
    def selected_with_sinks(
        Q: T.Tensor((B, S, H, D), BRAIN),
        KV: T.Tensor((B, rows, D), BRAIN),
        Index: T.Tensor((B, S, topk), INT),
        Sinks: T.Tensor((H,), BRAIN),
        Out: T.Tensor((B, S, H, D), BRAIN),
    ):
        with T.Kernel(T.ceildiv(H, BH), S, B, threads=threads) as (bx, s, b):
            query = T.alloc_shared((BH, D), BRAIN)
            value = T.alloc_shared((BN, D), BRAIN)
            weights = T.alloc_shared((BH, BN), BRAIN)
            sinks = T.alloc_shared((BH,), BRAIN)
            result = T.alloc_shared((BH, D), BRAIN)
            seen = T.alloc_fragment((BN,), "bool")
            scores = T.alloc_fragment((BH, BN), FLOAT)
            acc = T.alloc_fragment((BH, D), FLOAT)
            top = T.alloc_fragment((BH,), FLOAT)
            total = T.alloc_fragment((BH,), FLOAT)
            T.copy(Q[b, s, bx * BH : (bx + 1) * BH, :], query)
            T.copy(Sinks[bx * BH : (bx + 1) * BH], sinks)
            begin(acc, total, top)
            for n in T.Pipelined(T.ceildiv(topk, BN), num_stages=2):
                for j in T.Parallel(BN):
                    seen[j] = Index[b, s, n * BN + j] >= 0
                for j, d in T.Parallel(BN, D):
                    value[j, d] = KV[b, T.max(Index[b, s, n * BN + j], 0), d]
                for i, j in T.Parallel(BH, BN):
                    scores[i, j] = T.if_then_else(seen[j], 0, -T.infinity(FLOAT))
                T.gemm(query, value, scores, transpose_B=True, policy=ROW)
                absorb(scores, weights, acc, total, top, scale, True)
                T.gemm(weights, value, acc, policy=ROW)
            for i in T.Parallel(BH):
                total[i] += T.exp2(sinks[i] * LOG2E - top[i] * scale)
            divide(acc, total)
            T.copy(acc, result)
            T.copy(result, Out[b, s, bx * BH : (bx + 1) * BH, :])

    return selected_with_sinks
