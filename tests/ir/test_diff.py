"""Differences of kernel texts."""

from __future__ import annotations

import itertools
import random

from tests.ir.samples import Gemm16, at
from tileworkbench.ir.diff import diff, successors, unified
from tileworkbench.ir.node import replace
from tileworkbench.ir.planned import Role
from tileworkbench.ir.stmt import Alloc
from tileworkbench.ir.text import Line, lines


def made_of(letters):
    return [Line(c) for c in letters]


def test_runs_rebuild_both_texts():
    rng = random.Random(5)
    for _ in range(200):
        old = made_of(rng.choices("abcde", k=rng.randint(0, 12)))
        new = made_of(rng.choices("abcde", k=rng.randint(0, 12)))
        runs = diff(old, new)
        assert [old[i] for r in runs for i in r.before] == old
        assert [new[j] for r in runs for j in r.after] == new
        for r in runs:
            assert r.kind in ("equal", "delete", "insert")
            if r.kind == "equal":
                assert [old[i] for i in r.before] == [new[j] for j in r.after]
            else:
                assert len(r.after if r.kind == "delete" else r.before) == 0
        assert all(a.kind != "equal" or b.kind != "equal" for a, b in itertools.pairwise(runs))


def test_equal_texts_are_one_run_and_no_text():
    k = lines(Gemm16().tile())
    assert [r.kind for r in diff(k, k)] == ["equal"] and unified(k, k) == ""
    assert diff([], []) == []


def test_a_role_around_statements_leaves_them_equal():
    g = Gemm16()
    k = g.tile()
    tiles = tuple(s for s in k.body if isinstance(s, Alloc))
    rest = tuple(s for s in k.body if not isinstance(s, Alloc))
    old, new = lines(k), lines(k.with_(body=(*tiles, Role("main", 0, 4, rest))))
    runs = diff(old, new)
    assert [r.kind for r in runs] == ["equal", "insert", "equal"]
    assert [new[j].text for j in runs[1].after] == ['with role("main", warps=(0, 4)):']


def test_rewritten_lines_are_paired_by_their_place():
    g = Gemm16()
    old, changed = g.tile(), replace(g.load_a, hints=(("disable_tma", True),))
    body = tuple(replace(s, body=(changed, *s.body[1:])) if s is g.loop else s for s in old.body)
    before, after = lines(old), lines(old.with_(body=body))
    pairs = successors(before, after, diff(before, after))
    i = next(n for n, line in enumerate(before) if line.loc == at(8))
    assert "disable_tma=True" in after[pairs[i]].text and after[pairs[i]].loc == at(8)
    assert len(pairs) == len(before)


def test_unified_text():
    old, new = made_of("abcdefgh"), made_of("abcdxfgh")
    assert unified(old, new, context=1) == "  ...\n  d\n- e\n+ x\n  f\n  ...\n"
    assert unified(made_of("ab"), made_of("b")) == "- a\n  b\n"
