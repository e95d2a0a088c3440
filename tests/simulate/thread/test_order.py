"""Races, barriers, groups and deadlocks outside of the large kernels, each both ways."""

from __future__ import annotations

import numpy as np
import pytest

from tileworkbench.errors import SimulationError
from tileworkbench.ir import expr as e
from tileworkbench.ir.instr import (
    AtomicMem,
    BarArrive,
    BarInit,
    BarWait,
    BulkLoad,
    BulkStore,
    CommitGroup,
    CopyAsync,
    CopyAsyncArrive,
    Elect,
    Fence,
    LoadMem,
    SetRegs,
    StoreMem,
    Sync,
    WaitGroup,
)
from tileworkbench.ir.planned import Role
from tileworkbench.ir.stmt import If
from tileworkbench.simulate.thread import RULES, run

from .kernels import LANE, TX, WARP, addr, at, bar, bars, kernel, loop, put, reg, regs, shared, tensor
from .kernels import at as at_

SCHEDULES = ("eager", "latest", "random")
S, R, Y = shared("s", 256, "int32"), regs("r", 1, "int32"), tensor("y", (64,), "int32")
FULL = bars("full", 1)
BX = e.Var("bx")


def go(body, threads=64, buffers=(S, R, FULL), out=64, **more):
    y = np.zeros(out, np.int32)
    k = kernel((Y if out == 64 else tensor("y", (out,), "int32"),), body, threads, buffers, **more)
    for schedule in SCHEDULES:
        run(k, (y,), schedule=schedule)
    return y


def fails(body, text, **more):
    with pytest.raises(SimulationError) as found:
        go(body, **more)
    assert text in str(found.value), str(found.value)
    return found.value


PUT = [put(R, 0, TX), StoreMem(addr(S, TX), reg(R))]


def read(index):
    return [LoadMem(reg(R), addr(S, index)), StoreMem(addr(Y, TX), reg(R))]


def test_lanes_of_a_warp_need_a_warp_sync():
    swapped = read(TX ^ 1)
    assert go([*PUT, Sync("warp"), *swapped]).tolist() == [i ^ 1 for i in range(64)]
    error = fails([*PUT, *swapped], "[warp_sync]")
    assert error.kind == "race" and error.loc.line == 3 and error.other.line == 2


def test_warps_need_a_block_sync():
    swapped = read(TX ^ 32)
    assert go([*PUT, Sync("block"), *swapped]).tolist() == [i ^ 32 for i in range(64)]
    for between in ([], [Sync("warp")]):
        errors = []
        for schedule in SCHEDULES:
            with pytest.raises(SimulationError) as found:
                run(kernel((Y,), [*PUT, *between, *swapped], 64, (S, R)), (np.zeros(64, np.int32),), schedule=schedule)
            errors.append(found.value)
        assert any(x.kind == "race" and "[block_sync]" in str(x) for x in errors)


def test_write_after_read():
    again = [*PUT, Sync("block"), *read(TX ^ 32)]
    over = [put(R, 0, 7), StoreMem(addr(S, TX), reg(R))]
    go([*again, Sync("block"), *over])
    error = fails([*again, *over], "[block_sync]")
    assert {error.loc.line, error.other.line} == {4, 7} or {error.loc.line, error.other.line} == {5, 7}


def test_same_value_by_two_lanes_is_no_race_and_different_values_are():
    go([put(R, 0, 5), StoreMem(addr(S, TX // 2), reg(R)), Sync("block"), *read(TX // 2)])
    fails([put(R, 0, TX), StoreMem(addr(S, TX // 2), reg(R))], "different values to the same place")


def test_named_barriers_and_divergent_arrivals():
    ids = [Sync("role", id=2, threads=64)]
    assert go([*PUT, *ids, *read(TX ^ 32)]).tolist() == [i ^ 32 for i in range(64)]
    fails([*PUT, Sync("role", id=2, threads=96)], "with 64 of 96 threads")
    fails([If(LANE < 5, (Sync("block"),))], "some of its lanes are elsewhere")
    uneven = If(e.compare("eq", WARP, 0), (Sync("block"),))
    fails([uneven], "deadlock: no warp can go on")
    other = If(e.compare("eq", WARP, 0), (Sync("role", id=2, threads=64),), (Sync("role", id=2, threads=32),))
    fails([other], "threads")


def test_arrive_and_wait_hand_over():
    first = [*PUT, Sync("role", "arrive", id=4, threads=64)]
    second = [Sync("role", id=4, threads=64), LoadMem(reg(R), addr(S, TX - 32)), StoreMem(addr(Y, TX), reg(R))]
    y = go([Role("a", 0, 1, tuple(first)), Role("b", 1, 1, tuple(second))])
    assert y[32:].tolist() == list(range(32))
    late = [put(R, 0, TX), Sync("role", "arrive", id=4, threads=64), StoreMem(addr(S, TX), reg(R))]
    fails([Role("a", 0, 1, tuple(late)), Role("b", 1, 1, tuple(second))], "")


def barrier(count, *body):
    init = If(e.compare("eq", TX, 0), (BarInit(bar(FULL), count), Fence("mbarrier_init")))
    return [init, Sync("block"), *body]


def test_mbarrier_hands_over():
    wait = BarWait(bar(FULL), e.const(0), e.const(0))
    assert go(barrier(64, *PUT, BarArrive(bar(FULL)), wait, *read(TX ^ 32))).tolist() == [i ^ 32 for i in range(64)]
    fails(barrier(64, *PUT, BarArrive(bar(FULL)), *read(TX ^ 32)), "")
    fails(barrier(63, *PUT, BarArrive(bar(FULL)), wait), "64 arrivals in phase")
    fails(barrier(65, *PUT, BarArrive(bar(FULL)), wait), "1 of 65 arrivals missing")
    fails(barrier(64, BarArrive(bar(FULL)), *PUT, wait, *read(TX ^ 32)), "")


def test_an_elected_arrival_speaks_for_its_lane_only():
    wait = BarWait(bar(FULL), e.const(0), e.const(0))
    good = [*PUT, Sync("warp"), Elect("warp", (BarArrive(bar(FULL)),)), wait, *read(TX ^ 33)]
    assert go(barrier(2, *good)).tolist() == [i ^ 33 for i in range(64)]
    bad = [*PUT, Elect("warp", (BarArrive(bar(FULL)),)), wait, *read(TX ^ 33)]
    fails(barrier(2, *bad), "is not ordered after the write by StoreMem(s, r)")


def test_phases_and_use_before_init():
    fails([BarArrive(bar(FULL))], "used before it is initialised")
    fails(barrier(64, BarArrive(bar(FULL)), BarWait(bar(FULL), e.const(1), e.const(0))), "uses parity 1")
    twice = [BarArrive(bar(FULL)), Sync("block"), BarArrive(bar(FULL)), Sync("block")]
    fails(barrier(64, *twice, BarWait(bar(FULL), e.const(0), e.const(0))), "phase 1 is over already")


def test_copy_async_arrives_on_a_barrier():
    x = tensor("x", (64,), "int32")
    init = If(e.compare("eq", TX, 0), (BarInit(bar(FULL), 64), Fence("mbarrier_init")))
    copy = CopyAsync(addr(S, TX), addr(x, TX), 4)
    wait = BarWait(bar(FULL), e.const(0), e.const(0))
    source, y = np.arange(64, dtype=np.int32) * 3, np.zeros(64, np.int32)
    good = [init, Sync("block"), copy, CopyAsyncArrive(bar(FULL)), wait, *read(TX ^ 32)]
    for schedule in SCHEDULES:
        y[:] = 0
        run(kernel((x, Y), good, 64, (S, R, FULL)), (source, y), schedule=schedule)
        assert y.tolist() == [3 * (i ^ 32) for i in range(64)]
    bad = [init, Sync("block"), CopyAsyncArrive(bar(FULL)), copy, wait, *read(TX)]
    for schedule in SCHEDULES:
        with pytest.raises(SimulationError, match=r"\[copy_wait\]"):
            run(kernel((x, Y), bad, 64, (S, R, FULL)), (source, y), schedule=schedule)


def bulk(*changes):
    """x → shared by a bulk load, doubled in place, shared → y by a bulk store."""
    x, t = tensor("x", (64,), "int32"), regs("t", 1, "int32")
    parts = {
        "init": If(e.compare("eq", TX, 0), (BarInit(bar(FULL), 1), Fence("mbarrier_init"))),
        "sync": Sync("block"),
        "load": Elect("block", (BarArrive(bar(FULL), 256), BulkLoad(addr(S), addr(x), 256, bar(FULL)))),
        "wait": BarWait(bar(FULL), e.const(0), e.const(0)),
        "get": LoadMem(reg(t), addr(S, TX)),
        "put": put(R, 0, at(t, 0) * 2),
        "store": StoreMem(addr(S, TX), reg(R)),
        "fence": Fence("proxy_async"),
        "meet": Sync("block"),
        "out": Elect("block", (BulkStore(addr(Y), addr(S), 256), CommitGroup("bulk"), WaitGroup("bulk", 0, True))),
        "again": Sync("block"),
        "over": StoreMem(addr(S, TX), reg(R)),
    }
    return kernel((x, Y), [s for name, s in parts.items() if name not in changes], 64, (S, R, t, FULL))


def test_bulk_copies():
    x, y = np.arange(64, dtype=np.int32), np.zeros(64, np.int32)
    for schedule in SCHEDULES:
        y[:] = 0
        run(bulk(), (x, y), schedule=schedule)
        assert (y == 2 * x).all()


@pytest.mark.parametrize("gone,rule", [("wait", ""), ("fence", "[proxy_fence]"), ("meet", ""), ("again", "")])
def test_bulk_faults(gone, rule):
    for schedule in SCHEDULES:
        with pytest.raises(SimulationError) as found:
            run(bulk(gone), (np.arange(64, dtype=np.int32), np.zeros(64, np.int32)), schedule=schedule)
        assert rule in str(found.value)


def test_blocks_are_unordered():
    def body(index):
        return [put(R, 0, TX), StoreMem(addr(Y, index), reg(R))]

    more = {"grid": (2,), "block_vars": (BX,), "threads": 32}
    go(body(TX + BX * 32), **more)
    error = fails(body(TX), "[between_blocks]", **more)
    assert "block number 0 has written" in str(error) and "y[" in str(error)
    add = AtomicMem("add", addr(Y, 0), reg(R))
    assert go([put(R, 0, TX), add], **more)[0] == 3 * 2 * sum(range(32))


@pytest.mark.parametrize("op", ["add", "max", "min", "xor", "exch"])
def test_atomics_on_shared_memory(op):
    """A histogram of four cells; the old values are those of some order of the lanes."""
    old = regs("old", 1, "int32")
    clear = [put(R, 0, 0), StoreMem(addr(S, TX), reg(R)), Sync("block"), put(R, 0, TX * 3 + 1)]
    y = go(
        [*clear, AtomicMem(op, addr(S, TX % 4), reg(R), old=reg(old)), Sync("block"), *read(TX)], buffers=(S, R, old)
    )
    held = [[3 * i + 1 for i in range(64) if i % 4 == cell] for cell in range(4)]
    fold = {"add": sum, "max": max, "min": lambda v: 0, "xor": lambda v: np.bitwise_xor.reduce(v)}
    if op == "exch":
        assert all(int(y[cell]) in held[cell] for cell in range(4))
    else:
        assert y[:4].tolist() == [fold[op](v) for v in held]
    mixed = [*clear, AtomicMem(op, addr(S, TX % 4), reg(R)), *read(TX % 4)]
    fails(mixed, "is not ordered after the write by AtomicMem", buffers=(S, R, old))


def test_compare_and_swap():
    old, pair = regs("old", 1, "int32"), regs("pair", 2, "int32")
    body = [put(pair, 0, 0), put(pair, 1, TX + 5), AtomicMem("cas", addr(Y, 0), reg(pair), old=reg(old))]
    y = go(
        [*body, Sync("block"), put(R, 0, at_(old, 0)), If(TX > 0, (StoreMem(addr(Y, TX), reg(R)),))],
        buffers=(R, old, pair),
    )
    assert y[0] in range(5, 69) and (y[1:] == 0).sum() <= 1


def test_memory_is_limited():
    from tileworkbench.errors import ResourceError
    from tileworkbench.options import options

    with options(simulate_memory_limit=2**20), pytest.raises(ResourceError, match="race records"):
        go([put(R, 0, 0), StoreMem(addr(tensor("y", (2**20,), "int32"), TX), reg(R))], out=64, shared_bytes=2**16)


def test_last_block_reduces_behind_an_atomic():
    """Partial results, a gpu fence, an atomic counter; the last block reads the others' parts."""
    part, count, n = tensor("part", (2,), "int32"), tensor("count", (1,), "int32"), regs("n", 1, "int32")
    v = regs("v", 1, "int32")

    def body(*fences):
        one = [
            put(R, 0, BX + 5), StoreMem(addr(part, BX), reg(R)), *fences, put(R, 0, 1),
            AtomicMem("add", addr(count, 0), reg(R), old=reg(n)), *fences,
            If(e.compare("eq", at(n, 0), 1), (
                LoadMem(reg(v), addr(part, 0)), LoadMem(reg(R), addr(part, 1)), put(R, 0, at(v, 0) + at(R, 0)),
                StoreMem(addr(Y, 0), reg(R)),
            )),
        ]  # fmt: skip
        return kernel((part, count, Y), [Elect("block", tuple(one))], 32, (R, n, v), grid=(2,), block_vars=(BX,))

    def arguments():
        return np.zeros(2, np.int32), np.zeros(1, np.int32), np.zeros(64, np.int32)

    args = arguments()
    run(body(Fence("gpu")), args)
    assert args[2][0] == 11
    with pytest.raises(SimulationError, match=r"\[between_blocks\]"):
        run(body(), arguments())


def test_register_hand_over():
    def k(load, compute, given=168):
        roles = [Role("load", 0, 4, load), Role("a", 4, 4, compute), Role("b", 8, 4, compute)]
        return kernel((Y,), roles, 384, (), attrs={"registers": given})

    y = np.zeros(64, np.int32)
    for schedule in SCHEDULES:
        run(k((SetRegs(24, "dec"),), (SetRegs(240, "inc"),)), (y,), schedule=schedule)
        with pytest.raises(SimulationError, match="registers of the pool"):
            run(k((), (SetRegs(240, "inc"),)), (y,), schedule=schedule)
        with pytest.raises(SimulationError, match="registers of the pool"):
            run(k((SetRegs(24, "dec"),), (SetRegs(248, "inc"),)), (y,), schedule=schedule)
        with pytest.raises(SimulationError, match="dec lowers"):
            run(k((SetRegs(176, "dec"),), ()), (y,), schedule=schedule)


def test_collecting_goes_on_after_races():
    body = [*PUT, *read(TX ^ 1), Sync("block"), put(R, 0, 1), StoreMem(addr(S, TX), reg(R)), *read(TX ^ 2)]
    done = run(kernel((Y,), body, 64, (S, R)), (np.zeros(64, np.int32),), collect=True)
    assert len(done.faults) >= 2 and all(f.kind == "race" for f in done.faults)


def test_undefined_outputs_are_masked():
    body = [put(R, 0, TX), If(TX < 10, (StoreMem(addr(Y, TX), reg(R)),))]
    done = run(kernel((Y,), body, 64, (R,), outputs=(0,)), (np.zeros(64, np.int32),))
    assert done.defined["y"].sum() == 10


def test_rules_are_all_described():
    assert len(RULES) >= 15
    for rule in RULES.values():
        assert rule.source and rule.edge and rule.orders and f"[{rule.name}]" in str(rule)


def test_loops_reuse_a_stage():
    """Writes of the next trip race with reads of this one unless a second barrier stands between them."""

    def trip(i):
        return [put(R, 0, TX + i), StoreMem(addr(S, TX), reg(R)), Sync("block"), *read(TX ^ 32), Sync("block")]

    go([loop(3, trip)])
    fails([loop(3, lambda i: trip(i)[:-1])], "[block_sync]")
