"""Small kernels of the kinds that users write: projections, norms, sparse and persistent products, quantisation."""

# ruff: noqa: E741

import ml_dtypes
import numpy as np

import tileworkbench.language as T
from tileworkbench.simulate.tile import run


def rng():
    return np.random.default_rng(0)


def test_split_gemv_with_two_thread_axes():
    N, K, BN, RT, TK = 64, 256, 4, 32, 4

    @T.prim_func
    def gemv(A: T.Tensor((K,), "float16"), B: T.Tensor((N, K), "float16"), C: T.Tensor((N,), "float16")):
        with T.Kernel(T.ceildiv(N, BN), threads=(BN, RT)) as bn:
            tn = T.get_thread_binding(0)
            tk = T.get_thread_binding(1)
            A_l = T.alloc_local((TK,), "float16")
            B_l = T.alloc_local((TK,), "float16")
            C_s = T.alloc_shared((BN,), "float32")
            acc = T.alloc_local((1,), "float32")
            if tk == 0:
                C_s[tn] = 0.0
            T.clear(acc)
            for bk in T.serial(T.ceildiv(K, RT * TK)):
                for k in T.vectorized(TK):
                    A_l[k] = A[bk * RT * TK + tk * TK + k]
                    B_l[k] = B[bn * BN + tn, bk * RT * TK + tk * TK + k]
                for k in T.serial(TK):
                    acc[0] += A_l[k].astype("float32") * B_l[k].astype("float32")
            T.atomic_add(C_s[tn], acc[0])
            if tk == 0:
                C[bn * BN + tn] = C_s[tn]

    a = rng().integers(-3, 4, (K,)).astype(np.float16)
    b = rng().integers(-3, 4, (N, K)).astype(np.float16)
    c = np.zeros(N, np.float16)
    r = run(gemv.kernel, [a, b, c])
    assert np.array_equal(c, (b.astype(np.float32) @ a.astype(np.float32)).astype(np.float16)), c[:5]


def test_rms_norm():
    M, N = 37, 96

    @T.prim_func
    def rms(A: T.Tensor((M, N), "float32"), B: T.Tensor((M, N), "float32")):
        with T.Kernel(T.ceildiv(M, 4), threads=128) as bx:
            s = T.alloc_shared((4, N), "float32")
            l = T.alloc_fragment((4, N), "float32")
            p = T.alloc_fragment((4, N), "float32")
            r = T.alloc_fragment((4,), "float32")
            T.copy(A[bx * 4 : (bx + 1) * 4, :], s)
            T.copy(s, l)
            for i, j in T.Parallel(4, N):
                p[i, j] = l[i, j] * l[i, j]
            T.reduce_sum(p, r, dim=1)
            for i in T.Parallel(4):
                r[i] = T.rsqrt(r[i] / N + 1e-12)
            for i, j in T.Parallel(4, N):
                l[i, j] *= r[i]
            T.copy(l, B[bx * 4 : (bx + 1) * 4, :])

    a = rng().standard_normal((M, N)).astype(np.float32)
    b = np.zeros_like(a)
    r = run(rms.kernel, [a, b])
    assert not r.unwritten
    assert np.allclose(b, a / np.sqrt((a.astype(float) ** 2).mean(1, keepdims=True) + 1e-12), rtol=1e-5)


def test_block_sparse_gemm():
    M = N = K = 128
    bs = 32

    @T.prim_func
    def f(
        A: T.Tensor((M, K), "float16"),
        B: T.Tensor((K, N), "float16"),
        Mk: T.Tensor((M // bs, N // bs, K // bs), "bool"),
        C: T.Tensor((M, N), "float16"),
    ):
        with T.Kernel(N // bs, M // bs, threads=128) as (bx, by):
            a = T.alloc_shared((bs, bs), "float16")
            b = T.alloc_shared((bs, bs), "float16")
            c = T.alloc_fragment((bs, bs), "float32")
            T.clear(c)
            for k in T.Pipelined(K // bs, num_stages=2):
                if Mk[by, bx, k]:
                    T.copy(A[by * bs, k * bs], a)
                    T.copy(B[k * bs, bx * bs], b)
                    T.gemm(a, b, c)
            T.copy(c, C[by * bs, bx * bs])

    a = rng().integers(-3, 4, (M, K)).astype(np.float16)
    b = rng().integers(-3, 4, (K, N)).astype(np.float16)
    m = rng().random((4, 4, 4)) < 0.5
    c = np.zeros((M, N), np.float16)
    run(f.kernel, [a, b, m, c])
    w = np.zeros((M, N))
    for y in range(4):
        for x in range(4):
            for k in range(4):
                if m[y, x, k]:
                    w[y * 32 : y * 32 + 32, x * 32 : x * 32 + 32] += a[
                        y * 32 : y * 32 + 32, k * 32 : k * 32 + 32
                    ].astype(float) @ b[k * 32 : k * 32 + 32, x * 32 : x * 32 + 32].astype(float)
    assert np.array_equal(c, w)


def test_persistent_gemm():
    M = N = K = 96
    bs = 32

    @T.prim_func
    def f(A: T.Tensor((M, K), "float16"), B: T.Tensor((K, N), "float16"), C: T.Tensor((M, N), "float32")):
        with T.Kernel(4, threads=128) as bid:
            a = T.alloc_shared((bs, bs), "float16")
            b = T.alloc_shared((bs, bs), "float16")
            c = T.alloc_fragment((bs, bs), "float32")
            for bx, by in T.Persistent([N // bs, M // bs], 4, bid):
                T.clear(c)
                for k in T.Pipelined(K // bs, num_stages=2):
                    T.copy(A[by * bs, k * bs], a)
                    T.copy(B[k * bs, bx * bs], b)
                    T.gemm(a, b, c)
                T.copy(c, C[by * bs, bx * bs])

    a = rng().integers(-3, 4, (M, K)).astype(np.float16)
    b = rng().integers(-3, 4, (K, N)).astype(np.float16)
    c = np.zeros((M, N), np.float32)
    r = run(f.kernel, [a, b, c])
    assert np.array_equal(c, a.astype(np.float32) @ b.astype(np.float32))
    assert not r.unwritten


def test_unpacked_int4():
    N, K = 32, 64

    @T.prim_func
    def f(B: T.Tensor((N, K // 2), "uint8"), C: T.Tensor((N, K), "float16")):
        with T.Kernel(N // 8, threads=64) as bx:
            s = T.alloc_shared((8, K // 2), "uint8")
            l = T.alloc_fragment((8, K), "float16")
            T.copy(B[bx * 8, 0], s)
            for i, j in T.Parallel(8, K):
                l[i, j] = T.cast((s[i, j // 2] >> T.cast((j % 2) * 4, "uint8")) & T.uint8(0xF), "float16") - T.float16(
                    8.0
                )
            T.copy(l, C[bx * 8, 0])

    b = rng().integers(0, 256, (N, K // 2)).astype(np.uint8)
    c = np.zeros((N, K), np.float16)
    run(f.kernel, [b, c])
    w = np.stack([b & 15, b >> 4], -1).reshape(N, K).astype(np.float16) - 8
    assert np.array_equal(c, w)


def test_convolution_by_gathered_tiles():
    NN, H, W, C, F, KH = 2, 8, 8, 16, 16, 3
    OH = H - 2
    OW = W - 2

    @T.prim_func
    def f(
        X: T.Tensor((NN, H, W, C), "float16"),
        Wt: T.Tensor((KH * KH * C, F), "float16"),
        O: T.Tensor((NN * OH * OW, F), "float32"),
    ):
        with T.Kernel(1, T.ceildiv(NN * OH * OW, 16), threads=64) as (bx, by):
            d = T.alloc_shared((16, 16), "float16")
            w = T.alloc_shared((16, 16), "float16")
            o = T.alloc_fragment((16, 16), "float32")
            T.clear(o)
            for k in T.Pipelined(T.ceildiv(KH * KH * C, 16), num_stages=2):
                for i, j in T.Parallel(16, 16):
                    kk = k * 16 + j
                    m = by * 16 + i
                    ah = m % (OH * OW) // OW + kk // (KH * C)
                    aw = m % OW + kk // C % KH
                    inb = (ah < H) and (aw < W) and (m < NN * OH * OW)
                    d[i, j] = T.if_then_else(inb, X[m // (OH * OW), ah, aw, kk % C], 0)
                T.copy(Wt[k * 16, 0], w)
                T.gemm(d, w, o)
            T.copy(o, O[by * 16, 0])

    x = rng().integers(-3, 4, (NN, H, W, C)).astype(np.float16)
    w = rng().integers(-3, 4, (KH * KH * C, F)).astype(np.float16)
    o = np.zeros((NN * OH * OW, F), np.float32)
    r = run(f.kernel, [x, w, o])
    assert not r.unwritten
    ref = sum(
        x[:, i : i + OH, j : j + OW].astype(float) @ w.reshape(3, 3, C, F)[i, j].astype(float)
        for i in range(3)
        for j in range(3)
    ).reshape(-1, F)
    assert np.array_equal(o, ref)


def test_table_of_rows_and_a_barrier_of_the_grid():
    @T.prim_func
    def f(
        A: T.Tensor((4, 8), "float32"),
        I: T.Tensor((4,), "int32"),
        S: T.Tensor((4, 8), "float32"),
        O: T.Tensor((4, 8), "float32"),
    ):
        with T.Kernel(4, threads=32) as b:
            f_ = T.alloc_fragment((8,), "float32")
            s = T.alloc_shared((1, 8), "float32")
            T.copy(A[I[b], 0:8], f_)
            T.copy(f_, S[b, 0:8])
            T.sync_grid()
            T.copy(S[3 - b, 0:8], O[b, 0:8])

    a = rng().standard_normal((4, 8)).astype(np.float32)
    i = np.array([2, 0, 3, 1], np.int32)
    S = np.zeros((4, 8), np.float32)
    O = np.zeros_like(S)
    run(f.kernel, [a, i, S, O])
    assert np.array_equal(O, a[i][::-1])


def test_argmax_with_private_variables():
    @T.prim_func
    def f(A: T.Tensor((6, 10), "float32"), O: T.Tensor((6,), "int32")):
        with T.Kernel(2, threads=32) as b:
            for i in T.Parallel(3):
                best = T.alloc_var("float32", -1e9)
                at = T.alloc_var("int32", 0)
                for k in T.serial(10):
                    if A[b * 3 + i, k] > best:
                        best = A[b * 3 + i, k]
                        at = k
                O[b * 3 + i] = at

    a = rng().standard_normal((6, 10)).astype(np.float32)
    o = np.zeros(6, np.int32)
    run(f.kernel, [a, o])
    assert np.array_equal(o, a.argmax(1))


def test_atomic_with_its_old_value():
    @T.prim_func
    def f(A: T.Tensor((64,), "int32"), C: T.Tensor((1,), "int32"), O: T.Tensor((64,), "int32")):
        with T.Kernel(2, threads=32) as b:
            tx = T.get_thread_binding(0)
            if A[b * 32 + tx] > 0:
                p = T.atomic_add(C[0], 1, return_prev=True)
                O[p] = A[b * 32 + tx]

    a = rng().integers(-5, 6, 64).astype(np.int32)
    c = np.zeros(1, np.int32)
    o = np.zeros(64, np.int32)
    run(f.kernel, [a, c, o])
    assert c[0] == (a > 0).sum() and np.array_equal(np.sort(o[: c[0]]), np.sort(a[a > 0]))


def test_row_scaled_fp8():
    @T.prim_func
    def f(A: T.Tensor((40, 32), "float32"), O: T.Tensor((40, 32), "float8_e4m3fn"), S: T.Tensor((40,), "float32")):
        with T.Kernel(T.ceildiv(40, 16), threads=32) as b:
            x = T.alloc_fragment((16, 32), "float32")
            am = T.alloc_fragment((16,), "float32")
            y = T.alloc_fragment((16, 32), "float8_e4m3fn")
            T.copy(A[b * 16, 0], x)
            T.reduce_absmax(x, am, dim=1)
            for i in T.Parallel(16):
                am[i] = T.max(am[i], 1e-4)
                S[b * 16 + i] = am[i] / 448.0
            for i, j in T.Parallel(16, 32):
                y[i, j] = T.clamp(x[i, j] / (am[i] / 448.0), -448.0, 448.0)
            T.copy(y, O[b * 16, 0])

    a = rng().standard_normal((40, 32)).astype(np.float32)
    o = np.zeros((40, 32), ml_dtypes.float8_e4m3fn)
    s = np.zeros(40, np.float32)
    r = run(f.kernel, [a, o, s])
    assert not r.unwritten
    sc = np.abs(a).max(1) / np.float32(448)
    assert np.array_equal(s, sc)
    assert np.array_equal(o, np.clip(a / sc[:, None], -448, 448).astype(ml_dtypes.float8_e4m3fn))


def test_dynamic_shape_and_scalars():
    M = T.dynamic("m")
    N = T.dynamic("n")

    @T.prim_func
    def f(A: T.Tensor((M, N), "float32"), s: T.float32, k: T.int32, O: T.Tensor((M, N), "float32")):
        with T.Kernel(T.ceildiv(N, 16), T.ceildiv(M, 8), threads=32) as (bx, by):
            for i, j in T.Parallel(8, 16):
                O[by * 8 + i, bx * 16 + j] = A[by * 8 + i, bx * 16 + j] * s + T.cast(k, "float32")

    a = rng().standard_normal((13, 41)).astype(np.float32)
    o = np.zeros_like(a)
    r = run(f.kernel, [a, 1.5, 3, o])
    assert np.array_equal(o, a * np.float32(1.5) + np.float32(3))
    assert not r.unwritten
