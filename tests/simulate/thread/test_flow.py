"""Control flow under a lane mask, elections, lane exchange, printing and limits."""

from __future__ import annotations

import numpy as np
import pytest

from tileworkbench.errors import SimulationError
from tileworkbench.ir import expr as e
from tileworkbench.ir.instr import Elect, ForeignKernel, Shuffle, StoreMem, Trap, Vote
from tileworkbench.ir.stmt import Assert, Break, Continue, For, If, Let, Print, While
from tileworkbench.options import options
from tileworkbench.simulate.thread import run

from .kernels import LANE, TX, WARP, addr, at, kernel, loop, put, reg, regs, tensor


def lanes(body, buffers, threads=32, dtype="int32", out=None):
    """Runs `body` and returns register `out` (default the first buffer's first) of every thread."""
    y = tensor("y", (threads,), dtype)
    o = out or buffers[0]
    got = np.zeros(threads, o.dtype.numpy)
    done = run(kernel((y,), [*body, StoreMem(addr(y, TX), reg(o, 0, 1))], threads, buffers), (got,))
    return got, done


def test_divergent_branches_and_lets():
    o, v = regs("o", 1, "int32"), e.Var("v")
    body = [
        put(o, 0, 0),
        Let(v, LANE * 3),
        If(LANE % 2 < 1, (put(o, 0, v), If(LANE > 10, (put(o, 0, v + 100),))), (put(o, 0, -v),)),
    ]
    got, _ = lanes(body, (o,))
    wanted = [(i * 3 + (100 if i > 10 else 0)) if i % 2 == 0 else -3 * i for i in range(32)]
    assert got.tolist() == wanted


def test_loops_with_lane_bounds_break_and_continue():
    o, i = regs("o", 1, "int32"), e.Var("i")
    odd = If(e.compare("eq", i % 2, 1), (Continue(),))
    stop = If(i >= 20, (Break(),))
    body = [put(o, 0, 0), For(i, LANE, LANE * 2 + 5, e.const(3), (odd, stop, put(o, 0, at(o, 0) + i)))]
    got, _ = lanes(body, (o,))

    def one(lane):
        total = 0
        for k in range(lane, lane * 2 + 5, 3):
            if k % 2 == 1:
                continue
            if k >= 20:
                break
            total += k
        return total

    assert got.tolist() == [one(lane) for lane in range(32)]


def test_nested_loops_break_only_the_inner():
    o = regs("o", 1, "int32")
    inner = loop(4, lambda j: [If(e.compare("eq", j, LANE % 3), (Break(),)), put(o, 0, at(o, 0) + 1)], "j")
    got, _ = lanes([put(o, 0, 0), loop(5, lambda i: [inner, put(o, 0, at(o, 0) + 100)])], (o,))
    assert got.tolist() == [5 * (i % 3) + 500 for i in range(32)]


def test_while_collatz():
    o, n = regs("o", 1, "int32"), regs("n", 1, "int32")
    step = If(e.compare("eq", at(n, 0) % 2, 0), (put(n, 0, at(n, 0) // 2),), (put(n, 0, at(n, 0) * 3 + 1),))
    body = [put(o, 0, 0), put(n, 0, LANE + 1), While(at(n, 0) > 1, (step, put(o, 0, at(o, 0) + 1)))]
    got, _ = lanes(body, (o, n))

    def one(k):
        steps = 0
        while k > 1:
            k, steps = (k // 2 if k % 2 == 0 else 3 * k + 1), steps + 1
        return steps

    assert got.tolist() == [one(i + 1) for i in range(32)]


@pytest.mark.parametrize("kind,operand,width", [("xor", 4, 32), ("down", 3, 8), ("up", 2, 16), ("idx", 5, 16)])
def test_shuffles(kind, operand, width):
    o, s = regs("o", 1, "int32"), regs("s", 1, "int32")
    got, _ = lanes([put(s, 0, LANE * 7), Shuffle(reg(o), reg(s), kind, e.const(operand), width)], (o, s))

    def source(lane):
        base, inside = lane // width * width, lane % width
        target = {"xor": inside ^ operand, "down": inside + operand, "up": inside - operand, "idx": operand}[kind]
        return base + target if 0 <= target < width else lane

    assert got.tolist() == [7 * source(i) for i in range(32)]


def test_butterfly_sum_and_votes():
    o, t, b = regs("o", 1, "int32"), regs("t", 1, "int32"), regs("b", 1, "uint32")
    body = [put(o, 0, LANE * LANE)]
    for step in (16, 8, 4, 2, 1):
        body += [Shuffle(reg(t), reg(o), "xor", e.const(step)), put(o, 0, at(o, 0) + at(t, 0))]
    got, _ = lanes(body, (o, t))
    assert (got == sum(i * i for i in range(32))).all()
    got, _ = lanes([Vote(reg(b), "ballot", LANE % 5 < 1)], (b,), dtype="uint32")
    assert got[0] == sum(1 << i for i in range(0, 32, 5))


def test_a_shuffle_from_a_lane_that_is_off_is_undefined():
    o, s = regs("o", 1, "int32"), regs("s", 1, "int32")
    body = [put(s, 0, LANE), If(LANE < 8, (Shuffle(reg(o), reg(s), "xor", e.const(16)),), (put(o, 0, 0),))]
    with pytest.raises(SimulationError, match="never written"):
        lanes(body, (o, s))


def test_elections():
    o = regs("o", 1, "int32")
    body = [put(o, 0, 0), Elect("warp", (put(o, 0, 1),)), Elect("block", (put(o, 0, at(o, 0) + 10),))]
    got, _ = lanes(body, (o,), 64)
    assert got.nonzero()[0].tolist() == [0, 32] and got[0] == 11 and got[32] == 1
    with pytest.raises(SimulationError, match="elects a lane while some"):
        lanes([put(o, 0, 0), If(LANE < 3, (Elect("warp", (put(o, 0, 1),)),))], (o,))


def test_a_partial_last_warp():
    o = regs("o", 1, "int32")
    got, _ = lanes([put(o, 0, TX + WARP)], (o,), 48)
    assert got.tolist() == [i + i // 32 for i in range(48)]


def test_print_assert_trap_raw_and_the_limit():
    o = regs("o", 1, "int32")
    _, done = lanes([put(o, 0, LANE), If(LANE > 29, (Print(("lane ", LANE)),))], (o,))
    assert [x.text for x in done.events if x.kind == "print"] == ["lane 30", "lane 31"]
    with pytest.raises(SimulationError, match=r"assertion failed: small.*thread 31"):
        lanes([put(o, 0, 0), Assert(LANE < 31, "small")], (o,))
    with pytest.raises(SimulationError, match="traps: stuck"):
        lanes([put(o, 0, 0), Trap("stuck")], (o,))
    with pytest.raises(SimulationError, match="foreign text"):
        lanes([put(o, 0, 0), ForeignKernel("k", "", ())], (o,))
    forever = While(e.const(True), (put(o, 0, 1),))
    with options(simulate_step_limit=1000), pytest.raises(SimulationError, match="1000 steps"):
        lanes([put(o, 0, 0), forever], (o,))


@pytest.mark.parametrize("offset,text", [(1, "element 32 of 'y'"), (-1, "element -1 of 'y'")])
def test_out_of_range(offset, text):
    o, y = regs("o", 1, "int32"), tensor("y", (32,), "int32")
    with pytest.raises(SimulationError, match=text):
        run(kernel((y,), [put(o, 0, 0), StoreMem(addr(y, TX + offset), reg(o))], 32, (o,)), (np.zeros(32, np.int32),))
    guarded = StoreMem(addr(y, TX + offset), reg(o), pred=(TX + offset >= 0) & (TX + offset < 32))
    run(kernel((y,), [put(o, 0, 0), guarded], 32, (o,)), (np.zeros(32, np.int32),))
