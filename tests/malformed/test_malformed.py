"""Every malformed kernel ends in one of our errors, at its marked line, with rule and fix, in a file as in a cell."""

from __future__ import annotations

import re
from collections import Counter

import pytest

from tileworkbench.errors import TileError

from .collection import Case, collection
from .judge import problems
from .ways import WAYS, compile_all

CASES = collection()


@pytest.mark.parametrize("case", CASES, ids=str)
def test_malformed(case: Case, tmp_path) -> None:
    way = list(WAYS)[case.number % len(WAYS)]
    try:
        compile_all(WAYS[way](case.text, tmp_path), case.target)
    except TileError as error:
        assert not problems(case, error), f"{error}\n{case.text}"
    else:
        pytest.fail(f"accepted in a {way}:\n{case.text}")


def test_there_are_many() -> None:
    rules = Counter(case.rule for case in CASES)
    assert len(CASES) >= 300
    assert len(rules) >= 60
    assert not [rule.name for rule, forms in rules.items() if forms < 3]
    names = Counter(rule.name for rule in rules)
    assert not [name for name, times in names.items() if times > 1], "a rule has one text and one code"
    assert len({(rule.code, rule.text) for rule in rules}) >= 60
    vague = [rule.name for rule in rules if len(re.findall(r"[a-z]{2,}", rule.text.replace("\\S", ""))) < 2]
    assert not vague, "a rule's pattern says what the rule is"


def test_every_rule_is_met_in_several_ways() -> None:
    """Neighbours take the ways in turn, so three forms of a rule meet all of them."""
    ways = {rule: {c.number % len(WAYS) for c in CASES if c.rule is rule} for rule in {c.rule for c in CASES}}
    assert all(len(met) == len(WAYS) for met in ways.values())
