"""Reductions, scans, row softmax."""

import numpy as np
import pytest

import tileworkbench.language as T

from .calls import integers, returned

REDUCTIONS = {
    "sum": (T.reduce_sum, np.sum),
    "max": (T.reduce_max, np.max),
    "min": (T.reduce_min, np.min),
    "abssum": (T.reduce_abssum, lambda x, axis: np.abs(x).sum(axis=axis)),
    "absmax": (T.reduce_absmax, lambda x, axis: np.abs(x).max(axis=axis)),
    "bitand": (T.reduce_bitand, np.bitwise_and.reduce),
    "bitor": (T.reduce_bitor, np.bitwise_or.reduce),
    "bitxor": (T.reduce_bitxor, np.bitwise_xor.reduce),
}


@pytest.mark.parametrize("dim", [0, 1])
@pytest.mark.parametrize("clear", [True, False])
@pytest.mark.parametrize("kind", REDUCTIONS)
def test_reductions(kind, clear, dim):
    op, reference = REDUCTIONS[kind]
    options = {} if kind == "abssum" else {"clear": clear}  # T.reduce_abssum has no such option
    dtype = "int32" if kind.startswith("bit") else "float32"
    out = 12 if dim == 0 else 10

    @T.prim_func
    def kernel(A: T.Tensor((20, 12), dtype), B: T.Tensor((2, out), dtype)):
        with T.Kernel(2, threads=32) as bx:
            a = T.alloc_fragment((10, 12), dtype)
            b = T.alloc_fragment((out,), dtype)
            T.copy(A[bx * 10, 0], a)
            T.fill(b, 3)
            op(a, b, dim=dim, **options)
            T.copy(b, B[bx, 0])

    a = integers(7, (20, 12), dtype, 50)
    want = reference(a.reshape(2, 10, 12), axis=dim + 1)
    if options and not clear:
        pair = {"max": np.maximum, "absmax": np.maximum, "min": np.minimum, "bitand": np.bitwise_and,
                "bitor": np.bitwise_or, "bitxor": np.bitwise_xor}.get(kind, np.add)  # fmt: skip
        want = pair(want, np.asarray(3, a.dtype))
    assert np.array_equal(returned(kernel, (2, out), dtype, a), want)


@pytest.mark.parametrize("propagate", [False, True])
def test_nan_in_a_maximum(propagate):
    @T.prim_func
    def kernel(A: T.Tensor((4, 8), "float32"), B: T.Tensor((4,), "float32")):
        with T.Kernel(1, threads=32):
            a = T.alloc_fragment((4, 8), "float32")
            b = T.alloc_fragment((4,), "float32")
            T.copy(A, a)
            T.reduce_max(a, b, dim=1, nan_propagate=propagate)
            T.copy(b, B)

    a = np.arange(32, dtype=np.float32).reshape(4, 8)
    a[1, 3] = np.nan
    want = np.array([7, np.nan if propagate else 15, 23, 31], np.float32)
    assert np.array_equal(returned(kernel, (4,), "float32", a), want, equal_nan=True)


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("dim", [0, 1])
def test_cumsum(dim, reverse):
    @T.prim_func
    def kernel(A: T.Tensor((16, 8), "float32"), B: T.Tensor((16, 8), "float32")):
        with T.Kernel(2, threads=32) as bx:
            s = T.alloc_shared((8, 8), "float32")
            T.copy(A[bx * 8, 0], s)
            T.cumsum(src=s, dim=dim, reverse=reverse)
            T.copy(s, B[bx * 8, 0])

    a = integers(9, (16, 8), "float32", 100)
    blocks = a.reshape(2, 8, 8)
    turned = np.flip(blocks, dim + 1) if reverse else blocks
    want = np.cumsum(turned, axis=dim + 1)
    want = np.flip(want, dim + 1) if reverse else want
    assert np.array_equal(returned(kernel, (16, 8), "float32", a), want.reshape(16, 8))


def test_row_softmax():
    @T.prim_func
    def softmax(A: T.Tensor((33, 50), "float32"), B: T.Tensor((33, 50), "float32")):
        with T.Kernel(T.ceildiv(33, 8), threads=64) as bx:
            a = T.alloc_fragment((8, 50), "float32")
            top = T.alloc_fragment((8,), "float32")
            total = T.alloc_fragment((8,), "float32")
            T.copy(A[bx * 8, 0], a)
            T.reduce_max(a, top, dim=1)
            for i, j in T.Parallel(8, 50):
                a[i, j] = T.exp(a[i, j] - top[i])
            T.reduce_sum(a, total, dim=1)
            for i, j in T.Parallel(8, 50):
                a[i, j] = a[i, j] / total[i]
            T.copy(a, B[bx * 8, 0])

    a = np.random.default_rng(1).standard_normal((33, 50)).astype(np.float32) * 5
    got = returned(softmax, (33, 50), "float32", a)
    e = np.exp(a.astype(np.float64) - a.max(axis=1, keepdims=True))
    want = e / e.sum(axis=1, keepdims=True)
    # One rounding each for the difference, the exponential and the quotient, 50 for the sum: 53 relative half units.
    assert (np.abs(got - want) <= 53 * 2.0**-24 * (1 + np.abs(a).max() * 2) * want).all()
    assert np.abs(got.sum(axis=1, dtype=np.float64) - 1).max() <= 50 * 2.0**-23
