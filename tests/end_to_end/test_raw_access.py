"""T.ldg32 … T.sts128, T.__ldg and pointers: the same numbers on both machines, and wide instructions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tileworkbench as tw
import tileworkbench.language as T
from tileworkbench.ir.instr import LoadMem, StoreMem
from tileworkbench.ir.kernel import Kernel
from tileworkbench.target import Target

from .harness import ALL, NVIDIA, everywhere, instructions, integers, lowered

LOADS = {32: T.ldg32, 64: T.ldg64, 128: T.ldg128, 256: T.ldg256}
STORES = {32: T.stg32, 64: T.stg64, 128: T.stg128, 256: T.stg256}
DTYPES = ("uint8", "float16", "float32", "int64")


def widest(kernel: Kernel, kind: type, space: str = "global") -> int:
    """Bytes of the widest access to memory of that space."""
    sides = [(n.src, n.dst) if kind is LoadMem else (n.dst, n.src) for n in instructions(kernel, kind)]
    return max(r.count * m.buffer.dtype.bytes for m, r in sides if m.buffer.space == space)


@pytest.mark.parametrize(("bits", "dtype"), [(b, d) for b in LOADS for d in DTYPES if np.dtype(d).itemsize * 8 <= b])
def test_bits_of_any_elements(bits: int, dtype: str) -> None:
    each, threads = bits // (np.dtype(dtype).itemsize * 8), 64

    @T.prim_func
    def kernel(A: T.Tensor((threads * each,), dtype), B: T.Tensor((threads * each,), dtype)):
        with T.Kernel(1, threads=threads):
            tx = T.get_thread_binding()
            STORES[bits](B[tx * each], LOADS[bits](A[tx * each : tx * each + each]))

    a = np.random.default_rng(bits).integers(0, 100, threads * each).astype(dtype)
    for target, made in everywhere(kernel, [a], [a], ALL, build=dtype == "float16").items():
        most = min(bits // 8, 16)
        assert widest(made, LoadMem) == widest(made, StoreMem) == most, target


@pytest.mark.parametrize("bits", LOADS)
def test_predicates(bits: int) -> None:
    """Zero where the load does not happen, and the old contents where the store does not."""
    each, threads = bits // 16, 64

    @T.prim_func
    def kernel(A: T.Tensor((threads * each,), "float16"), B: T.Tensor((threads * each,), "float16")):
        with T.Kernel(1, threads=threads):
            tx = T.get_thread_binding()
            got = LOADS[bits](A[tx * each], pred=tx % 3 != 0)
            STORES[bits](B[tx * each], got, pred=tx < 40)

    a = integers(bits, (threads * each,), "float16")
    rows = np.where(np.arange(threads)[:, None] % 3 != 0, a.reshape(threads, each), 0)
    truth = np.where(np.arange(threads)[:, None] < 40, rows, np.float16(7)).reshape(-1)
    made = everywhere(kernel, [a], [truth], ALL, initial=[np.full_like(a, 7)], build=bits == 128)
    assert widest(made["sm_90a"], LoadMem) == widest(made["sm_90a"], StoreMem) == min(bits // 8, 16)


def test_words_are_the_bits_in_memory_order() -> None:
    @T.prim_func
    def kernel(H: T.Tensor((256,), "float16"), D: T.Tensor((64,), "float64"), W: T.Tensor((256,), "uint32")):
        with T.Kernel(1, threads=64):
            tx = T.get_thread_binding()
            pair = T.ldg64(H[tx * 4 : tx * 4 + 4])
            W[tx * 4 : tx * 4 + 2] = pair
            words = T.ldg64(D[tx])
            W[tx * 4 + 2] = words[0]
            W[tx * 4 + 3] = words[1]

    h = integers(1, (256,), "float16")
    d = np.random.default_rng(2).standard_normal(64)
    truth = np.concatenate([h.view(np.uint32).reshape(64, 2), d.view(np.uint32).reshape(64, 2)], axis=1).reshape(-1)
    everywhere(kernel, [h, d], [truth], ALL)


def test_bits_as_other_types() -> None:
    @T.prim_func
    def kernel(A: T.Tensor((128,), "float32"), B: T.Tensor((256,), "float16"), C: T.Tensor((64,), "uint64")):
        with T.Kernel(1, threads=64):
            tx = T.get_thread_binding()
            word = T.ldg64(A[tx * 2])
            x = T.reinterpret(word, "float32x2")
            h = T.reinterpret(T.ldg64(A[tx * 2]), T.float16x4)
            C[tx] = T.reinterpret(word, T.uint64)
            T.stg64(B[tx * 4], h)
            if tx == 0:
                y = T.reinterpret(x[1], T.float16x2)
                B[0] = y[1]

    a = np.random.default_rng(3).standard_normal(128).astype(np.float32)
    b = a.view(np.float16).copy()
    b[0] = a[1:2].view(np.float16)[1]
    everywhere(kernel, [a], [b, a.view(np.uint64)], NVIDIA)


def test_shared_memory() -> None:
    @T.prim_func
    def kernel(A: T.Tensor((16, 64), "float32"), B: T.Tensor((16, 64), "float32")):
        with T.Kernel(1, threads=128):
            S = T.alloc_shared((16, 64), "float32")
            tx = T.get_thread_binding()
            for i in T.serial(2):
                row, col = (tx + i * 128) // 16, (tx + i * 128) % 16 * 4
                T.sts128(S[row, col : col + 4], T.ldg128(A[row, col : col + 4]))
            T.sync_threads()
            for i in T.serial(2):
                row, col = (tx + i * 128) // 16, (tx + i * 128) % 16 * 4
                low = T.lds64(S[15 - row, col])
                T.stg64(B[row, col], low)
                T.stg32(B[row, col + 2], T.lds32(S[15 - row, col + 2]))
                T.stg32(B[row, col + 3], T.reinterpret(S[15 - row, col + 3], T.uint32))

    a = integers(4, (16, 64))
    made = everywhere(kernel, [a], [a[::-1]], ALL)
    assert widest(made["sm_90a"], StoreMem, "shared") == 16 and widest(made["sm_90a"], LoadMem, "shared") == 8


def test_in_a_parallel_loop_and_a_constant() -> None:
    @T.prim_func
    def kernel(A: T.Tensor((256,), "float16"), B: T.Tensor((256,), "float16"), C: T.Tensor((4,), "uint32")):
        with T.Kernel(1, threads=32):
            for i in T.Parallel(64):
                T.stg64(B[i * 4], T.ldg64(A[(63 - i) * 4], i != 5))
            if T.get_thread_binding() == 0:
                T.stg32(C[1], 0xFFFFFFFF)
                T.stg128(C[0], T.ldg128(C[0]))

    a = integers(5, (256,), "float16")
    rows = a.reshape(64, 4)[::-1].copy()
    rows[5] = 0
    everywhere(
        kernel, [a], [rows.reshape(-1), np.array([1, 0xFFFFFFFF, 3, 4], np.uint32)], NVIDIA,
        initial=[np.zeros_like(a), np.array([1, 2, 3, 4], np.uint32)],
    )  # fmt: skip


def test_rows_that_an_access_runs_over() -> None:
    """Memory goes on behind the end of a row."""

    @T.prim_func
    def kernel(A: T.Tensor((8, 6), "float32"), B: T.Tensor((12, 4), "float32")):
        with T.Kernel(1, threads=12):
            tx = T.get_thread_binding()
            T.stg128(B[tx, 0], T.ldg128(A[tx * 4 // 6, tx * 4 % 6]))

    a = integers(6, (8, 6))
    everywhere(kernel, [a], [a.reshape(12, 4)], NVIDIA)


@pytest.mark.parametrize("n", [8, 6])
def test_rows_of_any_length(n: int) -> None:
    size = T.dynamic("n")

    @T.prim_func
    def kernel(A: T.Tensor((size, size), "float32"), B: T.Tensor((size * size,), "float32")):
        with T.Kernel(T.ceildiv(size * size, 128), threads=32) as b:
            at = (b * 32 + T.get_thread_binding()) * 4
            T.stg128(B[at], T.ldg128(A[at // size, at % size]))

    a = integers(7, (n, n))
    for level in ("tile", "thread"):
        b = np.zeros(n * n, np.float32)
        tw.simulate(kernel, a, b, level=level)
        np.testing.assert_array_equal(b, a.reshape(-1), err_msg=level)


def test_the_end_of_a_tensor() -> None:
    """What lies outside reads 0 and is not written, as of any element."""

    @T.prim_func
    def kernel(A: T.Tensor((10,), "float32"), B: T.Tensor((10,), "float32")):
        with T.Kernel(1, threads=4):
            tx = T.get_thread_binding()
            T.stg128(B[tx * 4], T.ldg128(A[tx * 4]))

    a = integers(8, (10,))
    everywhere(kernel, [a], [a], NVIDIA)


def test_ldg_of_one_element() -> None:
    @T.prim_func
    def kernel(A: T.Tensor((64,), "bfloat16"), M: T.Tensor((8, 8), "float32"), B: T.Tensor((64,), "float32")):
        with T.Kernel(1, threads=64):
            tx = T.get_thread_binding()
            B[tx] = T.cast(T.__ldg(A[tx]), "float32") + T.__ldg(A, 63 - tx) + T.__ldg(M, [tx])

    a = integers(9, (64,)).astype(T.bfloat16.__dtype__.numpy)
    m = integers(10, (8, 8))
    truth = a.astype(np.float32) + (a[::-1] + np.float32(0)).astype(np.float32) + m.reshape(-1)
    made = everywhere(kernel, [a, m], [truth], NVIDIA)
    assert made


def test_pointers_by_their_older_names() -> None:
    source = "__device__ void add(float* to, const float* from) { *to = *to + *from; }"

    @T.prim_func
    def kernel(A: T.Tensor((4, 8), "float32"), B: T.Tensor((32,), "float32")):
        with T.Kernel(1, threads=32, prelude=source):
            tx = T.get_thread_binding()
            T.call_extern(
                "handle", "add", T.address_of(B[tx]), T.tvm_access_ptr(T.type_annotation("float32"), A.data, tx, 1, 1)
            )

    pytest.importorskip("cuda.bindings", reason="NVRTC is not installed")
    text = tw.compile(kernel, target="sm_80").source
    assert "add(B + tid, A + " in text


def test_addresses() -> None:
    @T.prim_func
    def kernel(P: T.Tensor((2,), "int64"), B: T.Tensor((64,), "float32")):
        with T.Kernel(2, threads=64) as b:
            tx = T.get_thread_binding()
            if T.isnullptr(P[b]):
                if tx < 32:
                    B[b * 32 + tx] = -1.0
            else:
                X = T.make_tensor_from_addr(P[b], (32,), "float32")
                if tx < 32:
                    B[b * 32 + tx] = X[tx] * 2.0

    pytest.importorskip("cuda.bindings", reason="NVRTC is not installed")
    for target in NVIDIA:
        assert tw.compile(kernel, target=target).registers
    assert Target.of("sm_80") and lowered(kernel, "sm_80")


def only_null() -> Any:
    @T.prim_func
    def kernel(P: T.Tensor((2,), "int64"), B: T.Tensor((2,), "int32")):
        with T.Kernel(2, threads=32) as b:
            B[b] = T.if_then_else(T.isnullptr(P[b]), 1, 0)

    return kernel


def test_null_addresses_on_the_machines() -> None:
    everywhere(only_null(), [np.array([0, 1 << 40], np.int64)], [np.array([1, 0], np.int32)], NVIDIA)
