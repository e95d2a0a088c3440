"""Boxes against brute force: every answer must agree with the elements that the boxes hold."""

from __future__ import annotations

import itertools
import random

from tests.ir.test_arith import value
from tileworkbench.ir.arith import Facts
from tileworkbench.ir.dtype import FLOAT16
from tileworkbench.ir.expr import Buffer, Var, as_expr
from tileworkbench.ir.region import ANY, Distance, contains, distance, hull, overlap, root
from tileworkbench.ir.stmt import Region, whole

B = Buffer("b", (64, 64), FLOAT16, "shared")
K, X = Var("k"), Var("x")
FACTS = Facts({K: (0, 5), X: (0, 3)})


def box(row, col, extents):
    return Region(B, (as_expr(row), as_expr(col)), extents)


def elements(r, k, x):
    env = {K: k, X: x}
    spans = [range(value(s, env), value(s, env) + e) for s, e in zip(r.starts, r.extents, strict=True)]
    return set(itertools.product(*spans))


def random_box(rng):
    starts = [
        rng.choice([0, 4, 8]) + K * rng.choice([0, 0, 1, 4, 8, -2]) + X * rng.choice([0, 0, 1, 4]) for _ in range(2)
    ]
    return box(*starts, (rng.choice([1, 4, 8]), rng.choice([2, 4, 16])))


def test_answers_agree_with_the_elements():
    rng = random.Random(3)
    decided = 0
    for _ in range(250):
        a, b = random_box(rng), random_box(rng)
        meets, holds, both = overlap(a, b, FACTS), contains(a, b, FACTS), hull(a, b, FACTS)
        decided += meets is not None
        for k, x in itertools.product(range(6), range(4)):
            one, two = elements(a, k, x), elements(b, k, x)
            assert meets in (None, bool(one & two))
            assert holds in (None, two <= one)
            low = [value(s, {K: k, X: x}) for s in both.starts]
            high = [
                v + (e if isinstance(e, int) else value(e, {K: k, X: x}))
                for v, e in zip(low, both.extents, strict=True)
            ]
            assert all(low[d] <= p[d] < high[d] for p in one | two for d in range(2))
    assert decided > 100


def test_distances_agree_with_the_elements():
    rng = random.Random(4)
    never = exact = 0
    for _ in range(150):
        a, b = random_box(rng), random_box(rng)
        found = distance(a, b, K, facts=FACTS, independent=(X,))
        seen = {
            j - i
            for i, j in itertools.product(range(6), repeat=2)
            if any(elements(a, i, x) & elements(b, j, y) for x in range(4) for y in range(4))
        }
        never += found is None
        exact += found is not None and found != ANY
        assert all(found is not None and d in found for d in seen)
    assert never > 1 and exact > 15


def test_the_usual_distances():
    assert distance(box(K * 8, 0, (8, 64)), box(K * 8, 0, (8, 64)), K) == Distance(0, 0)
    assert distance(box(K * 8, 0, (8, 64)), box(K * 8 - 8, 0, (8, 64)), K) == Distance(1, 1)
    assert distance(box(K * 8, 0, (8, 64)), box(K * 8 - 4, 0, (8, 64)), K) == Distance(0, 1)
    assert distance(box(0, 0, (64, 64)), whole(B), K) == ANY
    assert distance(box(K, 0, (1, 32)), box(K, 32, (1, 32)), K) is None
    assert distance(box(K, 0, (1, 64)), box(K - 4, 0, (1, 64)), K, step=2) == Distance(2, 2)
    assert distance(box(K, 0, (1, 64)), box(K - 3, 0, (1, 64)), K, step=2) is None


def test_independent_variables_do_not_cancel():
    a = box(X * 4, 0, (4, 4))
    assert overlap(a, a, FACTS) is True
    assert overlap(a, a, FACTS, independent=(X,)) is None
    assert overlap(a, box(X * 4 + 16, 0, (4, 4)), FACTS, independent=(X,)) is False


def test_views_share_storage():
    flat = Buffer("flat", (4096,), FLOAT16, "shared", attrs=(("view_of", B),))
    other = Buffer("b", (64, 64), FLOAT16, "shared")
    assert root(flat) is B
    assert overlap(whole(B), whole(flat)) is None
    assert overlap(whole(B), whole(other)) is False
