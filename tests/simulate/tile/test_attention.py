"""Attention with online softmax, as TileLang users write it."""

import numpy as np
import pytest

import tileworkbench.language as T

from .calls import returned


def attention(B, H, S, D, bm, bn, causal):
    scale = (1.0 / D) ** 0.5 * 1.44269504

    @T.prim_func
    def main(
        Q: T.Tensor((B, H, S, D), "float16"),
        K: T.Tensor((B, H, S, D), "float16"),
        V: T.Tensor((B, H, S, D), "float16"),
        O: T.Tensor((B, H, S, D), "float32"),  # noqa: E741
    ):
        with T.Kernel(T.ceildiv(S, bm), H, B, threads=128) as (bx, by, bz):
            Q_s = T.alloc_shared((bm, D), "float16")
            K_s = T.alloc_shared((bn, D), "float16")
            V_s = T.alloc_shared((bn, D), "float16")
            acc_s = T.alloc_fragment((bm, bn), "float32")
            acc_p = T.alloc_fragment((bm, bn), "float16")
            acc_o = T.alloc_fragment((bm, D), "float32")
            top = T.alloc_fragment((bm,), "float32")
            before = T.alloc_fragment((bm,), "float32")
            factor = T.alloc_fragment((bm,), "float32")
            row = T.alloc_fragment((bm,), "float32")
            total = T.alloc_fragment((bm,), "float32")
            T.copy(Q[bz, by, bx * bm : (bx + 1) * bm, :], Q_s)
            T.fill(acc_o, 0)
            T.fill(total, 0)
            T.fill(top, -T.infinity("float32"))
            trips = T.min(T.ceildiv((bx + 1) * bm, bn), T.ceildiv(S, bn)) if causal else T.ceildiv(S, bn)
            for k in T.Pipelined(trips, num_stages=2):
                T.copy(K[bz, by, k * bn : (k + 1) * bn, :], K_s)
                if causal:
                    for i, j in T.Parallel(bm, bn):
                        acc_s[i, j] = T.if_then_else(bx * bm + i >= k * bn + j, 0, -T.infinity("float32"))
                else:
                    for i, j in T.Parallel(bm, bn):
                        acc_s[i, j] = T.if_then_else(k * bn + j < S, 0, -T.infinity("float32"))
                T.gemm(Q_s, K_s, acc_s, transpose_B=True)
                T.copy(V[bz, by, k * bn : (k + 1) * bn, :], V_s)
                T.copy(top, before)
                T.reduce_max(acc_s, top, dim=1, clear=False)
                for i in T.Parallel(bm):
                    factor[i] = T.exp2(before[i] * scale - top[i] * scale)
                for i, j in T.Parallel(bm, bn):
                    acc_s[i, j] = T.exp2(acc_s[i, j] * scale - top[i] * scale)
                T.reduce_sum(acc_s, row, dim=1)
                for i in T.Parallel(bm):
                    total[i] = total[i] * factor[i] + row[i]
                T.copy(acc_s, acc_p)
                for i, j in T.Parallel(bm, D):
                    acc_o[i, j] *= factor[i]
                T.gemm(acc_p, V_s, acc_o)
            for i, j in T.Parallel(bm, D):
                acc_o[i, j] /= total[i]
            T.copy(acc_o, O[bz, by, bx * bm : (bx + 1) * bm, :])

    return main


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("s,bm,bn", [(64, 16, 32), (100, 32, 16)])
def test_attention(causal, s, bm, bn):
    rng = np.random.default_rng(s)
    q, k, v = (rng.standard_normal((2, 3, s, 32)).astype(np.float16) for _ in range(3))
    got = returned(attention(2, 3, s, 32, bm, bn, causal), (2, 3, s, 32), "float32", q, k, v)
    wide = [x.astype(np.float64) for x in (q, k, v)]
    scores = wide[0] @ wide[1].swapaxes(-1, -2) / np.sqrt(32)
    if causal:
        scores = np.where(np.tri(s, dtype=bool), scores, -np.inf)
    p = np.exp(scores - scores.max(axis=-1, keepdims=True))
    want = p / p.sum(axis=-1, keepdims=True) @ wide[2]
    # P is rounded to float16 (half a unit: 2⁻¹¹) before the second product; the rest is float32.
    bound = 2.0**-11 * (p / p.sum(axis=-1, keepdims=True) @ np.abs(wide[2])) * 1.05 + 1e-6
    assert (np.abs(got - want) <= bound).all()
