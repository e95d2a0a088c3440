"""Conversions, integer division and integer products, bit for bit."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

import tileworkbench.language as T
from tests.end_to_end.harness import integers
from tileworkbench.errors import ShapeError

from .machines import Machine

FP8 = ("float8_e4m3fn", "float8_e5m2")
NARROW = {n: np.dtype(getattr(ml_dtypes, n)) for n in ("bfloat16", *FP8, "float8_e8m0fnu")} | {
    "float16": np.dtype("f2")
}


def converting(n: int, source: str, to: str):  # type: ignore[no-untyped-def]
    """Explicit and implicit conversions of n values, and the copy of a tile."""

    @T.prim_func
    def kernel(A: T.Tensor((n,), source), B: T.Tensor((n,), to), C: T.Tensor((n,), to), D: T.Tensor((n,), to)):
        with T.Kernel(T.ceildiv(n, 256), threads=64) as bx:
            f = T.alloc_fragment((256,), source)
            g = T.alloc_fragment((256,), to)
            for i in T.Parallel(256):
                if bx * 256 + i < n:
                    B[bx * 256 + i] = T.cast(A[bx * 256 + i], to)
                    C[bx * 256 + i] = A[bx * 256 + i]
            T.copy(A[bx * 256], f)
            T.copy(f, g)
            T.copy(g, D[bx * 256])

    return kernel


def rounded_bf16(values: np.ndarray) -> np.ndarray:
    """Nearest even on the bits, by way of float32 as torch has it."""
    bits = values.astype(np.float32).view(np.uint32)
    return ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype(np.uint16).view(ml_dtypes.bfloat16)


@pytest.mark.parametrize("source", ("int16", "int32", "uint16", "int8"))
def test_tl2483_integers_become_bfloat16_to_nearest_even(machine: Machine, source: str) -> None:
    """Every number of 16 bits, and a million of 32 of both signs, those around midpoints among them."""
    info, rng = np.iinfo(source), np.random.default_rng(1)
    if source == "int32":
        middle = (rng.integers(128, 256, 200_000) * 2 + 1) << rng.integers(0, 22, 200_000)
        near = middle + rng.integers(-2, 3, 200_000)
        values = np.concatenate(
            [rng.integers(info.min, info.max, 600_000), near, -near, [info.min, info.max, 259, -259]]
        )
    else:
        values = np.arange(info.min, info.max + 1)
    values = np.asarray(machine.some(values, 2000)).astype(source)
    wanted = rounded_bf16(values)
    if source in ("int16", "int32"):
        assert rounded_bf16(np.array([259, -259], source)).tolist() == [260, -260]
    try:
        import torch
    except ImportError:
        torch = None
    if torch is not None and source != "uint16":
        theirs = torch.from_numpy(values).to(torch.bfloat16).view(torch.int16).numpy()
        np.testing.assert_array_equal(theirs, wanted.view(np.int16))
    machine.check(converting(len(values), source, "bfloat16"), [values], [wanted] * 3, bits=True)


@pytest.mark.parametrize("to", (*FP8, "float8_e8m0fnu"))
@pytest.mark.parametrize("source", ("float16", "bfloat16"))
def test_tl2042_every_value_of_16_bits_to_8(machine: Machine, source: str, to: str) -> None:
    """NaN, infinities, zeros, subnormals and overflow too: fp8 clamps, as the device's own conversions do."""
    codes = np.asarray(machine.some(range(65536), 2500), np.uint16)
    values = codes.view(NARROW[source])
    exact = values.astype(np.float32)
    if to in FP8:
        top = np.float32(ml_dtypes.finfo(to).max)
        exact = np.where(np.isnan(exact), exact, np.clip(exact, -top, top))
    with np.errstate(invalid="ignore"):
        wanted = exact.astype(NARROW[to])
    machine.check(converting(len(codes), source, to), [values], [wanted] * 3, bits=True)


@pytest.mark.parametrize("to", (*FP8, "float8_e8m0fnu"))
def test_tl2042_the_reference_is_that_of_torch(to: str) -> None:
    """Where torch and ml_dtypes agree on what overflow and signs become, which is everywhere in range."""
    torch = pytest.importorskip("torch")
    if not hasattr(torch, to):
        pytest.skip(f"this torch has no {to}")
    for source in ("float16", "bfloat16"):
        values = np.arange(65536, dtype=np.uint16).view(NARROW[source]).astype(np.float32)
        low = 2.0**-127 if to == "float8_e8m0fnu" else -float(ml_dtypes.finfo(to).max)
        values = values[(values >= low) & (values <= float(ml_dtypes.finfo(to).max))]
        theirs = torch.from_numpy(values).to(getattr(torch, to)).view(torch.uint8).numpy()
        np.testing.assert_array_equal(theirs, values.astype(NARROW[to]).view(np.uint8))


@pytest.mark.parametrize("to", FP8)
@pytest.mark.parametrize("source", ("float16", "bfloat16"))
def test_tr8322_every_value_of_8_bits_back(machine: Machine, source: str, to: str) -> None:
    values = np.arange(256, dtype=np.uint8).view(NARROW[to])
    machine.check(
        converting(256, to, source), [values], [values.astype(np.float32).astype(NARROW[source])] * 3, bits=True
    )


def test_tl2042_constants_are_clamped_as_values_are(machine: Machine) -> None:
    @T.prim_func
    def kernel(A: T.Tensor((2,), "float32"), B: T.Tensor((6,), "float8_e4m3fn"), C: T.Tensor((6,), "float8_e5m2")):
        with T.Kernel(1, threads=32):
            f = T.alloc_fragment((2,), "float8_e4m3fn")
            T.fill(f, -500)
            B[0] = 500
            B[1] = A[0]
            B[2] = T.cast(1e9, "float8_e4m3fn")
            B[3] = T.cast(A[1], "float8_e4m3fn", sat=False)
            T.copy(f, B[4:6])
            C[0] = 1e9
            C[1] = A[1]
            C[2] = T.infinity("float8_e5m2")
            C[3] = T.cast(A[1], "float8_e5m2", sat=False)
            C[4] = T.cast(1e9, "float8_e5m2", sat=False)
            C[5] = -A[1]

    a = np.array([500, 1e9], np.float32)
    b = np.array([448, 448, 448, np.nan, -448, -448], NARROW["float8_e4m3fn"])
    c = np.array([57344, 57344, np.inf, np.inf, np.inf, -57344], NARROW["float8_e5m2"])
    machine.check(kernel, [a], [b, c], bits=True)


SIGNED = ("int8", "int16", "int32", "int64")
PAIRS = [(a, b) for a in range(-9, 10) for b in range(-9, 10) if b]


def parts(a: int, b: int) -> tuple[int, ...]:
    """Python's floor and remainder, the next whole number above, and C's quotient and remainder."""
    towards = abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)
    return a // b, a % b, -(-a // b), towards, a - towards * b


@pytest.mark.parametrize("dtype", SIGNED)
def test_tl2943_divisions_of_values_of_both_signs(machine: Machine, dtype: str) -> None:
    n = len(PAIRS)

    @T.prim_func
    def kernel(A: T.Tensor((n,), dtype), B: T.Tensor((n,), dtype), Out: T.Tensor((5, n), dtype)):
        with T.Kernel(1, threads=64):
            for i in T.Parallel(n):
                Out[0, i] = A[i] // B[i]
                Out[1, i] = A[i] % B[i]
                Out[2, i] = T.ceildiv(A[i], B[i])
                Out[3, i] = T.truncdiv(A[i], B[i])
                Out[4, i] = T.truncmod(A[i], B[i])

    a, b = (np.array(x, dtype) for x in zip(*PAIRS, strict=True))
    machine.check(kernel, [a, b], np.array([parts(*p) for p in PAIRS], dtype).T.copy())


@pytest.mark.parametrize("dtype", SIGNED)
def test_tl2973_divisions_by_and_of_constants(machine: Machine, dtype: str) -> None:
    """A constant divisor, a constant dividend, both constant, and a loop's index that is negative."""
    of = getattr(T, dtype)
    divisors = tuple(machine.some([b for b in range(-9, 10) if b], 4))
    dividends = tuple(machine.some(range(-9, 10), 5))
    n, m = len(divisors), len(dividends)

    def three(a, b):  # type: ignore[no-untyped-def]
        return a // b, a % b, T.ceildiv(a, b)

    @T.macro
    def put(place, at, i, values):  # type: ignore[no-untyped-def]
        place[at, i, 0] = values[0]
        place[at, i, 1] = values[1]
        place[at, i, 2] = values[2]

    @T.prim_func
    def kernel(
        V: T.Tensor((19,), dtype),
        W: T.Tensor((n,), dtype),
        By: T.Tensor((n, 19, 3), dtype),
        Of: T.Tensor((m, n, 3), dtype),
        Both: T.Tensor((n, m, 3), dtype),
        Index: T.Tensor((n, 19, 3), "int32"),
    ):
        with T.Kernel(1, threads=32):
            for i in T.Parallel(19):
                [put(By, at, i, three(V[i], of(c))) for at, c in enumerate(divisors)]
                [put(Index, at, i, three(i - 9, c)) for at, c in enumerate(divisors)]
            for i in T.Parallel(n):
                [put(Of, at, i, three(of(a), W[i])) for at, a in enumerate(dividends)]
            [put(Both, at, k, three(of(a), of(c))) for at, c in enumerate(divisors) for k, a in enumerate(dividends)]

    def truth(these, those, to):  # type: ignore[no-untyped-def]
        return np.array([[parts(a, b)[:3] for a in these] for b in those], to)

    every = range(-9, 10)
    wanted = [
        truth(every, divisors, dtype),
        truth(dividends, divisors, dtype).transpose(1, 0, 2).copy(),
        truth(dividends, divisors, dtype),
        truth(every, divisors, "int32"),
    ]
    machine.check(kernel, [np.array(every, dtype), np.array(divisors, dtype)], wanted, ("sm_80", "sm_90a"))


@pytest.mark.parametrize("threads", (32, 128))
def test_tl3004_products_of_int8_with_every_extreme(machine: Machine, threads: int) -> None:
    @T.prim_func
    def kernel(A: T.Tensor((64, 128), "int8"), B: T.Tensor((64, 128), "int8"), C: T.Tensor((64, 64), "int32")):
        with T.Kernel(1, threads=threads):
            a = T.alloc_shared((64, 64), "int8")
            b = T.alloc_shared((64, 64), "int8")
            c = T.alloc_fragment((64, 64), "int32")
            T.clear(c)
            for k in T.Pipelined(2, num_stages=2):
                T.copy(A[0, k * 64], a)
                T.copy(B[0, k * 64], b)
                T.gemm(a, b, c, transpose_B=True)
            T.copy(c, C)

    a, b = integers(1, (64, 128), "int8", 127), integers(2, (64, 128), "int8", 127)
    a[0], b[0], a[1], b[1], a[2], b[2] = -128, -128, 127, 127, -128, 127
    truth = a.astype(np.int64) @ b.astype(np.int64).T
    assert truth[0, 0] == 128 * 128 * 128
    machine.check(kernel, [a, b], truth.astype(np.int32))


@pytest.mark.parametrize(
    ("a", "b", "c"),
    [("bfloat16", "bfloat16", "int32"), ("bfloat16", "bfloat16", "float16"),
     ("int8", "float16", "float32"), ("float16", "bfloat16", "float32"), ("float16", "float16", "int32"),
     ("int8", "int8", "int16")],
)  # fmt: skip
def test_tl2172_accumulators_that_do_not_go_with_the_operands(a: str, b: str, c: str) -> None:
    with pytest.raises(ShapeError) as error:

        @T.prim_func
        def kernel(A: T.Tensor((64, 64), a)):
            with T.Kernel(1, threads=128):
                x = T.alloc_shared((64, 64), a)
                y = T.alloc_shared((64, 64), b)
                z = T.alloc_fragment((64, 64), c)
                T.gemm(x, y, z)

    text = str(error.value)
    assert error.value.loc is not None and error.value.loc.source_line().strip() == "T.gemm(x, y, z)"
    assert f"{a}·{b} → {c}" in text and "int8 or uint8 · int8 or uint8 → int32" in text
