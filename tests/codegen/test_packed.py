"""The text that packs and unpacks elements of four bits, run on this machine."""

from __future__ import annotations

from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from tileworkbench.ir.dtype import DTYPES, FLOAT32, INT32
from tileworkbench.ir.expr import Buffer, Cast, Load, Var, const
from tileworkbench.ir.instr import LoadMem, StoreMem
from tileworkbench.ir.kernel import Kernel
from tileworkbench.ir.stmt import For, Store

from .on_host import run as run_on_host
from .samples import THREAD, ZERO, addr, reg, run
from .test_meaning import computed

N = 256
VALUES = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6])  # of the codes 0 to 7


def moved(dtype: str, width: int, codes: np.ndarray, folder: Path) -> tuple[np.ndarray, np.ndarray]:
    """Packed memory read `width` elements at a time: as int32, and stored packed again."""
    kind = DTYPES[dtype]
    x, y, z = Buffer("x", (N,), kind), Buffer("y", (N,), INT32), Buffer("z", (N,), kind)
    held, wide, i = reg("held", width, kind), reg("wide", 1, INT32), Var("i")
    steps = N // width // 2
    at = Var("at")
    start = (THREAD * steps + at) * width
    body = (
        LoadMem(run(held), addr(x, start)),
        For(i, ZERO, const(width), const(1),
            (Store(wide, (ZERO,), Cast(Load(held, (i,)), dtype=INT32)), StoreMem(addr(y, start + i), run(wide))),
            "unroll"),
        StoreMem(addr(z, start), run(held)),
    )  # fmt: skip
    kernel = Kernel("k", (x, y, z), (1,), (), 2, (For(at, ZERO, const(steps), const(1), body),), level="thread",
                    buffers=(held, wide))  # fmt: skip
    packed = np.ascontiguousarray(codes[::2] | codes[1::2] << 4)
    values, again = np.zeros(N, np.int32), np.full(N // 2, 0x5A, np.uint8)
    run_on_host(kernel, folder, packed, values, again)
    assert np.array_equal(again, packed)
    return values, again


@pytest.mark.parametrize("width", [1, 2, 4, 8, 16])
@pytest.mark.parametrize("dtype", ["int4", "uint4"])
def test_packed_integers_move_at_every_width(dtype: str, width: int, tmp_path: Path) -> None:
    codes = np.random.default_rng(width).integers(0, 16, N).astype(np.uint8)
    values, _ = moved(dtype, width, codes, tmp_path)
    signed = (codes.astype(np.int32) + 8) % 16 - 8
    assert np.array_equal(values, signed if dtype == "int4" else codes)


def narrowed(x: np.ndarray, folder: Path) -> np.ndarray:
    """`x` rounded by the text; read back as the values of the codes, since the host's arrays are packed."""
    fp4 = DTYPES["float4_e2m1fn"]
    return computed(folder, "float32", lambda a: Cast(Cast(a, dtype=fp4), dtype=FLOAT32), x)


@pytest.mark.parametrize("source", ["float16", "bfloat16"])
def test_every_half_rounds_as_ml_dtypes_does(source: str, tmp_path: Path) -> None:
    x = np.arange(65536, dtype=np.uint16).view(DTYPES[source].numpy)
    with np.errstate(all="ignore"):
        truth = x.astype(ml_dtypes.float4_e2m1fn).astype(np.float32)
        got = narrowed(x, tmp_path)
    assert np.array_equal(got, truth) and np.array_equal(np.signbit(got), np.signbit(truth))


def test_floats_and_doubles_round_once(tmp_path: Path) -> None:
    edges = np.array([0.25, 0.75, 1.25, 1.75, 2.5, 3.5, 5.0, 6.0])
    near = np.concatenate([edges, edges * (1 + 2.0**-40), edges * (1 - 2.0**-40)])
    for kind in (np.float32, np.float64):
        x = np.concatenate([near, -near]).astype(kind)
        far = np.abs(np.minimum(np.abs(x.astype(np.float64)), 6)[:, None] - VALUES)
        best = np.where(far == far.min(1, keepdims=True), np.arange(8) % 2, 2).argmin(1)  # a tie: the even code
        assert np.array_equal(narrowed(x, tmp_path), np.copysign(VALUES[best], x)), kind
