"""T.gemm_sp on every machine: transposes, operand spaces, dtypes of operands and of metadata."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tileworkbench.language as T
from tests.end_to_end.harness import built, everywhere, instructions, lowered
from tileworkbench.errors import ShapeError, SimulationError, TargetError, TileError
from tileworkbench.ir.instr import MmaSparse, Wgmma
from tileworkbench.jitkernel.work import work
from tileworkbench.runtime import disassemble
from tileworkbench.simulate import thread, tile
from tileworkbench.target import Target

CONTAINER = {
    "float16": np.float16, "bfloat16": ml_dtypes.bfloat16, "float32": np.float32, "int8": np.int8, "uint8": np.uint8,
    "float8_e5m2": ml_dtypes.float8_e5m2, "float8_e4m3fn": ml_dtypes.float8_e4m3fn, "float64": np.float64,
}  # fmt: skip
BOTH = ("sm_80", "sm_90a")


def product(  # type: ignore[no-untyped-def]
    M, N, K, BM, BN, BK, *, dtype="float16", accum="float32", meta="int16", ta=False, te=False, tb=False, spaces="ss",
    stages=2, threads=128, clear=False,
):  # fmt: skip
    factor = np.dtype(meta).itemsize * 2 * (2 if dtype == "float32" else 4)

    def turned(flag, rows, columns):
        return (columns, rows) if flag else (rows, columns)

    def origin(flag, row, column):
        return (column, row) if flag else (row, column)

    @T.prim_func
    def kernel(
        A: T.Tensor(turned(ta, M, K // 2), dtype),
        E: T.Tensor(turned(te, M, K // factor), meta),
        B: T.Tensor(turned(tb, K, N), dtype),
        C: T.Tensor((M, N), accum),
    ):
        with T.Kernel(T.ceildiv(N, BN), T.ceildiv(M, BM), threads=threads) as (bx, by):
            A_s = T.alloc_shared(turned(ta, BM, BK // 2), dtype)
            E_s = T.alloc_shared(turned(te, BM, BK // factor), meta)
            B_s = T.alloc_shared(turned(tb, BK, BN), dtype)
            C_l = T.alloc_fragment((BM, BN), accum)
            T.fill(C_l, 3 if clear else 0)
            for k in T.Pipelined(T.ceildiv(K, BK), num_stages=stages):
                T.copy(E[origin(te, by * BM, k * (BK // factor))], E_s)
                T.copy(A[origin(ta, by * BM, k * (BK // 2))], A_s)
                T.copy(B[origin(tb, k * BK, bx * BN)], B_s)
                if spaces[0] == "r":
                    A_f = T.alloc_fragment(turned(ta, BM, BK // 2), dtype)
                    T.copy(A_s, A_f)
                if spaces[1] == "r":
                    B_f = T.alloc_fragment(turned(tb, BK, BN), dtype)
                    T.copy(B_s, B_f)
                T.gemm_sp(
                    A_f if spaces[0] == "r" else A_s,
                    E_s,
                    B_f if spaces[1] == "r" else B_s,
                    C_l,
                    ta,
                    te,
                    tb,
                    clear_accum=clear,
                )
            T.copy(C_l, C[by * BM, bx * BN])

    return kernel


def operands(M: int, N: int, K: int, dtype: str, meta: str, seed: int = 0) -> tuple[np.ndarray, ...]:
    """(held half of A, metadata, B, product), every choice of places among them; small integers, exact in all types."""
    rng = np.random.default_rng(seed)
    count, size = (1, 2) if dtype == "float32" else (2, 4)
    groups = K // size
    low = 0 if dtype == "uint8" else -3
    held = rng.integers(low, 4, (M, groups, count))
    places = np.sort(np.argsort(rng.random((M, groups, size)), axis=-1)[..., :count], axis=-1)
    dense = np.zeros((M, groups, size), np.int64)
    np.put_along_axis(dense, places, held, axis=-1)
    fields = places[..., 0] | places[..., 1] << 2 if count == 2 else np.where(places[..., 0] == 1, 0b1110, 0b0100)
    bits = np.dtype(meta).itemsize * 8
    packed = (fields.astype(np.uint64).reshape(M, -1, bits // 4) << np.arange(0, bits, 4, dtype=np.uint64)).sum(-1)
    words = packed.astype(f"uint{bits}").view(meta)
    b = rng.integers(low, 4, (K, N))
    kind = CONTAINER[dtype]
    return held.reshape(M, -1).astype(kind), words, b.astype(kind), dense.reshape(M, K) @ b


def check(M: int, N: int, K: int, BM: int, BN: int, BK: int, targets: Any = BOTH, **options: Any) -> Any:
    dtype, meta = options.get("dtype", "float16"), options.get("meta", "int16")
    a, e, b, truth = operands(M, N, K, dtype, meta)
    given = [np.ascontiguousarray(x.T) if options.get(flag) else x for x, flag in ((a, "ta"), (e, "te"), (b, "tb"))]
    kernels = everywhere(product(M, N, K, BM, BN, BK, **options), given, truth, targets)
    for kernel in kernels.values():
        products = instructions(kernel, MmaSparse, Wgmma)
        assert products and all(s.e is not None for s in products)
    return kernels


@pytest.mark.parametrize(("ta", "tb"), [(False, False), (False, True), (True, False), (True, True)])
def test_transposes(ta: bool, tb: bool) -> None:
    check(64, 64, 128, 32, 32, 64, ta=ta, te=ta, tb=tb)


def test_metadata_alone_is_transposed() -> None:
    check(32, 16, 64, 32, 16, 64, ("sm_80",), te=True, threads=64)


@pytest.mark.parametrize(("spaces", "turned"), [("rs", True), ("sr", False), ("sr", True), ("rr", False)])
def test_fragments(spaces: str, turned: bool) -> None:
    check(64, 32, 64, 64, 32, 32, ("sm_90a",), spaces=spaces, ta=turned, te=turned, tb=not turned)


def test_eight_bit_fragments() -> None:
    check(64, 16, 128, 64, 16, 128, ("sm_90a",), spaces="rr", dtype="int8", accum="int32", meta="int32", tb=True)
    check(32, 16, 64, 32, 16, 64, ("sm_80",), spaces="rr", dtype="float8_e5m2", threads=64)


# Where lanes share a row's bits, how many registers they fill, and the path by float16 (8-bit floats on sm_80) all
# depend on the pair.
PAIRS = [
    ("float16", "int8"), ("float16", "int32"), ("bfloat16", "uint16"), ("float32", "int8"), ("float32", "int32"),
    ("int8", "int8"), ("int8", "int16"), ("uint8", "int32"), ("float8_e5m2", "int8"), ("float8_e4m3fn", "int16"),
]  # fmt: skip


@pytest.mark.parametrize(("dtype", "meta"), PAIRS)
def test_dtypes(dtype: str, meta: str) -> None:
    accum = "int32" if dtype.endswith("int8") else "float32"
    targets = BOTH if dtype.startswith("float8") else ("sm_80",)
    check(64, 16, 128, 32, 16, 64, targets, dtype=dtype, meta=meta, accum=accum, tb=True)


def test_half_accumulators_and_clear() -> None:
    check(32, 32, 64, 32, 32, 64, ("sm_80",), accum="float16", clear=True, stages=0, threads=64)


def test_a_long_walk_along_k_stays_a_loop() -> None:
    kernels = check(16, 8, 512, 16, 8, 512, ("sm_80",), threads=32, stages=0)
    assert len(instructions(kernels["sm_80"], MmaSparse)) == 1


def kinds(kernel: Any) -> set[type]:
    return {type(s) for s in instructions(kernel, MmaSparse, Wgmma)}


@pytest.mark.parametrize(
    "options",
    [
        {}, {"tb": True, "meta": "int8"}, {"ta": True, "te": True, "tb": True}, {"spaces": "rs", "meta": "int32"},
        {"dtype": "int8", "accum": "int32", "meta": "int32", "tb": True, "BK": 128},
        {"dtype": "float8_e5m2", "meta": "int8", "tb": True}, {"dtype": "float32", "tb": True, "BK": 32},
        {"dtype": "bfloat16", "BM": 128, "threads": 256}, {"accum": "float16", "clear": True, "BN": 48, "BK": 128},
    ],
    ids=str,
)  # fmt: skip
def test_warpgroups(options: dict[str, Any]) -> None:
    sizes = {"BM": 64, "BN": 32, "BK": 64} | {k: v for k, v in options.items() if k.startswith("B")}
    rest = {k: v for k, v in options.items() if not k.startswith("B")}
    M, N = max(64, sizes["BM"]), 2 * sizes["BN"]
    kernels = check(M, N, 128, sizes["BM"], sizes["BN"], sizes["BK"], ("sm_90a",), **rest)
    assert kinds(kernels["sm_90a"]) == {Wgmma}


def test_a_product_that_the_kernel_waits_for_itself() -> None:
    @T.prim_func
    def kernel(
        A: T.Tensor((64, 64), "float16"),
        E: T.Tensor((64, 8), "int16"),
        B: T.Tensor((32, 128), "float16"),
        C: T.Tensor((64, 32), "float32"),
    ):
        with T.Kernel(1, threads=128) as _:
            A_s = T.alloc_shared((64, 64), "float16")
            E_s = T.alloc_shared((64, 8), "int16")
            B_s = T.alloc_shared((32, 128), "float16")
            C_l = T.alloc_fragment((64, 32), "float32")
            T.copy(A, A_s)
            T.copy(E, E_s)
            T.copy(B, B_s)
            T.wgmma_gemm_sp(A_s, E_s, B_s, C_l, transpose_B=True, clear_accum=True)
            T.wait_wgmma(0)
            T.copy(C_l, C)

    a, e, b, truth = operands(64, 32, 128, "float16", "int16")
    made = everywhere(kernel, [a, e, np.ascontiguousarray(b.T)], truth, ("sm_90a",))
    assert kinds(made["sm_90a"]) == {Wgmma}
    with pytest.raises(TargetError, match=r"T\.wgmma_gemm_sp has no instruction on sm_80: wgmma\.sp"):
        lowered(kernel, "sm_80")


@pytest.mark.parametrize(
    ("target", "dtype", "accum", "tensor"),
    [
        ("sm_80", "float16", "float32", "HMMA.SP"), ("sm_80", "int8", "int32", "IMMA.SP"),
        ("sm_90a", "float16", "float32", "HGMMA.SP"), ("sm_90a", "int8", "int32", "IGMMA.SP"),
    ],
)  # fmt: skip
def test_the_sparse_unit_does_the_work(target: str, dtype: str, accum: str, tensor: str) -> None:
    func = product(256, 256, 512, 128, 128, 128, dtype=dtype, accum=accum, tb=True)
    binary = built(lowered(func, target), target)
    if binary is None:
        pytest.skip("cuda-bindings is not installed")
    sass = "\n".join(line.text for line in disassemble.sass(binary))
    assert tensor in sass and ("LDSM" in sass) == (target == "sm_80")
    assert binary.spills == 0 and binary.stack == 0 and not binary.serialised


def test_tails_of_zeros_have_no_metadata() -> None:
    """Past the edge of A and E there are zeros: an element that is zero may have any metadata."""
    check(40, 24, 96, 32, 32, 64, ("sm_80", "sm_90a"))


def test_metadata_that_places_two_elements_at_once_is_refused() -> None:
    a, e, b, truth = operands(32, 16, 64, "float16", "int16")
    a[5, 7], e[5, 0] = 1, e[5, 0] & 0xFFF | 0x5000
    func = product(32, 16, 64, 32, 16, 64, threads=64)
    with pytest.raises(SimulationError, match="places two elements at once") as caught:
        tile.run(func.kernel, [a, e, b, np.zeros(truth.shape, np.float32)])
    assert caught.value.loc is not None
    with pytest.raises(SimulationError, match="metadata 0b0101 for group 3 of row 5"):
        thread.run(lowered(func, "sm_80"), [a, e, b, np.zeros(truth.shape, np.float32)], target=Target.of("sm_80"))


def refused(error: type[TileError], target: str = "sm_90a", **options: Any) -> TileError:
    with pytest.raises(error) as caught:
        lowered(product(64, 64, 128, 32, 64, 64, **options), target)
    assert caught.value.loc is not None and caught.value.loc.file.endswith("test_sparse.py")
    return caught.value


def test_refusals_name_what_there_is() -> None:
    assert "float64" not in refused(ShapeError, dtype="float64").rule
    found = refused(TargetError, dtype="float16", accum="int32")
    assert "float16 × float16 into float32" in found.found and "int8 × uint8 into int32" in found.found
    assert "there is none" in refused(TargetError, "sm_75").found
    assert "whole m16n8k32" in refused(TargetError, threads=1024).found
    assert "M = 32 is not a multiple of 64" in refused(TargetError, threads=1024).found
    assert "mma.sp" in refused(TargetError, "gfx942", threads=256).rule


def test_slices_of_tiles_and_an_accumulator_cleared_by_the_first_trip() -> None:
    @T.prim_func
    def kernel(
        A: T.Tensor((64, 128), "float16"),
        E: T.Tensor((64, 16), "int16"),
        B: T.Tensor((256, 32), "float16"),
        C: T.Tensor((64, 32), "float32"),
    ):
        with T.Kernel(1, threads=128) as _:
            A_s = T.alloc_shared((2, 64, 32), "float16")
            E_s = T.alloc_shared((64, 16), "int16")
            B_s = T.alloc_shared((2, 64, 32), "float16")
            C_l = T.alloc_fragment((64, 32), "float32")
            T.copy(E, E_s)
            for k in T.serial(4):
                T.copy(A[0, k * 32], A_s[k % 2, :, :])
                T.copy(B[k * 64, 0], B_s[k % 2, :, :])
                T.gemm_sp(A_s[k % 2, :, :], E_s[:, k * 4 : k * 4 + 4], B_s[k % 2, :, :], C_l, clear_accum=k == 0)
            T.copy(C_l, C)

    a, e, b, truth = operands(64, 32, 256, "float16", "int16")
    made = everywhere(kernel, [a, e, b], truth, BOTH)
    assert kinds(made["sm_80"]) == {MmaSparse} and kinds(made["sm_90a"]) == {Wgmma}


def test_work_counts_what_is_multiplied() -> None:
    done = work(product(64, 64, 256, 64, 32, 64).kernel, {})
    assert done.flops == {"float16": 2.0 * 64 * 64 * 128} and done.depth == 128
