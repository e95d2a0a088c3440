"""Products whose second operand is packed in four bits: integers, floats, floats with a scale a group, and floats whose
decoding is a CUDA function of the author's."""

from __future__ import annotations

from typing import Any

import numpy as np

import tileworkbench.language as T
from tests.gallery.entry import Data, Entry, Expected, numbers
from tileworkbench.compat.layouts import make_swizzled_layout

HALF, BRAIN, FLOAT, BYTE = "float16", "bfloat16", "float32", "uint8"


def integer(byte, position):
    """The signed four-bit integer at a position of a byte: shifted to the top of an int8 and back."""
    field = (byte >> (position.astype(BYTE) * 4)) & 0xF
    return T.reinterpret(T.cast(field << 4, BYTE), "int8") >> 4


def small_float(byte, position):
    """The e2m1 float at a position of a byte, as float16: its exponent's low bits, then the bias."""
    field = T.cast((byte >> (position.astype(BYTE) * 4)) & 0xF, "uint16")
    bits = ((field & 8) << 12) | ((field & 7) << 9)
    return T.reinterpret(T.cast(bits, "uint16"), HALF) * T.cast(16384.0, HALF)


def decoded(M: int, N: int, K: int, kind: str, splits: int = 1, BM: int = 128, BN: int = 128, BK: int = 128,
            stages: int = 2, threads: int = 256) -> Any:  # fmt: skip
    """The transposed product, decoded into a fragment that is the left operand. `kind`: int8 or float16."""
    accum = "int32" if kind == "int8" else FLOAT
    out = accum if kind == "int8" else HALF
    decode = integer if kind == "int8" else small_float
    share = K // splits

    @T.macro
    def part(A, B, acc, bx, by, bz):
        left = T.alloc_shared((BM, BK), kind)
        packed = T.alloc_shared((BN, BK // 2), BYTE)
        bytes_ = T.alloc_fragment((BN, BK // 2), BYTE)
        wide = T.alloc_fragment((BN, BK), kind)
        right = T.alloc_fragment((BN, BK), kind)
        T.annotate_layout({packed: make_swizzled_layout(packed)})
        T.clear(acc)
        for step in T.Pipelined(share // BK, num_stages=stages):
            T.copy(A[by * BM, share * bz + step * BK], left)
            T.copy(B[bx * BN, (share * bz + step * BK) // 2], packed)
            T.copy(packed, bytes_)
            for i, j in T.Parallel(BN, BK):
                wide[i, j] = decode(bytes_[i, j // 2], j % 2)
            T.copy(wide, right)
            T.gemm(right, left, acc, transpose_B=True)

    if splits > 1:

        @T.prim_func
        def in_parts(A: T.Tensor((M, K), kind), B: T.Tensor((N, K // 2), BYTE), C: T.Tensor((N, M), out)):
            parts = T.alloc_global((splits, N, M), FLOAT)
            with T.Kernel(T.ceildiv(N, BN), T.ceildiv(M, BM), splits, threads=threads) as (bx, by, bz):
                acc = T.alloc_fragment((BN, BM), accum)
                part(A, B, acc, bx, by, bz)
                T.copy(acc, parts[bz, bx * BN : (bx + 1) * BN, by * BM : (by + 1) * BM])
            with T.Kernel(T.ceildiv(N, BN), T.ceildiv(M, BM)) as (bx, by):
                total = T.alloc_fragment((BN, BM), FLOAT)
                T.clear(total)
                for k in range(splits):
                    for i, j in T.Parallel(BN, BM):
                        total[i, j] += parts[k, bx * BN + i, by * BM + j]
                T.copy(total, C[bx * BN, by * BM])

        return in_parts

    @T.prim_func
    def decoded(A: T.Tensor((M, K), kind), B: T.Tensor((N, K // 2), BYTE), C: T.Tensor((N, M), out)):
        with T.Kernel(T.ceildiv(N, BN), T.ceildiv(M, BM), threads=threads) as (bx, by):
            acc = T.alloc_fragment((BN, BM), accum)
            result = T.alloc_shared((BN, BM), out)
            part(A, B, acc, bx, by, 0)
            T.copy(acc, result)
            T.copy(result, C[bx * BN : (bx + 1) * BN, by * BM : (by + 1) * BM])

    return decoded


DECODE = """
template <typename To>
__device__ __forceinline__ void small_floats(const unsigned char* packed, To* values, int bytes) {
  for (int i = 0; i < 2 * bytes; ++i) {
    int field = packed[i / 2] >> (4 * (i % 2)) & 15;
    int exponent = field >> 1 & 3;
    float size = exponent ? (1.0f + 0.5f * (field & 1)) * (1 << exponent) * 0.5f : 0.5f * (field & 1);
    values[i] = To(field & 8 ? -size : size);
  }
}
"""


def scaled(
    M: int, N: int, K: int, group: int, bias: bool, extern: bool, BM: int = 256, BN: int = 128, BK: int = 128,
    stages: int = 2, threads: int = 256,
) -> Any:  # fmt: skip
    """Decoded into a shared tile. `group`: weights that share a power of two (0: none)."""
    each = 8  # 128 bits of bfloat16
    groups = K // group if group else 1

    @T.macro
    def by_threads(packed, right, Scale, step, bx):
        T.import_source(DECODE)
        thread = T.get_thread_binding()
        bytes_ = T.alloc_local((each // 2,), BYTE)
        values = T.alloc_local((each,), BRAIN)
        factor = T.alloc_local((1,), BRAIN)
        for turn in T.serial(BN * BK // threads // each):
            first = (turn * threads + thread) * each
            for v in T.vectorized(each // 2):
                bytes_[v] = packed[(first // 2 + v) // (BK // 2), (first // 2 + v) % (BK // 2)]
            T.call_extern("handle", "small_floats", T.access_ptr(bytes_, "r"), T.access_ptr(values, "w"), each // 2)
            if group:
                factor[0] = T.shift_left(
                    1, Scale[bx * BN + first // BK, (step * BK + first % BK) // group].astype("int32")
                )
                for v in T.vectorized(each):
                    values[v] = values[v] * factor[0]
            for v in T.vectorized(each):
                right[(first + v) // BK, (first + v) % BK] = values[v]

    @T.macro
    def by_elements(packed, right, Scale, step, bx):
        bytes_ = T.alloc_fragment((BN, BK // 2), BYTE)
        values = T.alloc_fragment((BN, BK), BRAIN)
        T.copy(packed, bytes_)
        for i, j in T.Parallel(BN, BK):
            value = small_float(bytes_[i, j // 2], j % 2)
            if group:
                power = T.exp2(Scale[bx * BN + i, (step * BK + j) // group].astype(FLOAT))
                values[i, j] = value.astype(FLOAT) * power
            else:
                values[i, j] = value
        T.copy(values, right)

    @T.prim_func
    def scaled(
        A: T.Tensor((M, K), BRAIN),
        B: T.Tensor((N, K // 2), BYTE),
        Scale: T.Tensor((N, groups), BYTE),
        Bias: T.Tensor((M, N), BRAIN),
        C: T.Tensor((M, N), BRAIN),
    ):
        with T.Kernel(T.ceildiv(N, BN), T.ceildiv(M, BM), threads=threads) as (bx, by):
            left = T.alloc_shared((BM, BK), BRAIN)
            packed = T.alloc_shared((BN, BK // 2), BYTE)
            right = T.alloc_shared((BN, BK), BRAIN)
            acc = T.alloc_fragment((BM, BN), FLOAT)
            result = T.alloc_shared((BM, BN), BRAIN)
            T.annotate_layout({t: make_swizzled_layout(t) for t in (left, result)})
            if bias:
                T.copy(Bias[by * BM, bx * BN], result)
                T.copy(result, acc)
            else:
                T.clear(acc)
            for step in T.Pipelined(K // BK, num_stages=stages):
                T.copy(A[by * BM, step * BK], left)
                T.copy(B[bx * BN, step * BK // 2], packed)
                if extern:
                    by_threads(packed, right, Scale, step, bx)
                else:
                    by_elements(packed, right, Scale, step, bx)
                T.gemm(left, right, acc, transpose_B=True)
            T.copy(acc, result)
            T.copy(result, C[by * BM : (by + 1) * BM, bx * BN : (bx + 1) * BN])

    return scaled


SMALL_FLOATS = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6])
SMALL_FLOATS = np.concatenate([SMALL_FLOATS, -SMALL_FLOATS])


def packed(N: int, K: int) -> tuple[np.ndarray, np.ndarray]:
    """Fields of four bits, the first of a byte in its low half; and the bytes."""
    fields = np.random.default_rng(2).integers(0, 16, (N, K))
    return fields, (fields[:, ::2] | fields[:, 1::2] << 4).astype(np.uint8)


def decoded_data(M: int, N: int, K: int, kind: str, **_: Any) -> Data:
    """All sums are exact in int32 and in float32, so only the result is rounded."""
    fields, b = packed(N, K)
    if kind == "int8":
        a, weights = np.random.default_rng(1).integers(-128, 128, (M, K)).astype(np.int8), (fields + 8) % 16 - 8
    else:
        a, weights = numbers(1, (M, K), kind), SMALL_FLOATS[fields]
    return Data({"A": a, "B": b}, {"C": Expected(weights.astype(float) @ a.astype(float).T)})


def scaled_data(M: int, N: int, K: int, group: int, bias: bool, **_: Any) -> Data:
    fields, b = packed(N, K)
    a, offset = numbers(1, (M, K), BRAIN), numbers(3, (M, N), BRAIN)
    scale = np.random.default_rng(4).integers(0, 3, (N, K // group if group else 1)).astype(np.uint8)
    weights = SMALL_FLOATS[fields] * (np.repeat(2.0**scale, group, axis=1) if group else 1)
    truth = a.astype(float) @ weights.T + (offset.astype(float) if bias else 0)
    return Data({"A": a, "B": b, "Scale": scale, "Bias": offset}, {"C": Expected(truth)})


SMALL = {"M": 64, "N": 64, "K": 128, "BM": 64, "BN": 64, "BK": 64, "threads": 128}
LARGE = {"M": 256, "N": 4096, "K": 4096}
SCALED = {"group": 32, "bias": True}
WHERE = "dequantize_gemm/example_dequant_gemm_"
FP4, MXFP4 = (WHERE + "bf16_fp4_hopper.py",), (WHERE + "bf16_mxfp4_hopper.py",)
ENTRIES = [
    Entry("gemm of four-bit integers", (WHERE + "w4a8.py",), decoded, decoded_data, {**SMALL, "kind": "int8"},
          {**LARGE, "kind": "int8"}),
    Entry("gemm of four-bit floats", (WHERE + "fp4_hopper.py",), decoded, decoded_data, {**SMALL, "kind": HALF},
          {**LARGE, "kind": HALF}),
    Entry("gemm of four-bit floats, split", (WHERE + "fp4_hopper.py",), decoded, decoded_data,
          {**SMALL, "kind": HALF, "splits": 2}, {**LARGE, "kind": HALF, "splits": 2}),
    Entry("bfloat16 gemm of four-bit floats", FP4, scaled, scaled_data,
          {**SMALL, "group": 0, "bias": False, "extern": False}, {**LARGE, "group": 0, "bias": False, "extern": False}),
    Entry("bfloat16 gemm of four-bit floats, decoded in CUDA", FP4, scaled, scaled_data,
          {**SMALL, "group": 0, "bias": False, "extern": True}, {**LARGE, "group": 0, "bias": False, "extern": True},
          simulated=False),
    Entry("gemm of scaled four-bit floats", MXFP4, scaled, scaled_data,
          {**SMALL, **SCALED, "extern": False}, {**LARGE, **SCALED, "BM": 128, "extern": False}),
    Entry("gemm of scaled four-bit floats, decoded in CUDA", MXFP4, scaled, scaled_data,
          {**SMALL, **SCALED, "extern": True}, {**LARGE, **SCALED, "BM": 128, "extern": True},
          simulated=False),
]  # fmt: skip
