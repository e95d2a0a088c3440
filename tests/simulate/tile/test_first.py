"""Add and GEMM, the first two kernels of the tutorial, built as IR."""

import numpy as np
import pytest

from tileworkbench.ir.expr import ceildiv, const
from tileworkbench.ops.copy import Copy
from tileworkbench.ops.fill import Fill
from tileworkbench.ops.gemm import Gemm
from tileworkbench.simulate.tile import run

from .build import FALSE, kernel, load, loop, parallel, region, store, tensor, tile, var, whole


def add_kernel(n, block):
    a, b, c = (tensor(x, (n,)) for x in "ABC")
    bx, i = var("bx"), var("i")
    at = bx * block + i
    body = parallel([i], [block], store(c, at, load(a, at) + load(b, at)))
    return kernel([a, b, c], [ceildiv(n, block)], [bx], body, outputs=(2,))


@pytest.mark.parametrize("fixed", [True, False])
@pytest.mark.parametrize("n", [1024, 1000, 1, 4097])
def test_add(n, fixed):
    rng = np.random.default_rng(n)
    a, b = rng.standard_normal((2, n)).astype(np.float32)
    k = add_kernel(n if fixed else var("N"), 256)
    result = run(k, [a, b])
    assert np.array_equal(result.outputs[0], a + b)
    assert not result.unwritten


def gemm_kernel(m, n, k, bm, bn, bk, dtype="float16", stages=2):
    a, b, c = tensor("A", (m, k), dtype), tensor("B", (k, n), dtype), tensor("C", (m, n), dtype)
    sa, sb = tile("A_shared", (bm, bk), dtype), tile("B_shared", (bk, bn), dtype)
    acc = tile("C_local", (bm, bn), "float32", "fragment")
    bx, by, ko = var("bx"), var("by"), var("ko")
    body = [
        Fill(whole(acc), const(0.0)),
        loop(
            ko,
            ceildiv(k, bk),
            Copy(region(a, (by * bm, ko * bk), (bm, bk)), whole(sa)),
            Copy(region(b, (ko * bk, bx * bn), (bk, bn)), whole(sb)),
            Gemm(whole(sa), whole(sb), whole(acc), False, False, FALSE),
            kind="pipelined",
        ),
        Copy(whole(acc), region(c, (by * bm, bx * bn), (bm, bn))),
    ]
    return kernel([a, b, c], [ceildiv(n, bn), ceildiv(m, bm)], [bx, by], *body, outputs=(2,))


@pytest.mark.parametrize("m,n,k", [(256, 256, 128), (200, 130, 70), (1, 1, 1), (64, 320, 33)])
def test_gemm(m, n, k):
    rng = np.random.default_rng(m)
    a = rng.integers(-4, 5, (m, k)).astype(np.float16)
    b = rng.integers(-4, 5, (k, n)).astype(np.float16)
    result = run(gemm_kernel(m, n, k, 64, 64, 32), [a, b])
    assert np.array_equal(result.outputs[0].astype(np.int64), a.astype(np.int64) @ b.astype(np.int64))
    assert not result.unwritten
