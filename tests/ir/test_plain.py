"""Records as plain data: what comes back is the same, one object stays one, and nothing else gets through."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

import tileworkbench.language as T
from tests import kernels
from tileworkbench.errors import InternalError, Loc
from tileworkbench.ir.dtype import DTYPES
from tileworkbench.ir.expr import Var
from tileworkbench.ir.plain import NotPlain, Plain, read
from tileworkbench.ir.text import show
from tileworkbench.layout.function_fragment import FunctionFragment
from tileworkbench.layout.shared import SharedLayout
from tileworkbench.target import Target


def again(value):
    plain = Plain(value)
    return read(plain.text, plain.files)


@pytest.mark.parametrize(
    "value",
    [
        None, True, 1, 1.0, -0.0, float("inf"), 2**80, "ü\n", b"\0\xff", (), (1, (2.5, "a")), [1, [2]],
        {"a": (1,), 2: None}, {"x"}, frozenset({"x"}), np.dtype("float16"), Target.of("sm_90a"),
        Loc("cell", 3, 1, 4, 2, (Loc("b", 1),)),
        SharedLayout.swizzled((64, 64), 2, 128), SharedLayout.padded((8, 16), 4),
    ],
    ids=lambda value: type(value).__name__,
)  # fmt: skip
def test_values_come_back_with_their_types(value):
    found = again(value)
    assert type(found) is type(value) and found == value and str(found) == str(value)


def test_arrays_and_their_scalars_come_back():
    for array in (np.arange(6, dtype=np.int16).reshape(2, 3), np.ones(3, ml_dtypes.bfloat16)):
        found = again(array)
        assert found.dtype == array.dtype and found.shape == array.shape and (found == array).all()
    scalar = again(np.float32(0.1))
    assert type(scalar) is np.float32 and scalar == np.float32(0.1)
    fragment = FunctionFragment((4, 8), lambda i, j: i * 8 + j, lambda i, j: 0 * i)
    assert (again(fragment).owner_threads == fragment.owner_threads).all() and again(fragment).threads == 32


def test_one_object_stays_one_and_types_are_this_processes():
    x, y = Var("x"), Var("x")
    a, b, (c, d) = again((x, y, (x, DTYPES["float16"])))
    assert a is c and a is not b and d is DTYPES["float16"] and a.dtype is DTYPES["int32"]


@pytest.mark.parametrize("make", [lambda: kernels.gemm(256, 256, 256), lambda: kernels.attention(1, 2, 256, 64)])
def test_a_kernel_comes_back_as_it_was(make):
    kernel = make().kernel
    plain = Plain(kernel)
    found = read(plain.text, plain.files)
    assert show(found) == show(kernel) and found.loc == kernel.loc and len(plain.files) == 1
    assert Plain(found).digest == plain.digest == Plain(make().kernel).digest
    assert plain.digest != Plain(kernel.with_(attrs={**kernel.attrs, "build": {"fast_math": True}})).digest


def test_file_names_are_no_part_of_the_digest_but_lines_are():
    first, other, lower = Plain(Loc("cell-1", 3)), Plain(Loc("cell-2", 3)), Plain(Loc("cell-1", 4))
    assert first.digest == other.digest != lower.digest and other.files == ("cell-2",)
    assert read(first.text, other.files) == Loc("cell-2", 3)
    # Two files are not one.
    assert Plain((Loc("a", 1), Loc("b", 1))).digest != Plain((Loc("a", 1), Loc("a", 1))).digest


class Mine:
    pass


@pytest.mark.parametrize(
    "value", [lambda: 1, Mine(), Mine, object(), {1, 2}, T, SharedLayout.from_function((4, 4), lambda i, j: i * 4 + j)]
)
def test_what_is_not_ours_is_refused(value):
    with pytest.raises(NotPlain):
        Plain((1, value))


def test_nesting_without_end_is_refused():
    deep = ()
    for _ in range(100_000):
        deep = (deep,)
    with pytest.raises(NotPlain):
        Plain(deep)


@pytest.mark.parametrize(
    "text",
    ["", "{}", "[[],[]]", '[["errors:NoSuch"],[[0]],["r",0]]', '[["subprocess:Popen"],[[0]],["r",0]]', '[[],[],["z"]]',
     '[["ir.plain:json"],[[0]],["r",0]]', '[["errors:Loc"],[[0,7,1]],["r",0]]'],
)  # fmt: skip
def test_text_that_is_not_ours_is_refused(text):
    with pytest.raises(InternalError):
        read(text, ["a"])
