"""Scans, reductions of tiles in any memory, transposition, element functions; fragments named by single statements."""

from __future__ import annotations

import numpy as np
import pytest

import tileworkbench.language as T
from tileworkbench.errors import LanguageError

from .harness import everywhere, integers


@pytest.mark.parametrize("space", ("fragment", "shared", "both", "inplace"))
@pytest.mark.parametrize(
    ("shape", "dim", "rev", "kind"),
    [
        ((8, 64), 1, False, "cumsum"),
        ((8, 64), 0, False, "cumsum"),
        ((8, 50), 1, True, "cumsum"),
        ((100,), 0, False, "cummax"),
        ((8, 64), 0, True, "cummax"),
    ],
)
def test_scans(shape, dim, rev, kind, space):  # type: ignore[no-untyped-def]
    alloc = T.alloc_fragment if space == "fragment" else T.alloc_shared
    op = getattr(T, kind)

    @T.prim_func
    def kernel(A: T.Tensor(shape, "float32"), B: T.Tensor(shape, "float32")):
        with T.Kernel(1, threads=64) as bx:
            X = alloc(shape, "float32")
            Y = T.alloc_fragment(shape, "float32") if space == "both" else alloc(shape, "float32")
            T.copy(A, X)
            if space == "inplace":
                op(X, dim=dim, reverse=rev)
                T.copy(X, B)
            else:
                op(X, Y, dim=dim, reverse=rev)
                T.copy(Y, B)

    a = integers(1, shape)
    f = np.cumsum if kind == "cumsum" else np.maximum.accumulate
    want = np.flip(f(np.flip(a, dim), dim), dim) if rev else f(a, dim)
    everywhere(kernel, [a], want, ("sm_80", "gfx942") if space == "fragment" else ("sm_90a",))


@pytest.mark.parametrize(
    ("shape", "dim"), [((16, 32), 1), ((16, 32), 0), ((64,), 0), ((4, 8, 16), 1), ((2, 3, 4, 8), 2), ((2, 3, 4, 8), 3)]
)
def test_reduce_shared(shape, dim):  # type: ignore[no-untyped-def]
    out = tuple(e for i, e in enumerate(shape) if i != dim) or (1,)

    @T.prim_func
    def kernel(A: T.Tensor(shape, "float32"), B: T.Tensor(out, "float32"), C: T.Tensor(out, "float32")):
        with T.Kernel(1, threads=64) as bx:
            X = T.alloc_shared(shape, "float32")
            R = T.alloc_shared(out, "float32")
            F = T.alloc_fragment(out, "float32")
            T.copy(A, X)
            T.reduce_sum(X, R, dim=dim)
            T.copy(R, B)
            T.fill(F, 7)
            T.reduce_max(X, F, dim=dim, clear=False)
            T.copy(F, C)

    a = integers(1, shape)
    everywhere(kernel, [a], [a.sum(dim).reshape(out), np.maximum(7, a.max(dim)).reshape(out)], ("sm_90a",))


def test_reduce_region() -> None:
    @T.prim_func
    def kernel(A: T.Tensor((4, 16, 32), "int32"), B: T.Tensor((4, 16), "int32")):
        with T.Kernel(1, threads=64) as bx:
            X = T.alloc_shared((4, 16, 32), "int32")
            T.copy(A, X)
            for k in range(4):
                T.reduce_sum(X[k : k + 1, :, :], B[k : k + 1, :], dim=2)

    a = integers(1, (4, 16, 32), "int32")
    everywhere(kernel, [a], a.sum(2), ("sm_80",))


def test_transpose_reinterpret_clamp() -> None:
    @T.prim_func
    def kernel(
        A: T.Tensor((32, 64), "float32"),
        B: T.Tensor((64, 32), "float32"),
        C: T.Tensor((64, 32), "int32"),
        D: T.Tensor((64, 32), "float32"),
    ):
        with T.Kernel(1, threads=64) as bx:
            X = T.alloc_shared((32, 64), "float32")
            Y = T.alloc_shared((64, 32), "float32")
            T.copy(A, X)
            T.transpose(X, Y)
            T.copy(Y, B)
            for i, j in T.Parallel(64, 32):
                C[i, j] = T.reinterpret(Y[i, j], "int32")
            for i, j in T.Parallel(64, 32):
                D[i, j] = T.clamp(Y[i, j], -3.0, 5.0)

    a = integers(1, (32, 64))
    everywhere(kernel, [a], [a.T, np.ascontiguousarray(a.T).view(np.int32), np.clip(a.T, -3, 5)])


def test_fragment_elements() -> None:
    @T.prim_func
    def kernel(A: T.Tensor((4, 64), "int32"), B: T.Tensor((4, 64), "int32")):
        with T.Kernel(4, threads=64) as bx:
            mask = T.alloc_fragment((4,), "int32")
            total = T.alloc_fragment((1,), "int32")
            F = T.alloc_fragment((64,), "int32")
            T.copy(A[bx, 0:64], F)
            for i in T.Parallel(4):
                mask[i] = (bx + i) % 2
            total[0] = 5
            for k in T.serial(4):
                if mask[k] == 1:
                    for i in T.Parallel(64):
                        F[i] += A[k, i]
            for i in T.Parallel(64):
                B[bx, i] = F[i] + total[0]

    a = integers(1, (4, 64), "int32")
    want = a + 5 + np.stack([a[[(k) for k in range(4) if (b + k) % 2 == 1]].sum(0) for b in range(4)])
    everywhere(kernel, [a], want)


def test_hints_may_stand_in_annotations():
    @T.prim_func
    def kernel(
        A: T.Tensor((8, 32), "float16"), S: T.Tensor((8,), "float16"), M: T.Tensor((8,), "float16"),
        C: T.Tensor((8, 32), "float16"),
    ):  # fmt: skip
        with T.Kernel(1, threads=32) as bx:
            F = T.alloc_fragment((8, 32), "float16")
            R, X = T.alloc_fragment((8,), "float16"), T.alloc_fragment((8,), "float16")
            P = T.alloc_fragment((8, 32), "float16")
            T.copy(A, F)
            T.clear(R, annotations={"any": 1})
            T.reduce_sum(F, R, dim=1, clear=False, annotations={"batch": 2, "enable_fadd2": False})
            T.reduce_max(F, X, dim=1, annotations={"nan_propagate": True})
            T.cumsum(F, P, dim=1, annotations={})
            T.copy(R, S)
            T.copy(X, M)
            T.copy(P, C)

    a = integers(3, (8, 32)).astype("float16")
    a[1, 5] = np.nan
    everywhere(kernel, [a], [a.sum(1), a.max(1), np.cumsum(a, 1)], ("sm_80", "sm_90a"))


def test_annotations_are_a_dict():
    with pytest.raises(LanguageError, match="annotations="):

        @T.prim_func
        def kernel(A: T.Tensor((8,), "float32")):
            with T.Kernel(1, threads=32) as bx:
                T.fill(A, 1.0, annotations=[bx])
