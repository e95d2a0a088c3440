"""A matrix by a vector, thread by thread: shared partial sums, vector loads, reductions over thread indices, weights of
four and two bits."""

from __future__ import annotations

from typing import Any

import numpy as np

import tileworkbench as tw
import tileworkbench.language as T
from tests.gallery.entry import Data, Entry, Expected, numbers

HALF, FLOAT = "float16", "float32"


@tw.jit(target="cpu")
def one_thread_a_row(A, B, BN: int, BK: int):
    """A thread keeps its row's sum; a piece of the vector and of the rows goes through shared memory."""
    N, K = T.const("N, K")
    A: T.Tensor((K,), HALF)
    B: T.Tensor((N, K), HALF)
    C = T.empty((N,), HALF)
    with T.Kernel(T.ceildiv(N, BN), threads=BN) as bx:
        row = T.get_thread_binding(0)
        vector = T.alloc_shared((BK,), HALF)
        rows = T.alloc_shared((BN, BK), HALF)
        total = T.alloc_local((1,), FLOAT)
        T.clear(total)
        for part in T.serial(T.ceildiv(K, BK)):
            T.sync_threads()
            if row == 0:
                for k in T.serial(BK):
                    vector[k] = A[part * BK + k]
            for k in T.serial(BK):
                rows[row, k] = B[bx * BN + row, part * BK + k]
            T.sync_threads()
            for k in T.serial(BK):
                total[0] += vector[k].astype(FLOAT) * rows[row, k].astype(FLOAT)
        C[bx * BN + row] = total[0]
    return C


@tw.jit(target="cpu")
def many_threads_a_row(A, B, BN: int, lanes: int, gather: str):
    """`gather`: how the lanes' sums meet: atomics on a shared sum, or a reduction over the thread index."""
    N, K = T.const("N, K")
    each = 8  # 128 bits of float16
    A: T.Tensor((K,), HALF)
    B: T.Tensor((N, K), HALF)
    C = T.empty((N,), HALF)
    with T.Kernel(T.ceildiv(N, BN), threads=(BN, lanes)) as bx:
        row = T.get_thread_binding(0)
        lane = T.get_thread_binding(1)
        a = T.alloc_local((each,), HALF)
        b = T.alloc_local((each,), HALF)
        mine = T.alloc_local((1,), FLOAT)
        T.clear(mine)
        for part in T.serial(T.ceildiv(K, lanes * each)):
            for k in T.vectorized(each):
                a[k] = A[(part * lanes + lane) * each + k]
                b[k] = B[bx * BN + row, (part * lanes + lane) * each + k]
            for k in T.serial(each):
                mine[0] += a[k].astype(FLOAT) * b[k].astype(FLOAT)
        if gather == "atomics":
            totals = T.alloc_shared((BN,), FLOAT)
            if lane == 0:
                totals[row] = 0
            T.sync_threads()
            T.atomic_add(totals[row], mine[0])
            T.sync_threads()
            if lane == 0:
                C[bx * BN + row] = totals[row]
        else:
            whole = T.alloc_local((1,), FLOAT)
            with T.attr(T.comm_reducer(lambda x, y: x + y, [T.cast(0, FLOAT)]), "reduce_scope"):
                T.evaluate(T.tvm_thread_allreduce(T.uint32(1), mine[0], True, whole[0], lane, dtype="handle"))
            if lane == 0:
                C[bx * BN + row] = whole[0]
    return C


@tw.jit(target="cpu", pass_configs={"tl.disable_tma_lower": True, "tl.disable_warp_specialized": True})
def by_reducer(A, B, BN: int, BK: int, stages: int = 2, threads: int = 128):
    """Tiles into a reducer, whose parts meet at the end."""
    N, K = T.const("N, K")
    A: T.Tensor((K,), HALF)
    B: T.Tensor((N, K), HALF)
    C = T.empty((N,), HALF)
    with T.Kernel(T.ceildiv(N, BN), threads=threads) as bx:
        total = T.alloc_reducer(BN, FLOAT, replication="all")
        T.clear(total)
        for part in T.Pipelined(T.ceildiv(K, BK), num_stages=stages):
            tile = T.alloc_shared((BN, BK), HALF)
            rows = T.alloc_fragment((BN, BK), HALF)
            vector = T.alloc_fragment(BK, HALF)
            T.copy(B[bx * BN, part * BK], tile)
            T.copy(tile, rows)
            T.copy(A[part * BK], vector)
            for i, k in T.Parallel(BN, BK):
                total[i] += rows[i, k].astype(FLOAT) * vector[k]
        T.finalize_reducer(total)
        T.copy(total, C[bx * BN])
    return C


DECODE = """
template <typename From, typename To>
__device__ __forceinline__ void four_each_byte(From* packed, To* bytes) {
  for (int i = 0; i < 16; ++i) {
    unsigned char byte = reinterpret_cast<unsigned char*>(packed)[i / 4];
    reinterpret_cast<signed char*>(bytes)[i] = static_cast<signed char>(byte >> (2 * (i % 4)) & 3) - 1;
  }
}
template <typename From, typename To>
__device__ __forceinline__ void two_each_byte(From* packed, To* values) {
  for (int i = 0; i < 8; ++i) {
    unsigned char byte = reinterpret_cast<unsigned char*>(packed)[i / 2];
    values[i] = To(float(int(byte >> (4 * (i % 2)) & 15)));
  }
}
"""


def packed_row(M: int, N: int, K: int, bits: int, extern: bool, rows: int = 4, lanes: int = 32) -> Any:
    """Weights of `bits` bits in bytes. Two bits: values −1 … 2, byte products; four: 0 … 15, float16.
    `extern`: decoded by a CUDA function of the author's, otherwise by shifts."""
    kind, accum = ("int8", "int32") if bits == 2 else (HALF, FLOAT)
    each, in_byte = (16 if bits == 2 else 8), 8 // bits
    wide, decode = each // in_byte, "four_each_byte" if bits == 2 else "two_each_byte"

    @T.prim_func
    def packed_row(A: T.Tensor((M, K), kind), B: T.Tensor((N, K // in_byte), "int8"), C: T.Tensor((M, N), accum)):
        with T.Kernel(T.ceildiv(N, rows), M, threads=(lanes, rows)) as (bx, by):
            a = T.alloc_local((each,), kind)
            packed = T.alloc_local((wide,), "int8")
            b = T.alloc_local((each,), kind)
            mine = T.alloc_local((1,), accum)
            whole = T.alloc_local((1,), accum)
            lane = T.thread_binding(0, lanes, thread="threadIdx.x")
            row = T.thread_binding(0, rows, thread="threadIdx.y")
            if extern:
                T.import_source(DECODE)
            T.clear(mine)
            for part in T.serial(T.ceildiv(K, lanes * each)):
                for k in T.vectorized(each):
                    a[k] = A[by, (part * lanes + lane) * each + k]
                for k in T.vectorized(wide):
                    packed[k] = B[bx * rows + row, (part * lanes + lane) * wide + k]
                if extern:
                    T.call_extern("handle", decode, T.access_ptr(packed, "r"), T.access_ptr(b, "w"))
                else:
                    for k in T.serial(each):
                        field = (packed[k // in_byte] >> (k % in_byte * bits)) & ((1 << bits) - 1)
                        b[k] = T.cast(field - (1 if bits == 2 else 0), kind)
                if bits == 2:
                    for k in T.serial(each // 4):
                        T.dp4a(a[k * 4], b[k * 4], mine[0])
                else:
                    for k in T.serial(each):
                        mine[0] += a[k].astype(FLOAT) * b[k].astype(FLOAT)
            with T.attr(T.comm_reducer(lambda x, y: x + y, [T.cast(0, accum)]), "reduce_scope"):
                T.evaluate(T.tvm_thread_allreduce(T.uint32(1), mine[0], True, whole[0], lane, dtype="handle"))
            if lane == 0:
                C[by, bx * rows + row] = whole[0]

    return packed_row


def row_data(N: int, K: int, **_: Any) -> Data:
    a, b = numbers(1, (K,), HALF, 3), numbers(2, (N, K), HALF, 3)
    return Data({"A": a, "B": b}, {"C": Expected(b.astype(float) @ a.astype(float))})


def packed_data(M: int, N: int, K: int, bits: int, **_: Any) -> Data:
    fields = np.random.default_rng(2).integers(0, 1 << bits, (N, K))
    in_byte = 8 // bits
    packed = (fields.reshape(N, K // in_byte, in_byte) << (np.arange(in_byte) * bits)).sum(2)
    a = np.random.default_rng(1).integers(-128, 128, (M, K)).astype(np.int8) if bits == 2 else numbers(1, (M, K), HALF)
    weights = fields - 1 if bits == 2 else fields
    truth = a.astype(float) @ weights.T.astype(float)
    return Data({"A": a, "B": packed.astype(np.uint8).view(np.int8)}, {"C": Expected(truth)})


GEMV, BITS = ("gemv/example_gemv.py",), ("bitnet-1.58b/kernel_benchmark/tilelang_bitnet_158_int8xint2_decode.py",)
FOUR = ("dequantize_gemm/example_dequant_gemv_fp16xint4.py",)
ROW = {"N": 1024, "K": 1024}
PACKED = {"M": 1, "N": 8, "K": 1024}
ENTRIES = [
    Entry("gemv, a thread a row", GEMV, one_thread_a_row.compile, row_data, {"N": 64, "K": 64, "BN": 32, "BK": 32},
          {**ROW, "BN": 128, "BK": 128}),
    *[
        Entry(f"gemv, {gather}", GEMV, many_threads_a_row.compile, row_data,
              {"N": 32, "K": 256, "BN": 8, "lanes": 16, "gather": gather},
              {**ROW, "BN": 2, "lanes": 32, "gather": gather})
        for gather in ("atomics", "a reduction")
    ],
    Entry("gemv by a reducer", GEMV, by_reducer.compile, row_data, {"N": 64, "K": 96, "BN": 32, "BK": 32},
          {**ROW, "BN": 128, "BK": 128, "threads": 256}),
    Entry("gemv of two bits", BITS, packed_row, packed_data, {**PACKED, "bits": 2, "extern": False}),
    Entry("gemv of two bits, decoded in CUDA", BITS, packed_row, packed_data,
          {**PACKED, "bits": 2, "extern": True}, {**PACKED, **ROW, "bits": 2, "extern": True}, simulated=False),
    Entry("gemv of four bits", FOUR, packed_row, packed_data, {**PACKED, "K": 512, "bits": 4, "extern": False}),
    Entry("gemv of four bits, decoded in CUDA", FOUR, packed_row, packed_data,
          {**PACKED, "bits": 4, "extern": True}, {**PACKED, **ROW, "bits": 4, "extern": True}, simulated=False),
]  # fmt: skip
