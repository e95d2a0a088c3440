"""Expressions: every function of the table, integer and float arithmetic, undefined values."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from tileworkbench.errors import SimulationError
from tileworkbench.ir import expr as e
from tileworkbench.ir.dtype import DTYPES, FLOAT64
from tileworkbench.ir.instr import LoadMem, StoreMem
from tileworkbench.ir.mathfn import MATH, math_call
from tileworkbench.simulate.thread import run, scalars

from .kernels import LANE, TX, addr, at, kernel, put, reg, regs, tensor


def lanewise(make, inputs, out="float32"):
    """`make(*values)` on one value a lane: the kernel's answer for 32 lanes."""
    params, body, loaded = [], [], []
    for i, x in enumerate(inputs):
        name = str(x.dtype)
        t, r = tensor(f"x{i}", (32,), name), regs(f"r{i}", 1, name)
        params.append(t)
        loaded.append(r)
        body.append(LoadMem(reg(r), addr(t, TX)))
    result, o = tensor("y", (32,), out), regs("o", 1, out)
    body += [put(o, 0, make(*[at(r, 0) for r in loaded])), StoreMem(addr(result, TX), reg(o))]
    y = np.zeros(32, DTYPES[out].numpy)
    run(kernel((*params, result), body, 32, (*loaded, o), outputs=(len(params),)), (*inputs, y))
    return y


@pytest.mark.parametrize("name", MATH)
def test_every_function_has_a_meaning(name):
    row = MATH[name]
    x = np.linspace(1.01, 3.0, 32).astype(np.float32)
    if name in ("asin", "acos", "atanh"):
        x = np.linspace(-0.9, 0.9, 32).astype(np.float32)
    if row.kind == "bits":
        x = np.arange(32, dtype=np.int32) * 77
    made = [x] * row.arity
    out = "bool" if row.kind == "test" else "int32" if row.kind == "bits" else "float32"
    y = lanewise(lambda *v: math_call(name, *(v if row.kind != "scale" else (v[0], 3))), made, out)
    assert y.shape == (32,) and (out != "float32" or np.isfinite(y).all())


def test_some_functions_by_value():
    x = np.linspace(0.5, 3.0, 32).astype(np.float32)
    assert np.allclose(lanewise(lambda v: math_call("exp2", v), [x]), 2.0**x, rtol=1e-6)
    assert np.allclose(lanewise(lambda v: math_call("rsqrt", v), [x]), 1 / np.sqrt(x), rtol=1e-6)
    n = np.arange(32, dtype=np.int32) - 3
    wanted = [bin(int(v) & 0xFFFFFFFF).count("1") for v in n]
    assert lanewise(lambda v: math_call("popcount", v), [n], "int32").tolist() == wanted
    third = np.full(32, 3, np.float32)
    one = np.ones(32, np.float32)
    down = lanewise(lambda a, b: math_call("ieee_fdiv_rd", a, b), [one, third])
    up = lanewise(lambda a, b: math_call("ieee_fdiv_ru", a, b), [one, third])
    assert float(down[0]) < 1 / 3 < float(up[0]) and np.nextafter(down[0], np.float32(1)) == up[0]


@pytest.mark.parametrize("op", ["floordiv", "floormod", "truncdiv", "truncmod", "add", "mul", "xor", "min"])
def test_integers(op):
    rng = np.random.default_rng(0)
    x = rng.integers(-(2**31), 2**31, 32).astype(np.int32)
    y = rng.integers(-9, 9, 32).astype(np.int32)
    y[y == 0] = 5
    meaning = {
        "floordiv": lambda a, b: a // b,
        "floormod": lambda a, b: a % b,
        "truncdiv": lambda a, b: abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1),
        "truncmod": lambda a, b: abs(a) % abs(b) * (-1 if a < 0 else 1),
        "add": lambda a, b: a + b,
        "mul": lambda a, b: a * b,
        "xor": lambda a, b: a ^ b,
        "min": min,
    }[op]
    wanted = [(meaning(int(a), int(b)) + 2**31) % 2**32 - 2**31 for a, b in zip(x, y, strict=True)]
    assert lanewise(lambda a, b: e.binary(op, a, b), [x, y], "int32").tolist() == wanted


def test_low_floats_round_after_every_operation():
    rng = np.random.default_rng(0)
    x = rng.standard_normal(32).astype(ml_dtypes.bfloat16)
    y = rng.standard_normal(32).astype(ml_dtypes.bfloat16)
    wide = x.astype(np.float32), y.astype(np.float32)
    step = (wide[0] * wide[1]).astype(ml_dtypes.bfloat16).astype(np.float32)
    wanted = (step + wide[1]).astype(ml_dtypes.bfloat16)
    assert np.array_equal(lanewise(lambda a, b: a * b + b, [x, y], "bfloat16"), wanted)
    z = (x.astype(np.float32) * 1000).astype(np.float32)
    got = lanewise(lambda v: e.cast(v, DTYPES["float8_e4m3fn"], True), [z], "float8_e4m3fn")
    assert np.array_equal(got, np.clip(z, -448, 448).astype(ml_dtypes.float8_e4m3fn))


def test_select_takes_only_the_chosen_side():
    r, o, y = regs("r", 1), regs("o", 1), tensor("y", (32,), "float32")
    chosen = e.select(LANE < 32, const_f(2.0), at(r, 0))
    half = e.select(LANE < 16, const_f(2.0), at(r, 0))
    store = StoreMem(addr(y, TX), reg(o))
    out = np.zeros(32, np.float32)
    run(kernel((y,), [put(o, 0, chosen), store], 32, (r, o)), (out,))
    assert (out == 2).all()
    with pytest.raises(SimulationError, match="never written is stored to y") as found:
        run(kernel((y,), [put(o, 0, half), store], 32, (r, o)), (out,))
    assert "threads 16…31" in str(found.value) and found.value.loc.line == 2


def const_f(value):
    return e.const(value, DTYPES["float32"])


@pytest.mark.parametrize("use", ["branch", "address", "loop", "divide"])
def test_undefined_and_zero_are_reported(use):
    from tileworkbench.ir.stmt import For, If

    r, o, y = regs("r", 1, "int32"), regs("o", 1, "int32"), tensor("y", (32,), "int32")
    body = {
        "branch": [If(at(r, 0) > 0, (put(o, 0, 1),))],
        "address": [put(o, 0, 1), StoreMem(addr(y, at(r, 0)), reg(o))],
        "loop": [For(e.Var("i"), e.const(0), at(r, 0), e.const(1), (put(o, 0, 1),))],
        "divide": [put(o, 0, e.binary("floordiv", LANE, LANE - 3))],
    }[use]
    with pytest.raises(SimulationError, match="division by zero" if use == "divide" else "never written"):
        run(kernel((y,), body, 32, (r, o)), (np.zeros(32, np.int32),))


@np.errstate(over="ignore")
def test_doubles_narrow_in_one_rounding():
    tie = np.array([1.25, 1.25 + 2.0**-40, 1.25 - 2.0**-40, -1.25 - 2.0**-40, np.inf, 1e300])
    narrow = scalars.converter(FLOAT64, DTYPES["float4_e2m1fn"], False)
    assert narrow(tie).astype(np.float64).tolist() == [1.0, 1.5, 1.0, -1.5, 6.0, 6.0]
    eight = np.array([1.0625 + 2.0**-40, 1.0625, np.nan])
    made = scalars.converter(FLOAT64, DTYPES["float8_e4m3fn"], False)(eight).astype(np.float64)
    assert made[:2].tolist() == [1.125, 1.0] and np.isnan(made[2])
