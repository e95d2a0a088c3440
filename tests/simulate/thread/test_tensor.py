"""Tensor maps and wgmma operand forms by value."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from tileworkbench.errors import SimulationError
from tileworkbench.ir.dtype import DTYPES
from tileworkbench.ir.expr import Var, compare, const
from tileworkbench.ir.instr import (
    BarArrive,
    BarInit,
    BarWait,
    CommitGroup,
    Desc,
    Elect,
    Fence,
    LoadMem,
    StoreMem,
    Sync,
    TmaLoad,
    TmaStore,
    WaitGroup,
    Wgmma,
    WgmmaFence,
)
from tileworkbench.ir.kernel import TmaMap
from tileworkbench.simulate.thread import run

from .kernels import TX, addr, at, bar, bars, branch, kernel, put, reg, regs, shared, tensor

SCHEDULES = ("eager", "latest", "random")


def loaded(full, *loads, size):
    """Barrier set up, loads issued by one thread, waited for by all."""
    return [
        branch(compare("eq", TX, 0), BarInit(bar(full), 1), Fence("mbarrier_init")),
        Sync("block"),
        Elect("block", (BarArrive(bar(full), size), *loads)),
        BarWait(bar(full), const(0), const(0)),
    ]


@pytest.mark.parametrize("fill", ["zero", "nan"])
@pytest.mark.parametrize("corner", [(0, 0), (-8, 4), (40, 29)])
def test_boxes_outside_the_tensor(fill, corner):
    rows, columns = 33, 48
    x, full = tensor("x", (rows, columns)), bars("full", 1)
    s, r, y = shared("s", 8 * 16), regs("r", 1, "float16"), tensor("y", (8, 16))
    m = TmaMap("x_map", x, (columns, rows), (columns * 2,), (16, 8), 0, fill)
    load = TmaLoad(addr(s), "x_map", (const(corner[0]), const(corner[1])), bar(full), 256)
    copy = [LoadMem(reg(r), addr(s, TX)), StoreMem(addr(y, TX), reg(r))]
    k = kernel((x, y), [*loaded(full, load, size=256), *copy], 128, (s, r, full), maps=(m,))
    a = np.arange(rows * columns).reshape(rows, columns).astype(np.float16)
    wanted = np.full((8, 16), 0 if fill == "zero" else np.nan, np.float16)
    for i in range(8):
        for j in range(16):
            r_, c_ = corner[1] + i, corner[0] + j
            if 0 <= r_ < rows and 0 <= c_ < columns:
                wanted[i, j] = a[r_, c_]
    for schedule in SCHEDULES:
        got = np.zeros((8, 16), np.float16)
        run(k, (a, got), schedule=schedule)
        assert np.array_equal(got, wanted, equal_nan=True)


@pytest.mark.parametrize("first", [-3, 4, 7])
def test_boxes_begin_at_16_bytes_of_a_row(first):
    """On a card the instruction is illegal elsewhere, for loads and stores."""
    x, full, s, r = tensor("x", (32, 48)), bars("full", 1), shared("s", 8 * 16), regs("r", 1, "float16")
    m = TmaMap("x_map", x, (48, 32), (96,), (16, 8), 0)
    load = TmaLoad(addr(s), "x_map", (const(first), const(0)), bar(full), 256)
    loads = kernel((x,), loaded(full, load, size=256), 128, (s, r, full), maps=(m,))
    fill = [put(r, 0, TX.astype("float16")), StoreMem(addr(s, TX), reg(r)), Fence("proxy_async"), Sync("block")]
    out = (TmaStore("x_map", (const(first), const(0)), addr(s)), CommitGroup("bulk"), WaitGroup("bulk", 0))
    stores = kernel((x,), [*fill, Elect("block", out)], 128, (s, r), maps=(m,))
    for k in (loads, stores):
        with pytest.raises(SimulationError, match=f"a box begins at byte {2 * first} of a row of x"):
            run(k, (np.zeros((32, 48), np.float16),))


def test_store_drops_what_is_outside_and_reduces():
    rows, columns = 5, 16
    y = tensor("y", (rows, columns), "float32")
    s, r = shared("s", 8 * 16, "float32"), regs("r", 1)
    m = TmaMap("y_map", y, (columns, rows), (columns * 4,), (16, 8), 64)
    fill = [put(r, 0, TX.astype("float32")), StoreMem(addr(s, TX), reg(r)), Fence("proxy_async"), Sync("block")]

    def k(reduce):
        out = (TmaStore("y_map", (const(0), const(2)), addr(s), reduce), CommitGroup("bulk"), WaitGroup("bulk", 0))
        return kernel((y,), [*fill, Elect("block", out)], 128, (s, r), maps=(m,))

    place = np.arange(128) * 4
    held = (place ^ ((place >> 7 & 3) << 4)) // 4  # a 64-byte swizzle of 64-byte rows
    wanted = held.reshape(8, 16)[:3].astype(np.float32)
    for schedule in SCHEDULES:
        got = np.full((rows, columns), 100, np.float32)
        run(k(""), (got,), schedule=schedule)
        assert (got[:2] == 100).all() and np.array_equal(got[2:], wanted)
        run(k("add"), (got,), schedule=schedule)
        assert (got[:2] == 100).all() and np.array_equal(got[2:], 2 * wanted)


def product(dtype, a_major, b_major, swizzle, n=32, from_registers=False):
    """C = A·B with one 64 × n × (two k-steps) product; shared tiles are filled by threads."""
    item = DTYPES[dtype].bytes
    step = 32 // item
    k = 2 * step
    span = swizzle // item
    spans = {"k": lambda rows: (rows, k), "mn": lambda rows: (k, rows)}
    total = "int32" if dtype == "int8" else "float32"
    c = tensor("C", (64, n), total)
    buffers, body, params, descs = [], [], [], {}
    for name, rows, major in (("A", 64, a_major), ("B", n, b_major)):
        height, width = spans[major](rows)
        t = tensor(name, (height, width), dtype)
        panels = -(-width // span)
        s, r = shared(name + "s", panels * height * span, dtype), regs(name + "r", 1, dtype)
        params.append(t)
        buffers += [s, r]
        i = Var("i")
        row, column = i // width, i % width
        byte = (column // span * height * span + row * span + column % span) * item
        place = (byte ^ ((byte // 128 % (swizzle // 16)) * 16)) // item
        from tileworkbench.ir.stmt import For

        body.append(For(i, TX, const(height * width), const(128), (
            LoadMem(reg(r), addr(t, i)), StoreMem(addr(s, place), reg(r)))))  # fmt: skip
        for kk in range(2):
            start = kk * step if major == "k" else kk * step * span
            if major == "k":
                start = kk * step // span * height * span + kk * step % span
            descs[name, kk] = Desc(addr(s, start), swizzle, height * swizzle, 8 * swizzle, major)
    acc, areg = regs("acc", n // 2, total), regs("areg", 2 * 64 * step // 128, dtype)
    count = 64 * step // 128
    steps = []
    for kk in range(2):
        a = reg(areg, kk * count, count) if from_registers else descs["A", kk]
        steps.append(Wgmma(f"wgmma.m64n{n}k{step}", reg(acc), a, descs["B", kk], const(kk == 0)))
    if from_registers:
        packed = 4 // item
        for kk in range(2):
            for j in range(count):
                rr, sub = j // packed, j % packed
                row = TX // 32 * 16 + TX % 32 // 4 + 8 * (rr % 2)
                column = TX % 4 * packed + 4 * packed * (rr // 2) + sub + kk * step
                body.append(LoadMem(reg(areg, kk * count + j, 1), addr(params[0], row * k + column)))
    body += [Fence("proxy_async"), Sync("block"), WgmmaFence(), *steps, CommitGroup("wgmma"), WaitGroup("wgmma", 0)]
    for j in range(n // 2):
        row = TX // 32 * 16 + TX % 32 // 4 + 8 * (j // 2 % 2)
        body.append(StoreMem(addr(c, row * n + j // 4 * 8 + TX % 4 * 2 + j % 2), reg(acc, j, 1)))
    return kernel((*params, c), body, 128, (*buffers, acc, areg), outputs=(2,)), k


CASES = [
    ("float16", "k", "k", 128, False),
    ("float16", "k", "k", 64, False),
    ("float16", "k", "k", 32, False),
    ("bfloat16", "mn", "mn", 64, False),
    ("float16", "mn", "k", 128, False),
    ("float16", "k", "mn", 32, False),
    ("float8_e4m3fn", "k", "k", 64, False),
    ("int8", "k", "k", 32, False),
    ("float32", "k", "k", 64, False),
    ("float16", "k", "k", 64, True),
    ("float8_e5m2", "k", "k", 32, True),
]


@pytest.mark.parametrize("dtype,a_major,b_major,swizzle,from_registers", CASES)
@pytest.mark.parametrize("schedule", ["eager", "latest"])
def test_wgmma_operands(dtype, a_major, b_major, swizzle, from_registers, schedule):
    kern, k = product(dtype, a_major, b_major, swizzle, from_registers=from_registers)
    rng = np.random.default_rng(2)
    container = {"bfloat16": ml_dtypes.bfloat16, "float8_e4m3fn": ml_dtypes.float8_e4m3fn,
                 "float8_e5m2": ml_dtypes.float8_e5m2}.get(dtype, dtype)  # fmt: skip
    a, b = (rng.integers(-3, 4, (rows, k)).astype(container) for rows in (64, 32))
    c = np.zeros((64, 32), np.int32 if dtype == "int8" else np.float32)
    give = [x if major == "k" else np.ascontiguousarray(x.T) for x, major in ((a, a_major), (b, b_major))]
    run(kern, (*give, c), schedule=schedule)
    assert np.array_equal(c, a.astype(np.float64) @ b.astype(np.float64).T)


def test_registers_of_a_wgmma_in_flight():
    kern, k = product("float16", "k", "k", 64, from_registers=True)
    from tileworkbench.ir.node import walk

    from .kernels import find, swap

    wait = find(kern, WaitGroup, engine_of="wgmma")
    areg = next(n for n in walk(kern.body) if isinstance(n, Wgmma)).a.buffer
    acc = find(kern, Wgmma).d.buffer
    ones = np.ones((64, k), np.float16), np.ones((32, k), np.float16), np.zeros((64, 32), np.float32)
    for early, text in (
        (put(areg, 0, 0), "overwritten while a wgmma may still read it"),
        (put(acc, 0, at(acc, 0) + 1), "read while a wgmma may still write it"),
    ):
        for schedule in SCHEDULES:
            with pytest.raises(SimulationError, match=text):
                run(swap(kern, wait, (early, wait)), ones, schedule=schedule)
    fence = find(kern, WgmmaFence)
    with pytest.raises(SimulationError, match="used since the last WgmmaFence"):
        run(swap(kern, fence, (fence, put(areg, 0, 0))), ones)
    product_ = find(kern, Wgmma)
    from tileworkbench.ir.node import replace

    with pytest.raises(SimulationError, match="the accumulator acc is added to and was never written"):
        run(swap(kern, product_, replace(product_, zero=const(False))), ones)
