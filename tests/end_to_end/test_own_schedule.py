"""`order` and `stage` of T.Pipelined: followed, refused, or told in the plan's notes."""
# mypy: ignore-errors

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tileworkbench.language as T
from tileworkbench.errors import TileError
from tileworkbench.ir.node import walk
from tileworkbench.ir.planned import Issue, Role
from tileworkbench.ir.stmt import For
from tileworkbench.pipeline import Step, run_passes
from tileworkbench.target import Target

from .harness import everywhere, integers, lowered

M = N = 64
K, BK = 192, 32


def product(order: Any = None, stage: Any = None, **hints: Any) -> Any:
    @T.prim_func
    def product(A: T.Tensor((M, K), "float16"), B: T.Tensor((K, N), "float16"), C: T.Tensor((M, N), "float32")):
        with T.Kernel(1, threads=128):
            A_s = T.alloc_shared((M, BK), "float16")
            B_s = T.alloc_shared((BK, N), "float16")
            acc = T.alloc_fragment((M, N), "float32")
            T.clear(acc)
            for k in T.Pipelined(K // BK, order=order, stage=stage, **hints):
                T.copy(A[0, k * BK], A_s)
                T.copy(B[k * BK, 0], B_s)
                T.gemm(A_s, B_s, acc)
            T.copy(acc, C)

    return product


def planned(func: Any, target: str) -> Any:
    """The kernel after the schedule has been made."""
    steps: list[Step] = []
    run_passes(func.kernel, Target.of(target), steps.append)
    return next(s.after for s in steps if s.name == "schedule")


def trip(kernel: Any) -> list[str]:
    """What the steady loop of a one-role pipeline issues, in order: copies of a coming trip, products."""
    (role,) = [r for r in kernel.body if isinstance(r, Role)]
    loop = next(n for n in walk(role.body) if isinstance(n, For) and n.attr("stage"))
    kinds = {"copy": "copy", "gemm": "product"}
    return [kinds[n.op.name] for n in walk(loop.body) if isinstance(n, Issue) and n.op.name in kinds]


SCHEDULES = [
    ([0, 1, 2], [0, 0, 1], 2, ["copy", "copy", "product"]),
    ([0, 1, 2], [0, 0, 2], 3, ["copy", "copy", "product"]),
    ([1, 2, 0], [0, 0, 1], 2, ["product", "copy", "copy"]),
    ([1, 2, 0], [0, 0, 2], 3, ["product", "copy", "copy"]),
]


@pytest.mark.parametrize(("order", "stage", "versions", "wanted"), SCHEDULES)
def test_copies_run_as_far_ahead_and_stand_where_the_schedule_has_them(order, stage, versions, wanted) -> None:
    func = product(order, stage)
    kernel = planned(func, "sm_80")
    assert [c.depth for c in kernel.channels] == [versions]
    assert trip(kernel) == wanted
    assert not [note for note in kernel.notes if "order" in note or "stage" in note]
    a, b = integers(1, (M, K), "float16", 4), integers(2, (K, N), "float16", 4)
    everywhere(func, [a, b], a.astype(float) @ b.astype(float), ("sm_80", "sm_90a"))


def test_a_role_that_loads_says_what_it_does_with_the_order() -> None:
    late, early = (planned(product(order, [0, 0, 1]), "sm_90a") for order in ([1, 2, 0], [0, 1, 2]))
    for kernel in (late, early):
        assert [r.name for r in kernel.body] == ["load", "compute"] and {c.depth for c in kernel.channels} == {2}
    assert [n for n in late.notes if "not after the other statements as `order` has it" in n]
    assert not [n for n in early.notes if "order" in n]


def test_the_number_of_stages_is_the_users_even_so() -> None:
    kernel = planned(product([0, 1, 2], [0, 0, 2], num_stages=2), "sm_80")
    assert [c.depth for c in kernel.channels] == [2]
    assert [n for n in kernel.notes if "copies run ahead by 1 for num_stages=2, not by 2 as `stage` has it" in n]


def two_products(order: Any, stage: Any) -> Any:
    @T.prim_func
    def two(A: T.Tensor((4, 64, 64), "float32"), B: T.Tensor((64, 64), "float32"), C: T.Tensor((64, 64), "float32")):
        with T.Kernel(1, threads=128):
            s = T.alloc_shared((64, 64), "float32")
            one = T.alloc_fragment((64, 64), "float32")
            other = T.alloc_fragment((64, 64), "float32")
            T.clear(one)
            T.clear(other)
            for k in T.Pipelined(4, order=order, stage=stage):
                T.copy(A[k, 0, 0], s)
                scale = k + 1
                for i, j in T.Parallel(64, 64):
                    one[i, j] += s[i, j] * scale
                for i, j in T.Parallel(64, 64):
                    other[i, j] += s[j, i]
            T.copy(one, B)
            T.copy(other, C)

    return two


def check_two(func: Any, targets: Any = ("sm_80",)) -> None:
    a = integers(3, (4, 64, 64))
    everywhere(func, [a], [(a * np.arange(1, 5)[:, None, None]).sum(0), a.sum(0).T], targets)


def test_statements_come_in_the_asked_order() -> None:
    func = two_products([0, 2, 1], [0, 1, 1])
    text = str(func)
    assert text.index("other[i") < text.index("one[i")
    check_two(func, ("sm_80", "sm_90a"))


def test_scalars_may_have_entries_or_none() -> None:
    """The scale is worked out wherever it is used; lists from programs that count it are taken."""
    with_entry, without = two_products([0, 1, 2, 3], [0, 0, 1, 1]), two_products([0, 1, 2], [0, 1, 1])
    assert dict(loop_of(with_entry).attrs)["order"] == [0, 2, 3]
    assert dict(loop_of(without).attrs)["stage"] == dict(loop_of(with_entry).attrs)["stage"] == [0, 1, 1]
    check_two(with_entry)


def loop_of(func: Any) -> For:
    return next(n for n in walk(func.kernel.body) if isinstance(n, For) and n.kind == "pipelined")


@pytest.mark.parametrize(
    ("func", "told"),
    [
        (lambda: product([0, 2, 1], [0, 0, 1]), None),
        (lambda: two_products([0, 1, 2], [0, 1, 2]), "all else is of one stage, whatever `stage` says"),
        (lambda: product(order=[0, 1, 2]), "`order` alone is not followed"),
        (lambda: product(stage=[0, 0, 1]), "`stage` alone is not followed"),
        (lambda: product(group=[[0, 1], [2]], num_stages=2), "`group` is not followed"),
        (lambda: product(sync=[[0]], num_stages=2), "`sync` is not followed"),
    ],
)  # fmt: skip
def test_what_is_not_followed_is_told(func, told) -> None:
    notes = lowered(func(), "sm_80").notes
    assert [n for n in notes if (told or "not between them as `order` has it") in n], notes


@pytest.mark.parametrize(
    ("func", "found"),
    [
        (lambda: product([0, 1], [0, 0]), "have 2 entries, the loop has 3 statements"),
        (lambda: product([0, 0, 1], [0, 0, 1]), "two statements have the same order 0"),
        (lambda: product([0, 1, 2], [0, 1, 0]), "this statement has stage 0 and order 2"),
        (lambda: product([2, 1, 0], [0, 0, 0]), "needs one before it with stage 0 and order 2"),
    ],
)
def test_a_schedule_that_cannot_be_is_refused(func, found) -> None:
    with pytest.raises(TileError) as caught:
        func()
    assert found in caught.value.found and caught.value.fix
    assert caught.value.loc is not None and caught.value.loc.file == __file__
