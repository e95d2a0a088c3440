"""Vectors while compiling: ramps of indices, broadcasts, arithmetic of two lanes."""

from __future__ import annotations

import numpy as np
import pytest

import tileworkbench.language as T
from tileworkbench.errors import LanguageError, ShapeError

from .harness import everywhere, integers

PAIRS = {
    "add2": np.add,
    "sub2": np.subtract,
    "mul2": np.multiply,
    "max2": np.maximum,
    "min2": np.minimum,
}


@pytest.mark.parametrize("dtype", ("float32", "float16", "bfloat16"))
@pytest.mark.parametrize("name", list(PAIRS))
def test_arithmetic_of_two_lanes(name, dtype):  # type: ignore[no-untyped-def]
    op = getattr(T, name)

    @T.prim_func
    def kernel(A: T.Tensor((64,), dtype), B: T.Tensor((64,), dtype), C: T.Tensor((64,), dtype)):
        with T.Kernel(1, threads=32):
            at = T.Ramp(T.get_thread_binding() * 2, 1, 2)
            C[at] = op(A[at], B[at])

    a, b = integers(1, (64,), "float32"), integers(2, (64,), "float32")
    kind = kernel.kernel.params[0].dtype.numpy
    everywhere(kernel, [a.astype(kind), b.astype(kind)], PAIRS[name](a, b), ("sm_90a",))


def test_fused_and_absolute() -> None:
    @T.prim_func
    def kernel(A: T.Tensor((32,), "float16"), B: T.Tensor((32,), "float16"), C: T.Tensor((32,), "float16")):
        with T.Kernel(1, threads=16):
            at = T.Ramp(T.get_thread_binding() * 2, 1, 2)
            C[at] = T.abs2(T.fma2(A[at], B[at], A[at]))

    a, b = integers(1, (32,), "float32"), integers(2, (32,), "float32")
    everywhere(kernel, [a.astype(np.float16), b.astype(np.float16)], np.abs(a * b + a), ("sm_80", "sm_90a"))


def test_negative_lanes_count_from_the_end() -> None:
    @T.prim_func
    def kernel(A: T.Tensor((16,), "int32"), B: T.Tensor((5, 3), "int32")):
        with T.Kernel(1, threads=1):
            for t in T.serial(5):
                B[t, T.Ramp(0, 1, 3)] = A[T.Ramp(t - 3, 2, 3)]

    a = integers(1, (16,), "int32")
    want = np.array([[a[(t - 3 + 2 * n) % 16] for n in range(3)] for t in range(5)])
    everywhere(kernel, [a], want, ("sm_90a",))


def test_all_lanes_are_read_before_one_is_stored() -> None:
    @T.prim_func
    def kernel(A: T.Tensor((4,), "int32"), B: T.Tensor((8,), "int32")):
        with T.Kernel(1, threads=1):
            X = T.alloc_local((4,), "int32")
            X[0:4] = T.Broadcast(A[3], 4)
            X[T.Ramp(0, 1, 3)] = A[T.Ramp(0, 1, 3)]
            X[T.Ramp(1, 1, 3)] = X[T.Ramp(0, 1, 3)] * 2 + 1
            v = X[T.Ramp(3, -1, 4)]
            X[T.Ramp(0, 1, 4)] = T.Broadcast(0, 4)
            B[T.Ramp(0, 1, 4)] = v
            B[T.Ramp(4, 1, 4)] = 1 - v
            B[7] = T.extract_lane(v, 2)

    a = integers(1, (4,), "int32")
    x = np.array([a[0], 2 * a[0] + 1, 2 * a[1] + 1, 2 * a[2] + 1])[::-1]
    want = np.concatenate([x, 1 - x])
    want[7] = x[2]
    everywhere(kernel, [a], want, ("sm_90a",))


def test_mistakes() -> None:
    two, three = T.Broadcast(1.0, 2), T.Broadcast(1.0, 3)
    with pytest.raises(ShapeError, match="3 lanes and 2"):
        two + three
    with pytest.raises(LanguageError, match=r"T\.add2 takes 2 vectors of two lanes"):
        T.add2(three, three)
    with pytest.raises(ShapeError, match=r"T\.add2 of float16, float32"):
        T.add2(two, T.Broadcast(T.cast(1.0, "float16"), 2))
    with pytest.raises(LanguageError, match="lane 2 of 2"):
        T.extract_lane(two, 2)
    with pytest.raises(LanguageError, match="1 to 128 lanes"):
        T.Ramp(0, 1, 0)


def test_vectors_from_their_lanes_in_variables() -> None:
    @T.prim_func
    def kernel(A: T.Tensor((64, 4), "float32"), B: T.Tensor((64, 4), "float32"), C: T.Tensor((64, 2), "float32")):
        with T.Kernel(1, threads=64):
            tx = T.get_thread_binding()
            total = T.alloc_var("float32x4")
            p = T.alloc_var(T.float32x2, init=1)
            q = T.alloc_var(T.float32x2, T.float32x2(tx, 2))
            for i in T.serial(3):
                total = total + A[tx, T.Ramp(0, 1, 4)] * i
                total += 1
            old = total
            total = T.float32x4(total[3], total[2], total[1], total[0])
            p, q = q, p
            if tx > 3:
                p = T.add2(p, q)
            total -= old
            B[tx, 0:4] = -total
            C[tx, T.Ramp(0, 1, 2)] = p

    a, tx = integers(1, (64, 4)), np.arange(64)
    total = 3 * a + 3
    p = np.stack([tx, np.full(64, 2)], 1) + (tx > 3)[:, None]
    everywhere(kernel, [a], [total - total[:, ::-1], p])


def test_a_vector_variable_of_each_element() -> None:
    @T.prim_func
    def kernel(A: T.Tensor((64, 4), "int8"), B: T.Tensor((64,), "int32"), C: T.Tensor((64,), "int8")):
        with T.Kernel(1, threads=32):
            for i in T.Parallel(64):
                v = T.alloc_var("int8x4")
                v = A[i, T.Ramp(0, 1, 4)]
                B[i] = T.reinterpret(v, "int32")
                v = (v & 15) << 2
                C[i] = T.extract_lane(v, 2)

    a = integers(2, (64, 4), "int8")
    everywhere(kernel, [a], [a.view(np.int32)[:, 0], (a[:, 2] & 15) << 2])


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_a_vector_of_one_value_and_of_another_vector(dtype: str) -> None:
    pair = getattr(T, f"{dtype}x2")

    @T.prim_func
    def kernel(A: T.Tensor((4,), "float32"), B: T.Tensor((4,), dtype)):
        with T.Kernel(1, threads=32):
            v = pair(A[0])
            v = v + pair(A[T.Ramp(2, 1, 2)])
            B[0:2] = v
            B[2:4] = pair(7)

    a = integers(3, (4,), "float32")
    everywhere(kernel, [a], np.array([a[0] + a[2], a[0] + a[3], 7, 7]))
