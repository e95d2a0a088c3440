"""One or few queries against a long cache: split over the keys and combined, with sequences of different lengths, and
with a latent cache in pages."""

from __future__ import annotations

from typing import Any

import tileworkbench.language as T
from tests.gallery.online import LOG2E, absorb, begin, divide

HALF, FLOAT, INT = "float16", "float32", "int32"
ROW, COLUMN = T.GemmWarpPolicy.FullRow, T.GemmWarpPolicy.FullCol


def split(B: int, H: int, S: int, keys: int, D: int, parts: int, BM: int = 64, BN: int = 64) -> Any:
    """Parts of the keys give results and denominators of their own, in workspaces; a second launch combines them."""
    scale, share = D**-0.5 * LOG2E, keys // parts

    @T.prim_func
    def split(
        Q: T.Tensor((B, S, H, D), HALF),
        K: T.Tensor((B, keys, H, D), HALF),
        V: T.Tensor((B, keys, H, D), HALF),
        Out: T.Tensor((B, S, H, D), HALF),
    ):
        lse = T.alloc_global((B, H, parts, S), HALF)
        partial = T.alloc_global((B, S, H, parts, D), HALF)
        with T.Kernel(T.ceildiv(S, BM), H * B, parts, threads=128) as (bx, by, part):
            query = T.alloc_shared((BM, D), HALF)
            key = T.alloc_shared((BN, D), HALF)
            value = T.alloc_shared((BN, D), HALF)
            result = T.alloc_shared((BM, D), HALF)
            scores = T.alloc_fragment((BM, BN), FLOAT)
            weights = T.alloc_fragment((BM, BN), HALF)
            acc = T.alloc_fragment((BM, D), FLOAT)
            top = T.alloc_fragment((BM,), FLOAT)
            total = T.alloc_fragment((BM,), FLOAT)
            b, h = by // H, by % H
            T.copy(Q[b, bx * BM : (bx + 1) * BM, h, :], query, disable_tma=True)
            begin(acc, total, top)
            for n in T.Pipelined(T.ceildiv(share, BN), num_stages=2):
                T.copy(K[b, share * part + n * BN : share * part + (n + 1) * BN, h, :], key)
                T.clear(scores)
                T.gemm(query, key, scores, transpose_B=True, policy=ROW)
                absorb(scores, weights, acc, total, top, scale, False)
                T.copy(V[b, share * part + n * BN : share * part + (n + 1) * BN, h, :], value)
                T.gemm(weights, value, acc, policy=ROW)
            divide(acc, total)
            for i in T.Parallel(BM):
                total[i] = T.log2(total[i]) + top[i] * scale
            T.copy(total, lse[b, h, part, bx * BM : (bx + 1) * BM])
            T.copy(acc, result)
            T.copy(result, partial[b, bx * BM : (bx + 1) * BM, h, part, :], disable_tma=True)
        with T.Kernel(T.ceildiv(S, BM), H, B, threads=128) as (bx, h, b):
            piece = T.alloc_fragment((BM, D), HALF)
            acc = T.alloc_fragment((BM, D), FLOAT)
            logs = T.alloc_fragment((parts, BM), HALF)
            top = T.alloc_fragment((BM,), FLOAT)
            total = T.alloc_fragment((BM,), FLOAT)
            factor = T.alloc_fragment((BM,), FLOAT)
            result = T.alloc_shared((BM, D), HALF)
            T.clear(total)
            T.clear(acc)
            T.copy(lse[b, h, :, bx * BM : (bx + 1) * BM], logs)
            T.reduce_max(logs, top, dim=0, clear=True)
            for k in T.Pipelined(parts):
                for i in T.Parallel(BM):
                    total[i] += T.exp2(logs[k, i].astype(FLOAT) - top[i])
            for i in T.Parallel(BM):
                total[i] = T.log2(total[i]) + top[i]
            for k in T.Pipelined(parts, num_stages=2):
                T.copy(partial[b, bx * BM : (bx + 1) * BM, h, k, :], piece)
                for i in T.Parallel(BM):
                    factor[i] = T.exp2(logs[k, i].astype(FLOAT) - total[i])
                for i, j in T.Parallel(BM, D):
                    acc[i, j] += piece[i, j] * factor[i]
            T.copy(acc, result)
            T.copy(result, Out[b, bx * BM : (bx + 1) * BM, h, :], disable_tma=True)

    return split


def with_tile_weights(
    lengths: tuple[int, ...], H: int, KH: int, D: int, sink: bool, BN: int = 128, BH: int = 64, threads: int = 128
) -> Any:
    """A group of heads shares its keys; sequences lie end to end. Beside the result: the largest weight in every tile
    of keys. A sink is given as the weight itself, relative to the largest score."""
    B, longest, rows, group = len(lengths), max(lengths), sum(lengths), H // KH
    scale, tiles, own = D**-0.5 * LOG2E, -(-longest // BN), min(BH, group)

    @T.prim_func
    def with_tile_weights(
        Q: T.Tensor((B, H, D), HALF),
        K: T.Tensor((rows, KH, D), HALF),
        V: T.Tensor((rows, KH, D), HALF),
        Ends: T.Tensor((B + 1,), INT),
        Sinks: T.Tensor((H,), FLOAT),
        Out: T.Tensor((B, H, D), HALF),
        Tiles: T.Tensor((B, H, tiles), HALF),
    ):
        with T.Kernel(B, H // own, threads=threads) as (b, by):
            query = T.alloc_shared((BH, D), HALF)
            key = T.alloc_shared((BN, D), HALF)
            value = T.alloc_shared((BN, D), HALF)
            result = T.alloc_shared((own, D), HALF)
            sinks = T.alloc_shared((BH,), FLOAT)
            tops = T.alloc_shared((BH, tiles), FLOAT)
            tops_half = T.alloc_shared((BH, tiles), HALF)
            scores = T.alloc_fragment((BH, BN), FLOAT)
            weights = T.alloc_fragment((BH, BN), HALF)
            acc = T.alloc_fragment((BH, D), FLOAT)
            here = T.alloc_fragment((BH,), FLOAT)
            top = T.alloc_fragment((BH,), FLOAT)
            total = T.alloc_fragment((BH,), FLOAT)
            head = by // (group // own)
            first, length = Ends[b], Ends[b + 1] - Ends[b]
            T.copy(Q[b, by * own : by * own + BH, :], query)
            T.fill(tops, -T.infinity(FLOAT))
            begin(acc, total, top)
            for n in T.Pipelined(T.ceildiv(length, BN), num_stages=1):
                T.copy(K[first + n * BN : first + (n + 1) * BN, head, :], key)
                T.clear(scores)
                T.gemm(query, key, scores, transpose_B=True, policy=ROW)
                for i, j in T.Parallel(BH, BN):
                    scores[i, j] = T.if_then_else(n * BN + j < length, scores[i, j], -T.infinity(FLOAT))
                T.reduce_max(scores, here, dim=1, clear=True)
                T.copy(here, tops[:, n])
                absorb(scores, weights, acc, total, top, scale, True)
                T.copy(V[first + n * BN : first + (n + 1) * BN, head, :], value)
                T.gemm(weights, value, acc, policy=ROW)
            if sink:
                T.copy(Sinks[by * own : by * own + BH], sinks)
                for i in T.Parallel(BH):
                    total[i] += sinks[i]
            divide(acc, total)
            for i, n in T.Parallel(BH, tiles):
                tops[i, n] = T.exp2((tops[i, n] - top[i]) * scale) / total[i]
            T.copy(acc[:own, :], result)
            T.copy(result, Out[b, by * own : (by + 1) * own, :])
            T.copy(tops, tops_half)
            T.copy(tops_half[:own, :], Tiles[b, by * own : (by + 1) * own, :])

    return with_tile_weights


def paged(
    lengths: tuple[int, ...], capacity: int, H: int, D: int, tail: int, page: int, parts: int, BN: int = 64,
    BH: int = 64, threads: int = 256,
) -> Any:  # fmt: skip
    """Keys are latent rows and a tail beside them, values the rows. A table says where each sequence's pages lie."""
    B, scale = len(lengths), (D + tail) ** -0.5 * LOG2E

    @T.prim_func
    def paged(
        Q: T.Tensor((B, H, D), HALF),
        QTail: T.Tensor((B, H, tail), HALF),
        KV: T.Tensor((B * capacity, D), HALF),
        KTail: T.Tensor((B * capacity, tail), HALF),
        Table: T.Tensor((B, capacity // page), INT),
        Lengths: T.Tensor((B,), INT),
        Lse: T.Tensor((B, H, parts), HALF),
        Partial: T.Tensor((B, H, parts, D), HALF),
        Out: T.Tensor((B, H, D), HALF),
    ):
        with T.Kernel(B, H // BH, parts, threads=threads) as (b, by, part):
            query = T.alloc_shared((BH, D), HALF)
            query_tail = T.alloc_shared((BH, tail), HALF)
            value = T.alloc_shared((BN, D), HALF)
            key_tail = T.alloc_shared((BN, tail), HALF)
            through = T.alloc_shared((BH, BN), HALF)
            result = T.alloc_shared((BH, D), HALF)
            scores = T.alloc_fragment((BH, BN), FLOAT)
            weights = T.alloc_fragment((BH, BN), HALF)
            acc = T.alloc_fragment((BH, D), FLOAT)
            top = T.alloc_fragment((BH,), FLOAT)
            total = T.alloc_fragment((BH,), FLOAT)
            T.use_swizzle(10)
            T.copy(Q[b, by * BH : (by + 1) * BH, :], query)
            T.copy(QTail[b, by * BH : (by + 1) * BH, :], query_tail)
            begin(acc, total, top)
            blocks = T.ceildiv(Lengths[b], BN)
            each, extra = T.floordiv(blocks, parts), T.floormod(blocks, parts)
            start = (each * part + T.min(part, extra)) * BN
            for n in T.Pipelined(each + T.if_then_else(part < extra, 1, 0), num_stages=2):
                row = Table[b, (start + n * BN) // page] * page + (start + n * BN) % page
                T.copy(KV[row : row + BN, :], value)
                T.copy(KTail[row : row + BN, :], key_tail)
                T.clear(scores)
                T.gemm(query, value, scores, transpose_B=True, policy=COLUMN)
                T.gemm(query_tail, key_tail, scores, transpose_B=True, policy=COLUMN)
                for i, j in T.Parallel(BH, BN):
                    unseen = start + n * BN + j >= Lengths[b]
                    scores[i, j] = T.if_then_else(unseen, -T.infinity(FLOAT), scores[i, j])
                absorb(scores, through, acc, total, top, scale, True)
                T.copy(through, weights)
                T.gemm(weights, value, acc, policy=COLUMN)
            divide(acc, total)
            for i in T.Parallel(BH):
                total[i] = T.log2(total[i]) + top[i] * scale
            T.copy(total, Lse[b, by * BH : (by + 1) * BH, part])
            T.copy(acc, result)
            T.copy(result, Partial[b, by * BH : (by + 1) * BH, part, :])
        with T.Kernel(H, B, threads=128) as (h, b):
            acc = T.alloc_fragment((D,), FLOAT)
            top = T.alloc_var(FLOAT)
            total = T.alloc_var(FLOAT)
            T.clear(acc)
            top = -T.infinity(FLOAT)
            total = 0
            for k in T.serial(parts):
                top = T.max(top, Lse[b, h, k])
            for k in T.serial(parts):
                total += T.exp2(Lse[b, h, k] - top)
            for k in T.serial(parts):
                for j in T.Parallel(D):
                    acc[j] += Partial[b, h, k, j] * (T.exp2(Lse[b, h, k] - top) / total)
            for j in T.Parallel(D):
                Out[b, h, j] = acc[j]

    return paged
