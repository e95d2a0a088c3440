"""What the text computes, run on this machine and compared with NumPy and ml_dtypes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tileworkbench.ir.dtype import BOOL, DTYPES, FLOAT16, FLOAT32, INT32
from tileworkbench.ir.expr import Binary, Bitcast, Buffer, Call, Cast, Expr, Load, Unary, Var, const, select
from tileworkbench.ir.instr import LoadMem, StoreMem
from tileworkbench.ir.kernel import Kernel
from tileworkbench.ir.stmt import Break, Continue, For, If, Let, Stmt, Store, While

from .on_host import run as run_on_host
from .samples import THREAD, ZERO, addr, reg, run


def computed(folder: Path, out: str, expr: Any, *inputs: np.ndarray) -> np.ndarray:
    """`expr(inputs…)` element by element, by generated text."""
    n = len(inputs[0])
    tensors = [Buffer(f"x{i}", (n,), dtype_of(a)) for i, a in enumerate(inputs)]
    regs = [reg(f"r{i}", 1, t.dtype) for i, t in enumerate(tensors)]
    y, r = Buffer("y", (n,), DTYPES[out]), reg("ry", 1, DTYPES[out])
    at = Var("at")
    chunk = -(-n // 64)
    body: tuple[Stmt, ...] = (
        *(LoadMem(run(b), addr(t, at)) for b, t in zip(regs, tensors, strict=True)),
        Store(r, (ZERO,), expr(*(Load(b, (ZERO,)) for b in regs))), StoreMem(addr(y, at), run(r)),
    )  # fmt: skip
    stop = Binary("min", const(n), (THREAD + 1) * chunk, dtype=INT32)
    kernel = Kernel("k", (*tensors, y), (1,), (), 64, (For(at, THREAD * chunk, stop, const(1), body),), level="thread",
                    buffers=(*regs, r))  # fmt: skip
    result = np.zeros(n, DTYPES[out].numpy)
    run_on_host(kernel, folder, *inputs, result)
    return result


def dtype_of(a: np.ndarray) -> Any:
    return DTYPES[a.dtype.name]


EDGES = np.array([-(2**31), -(2**31) + 1, -17, -16, -3, -1, 0, 1, 2, 7, 16, 17, 2**31 - 1], np.int32)


@pytest.mark.parametrize("divisor", [1, 2, 16, 3, 7, -2, -3])
def test_division_floors_by_constants(divisor: int, tmp_path: Path) -> None:
    x = EDGES[1:]
    for op, truth in (("floordiv", np.floor_divide), ("floormod", np.mod)):
        got = computed(tmp_path, "int32", lambda a, op=op: Binary(op, a, const(divisor), dtype=INT32), x)
        assert np.array_equal(got, truth(x.astype(np.int64), divisor).astype(np.int32)), op


def test_division_floors_and_truncates_by_values(tmp_path: Path) -> None:
    a, b = (v.ravel().astype(np.int64) for v in np.meshgrid(EDGES, [-7, -2, -1, 1, 3, 8]))
    int64 = DTYPES["int64"]

    def all_four(x: Expr, y: Expr) -> Expr:
        parts = [Binary(op, x, y, dtype=int64) for op in ("floordiv", "floormod", "truncdiv", "truncmod")]
        return ((parts[0] * 31 + parts[1]) * 31 + parts[2]) * 31 + parts[3]

    got = computed(tmp_path, "int64", all_four, a, b)
    trunc = np.sign(a) * np.sign(b) * (np.abs(a) // np.abs(b))
    assert np.array_equal(got, ((a // b * 31 + a % b) * 31 + trunc) * 31 + (a - trunc * b))


def test_narrow_integers_wrap(tmp_path: Path) -> None:
    x = np.arange(-128, 128).astype(np.int8)
    got = computed(tmp_path, "int8", lambda a: (a * a + a) - Unary("neg", a, dtype=a.dtype), x)
    assert np.array_equal(got, x * x + x + x)


def test_shifts_and_bits(tmp_path: Path) -> None:
    x = EDGES
    got = computed(tmp_path, "int32", lambda a: ((a >> 3) ^ (a & 255)) | ~(a << 2), x)
    assert np.array_equal(got, ((x >> 3) ^ (x & 255)) | ~(x << 2))
    u = x.astype(np.uint32)
    assert np.array_equal(computed(tmp_path, "uint32", lambda a: a >> 5, u), u >> np.uint32(5))


def halves() -> np.ndarray:
    return np.arange(65536, dtype=np.uint16).view(np.float16)


SMALL = ("bfloat16", "float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz", "float8_e8m0fnu")


def same_bits(got: np.ndarray, truth: np.ndarray) -> bool:
    """Equal bit for bit, NaNs equal in place (a NaN's sign and payload mean nothing)."""
    unsigned = np.dtype(f"u{got.dtype.itemsize}")
    nans = np.isnan(truth.astype(np.float32))
    got_nans = np.isnan(got.astype(np.float32))
    return bool(
        np.array_equal(nans, got_nans) and np.array_equal(got.view(unsigned)[~nans], truth.view(unsigned)[~nans])
    )


@pytest.mark.parametrize("to", [*SMALL, "float32", "float64"])
def test_every_half_converts_exactly(to: str, tmp_path: Path) -> None:
    x = halves()
    got = computed(tmp_path, to, lambda a: Cast(a, dtype=DTYPES[to]), x)
    with np.errstate(all="ignore"):
        assert same_bits(got, x.astype(np.float32).astype(DTYPES[to].numpy))


@pytest.mark.parametrize("source", SMALL)
def test_every_small_code_converts_exactly_to_float(source: str, tmp_path: Path) -> None:
    width = DTYPES[source].bits
    x = np.arange(2**width, dtype=f"u{width // 8}").view(DTYPES[source].numpy)
    got = computed(tmp_path, "float32", lambda a: Cast(a, dtype=FLOAT32), x)
    assert same_bits(got, x.astype(np.float32))


@pytest.mark.parametrize("to", [*SMALL, "float16"])
def test_floats_and_doubles_round_to_nearest_even(to: str, tmp_path: Path) -> None:
    rng = np.random.default_rng(7)
    x = rng.integers(0, 2**32, 20000, np.uint32).view(np.float32)
    x[:4000] = (rng.standard_normal(4000) * 2.0 ** rng.integers(-12, 10, 4000)).astype(np.float32)
    got = computed(tmp_path, to, lambda a: Cast(a, dtype=DTYPES[to]), x)
    with np.errstate(all="ignore"):
        assert same_bits(got, x.astype(DTYPES[to].numpy))


@pytest.mark.parametrize("to", ["float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz"])
def test_saturation_clamps(to: str, tmp_path: Path) -> None:
    x = halves()
    kind = DTYPES[to].numpy
    got = computed(tmp_path, to, lambda a: Cast(a, dtype=DTYPES[to], saturate=True), x)
    top = np.float32(DTYPES[to].max_value())
    with np.errstate(all="ignore"):
        assert same_bits(got, np.clip(x.astype(np.float32), -top, top).astype(kind))


def test_doubles_round_once_to_eight_bits(tmp_path: Path) -> None:
    # Just above a tie of e4m3: through a float it would look like the tie.
    x = np.array([1.0625 + 2.0**-40, 1.0625, 1.0625 - 2.0**-40, -1.0625 - 2.0**-40])
    got = computed(tmp_path, "float8_e4m3fn", lambda a: Cast(a, dtype=DTYPES["float8_e4m3fn"]), x)
    assert got.astype(np.float32).tolist() == [1.125, 1.0, 1.0, -1.125]


@pytest.mark.parametrize("name", ["float16", "bfloat16"])
def test_small_floats_round_after_each_operation(name: str, tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    kind = DTYPES[name].numpy
    a, b = (rng.standard_normal(4000).astype(kind) for _ in range(2))
    got = computed(tmp_path, name, lambda x, y: (x * y + x) / y - y, a, b)
    with np.errstate(all="ignore"):
        assert same_bits(got, ((a * b).astype(kind) + a).astype(kind) / b - b)


def test_minima_ignore_a_nan(tmp_path: Path) -> None:
    a = np.array([np.nan, 1, -np.inf, 2], np.float32)
    b = np.array([3, np.nan, 0, 1], np.float32)
    got = computed(tmp_path, "float32", lambda x, y: Binary("max", x, y, dtype=FLOAT32), a, b)
    assert np.array_equal(got, np.fmax(a, b))


def test_counts_of_bits_are_of_the_own_width(tmp_path: Path) -> None:
    x = np.array([0, 1, -1, 64, -128], np.int8)

    def counts(a: Expr) -> Expr:
        pop, clz, ffs = (Call(fn, (a,), dtype=INT32) for fn in ("popcount", "clz", "ffs"))
        return pop * 10000 + clz * 100 + ffs

    assert computed(tmp_path, "int32", counts, x).tolist() == [800, 10701, 80001, 10107, 10008]


@pytest.mark.parametrize("name", ["float16", "bfloat16", "float32", "float64", "float8_e4m3fn"])
def test_constants_are_exact(name: str, tmp_path: Path) -> None:
    kind = DTYPES[name]
    values = [0.0, 0.1, -1 / 3, 1e-7, 240.0, float("nan")]
    if name != "float8_e4m3fn":
        values += [float("inf"), -float("inf")]
    chosen = [const(v, kind) for v in values]

    def pick(i: Expr) -> Expr:
        e: Expr = chosen[-1]
        for k, c in enumerate(chosen[:-1]):
            e = select(i == k, c, e)
        return e

    got = computed(tmp_path, name, pick, np.arange(len(values), dtype=np.int32))
    assert same_bits(got, np.array(values).astype(kind.numpy))


def test_bit_casts_and_truth(tmp_path: Path) -> None:
    x = np.array([1.5, -2.0, 0.0], np.float32)
    assert np.array_equal(
        computed(tmp_path, "uint32", lambda a: Bitcast(a, dtype=DTYPES["uint32"]), x), x.view(np.uint32)
    )
    assert computed(tmp_path, "bool", lambda a: Cast(a, dtype=BOOL), x.astype(np.float16)).tolist() == [
        True,
        True,
        False,
    ]


def test_control_flow(tmp_path: Path) -> None:
    """Falling and stepping loops, a stop read once, break and continue, a variable declared again, lazy choice."""
    y, acc, stop = Buffer("y", (64,), INT32), reg("acc", 1, INT32), reg("stop", 1, INT32)
    i, j, k, v = Var("i"), Var("j"), Var("k"), Var("v")
    total = Load(acc, (ZERO,))
    add = lambda e: Store(acc, (ZERO,), total + e)
    body = (
        Store(acc, (ZERO,), ZERO),
        For(i, const(5), const(-2), const(-3), (add(i),)),  # 5 + 2 - 1
        Store(stop, (ZERO,), const(3)),
        For(j, ZERO, Load(stop, (ZERO,)), const(1), (Store(stop, (ZERO,), const(100)), add(const(1)))),  # 3 trips
        Let(v, total * 2), add(v), Let(v, total + 1), add(v),  # 9 + 18 = 27; 27 + 28 = 55
        For(k, ZERO, const(10), const(1), (If(k.__eq__(2), (Continue(),)), If(k > 4, (Break(),), (add(k),)))),
        While(total < 70, (add(const(3)),)),  # 63 66 69 72
        add(THREAD),
        StoreMem(addr(y, THREAD), run(acc)),
    )  # fmt: skip
    out = np.zeros(64, np.int32)
    run_on_host(Kernel("k", (y,), (1,), (), 64, body, level="thread", buffers=(acc, stop)), tmp_path, out)
    assert np.array_equal(out, 72 + np.arange(64))


@pytest.mark.parametrize("count", [1, 2, 4, 8])
def test_guarded_vector_loads_fill_and_keep(count: int, tmp_path: Path) -> None:
    x, y = Buffer("x", (512,), FLOAT16), Buffer("y", (512,), FLOAT16)
    r = reg("r", count, FLOAT16)
    body = (LoadMem(run(r), addr(x, THREAD * count), pred=THREAD < 20, fill=const(7.0, FLOAT16)),
            LoadMem(run(r), addr(x, THREAD * count + 256), pred=THREAD % 3 < 1),
            StoreMem(addr(y, THREAD * count), run(r), pred=THREAD < 30))  # fmt: skip
    data = np.arange(1024).astype(np.float16)
    out = np.full(512, -1, np.float16)
    run_on_host(Kernel("k", (x, y), (1,), (), 32, body, level="thread", buffers=(r,)), tmp_path, data, out)
    truth = np.full(512, -1, np.float16)
    for t in range(30):
        at = slice(t * count, t * count + count)
        truth[at] = data[at.start + 256 : at.stop + 256] if t % 3 < 1 else data[at] if t < 20 else 7
    assert np.array_equal(out, truth)
