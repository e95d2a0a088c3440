"""Random index expressions: the simplified form, the range and the divisor hold at random points."""

from __future__ import annotations

import random

from tileworkbench.ir.arith import Facts
from tileworkbench.ir.dtype import DTYPES
from tileworkbench.ir.expr import Binary, Compare, Const, Expr, Var, binary, cast, compare, const
from tileworkbench.ir.fold import COMPARE, FOLD

T, R, K = Var("t"), Var("r"), Var("k")
LIMITS = {T: (0, 127), R: (0, 1), K: (-5, 100)}


def value(e: Expr, env: dict[Var, int]) -> int:
    if isinstance(e, Const):
        return int(e.value)
    if isinstance(e, Var):
        return env[e]
    if not isinstance(e, (Binary, Compare)):
        raise TypeError(type(e))
    return int((FOLD | COMPARE)[e.op](value(e.a, env), value(e.b, env)))


def random_expr(rng: random.Random, depth: int) -> Expr:
    if depth == 0:
        return rng.choice([T, R, K, const(rng.randint(-9, 130))])
    op = rng.choice(["add", "sub", "mul", "floordiv", "floormod", "min", "max", "add", "xor", "shr"])
    left = random_expr(rng, depth - 1)
    if op in ("floordiv", "floormod"):
        return binary(op, left, const(rng.choice([1, 2, 3, 4, 7, 8, 16, 32, 128])))
    if op == "shr":
        return binary(op, left, const(rng.randint(0, 4)))
    if op == "mul":
        return binary(op, left, const(rng.choice([1, 2, 3, 4, 8, 16, 32, -1])))
    return binary(op, left, random_expr(rng, depth - 1))


def test_random_expressions_keep_their_value() -> None:
    rng = random.Random(7)
    facts = Facts(LIMITS)
    for _ in range(2000):
        e = random_expr(rng, rng.randint(1, 4))
        simple, (low, high), divisor = facts.simplify(e), facts.range(e), facts.divisor(e)
        for _ in range(8):
            env = {v: rng.randint(*LIMITS[v]) for v in LIMITS}
            got = value(e, env)
            assert got == value(simple, env)
            assert low <= got <= high
            assert got == 0 if divisor == 0 else got % divisor == 0


def test_random_proofs_hold() -> None:
    rng = random.Random(8)
    facts = Facts(LIMITS)
    decided = 0
    for _ in range(2000):
        cond = compare(rng.choice(list(COMPARE)), random_expr(rng, 2), random_expr(rng, 1))
        known = facts.prove(cond)
        decided += known is not None
        for _ in range(8):
            env = {v: rng.randint(*LIMITS[v]) for v in LIMITS}
            assert known is None or value(cond, env) == known
    assert decided > 200


def test_fragment_register_is_found() -> None:
    """Row group of an accumulator: the register digit must come out of the row's arithmetic."""
    row = K * 64 + (T // 32) * 16 + R * 8 + (T % 32) // 4
    assert Facts(LIMITS).simplify(row // 8 % 2) is R


def test_assumptions_bound_a_variable() -> None:
    facts = Facts(LIMITS)
    for cond, expected in (
        (compare("lt", K + 2, 8), (-5, 5)),
        (compare("ge", K, 3), (3, 100)),
        (compare("gt", 7, K), (-5, 6)),
        (compare("le", const(2) - K, 0), (2, 100)),
        (compare("eq", K, 9), (9, 9)),
    ):
        assert facts.assuming(cond).range(K) == expected


def test_narrow_types_wrap_and_are_left_alone() -> None:
    """max(7, uint8(t)) is not 7, and uint8(200) + uint8(100) is not above 255."""
    facts = Facts(LIMITS)
    byte = DTYPES["uint8"]
    narrow = binary("max", const(7, byte), cast(T, byte))
    assert facts.simplify(narrow) is narrow or not isinstance(facts.simplify(narrow), Const)
    assert facts.range(narrow) == (0, 255)
    total = binary("add", cast(T, byte), cast(T, byte))
    assert facts.range(total) == (0, 255)
    assert facts.prove(compare("lt", total, const(255, byte))) is None
    assert facts.range(cast(T + 200, byte)) == (0, 255)
    assert facts.divisor(binary("mul", cast(T, byte), const(3, byte))) == 1
