"""Elements of four bits: two a byte in global memory of a card, one a byte everywhere else."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

import tileworkbench as tw
import tileworkbench.language as T
from tests.end_to_end.harness import NVIDIA, everywhere, integers, lowered
from tileworkbench.codegen.emit import emit
from tileworkbench.errors import LanguageError, LaunchError, ShapeError
from tileworkbench.target import Target

FP4 = ml_dtypes.float4_e2m1fn
VALUES = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6])  # of the codes 0 to 7; bit 3 is the sign


def quantise(M, N, BM, dtype, to, staged=True):
    @T.prim_func
    def kernel(X: T.Tensor((M, N), dtype), Y: T.Tensor((M, N), to)):
        with T.Kernel(T.ceildiv(M, BM), threads=128) as bx:
            x = T.alloc_fragment((BM, N), dtype)
            y = T.alloc_fragment((BM, N), to)
            s = T.alloc_shared((BM, N), to)
            T.copy(X[bx * BM, 0], x)
            for i, j in T.Parallel(BM, N):
                y[i, j] = x[i, j]
            if staged:
                T.copy(y, s)
                T.copy(s, Y[bx * BM, 0])
            else:
                T.copy(y, Y[bx * BM, 0])

    return kernel


def nearest(x: np.ndarray) -> np.ndarray:
    """The code of the nearest value, ties to the even code; by distances. A NaN is a zero of the other sign."""
    with np.errstate(all="ignore"):
        wide = x.astype(np.float64)
    nan = np.isnan(wide)
    far = np.abs(np.minimum(np.abs(np.where(nan, 0, wide)), 6)[..., None] - VALUES)
    codes = np.argmin(np.where(far == far.min(-1, keepdims=True), np.arange(8) % 2, 2), axis=-1)
    return (codes | (np.signbit(wide) ^ nan) * 8).astype(np.uint8)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_every_half_rounds_to_the_nearest_of_fifteen_values(dtype):
    kind = np.float16 if dtype == "float16" else ml_dtypes.bfloat16
    x = np.arange(65536, dtype=np.uint16).view(kind).reshape(256, 256)
    truth = nearest(x)
    with np.errstate(all="ignore"):
        assert np.array_equal(truth, x.astype(FP4).view(np.uint8))
    everywhere(quantise(256, 256, 64, dtype, "float4_e2m1fn"), [x], truth.view(FP4), ["sm_90a"])


@pytest.mark.parametrize(("M", "N", "staged"), [(40, 32, True), (7, 6, False), (33, 10, True)])
def test_tails_and_narrow_rows(M, N, staged):
    x = integers(3, (M, N), "float32", 9)
    everywhere(quantise(M, N, 32, "float32", "float4_e2m1fn", staged), [x], nearest(x).view(FP4))


def test_integers_wrap_to_four_bits_and_come_back():
    @T.prim_func
    def kernel(
        X: T.Tensor((16, 64), "int32"),
        U: T.Tensor((16, 64), "uint4"),
        S: T.Tensor((16, 64), "int4"),
        Y: T.Tensor((16, 64), "int32"),
    ):
        with T.Kernel(1, threads=64):
            s = T.alloc_shared((16, 64), "int4")
            for i, j in T.Parallel(16, 64):
                s[i, j] = X[i, j]
            for i, j in T.Parallel(16, 64):
                S[i, j] = s[i, j]
                Y[i, j] = s[i, j] * s[i, j] + U[i, j]

    x = integers(4, (16, 64), "int32", 30)
    u = integers(5, (16, 64), "int32", 30) & 15
    s = (x + 8) % 16 - 8
    everywhere(kernel, [x, u.astype(ml_dtypes.uint4)], [s.astype(ml_dtypes.int4), s * s + u])


def test_single_elements_leave_their_neighbours_alone():
    @T.prim_func
    def kernel(X: T.Tensor((32,), "int32"), Y: T.Tensor((2, 64), "uint4")):
        with T.Kernel(1, threads=32):
            t = T.get_thread_binding()
            Y[1, t * 2 + 1] = X[t]

    x = integers(6, (32,), "int32", 7) + 7
    old = (integers(7, (2, 64), "int32", 7) + 7).astype(ml_dtypes.uint4)
    truth = old.copy()
    truth[1, 1::2] = x.astype(ml_dtypes.uint4)
    everywhere(kernel, [x], truth, initial=[old])
    text = emit(lowered(kernel, "sm_90a"), Target.of("sm_90a")).text
    assert "atomicXor" in text


def gemm(M, N, K, BM, BN, BK, kinds, stages=2):
    @T.prim_func
    def kernel(A: T.Tensor((M, K), kinds[0]), B: T.Tensor((N, K), kinds[1]), C: T.Tensor((M, N), "int32")):
        with T.Kernel(T.ceildiv(N, BN), T.ceildiv(M, BM), threads=128) as (bx, by):
            a = T.alloc_shared((BM, BK), kinds[0])
            b = T.alloc_shared((BN, BK), kinds[1])
            acc = T.alloc_fragment((BM, BN), "int32")
            T.clear(acc)
            for ko in T.Pipelined(T.ceildiv(K, BK), num_stages=stages):
                T.copy(A[by * BM, ko * BK], a)
                T.copy(B[bx * BN, ko * BK], b)
                T.gemm(a, b, acc, transpose_B=True)
            T.copy(acc, C[by * BM, bx * BN])

    return kernel


@pytest.mark.parametrize("kinds", [("int4", "int4"), ("uint4", "uint4")])
def test_products_of_four_bit_integers(kinds):
    low = -8 if kinds[0] == "int4" else 0
    rng = np.random.default_rng(8)
    a, b = (rng.integers(low, low + 16, (64, 256)).astype(getattr(ml_dtypes, k)) for k in kinds)
    kernels = everywhere(
        gemm(64, 64, 256, 64, 64, 64, kinds), [a, b], a.astype(np.int64) @ b.astype(np.int64).T, NVIDIA
    )
    assert any("wgmma" in d.chosen and "k32" in d.chosen for d in kernels["sm_90a"].decisions)


def packed(codes: np.ndarray) -> np.ndarray:
    """Bytes of pairs, the first element in the low half."""
    return (codes[..., ::2] & 15 | codes[..., 1::2] << 4).astype(np.uint8)


def test_bytes_of_pairs_and_single_elements_are_taken_alike():
    kernel = tw.compile(quantise(40, 32, 32, "float32", "float4_e2m1fn"), target="cpu")
    x = integers(9, (40, 32), "float32", 9)
    one, two = np.zeros((40, 32), FP4), np.zeros((40, 16), np.uint8)
    kernel(x, one)
    kernel(x, two)
    assert np.array_equal(one.view(np.uint8), nearest(x)) and np.array_equal(two, packed(nearest(x)))
    with pytest.raises(LaunchError):
        kernel(x, np.zeros((40, 32), np.uint8))


def test_torch_holds_pairs():
    torch = pytest.importorskip("torch")
    x = integers(10, (40, 32), "float32", 9)
    made = tw.compile(quantise(40, 32, 32, "float32", "float4_e2m1fn"), target="cpu", out_idx=-1)(torch.from_numpy(x))
    assert made.dtype is torch.float4_e2m1fn_x2 and tuple(made.shape) == (40, 16)
    assert np.array_equal(made.view(torch.uint8).numpy(), packed(nearest(x)))
    a, b = (np.random.default_rng(s).integers(-8, 8, (64, 64)) for s in (11, 12))
    product = tw.compile(gemm(64, 64, 64, 64, 64, 64, ("int4", "int4")), target="cpu", out_idx=-1)
    given = [torch.from_numpy(packed(v).view(np.int8)) for v in (a, b)]
    assert np.array_equal(product(*given).numpy(), a @ b.T)


def test_what_packed_elements_cannot_do_is_said():
    with pytest.raises(LanguageError, match=r"T\.atomic_add on `X`, int4"):

        @T.prim_func
        def atomic(X: T.Tensor((64,), "int4")):
            with T.Kernel(1, threads=32):
                T.atomic_add(X[0], 1)

    with pytest.raises(LanguageError, match=r"T\.view of `s`, int4, as int8"):

        @T.prim_func
        def seen(X: T.Tensor((64,), "int4")):
            with T.Kernel(1, threads=32):
                s = T.alloc_shared((64,), "int4")
                T.copy(X, s)
                T.view(s, (32,), "int8")

    with pytest.raises(ShapeError, match=r"T\.reinterpret of uint4 as int4"):

        @T.prim_func
        def bits(X: T.Tensor((64,), "uint4"), Y: T.Tensor((64,), "int4")):
            with T.Kernel(1, threads=32):
                Y[0] = T.reinterpret(X[0], "int4")


def test_eager_kernels_see_packed_arrays_by_elements():
    torch = pytest.importorskip("torch")

    @tw.jit(target="cpu")
    def kernel(A, B):
        M, K = T.const("M K")
        s = T.dynamic("s")
        A: T.StridedTensor[[M, K], [s, 1], T.int4]
        B: T.Tensor[[M, K], T.int32]

        with T.Kernel(1, threads=32):
            for i, j in T.Parallel(M, K):
                B[i, j] = A[i, j] * 100 + s

    codes = np.random.default_rng(3).integers(-8, 8, (8, 16))
    packed = (codes[:, ::2] & 15 | (codes[:, 1::2] & 15) << 4).astype(np.uint8).view(np.int8)
    b = torch.zeros((4, 16), dtype=torch.int32)
    kernel(torch.from_numpy(packed)[::2], b)
    assert np.array_equal(b.numpy(), codes[::2] * 100 + 32)
    with pytest.raises(LaunchError, match=r"has extent 8 in dimension 1|shape \(4, 8\)"):
        kernel(torch.from_numpy(packed)[::2], b[:, :8])
