from __future__ import annotations

import itertools

import pytest

from tileworkbench.errors import InternalError
from tileworkbench.runtime import hostexpr

PYTHON = {
    "add": lambda a, b: a + b, "sub": lambda a, b: a - b, "mul": lambda a, b: a * b, "floordiv": lambda a, b: a // b,
    "mod": lambda a, b: a % b, "ceildiv": lambda a, b: (a + b - 1) // b, "min": min, "max": max,
    "eq": lambda a, b: int(a == b), "ne": lambda a, b: int(a != b), "lt": lambda a, b: int(a < b),
    "le": lambda a, b: int(a <= b), "gt": lambda a, b: int(a > b), "ge": lambda a, b: int(a >= b),
}  # fmt: skip


@pytest.mark.parametrize("name", list(PYTHON))
def test_operators_are_pythons(name: str) -> None:
    function = hostexpr.compiled((name, "M", ("add", "N", 1)))
    for m, n in itertools.product((-7, 0, 1, 7, 128), (1, 4, 63)):
        assert function({"M": m, "N": n}) == PYTHON[name](m, n + 1)


def test_sums_and_products_of_many() -> None:
    assert hostexpr.evaluate(("add", "M", 2, 3, ("mul", 2, 3, "M")), {"M": 5}) == 40
    assert hostexpr.evaluate(("max", 1, "M", 4), {"M": 3}) == 4


def test_text_reads_like_python() -> None:
    assert hostexpr.text(("mul", ("add", "M", 1), 2)) == "(M + 1) * 2"
    assert hostexpr.text(("ceildiv", ("sub", "M", 1), 64)) == "ceildiv(M - 1, 64)"
    assert hostexpr.text(("eq", ("mod", "A.ptr", 16), 0)) == "(A.ptr % 16) == 0"


def test_solving_inverts_linear_forms_only() -> None:
    values = {"N": 3}
    forms = [("mul", "M", 4), ("add", ("mul", 2, "M"), "N"), ("sub", 100, "M"), ("sub", "M", "N"), ("mul", "M", "N", 2)]
    for form in forms:
        target = hostexpr.evaluate(form, {**values, "M": 11})
        assert hostexpr.solve(form, target, "M", values) == 11
    assert hostexpr.solve(("mul", "M", 4), 7, "M", values) is None
    assert hostexpr.solve(("mul", "M", 0), 0, "M", values) is None
    assert hostexpr.solve(("floordiv", "M", 4), 2, "M", values) is None
    assert hostexpr.solve(("add", "M", "M"), 8, "M", values) is None


@pytest.mark.parametrize("bad", [("pow", 2, 3), ("sub", 1), ("mod", 1, 2, 3), (), 1.5, ("add",)])
def test_what_is_no_expression_is_an_internal_error(bad: object) -> None:
    with pytest.raises(InternalError):
        hostexpr.evaluate(bad, {})
