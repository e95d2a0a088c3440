"""Planned kernels: roles as agents, channels as rings of versions, split-phase operations."""

import numpy as np
import pytest

from tileworkbench.errors import SimulationError
from tileworkbench.ir.expr import as_expr, ceildiv, const
from tileworkbench.ir.op import Impl
from tileworkbench.ir.planned import Acquire, Channel, Commit, Complete, Issue, Release, Role, Turn, Wait
from tileworkbench.ir.stmt import If
from tileworkbench.ops.copy import Copy
from tileworkbench.ops.fill import Fill
from tileworkbench.ops.gemm import Gemm
from tileworkbench.simulate.tile import run

from .build import FALSE, at, kernel, loop, region, tensor, tile, var, whole

M = N = 64
BM, BN, BK = 32, 16, 8
TMA = Impl("tma", "tma", completion="bytes")
WGMMA = Impl("wgmma", "tensor", "warpgroup", "group")
STAGED = Impl("vector", "lsu", detail={"staged": True})


class Parts:
    """The pieces of a GEMM over 64 × 64 × k that the tests arrange."""

    def __init__(self, k, depth=3, completion="bytes", consumers=("compute",), producer="load"):
        self.a, self.b, self.c = tensor("A", (M, k)), tensor("B", (k, N)), tensor("C", (M, N))
        self.sa, self.sb = tile("As", (BM, BK)), tile("Bs", (BK, BN))
        self.acc = tile("acc", (BM, BN), space="fragment")
        self.bx, self.by, self.ko, self.kp = var("bx"), var("by"), var("ko"), var("kp")
        self.trips = ceildiv(k, BK)
        self.channel = Channel("ab", (self.sa, self.sb), depth, producer, consumers, completion, loc=at(1))

    def copies(self, k):
        from_a = region(self.a, (self.by * BM, k * BK), (BM, BK))
        from_b = region(self.b, (k * BK, self.bx * BN), (BK, BN))
        return Copy(from_a, whole(self.sa), loc=at(11)), Copy(from_b, whole(self.sb), loc=at(12))

    @property
    def gemm(self):
        return Gemm(whole(self.sa), whole(self.sb), whole(self.acc), False, False, FALSE, loc=at(13))

    @property
    def clear(self):
        return Fill(whole(self.acc), const(0.0), loc=at(10))

    @property
    def out(self):
        return Copy(whole(self.acc), region(self.c, (self.by * BM, self.bx * BN), (BM, BN)), loc=at(14))

    def kernel(self, *body, channels=True):
        made = kernel([self.a, self.b, self.c], [N // BN, M // BM], [self.bx, self.by], *body, outputs=(2,))
        return made.with_(level="planned", channels=(self.channel,) if channels else ())


def inputs(k):
    rng = np.random.default_rng(k)
    return rng.integers(-8, 9, (M, k)).astype(np.float32), rng.integers(-8, 9, (k, N)).astype(np.float32)


def check(made, k):
    a, b = inputs(k)
    assert np.array_equal(run(made, [a, b]).outputs[0].astype(int), a.astype(int) @ b.astype(int))


def load_role(p, k_var, *more):
    copies = p.copies(k_var)
    body = loop(k_var, p.trips, Acquire(p.channel, loc=at(20)), *[Issue(c, TMA) for c in copies], Commit(p.channel))
    return Role("load", 4, 1, (body, *more), loc=at(2))


@pytest.mark.parametrize("depth", [1, 2, 4])
@pytest.mark.parametrize("k", [8, 24, 40])
def test_two_roles(depth, k):
    p = Parts(k, depth)
    gemm = p.gemm
    compute = Role(
        "compute",
        0,
        4,
        (
            p.clear,
            loop(p.ko, p.trips, Wait(p.channel), Issue(gemm, WGMMA), Complete(gemm, WGMMA), Release(p.channel)),
            p.out,
        ),
    )
    check(p.kernel(load_role(p, p.kp), compute), k)


def test_product_in_flight_holds_two_versions():
    p = Parts(40, 3)
    gemm = p.gemm
    first = (Wait(p.channel), Issue(gemm, WGMMA))
    rest = loop(
        p.ko, p.trips, Wait(p.channel), Issue(gemm, WGMMA), Complete(gemm, WGMMA, 1), Release(p.channel), start=1
    )
    compute = Role("compute", 0, 4, (p.clear, *first, rest, Complete(gemm, WGMMA), Release(p.channel), p.out))
    check(p.kernel(load_role(p, p.kp), compute), 40)


def ring_of_one_role(p, impl, wait_ahead, complete=False):
    """Two versions ahead: the copies of trip k + 2 are issued before the product of trip k."""

    def stage(k, pred=None):
        copies = p.copies(k)
        ends = [Complete(c, impl) for c in copies] if complete else []
        return [Acquire(p.channel), *[Issue(c, impl, pred) for c in copies], *ends, Commit(p.channel)]

    body = [p.clear, *stage(const(0)), *stage(const(1), as_expr(1) < p.trips)]
    ahead = p.ko + 2
    body.append(
        loop(p.ko, p.trips, *stage(ahead, ahead < p.trips), Wait(p.channel, wait_ahead), p.gemm, Release(p.channel))
    )
    return p.kernel(Role("main", 0, 4, (*body, p.out)))


@pytest.mark.parametrize("k", [8, 16, 24, 56])
def test_one_role_with_groups(k):
    p = Parts(k, 3, "group", ("main",), "main")
    check(ring_of_one_role(p, Impl("cp.async 16", "lsu", completion="group"), 2), k)


def test_one_role_through_registers():
    p = Parts(40, 3, "none", ("main",), "main")
    check(ring_of_one_role(p, STAGED, 0, complete=True), 40)


def test_a_wait_that_leaves_too_much_in_flight():
    p = Parts(40, 4, "group", ("main",), "main")
    with pytest.raises(SimulationError, match="lets 3 later groups stay in flight"):
        run(ring_of_one_role(p, Impl("cp.async 16", "lsu", completion="group"), 3), inputs(40))


def test_copy_through_registers_that_never_completes():
    p = Parts(40, 3, "none", ("main",), "main")
    with pytest.raises(SimulationError, match="never written reaches a gemm") as e:
        run(ring_of_one_role(p, STAGED, 0), inputs(40))
    assert e.value.loc.line == 13


def test_empty_groups_keep_wait_counts_constant():
    """The copies of trips past the end are guarded, their commits are not."""
    for k in (8, 16, 24, 56):
        p = Parts(k, 3, "group", ("main",), "main")
        impl = Impl("cp.async 16", "lsu", completion="group")

        def stage(k, p=p, impl=impl):
            issues = [Issue(c, impl) for c in p.copies(k)]
            return [If(k < p.trips, (Acquire(p.channel), *issues)), Commit(p.channel)]

        first = [*stage(const(0)), *stage(as_expr(1))]
        body = loop(p.ko, p.trips, Wait(p.channel, 1), *stage(p.ko + 2), p.gemm, Release(p.channel))
        check(p.kernel(Role("main", 0, 4, (p.clear, *first, body, p.out))), k)


def test_staged_copies_land_in_the_version_acquired_after_their_issue():
    p = Parts(40, 2, "none", ("main",), "main")

    def parts(k):
        copies = p.copies(k)
        return [Issue(c, STAGED) for c in copies], [Complete(c, STAGED) for c in copies]

    begin, end = parts(const(0))
    later, finish = parts(p.ko + 1)
    more = p.ko + 1 < p.trips
    body = loop(
        p.ko, p.trips, Wait(p.channel), If(more, tuple(later)), p.gemm,
        If(more, (Acquire(p.channel), *finish, Commit(p.channel))), Release(p.channel),
    )  # fmt: skip
    prologue = [*begin, Acquire(p.channel), *end, Commit(p.channel)]
    check(p.kernel(Role("main", 0, 4, (p.clear, *prologue, body, p.out))), 40)


def two_roles(p, consumer):
    return p.kernel(load_role(p, p.kp), Role("compute", 0, 4, (p.clear, *consumer, p.out), loc=at(3)))


def test_missing_wait():
    p = Parts(16)
    made = two_roles(p, [loop(p.ko, p.trips, p.gemm)])
    with pytest.raises(SimulationError, match="without holding a version") as e:
        run(made, inputs(16))
    assert e.value.loc.line == 13


def test_missing_release_is_a_deadlock():
    p = Parts(64, 2)
    made = two_roles(p, [loop(p.ko, p.trips, Wait(p.channel, loc=at(30)), p.gemm)])
    with pytest.raises(
        SimulationError, match=r"deadlock: load waits for a free version .* compute waits for version 2"
    ):
        run(made, inputs(64))


def test_missing_commit_is_a_deadlock():
    p = Parts(8)
    copies = p.copies(const(0))
    load = Role("load", 4, 1, (Acquire(p.channel), *[Issue(c, TMA) for c in copies]))
    compute = Role("compute", 0, 4, (p.clear, Wait(p.channel, loc=at(31)), p.gemm, Release(p.channel), p.out))
    with pytest.raises(SimulationError, match="deadlock") as e:
        run(p.kernel(load, compute), inputs(8))
    assert e.value.loc.line == 31


def test_use_after_release():
    p = Parts(8)
    made = two_roles(p, [Wait(p.channel), Release(p.channel), p.gemm])
    with pytest.raises(SimulationError, match="without holding a version"):
        run(made, inputs(8))


def test_commit_and_release_without_their_partners():
    p = Parts(8)
    with pytest.raises(SimulationError, match="without having acquired"):
        run(p.kernel(Role("load", 4, 1, (Commit(p.channel),))), inputs(8))
    p = Parts(8)
    with pytest.raises(SimulationError, match="does not hold"):
        run(two_roles(p, [Release(p.channel)]), inputs(8))


def test_missing_complete():
    p = Parts(8)
    gemm = p.gemm
    made = two_roles(p, [Wait(p.channel), Issue(gemm, WGMMA), Release(p.channel)])
    with pytest.raises(SimulationError, match=r"`acc` is read while gemm \(wgmma\) is still in flight") as e:
        run(made, inputs(8))
    assert e.value.loc.line == 14


def test_a_version_starts_without_contents():
    p = Parts(8)
    a_only = p.copies(const(0))[0]
    load = Role("load", 4, 1, (Acquire(p.channel), Issue(a_only, TMA), Commit(p.channel)))
    compute = Role("compute", 0, 4, (p.clear, Wait(p.channel), p.gemm, Release(p.channel), p.out))
    with pytest.raises(SimulationError, match="`Bs` that was never written reaches a gemm"):
        run(p.kernel(load, compute), inputs(8))


def test_turns():
    """Two roles add to one tile in an order that only the turns give."""
    c, s = tensor("C", (4,)), tile("S", (4,))
    roles = ("first", "second")

    def body(value, source):
        return (Turn("t", "take", roles, loc=at(40)), source, Fill(whole(s), const(value)), Turn("t", "give", roles))

    out = Copy(whole(s), region(c, (0,), (4,)))
    second = Role("second", 0, 4, body(2.0, out))
    first = Role("first", 4, 4, body(1.0, Fill(whole(s), const(0.0))))
    made = kernel([c], [1], [var("bx")], second, first, outputs=(0,)).with_(level="planned")
    assert np.array_equal(run(made, []).outputs[0], np.ones(4))


def test_a_turn_nobody_gives():
    roles = ("first", "second")
    made = kernel([tensor("C", (4,))], [1], [var("bx")], Role("second", 0, 4, (Turn("t", "take", roles, loc=at(41)),)))
    with pytest.raises(SimulationError, match="deadlock: second waits for its turn") as e:
        run(made.with_(level="planned"), [np.zeros(4, np.float32)])
    assert e.value.loc.line == 41
