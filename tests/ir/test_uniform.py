"""Over how many threads a value surely agrees."""

from __future__ import annotations

import pytest

from tileworkbench.ir.dtype import BOOL, FLOAT32, INT32
from tileworkbench.ir.evaluate import evaluate
from tileworkbench.ir.expr import Buffer, Call, Load, Special, Var, as_expr, const
from tileworkbench.ir.instr import Addr, LoadMem, Reg, Vote
from tileworkbench.ir.kernel import Kernel
from tileworkbench.ir.stmt import ONE, ZERO, Break, For, If, Let, Store, While
from tileworkbench.ir.uniform import SCOPES, Uniformity, narrower, rank, scope_of

BX, TX, M, N = Var("bx"), Var("tx"), Var("M"), Var("n")
A = Buffer("A", (M,), INT32)
S = Buffer("S", (32,), INT32, "shared")
V, W = Buffer("v", (1,), INT32, "reg"), Buffer("w", (1,), INT32, "reg")


def kernel(*body):
    return Kernel("f", (A, N), (4,), (BX,), 128, body, thread_vars=(TX,), level="thread")


@pytest.mark.parametrize(
    ("e", "scope"),
    [
        (const(3), "grid"),
        (M + N * 2, "grid"),
        (BX * 4 + M, "block"),
        (TX + BX, "thread"),
        (Special("warp") // 4, "warp"),
        (Special("lane") % 4, "thread"),
        (Special("role_thread"), "thread"),
        (Special("cluster_rank"), "block"),
        (Call("shuffle_elect", (const(128),), dtype=BOOL), "thread"),
        (Call("ballot_sync", (N > 0,), dtype=INT32), "warp"),
        (Call("block_rank_in_cluster", (), dtype=INT32), "block"),
        (Load(A, (BX,)), "block"),
        (Load(A, (N,)), "grid"),
        (Load(S, (N,)), "block"),
        (Load(A, (TX,)), "thread"),
        (Load(Buffer("f", (8,), FLOAT32, "fragment"), (N,)), "thread"),
    ],
)
def test_sources(e, scope):
    assert Uniformity(kernel()).scope(e) == scope


def test_order():
    assert [rank(s) for s in SCOPES] == list(range(7)) and rank("lane") == 0
    assert narrower("block", "warp") == "warp"
    assert scope_of(Var("x") + TX, {TX: "warp"}) == "warp"


def test_loops_lets_and_stores_take_what_their_values_have():
    i, j, x = Var("i"), Var("j"), Var("x")
    u = Uniformity(
        kernel(
            Let(x, Special("warp") * 2),
            For(i, ZERO, x, ONE, (Store(V, (ZERO,), i),)),
            For(j, ZERO, N, ONE, (Store(W, (ZERO,), j + BX),)),
        )
    )
    assert [u.scope(v) for v in (x, i, j)] == ["warp", "warp", "grid"]
    assert u.scope(Load(V, (ZERO,))) == "warp" and u.scope(Load(W, (ZERO,))) == "block"
    assert u.uniform(j, "block") and not u.uniform(i, "block")


def test_a_store_under_a_divergent_branch_diverges():
    u = Uniformity(kernel(If(TX < 3, (Store(V, (ZERO,), const(1)),))))
    assert u.scope(Load(V, (ZERO,))) == "thread"


def test_a_register_written_later_in_the_loop_is_seen_by_its_earlier_reads():
    i, x = Var("i"), Var("x")
    loop = For(i, ZERO, N, ONE, (Let(x, Load(V, (ZERO,))), Store(V, (ZERO,), Load(V, (ZERO,)) + TX)))
    assert Uniformity(kernel(Store(V, (ZERO,), const(0)), loop)).scope(x) == "thread"


def test_leaving_a_loop_at_different_trips_diverges():
    stop = If(TX < 3, (Break(),))
    u = Uniformity(kernel(While(N < 3, (stop, Store(V, (ZERO,), Load(V, (ZERO,)) + 1)))))
    assert u.scope(Load(V, (ZERO,))) == "thread"


def test_instructions():
    a = Uniformity(kernel(LoadMem(Reg(V, ZERO), Addr(A, BX)), Vote(Reg(W, ZERO), "any", TX < 3)))
    assert a.scope(Load(V, (ZERO,))) == "block" and a.scope(Load(W, (ZERO,))) == "warp"


@pytest.mark.parametrize(
    ("make", "scope"),
    [
        (lambda t: t < 64, "warp"),
        (lambda t: t >= 128, "warpgroup"),
        (lambda t: t < 100, "thread"),
        (lambda t: t // 32 == 3, "warp"),
        (lambda t: t // 128 % 2 == 1, "warpgroup"),
        (lambda t: t <= 63, "warp"),
        (lambda t: t % 32 < 16, "thread"),
        (lambda t: (t < 64) & (t // 4 > 15), "warp"),
    ],
)
def test_tests_on_thread_numbers_agree_over_warps(make, scope):
    made = make(Special("thread"))
    assert scope_of(made, {}) == scope
    length = {"thread": 1, "warp": 32, "warpgroup": 128}[scope]
    values = [evaluate(make(as_expr(n)), {}) for n in range(512)]
    for first in range(0, 512, length):
        assert len(set(values[first : first + length])) == 1
