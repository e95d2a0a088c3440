"""Which variant runs: facts of extents, strides and addresses, asked at each call."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.runtime.fakes import FakeDriver, FakeTensor
from tests.runtime.launching import ADD, abc, add, binary
from tileworkbench.codegen.source import Fact, Source
from tileworkbench.errors import AssumptionError, InternalError, LaunchError, MissingDependency
from tileworkbench.runtime.binary import Binary
from tileworkbench.runtime.launch import Launcher

DIVIDES = Fact(("eq", ("mod", "N", 4), 0), "N % 4 == 0")

STARTS = Fact(("eq", ("mod", "A.ptr", 16), 0), "A starts at 16 bytes")

FAST = replace(ADD, facts=(DIVIDES, STARTS))


def test_variants_are_chosen_by_their_facts(driver: FakeDriver, torch: Any) -> None:
    built = []

    def general(aligned: bool) -> tuple[Source, Binary]:
        built.append(1)
        return ADD, binary(code=b"general")

    kernel = Launcher([(FAST, binary(code=b"fast"))], driver=driver, general=general)

    def call(n: int, pointer: int = 1 << 20) -> bytes:
        kernel(FakeTensor(torch, (8, n), pointer=pointer), FakeTensor(torch, (n,)), FakeTensor(torch, (8, n)))
        return driver.loads[driver.launches[-1].function - 2001][1]

    assert [call(64), call(64)] == [b"fast"] * 2 and not built
    assert [call(63), call(63), call(64)] == [b"general", b"general", b"fast"] and built == [1]
    assert [call(64, (1 << 20) + 4), call(64), call(64, (1 << 20) + 16)] == [b"general", b"fast", b"fast"]
    assert [call(64, (1 << 20) + 20), call(64, 1 << 21)] == [b"general", b"fast"]
    assert len(kernel.variants) == 3 and len(driver.loads) == 3 and built == [1, 1]


def test_where_tensors_start_decides_what_is_built_next(driver: FakeDriver, torch: Any) -> None:
    """Other extents alone cost the alignment nothing; each kind is built once, and the first that fits runs."""
    built: list[bool] = []

    def general(aligned: bool) -> tuple[Source, Binary]:
        built.append(aligned)
        facts = (STARTS,) if aligned else ()
        return replace(ADD, facts=facts), binary(code=b"aligned" if aligned else b"general")

    kernel = Launcher([(FAST, binary(code=b"fast"))], driver=driver, general=general)

    def call(n: int, pointer: int = 1 << 20) -> bytes:
        kernel(FakeTensor(torch, (8, n), pointer=pointer), FakeTensor(torch, (n,)), FakeTensor(torch, (8, n)))
        return driver.loads[driver.launches[-1].function - 2001][1]

    odd = (1 << 20) + 4
    assert [call(64), call(64, odd)] == [b"fast", b"general"] and built == [False]
    assert [call(63), call(63, odd), call(63)] == [b"aligned", b"general", b"aligned"] and built == [False, True]
    assert [call(64), call(65), call(65, odd)] == [b"fast", b"aligned", b"general"] and built == [False, True]


def test_an_aligned_variant_that_does_not_fit_either_makes_room_for_the_general_one(
    driver: FakeDriver, torch: Any
) -> None:
    def general(aligned: bool) -> tuple[Source, Binary]:
        facts = (STARTS, DIVIDES) if aligned else ()
        return replace(ADD, facts=facts), binary(code=b"aligned" if aligned else b"general")

    kernel = Launcher([(FAST, binary(code=b"fast"))], driver=driver, general=general)
    kernel(FakeTensor(torch, (8, 63)), FakeTensor(torch, (63,)), FakeTensor(torch, (8, 63)))
    assert driver.loads[driver.launches[-1].function - 2001][1] == b"general"


def test_a_fact_that_every_call_must_keep_builds_no_other_variant(driver: FakeDriver, torch: Any) -> None:
    stated = replace(ADD, facts=(STARTS, replace(DIVIDES, required=True, text="Assume: N % 4 == 0")))

    def general(aligned: bool) -> tuple[Source, Binary]:
        raise AssertionError("no variant is for such a call")

    kernel = Launcher([(stated, binary(code=b"fast"))], driver=driver, general=general)

    def call(n: int, pointer: int = 1 << 20) -> None:
        kernel(FakeTensor(torch, (8, n), pointer=pointer), FakeTensor(torch, (n,)), FakeTensor(torch, (8, n)))

    call(64)
    for pointer in (1 << 20, (1 << 20) + 4):
        with pytest.raises(AssumptionError, match="Assume: N % 4 == 0"):
            call(63, pointer)
    call(64)
    assert len(driver.launches) == 2


def test_a_failed_general_build_is_tried_again(driver: FakeDriver) -> None:
    attempts = []

    def general(aligned: bool) -> tuple[Source, Binary]:
        attempts.append(1)
        if len(attempts) == 1:
            raise MissingDependency("no compiler")
        return ADD, binary()

    kernel = Launcher([(FAST, binary())], driver=driver, general=general)
    with pytest.raises(MissingDependency):
        kernel(*abc(8, 63))
    kernel(*abc(8, 63))
    assert len(attempts) == 2 and len(driver.launches) == 1


def test_a_fact_beyond_the_low_bits_is_asked_at_every_call(driver: FakeDriver, torch: Any) -> None:
    page = replace(ADD, facts=(Fact(("eq", ("mod", ("add", "A.ptr", 0), 4096), 0), "A starts a page"),))
    kernel = Launcher([(page, binary(code=b"page")), (ADD, binary(code=b"any"))], driver=driver)
    used = []
    for pointer in (1 << 20, (1 << 20) + 256, 1 << 20):
        kernel(FakeTensor(torch, (8, 64), pointer=pointer), FakeTensor(torch, (64,)), FakeTensor(torch, (8, 64)))
        used.append(driver.loads[driver.launches[-1].function - 2001][1])
    assert used == [b"page", b"any", b"page"]


def test_without_a_general_variant_the_fact_is_told(driver: FakeDriver) -> None:
    kernel = add(driver, FAST)
    with pytest.raises(LaunchError, match=r"N % 4 == 0"):
        kernel(*abc(8, 63))
    with pytest.raises(LaunchError, match="A starts at 16 bytes"):
        kernel(*abc(8, 64, (1 << 20) + 4))
    wrong = replace(ADD, facts=(Fact(("eq", "Q", 1), "Q"),))
    with pytest.raises(InternalError, match="a fact of add speaks of 'Q'"):
        add(driver, wrong)(*abc())


def test_facts_on_strides_and_whole_addresses(driver: FakeDriver, torch: Any) -> None:
    strided = replace(ADD, params=(replace(ADD.params[0], strides=("s", 1)), *ADD.params[1:]))
    fast = replace(strided, facts=(Fact(("eq", "A.stride0", "N"), "A is dense"), Fact(("lt", "A.ptr", 1 << 40), "low")))
    kernel = Launcher([(fast, binary(code=b"fast")), (strided, binary(code=b"slow"))], driver=driver)

    def call(**fields: Any) -> bytes:
        kernel(FakeTensor(torch, (8, 64), **fields), FakeTensor(torch, (64,)), FakeTensor(torch, (8, 64)))
        return driver.loads[driver.launches[-1].function - 2001][1]

    assert [call(), call(strides=(72, 1)), call(), call(pointer=1 << 41), call()] == [
        b"fast", b"slow", b"fast", b"slow", b"fast"]  # fmt: skip
