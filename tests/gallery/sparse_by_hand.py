"""Attention to selected rows whose author schedules three groups of warps: one gathers rows by cp.async, two share the
products. Either one group makes the weights for both, or each makes those of every other tile."""

from __future__ import annotations

import tileworkbench as tw
import tileworkbench.language as T
from tests.gallery.online import LOG2E, divide, logarithm, weigh

FLOAT, BRAIN, INT = "float32", "bfloat16", "int32"
LOW = -5.0e4


@T.macro
def gather(KV, rows, valid, index, b, place, worker, stage, quarter, width):
    """Eight threads bring a row, eight elements each at a time; a row that is not seen becomes zero."""
    row = quarter * 16 + worker // 8
    seen = (index <= place) & (index >= 0)
    valid[stage, row] = seen
    for piece in T.serial(width // 64):
        column = piece * 64 + worker % 8 * 8
        T.ptx_cp_async(
            T.access_ptr(rows[stage, row, column], "w", 8),
            T.access_ptr(KV[b, T.max(index, 0), column], "r", 8),
            8,
            seen,
        )


@T.macro
def score(query, rows, stage, scores, D):
    """Queries times the rows of one stage: their main columns, then the tail."""
    T.wgmma_gemm(query[:, :D], rows[stage, :, :D], scores, transpose_B=True)
    T.wgmma_gemm(query[:, D:], rows[stage, :, D:], scores, transpose_B=True)


@tw.jit(target="cpu")
def one_maker(Q, KV, Index, H: int, D: int, tail: int, topk: int):
    """The first group makes the weights and multiplies them by the left half of the values, the second by the right."""
    B, S, rows_kv = T.dynamic("B"), T.dynamic("S"), T.dynamic("rows_kv")
    Q: T.Tensor((B, S, H, D + tail), BRAIN)
    KV: T.Tensor((B, rows_kv, D + tail), BRAIN)
    Index: T.Tensor((B, S, topk), INT)
    Out = T.empty((B, S, H, D), BRAIN)
    Lse = T.empty((B, S, H), FLOAT)
    BH, BN, half, parts = 64, 64, D // 2, H // 64
    turns = topk // BN // 2
    scale = (D + tail) ** -0.5 * LOG2E
    with T.Kernel(S * parts, B, threads=384) as (bx, b):
        query = T.alloc_shared((BH, D + tail), BRAIN)
        rows = T.alloc_shared((2, BN, D + tail), BRAIN)
        valid = T.alloc_shared((2, BN), "bool", scope="shared")
        weights = T.alloc_shared((BH, BN), BRAIN)
        shrink_tile = T.alloc_shared((BH,), FLOAT, scope="shared")
        total_tile = T.alloc_shared((BH,), FLOAT, scope="shared")
        left = T.alloc_fragment((BH, half), FLOAT)
        right = T.alloc_fragment((BH, half), FLOAT)
        scores = T.alloc_fragment((BH, BN), FLOAT)
        top = T.alloc_fragment((BH,), FLOAT)
        shrink = T.alloc_fragment((BH,), FLOAT)
        total = T.alloc_fragment((BH,), FLOAT)
        loaded = T.alloc_barrier(arrive_count=384)
        full = T.alloc_barrier(arrive_count=[128] * 2)
        free = T.alloc_barrier(arrive_count=[256] * 2)
        made = T.alloc_barrier(arrive_count=256)
        used = T.alloc_barrier(arrive_count=256)
        s, head = bx // parts, bx % parts * BH
        thread = T.get_thread_binding()
        T.tma_copy(Q[b, s, head : head + BH, :], query, barrier=loaded)
        T.barrier_arrive(loaded)
        if thread < 128:
            T.set_max_nreg(240, 1)
            T.fill(left, 0)
            T.fill(total, 0)
            T.fill(top, LOW)
            T.barrier_wait(loaded, 0)
            for turn in T.serial(turns):
                for stage in T.unroll(2):
                    T.barrier_wait(full[stage], turn & 1)
                    for i, j in T.Parallel(BH, BN):
                        scores[i, j] = T.if_then_else(valid[stage, j], 0, -T.infinity(FLOAT))
                    score(query, rows, stage, scores, D)
                    T.wait_wgmma(0)
                    if turn != 0 or stage != 0:
                        T.barrier_arrive(used)
                        T.barrier_wait(used, (turn * 2 + stage + 1) & 1)
                    weigh(scores, total, top, shrink, scale, False)
                    for i, j in T.Parallel(BH, half):
                        left[i, j] *= shrink[i]
                    T.copy(shrink, shrink_tile)
                    T.copy(total, total_tile)
                    T.copy(scores, weights)
                    T.barrier_arrive(made)
                    T.gemm(weights, rows[stage, :, :half], left)
                    T.barrier_arrive(free[stage])
            divide(left, total)
            logarithm(total, top, scale)
            T.copy(left, Out[b, s, head : head + BH, :half])
            T.copy(total, Lse[b, s, head : head + BH])
        elif thread < 256:
            T.set_max_nreg(168, 1)
            T.fill(right, 0)
            for turn in T.serial(turns):
                for stage in T.unroll(2):
                    T.barrier_arrive(made)
                    T.barrier_wait(made, (turn * 2 + stage) & 1)
                    for i, j in T.Parallel(BH, half):
                        right[i, j] *= shrink_tile[i]
                    T.gemm(weights, rows[stage, :, half:D], right)
                    T.barrier_arrive(free[stage])
                    if stage != 1 or turn != turns - 1:
                        T.barrier_arrive(used)
            divide(right, total_tile)
            T.copy(right, Out[b, s, head : head + BH, half:])
        else:
            T.set_max_nreg(80, 0)
            for turn in T.serial(turns):
                for stage in T.unroll(2):
                    T.barrier_wait(free[stage], (turn & 1) ^ 1)
                    for quarter in T.serial(4):
                        index = Index[b, s, (turn * 2 + stage) * BN + quarter * 16 + (thread - 256) // 8]
                        gather(KV, rows, valid, index, b, s, thread - 256, stage, quarter, D + tail)
                    T.cp_async_barrier_noinc(full[stage])
    return Out, Lse


@tw.jit(target="cpu")
def two_makers(Q, KV, Index, H: int, D: int, tail: int, topk: int):
    """Each group scores every other tile, hands its weights and row maxima over, and keeps one half of the result."""
    B, S, rows_kv = T.dynamic("B"), T.dynamic("S"), T.dynamic("rows_kv")
    Q: T.Tensor((B, S, H, D + tail), BRAIN)
    KV: T.Tensor((B, rows_kv, D + tail), BRAIN)
    Index: T.Tensor((B, S, topk), INT)
    Out = T.empty((B, S, H, D), BRAIN)
    Lse = T.empty((B, S, H), FLOAT)
    BH, BN, half, parts = 64, 64, D // 2, H // 64
    turns = topk // BN // 2
    scale = (D + tail) ** -0.5 * LOG2E

    @T.macro
    def maker(me, query, rows, valid, acc, tops, totals, full, free, compared, weighted, b, s, head):
        scores = T.alloc_fragment((BH, BN), FLOAT)
        top = T.alloc_fragment((BH,), FLOAT)
        before = T.alloc_fragment((BH,), FLOAT)
        theirs = T.alloc_fragment((BH,), FLOAT)
        part = T.alloc_fragment((BH,), FLOAT)
        total = T.alloc_fragment((BH,), FLOAT)
        other = 1 - me
        for stage in T.unroll(2):
            T.barrier_arrive(free[stage])
        T.set_max_nreg(216, 1)
        T.fill(total, 0)
        T.fill(top, LOW)
        T.fill(acc, 0)
        for turn in T.serial(turns):
            T.barrier_wait(full[me], turn & 1)
            T.fill(scores, 0)
            score(query, rows, me, scores, D)
            T.copy(top, before)
            T.wait_wgmma(0)
            for i, j in T.Parallel(BH, BN):
                if not valid[me, j]:
                    scores[i, j] = -T.infinity(FLOAT)
            T.reduce_max(scores, top, dim=1, clear=False)
            T.copy(top, tops[me, :])
            T.barrier_arrive(compared[me])
            T.barrier_wait(compared[other], turn & 1)
            T.copy(tops[other, :], theirs)
            for i in T.Parallel(BH):
                top[i] = T.max(top[i], theirs[i])
            for i, j in T.Parallel(BH, half):
                acc[i, j] *= T.exp2((before[i] - top[i]) * scale)
            for i, j in T.Parallel(BH, BN):
                scores[i, j] = T.exp2(scores[i, j] * scale - top[i] * scale)
            T.reduce_sum(scores, part, dim=1)
            for i in T.Parallel(BH):
                total[i] = total[i] * T.exp2((before[i] - top[i]) * scale) + part[i]
            # The keys' last columns are done with: the weights take their place.
            T.copy(scores, rows[me, :, D:])
            T.barrier_arrive(weighted[me])
            T.wgmma_gemm(rows[me, :, D:], rows[me, :, me * half : me * half + half], acc)
            T.barrier_wait(full[other], turn & 1)
            T.barrier_wait(weighted[other], turn & 1)
            T.wgmma_gemm(rows[other, :, D:], rows[other, :, me * half : me * half + half], acc)
            T.wait_wgmma(1)
            T.barrier_arrive(free[me])
            T.wait_wgmma(0)
            T.barrier_arrive(free[other])
        T.copy(total, totals[me, :])
        T.barrier_arrive(compared[me])
        T.barrier_wait(compared[other], turns & 1)
        T.copy(totals[other, :], part)
        for i in T.Parallel(BH):
            total[i] += part[i]
        divide(acc, total)
        T.copy(acc, query[:, me * half : me * half + half])
        T.copy(query[:, me * half : me * half + half], Out[b, s, head : head + BH, me * half : me * half + half])
        if me == 0:
            logarithm(total, top, scale)
            T.copy(total, Lse[b, s, head : head + BH])

    with T.Kernel(S * parts, B, threads=384) as (bx, b):
        query = T.alloc_shared((BH, D + tail), BRAIN)
        rows = T.alloc_shared((2, BN, D + tail), BRAIN)
        valid = T.alloc_shared((2, BN), "bool", scope="shared")
        tops = T.alloc_shared((2, BH), FLOAT)
        totals = T.alloc_shared((2, BH), FLOAT)
        left = T.alloc_fragment((BH, half), FLOAT)
        right = T.alloc_fragment((BH, half), FLOAT)
        full = T.alloc_barrier(arrive_count=[128] * 2)
        free = T.alloc_barrier(arrive_count=[256] * 2)
        compared = T.alloc_barrier(arrive_count=[128] * 2)
        weighted = T.alloc_barrier(arrive_count=[128] * 2)
        s, head = bx // parts, bx % parts * BH
        thread = T.get_thread_binding()
        T.copy(Q[b, s, head : head + BH, :], query)
        if thread >= 256:
            T.set_max_nreg(72, 0)
            ahead = T.alloc_local((2, 4), INT)
            for stage in T.unroll(2):
                for quarter in T.serial(4):
                    ahead[stage, quarter] = Index[b, s, stage * BN + quarter * 16 + (thread - 256) // 8]
            for turn in T.serial(turns):
                for stage in T.unroll(2):
                    T.barrier_wait(free[stage], turn & 1)
                    for quarter in T.serial(4):
                        index = ahead[stage, quarter]
                        gather(KV, rows, valid, index, b, s, thread - 256, stage, quarter, D + tail)
                    T.cp_async_barrier_noinc(full[stage])
                    if turn + 1 < turns:
                        for quarter in T.serial(4):
                            at = ((turn + 1) * 2 + stage) * BN + quarter * 16 + (thread - 256) // 8
                            ahead[stage, quarter] = Index[b, s, at]
        elif thread < 128:
            maker(0, query, rows, valid, left, tops, totals, full, free, compared, weighted, b, s, head)
        else:
            maker(1, query, rows, valid, right, tops, totals, full, free, compared, weighted, b, s, head)
    return Out, Lse
