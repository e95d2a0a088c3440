"""What a call is checked for: arguments, extents, strides, limits of the grid; what reaches the driver."""

from __future__ import annotations

import struct
from dataclasses import replace
from typing import Any

import pytest

from tests.runtime.fakes import FakeDriver, FakeTensor, OnDevice
from tests.runtime.launching import ADD, PLACES, abc, add
from tileworkbench.codegen.source import KernelArg, ScalarParam, TensorParam
from tileworkbench.errors import LaunchError


def test_arguments_grid_and_function_reach_the_driver(driver: FakeDriver) -> None:
    kernel = add(driver)
    assert kernel(*abc()) is None
    (done,) = driver.launches
    assert done.args == [1 << 20, (1 << 20) + 4096, (1 << 20) + 8192, 100, 200]
    assert (done.grid, done.threads, done.shared, done.cluster) == ((4, 4, 1), 128, 4096, (1, 1, 1))
    assert driver.loads == [(0, b"cubin", "add", 4096, 1)] and done.function == 2001 and done.stream == 0
    kernel(*abc(31, 65, 1 << 24))
    assert driver.launches[1].grid == (2, 1, 1) and driver.launches[1].args[3:] == [31, 65]
    assert len(driver.loads) == 1


def test_names_defaults_and_scalars(driver: FakeDriver) -> None:
    source = replace(
        ADD,
        params=(*ADD.params, ScalarParam("scale", "float32", 0.5), ScalarParam("flag", "bool", True)),
        args=(*ADD.args, KernelArg("scalar", "scale", "float32"), KernelArg("scalar", "flag", "bool")),
    )
    kernel, (a, b, c) = add(driver, source), abc()
    kernel(a, b, c)
    kernel(a, C=c, B=b, scale=2)
    kernel(a, b, c, -1.5, False)
    got = [(struct.unpack("<f", struct.pack("<I", d.args[5]))[0], d.args[6]) for d in driver.launches]
    assert got == [(0.5, 1), (2.0, 1), (-1.5, 0)]
    assert all(d.args[:3] == [x.__cuda_array_interface__["data"][0] for x in (a, b, c)] for d in driver.launches)
    with pytest.raises(LaunchError, match="flag: 7 does not fit bool"):
        kernel(a, b, c, 1.0, 7)
    with pytest.raises(LaunchError, match="scale: 'x' of type str is no number"):
        kernel(a, b, c, "x")


@pytest.mark.parametrize("call, message", [
    (lambda k, a, b, c: k(a, b), "C is missing: 2 arguments"),
    (lambda k, a, b, c: k(a, b, c, c), "4 arguments were given"),
    (lambda k, a, b, c: k(a, b, c, A=a), "'A' was given twice"),
    (lambda k, a, b, c: k(a, b, c, D=a), "no parameter 'D'"),
    (lambda k, a, b, c: k(a, b, 7), "C: an object of type int is no array"),
    (lambda k, a, b, c: k(a, b, OnDevice((100, 200), "float16")), "C has dtype float16, expected float32"),
    (lambda k, a, b, c: k(a, a, c), r"B has 2 dimensions \(100, 200\), expected 1"),
    (lambda k, a, b, c: k(a, OnDevice((199,)), c),
     r"B.shape\[0\] is 199, expected 200 \(N = 200 from A.shape\[1\]\)"),
    (lambda k, a, b, c: k(a, b, OnDevice((100, 200), read_only=True)), "C is read-only"),
    (lambda k, a, b, c: k(a, b, OnDevice((100, 200), strides=(256, 1))),
     r"C has strides \(256, 1\), expected \(200, 1\)"),
])  # fmt: skip
def test_wrong_arguments_are_named_with_both_sides(driver: FakeDriver, call: Any, message: str) -> None:
    import re

    with pytest.raises(LaunchError) as caught:
        call(add(driver), *abc())
    assert re.search(message, caught.value.found), caught.value.found
    assert not driver.launches
    first = caught.value.found[0]
    if caught.value.found[1] in ":. " and first in PLACES and "missing" not in message:
        assert caught.value.loc == PLACES[first]


def test_a_fixed_shape_is_checked(driver: FakeDriver) -> None:
    source = replace(ADD, params=(replace(ADD.params[0], shape=("M", 256)), *ADD.params[1:]))
    with pytest.raises(LaunchError, match=r"A.shape\[1\] is 200, expected 256"):
        add(driver, source)(*abc())


def test_strides_of_extents_of_one_say_nothing(driver: FakeDriver) -> None:
    _a, b, c = abc(1, 200)
    add(driver)(OnDevice((1, 200), strides=(7, 1)), b, c)
    assert driver.launches


def test_symbols_from_strides_and_linear_forms(driver: FakeDriver) -> None:
    source = replace(
        ADD,
        params=(
            TensorParam("A", "float32", (("mul", "M", 2), "N"), ("lda", 1)),
            TensorParam("B", "float32", (("add", "N", "P"),)),
            TensorParam("C", "float32", ("M", "N"), access="w"),
        ),
        args=tuple(KernelArg("symbol", name, "int32") for name in ("M", "N", "P", "lda")),
    )
    kernel = add(driver, source)
    c = OnDevice((50, 200))
    kernel(OnDevice((100, 200), strides=(256, 1)), OnDevice((203,)), c)
    assert driver.launches[0].args == [50, 200, 3, 256]
    with pytest.raises(LaunchError, match=r"A.shape\[0\] is 102, expected 100 = M \* 2 \(M = 50 from C.shape\[0\]\)"):
        kernel(OnDevice((102, 200), strides=(256, 1)), OnDevice((203,)), c)
    with pytest.raises(LaunchError, match=r"A.stride\[1\] is 2, expected 1"):
        kernel(OnDevice((100, 200), strides=(256, 2)), OnDevice((203,)), c)


def test_odd_and_unsolvable_extents_are_told(driver: FakeDriver) -> None:
    odd = replace(ADD, params=(TensorParam("A", "float32", (("mul", "M", 2),)),), args=(), grid=("M",))
    with pytest.raises(LaunchError, match=r"A.shape\[0\] is 7, and no whole number M makes M \* 2 that"):
        add(driver, odd)(OnDevice((7,)))
    unclear = replace(odd, params=(TensorParam("A", "float32", (("floordiv", "M", 2),)),))
    with pytest.raises(LaunchError, match="M cannot be told from"):
        add(driver, unclear)(OnDevice((7,)))


def test_limits_of_grid_and_int32(driver: FakeDriver) -> None:
    with pytest.raises(LaunchError, match=r"65536 blocks in y \(ceildiv\(M, 32\)\)"):
        add(driver)(*abc(65535 * 32 + 1, 1))
    small = replace(ADD, grid=(1,))
    with pytest.raises(LaunchError, match="M: 2147483648 does not fit int32"):
        add(driver, small)(*abc(2**31, 1))


def test_a_grid_is_whole_clusters(driver: FakeDriver) -> None:
    with pytest.raises(LaunchError, match="3 blocks in x, in clusters of 2"):
        add(driver, replace(ADD, cluster=(2, 1, 1)))(*abc(100, 192))


def test_an_empty_grid_is_refused(driver: FakeDriver) -> None:
    with pytest.raises(LaunchError, match="the grid has 0 blocks in y"):
        add(driver)(*abc(0, 200))
    assert not driver.launches


def test_none_stands_for_a_tensor_that_is_not_touched(driver: FakeDriver) -> None:
    unused = replace(ADD.params[1], access="")
    kernel = add(driver, replace(ADD, params=(ADD.params[0], unused, ADD.params[2])))
    a, b, c = abc()
    kernel(a, None, c)
    kernel(a, None, c)
    kernel(a, b, c)
    addresses = [done.args[1] for done in driver.launches]
    assert addresses[:2] == [0, 0] and addresses[2] != 0
    with pytest.raises(LaunchError, match="A: an object of type NoneType is no array"):
        kernel(None, b, c)


def test_a_size_that_no_tensor_tells_is_zero(driver: FakeDriver) -> None:
    source = replace(
        ADD,
        params=(TensorParam("A", "float32", ("M",), access=""), TensorParam("C", "float32", ("N",), access="w")),
        args=(KernelArg("pointer", "A"), KernelArg("pointer", "C"), KernelArg("symbol", "M", "int32")),
        grid=("N",),
    )
    add(driver, source)(None, OnDevice((3,)))
    assert driver.launches[0].args[0::2] == [0, 0] and driver.launches[0].grid[0] == 3


def test_a_bare_address_stands_for_a_tensor_whose_size_is_given(driver: FakeDriver, torch: Any) -> None:
    source = replace(
        ADD,
        params=(
            TensorParam("A", "float32", ("m", ("mul", "m", 2)), address=True),
            TensorParam("B", "float32", (4,)),
            ScalarParam("m", "int32"),
        ),
        args=(KernelArg("pointer", "A"), KernelArg("scalar", "m", "int32")),
        grid=("m",),
    )
    kernel = add(driver, source)
    kernel(1 << 21, FakeTensor(torch, (4,)), 3)
    assert driver.launches[0].args == [1 << 21, 3] and driver.launches[0].grid[0] == 3
    with pytest.raises(LaunchError, match="no array"):
        kernel(FakeTensor(torch, (3, 6)), 1 << 21, 3)
    unsized = replace(source, params=(TensorParam("A", "float32", ("n",), address=True), *source.params[1:]))
    with pytest.raises(LaunchError, match="unknown extent n"):
        add(driver, unsized)(1 << 21, FakeTensor(torch, (4,)), 3)
