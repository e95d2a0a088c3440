"""Rounding to whole numbers, approximate functions by type, variables given a value by T.let, and grids of no
dimension."""

from __future__ import annotations

import math

import ml_dtypes
import numpy as np
import pytest

import tileworkbench.language as T
from tests.end_to_end.harness import everywhere, integers
from tileworkbench.ir.expr import Var

HALVES = [-2.5, -1.5, -0.5, 0.5, 1.5, 2.5, 0.25, -0.75, 3.0, -7.0, 100.5, -101.5, 0.0, 1023.5, 5.5, -6.5]


def away(x: float) -> float:
    return math.copysign(math.floor(abs(x) + 0.5), x)  # exact for the few bits that these numbers have


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16"])
@pytest.mark.parametrize("mode", ["ties-to-even", "ties-away-from-zero"])
def test_whole_numbers_by_the_side_that_ties_take(dtype, mode):
    @T.prim_func
    def kernel(A: T.Tensor((16,), dtype), B: T.Tensor((16,), dtype)):
        with T.Kernel(1, threads=32):
            for i in T.Parallel(16):
                B[i] = T.round(A[i], mode)

    a = np.array(HALVES).astype(ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype)
    everywhere(kernel, [a], np.array([(round if mode == "ties-to-even" else away)(float(x)) for x in a]))


def test_just_below_a_half_rounds_to_zero():
    @T.prim_func
    def kernel(A: T.Tensor((2,), "float32"), B: T.Tensor((2,), "float32")):
        with T.Kernel(1, threads=32):
            for i in T.Parallel(2):
                B[i] = T.round(A[i], rounding_mode="ties-away-from-zero")

    below = np.nextafter(np.float32(0.5), np.float32(0))
    everywhere(kernel, [np.array([below, -below])], np.array([0.0, -0.0]))


@pytest.mark.parametrize("name", ["exp", "exp10", "log", "log2", "log10", "sin", "cos", "tan"])
def test_approximations_keep_the_type_of_their_operand(name):
    approximate = getattr(T, f"__{name}")
    for dtype in ("float16", "bfloat16", "float32", "float64"):
        assert str(approximate(Var("x", dtype=T.dtype(dtype).__dtype__)).dtype) == dtype
    with pytest.raises(TypeError, match=f"T.__{name} only supports floating-point inputs, but got int8"):
        approximate(Var("x", dtype=T.int8.__dtype__))


@pytest.mark.parametrize("dtype", ["float16", "float64"])
def test_approximations_of_powers(dtype):
    @T.prim_func
    def kernel(A: T.Tensor((8,), dtype), B: T.Tensor((8,), dtype)):
        with T.Kernel(1, threads=32):
            for i in T.Parallel(8):
                B[i] = T.__log2(A[i]) * 2

    # Of float64 the card's log2 is within one unit in the last place; those of 1 and 2 are exact.
    a = (2.0 ** (np.arange(-3, 5) if dtype == "float16" else np.repeat([0, 1], 4))).astype(dtype)
    everywhere(kernel, [a], np.log2(a) * 2)


def test_variables_that_let_gives_a_value_in_a_grid_of_one_block():
    @T.prim_func
    def kernel(A: T.Tensor((64,), "int32"), B: T.Tensor((64,), "int32")):
        with T.Kernel(threads=32):
            first = T.int32()
            T.let(first, T.get_thread_binding() * 2)
            for i in T.serial(2):
                place = T.int32()
                T.let(place, first + i)
                B[place] = A[place] + T.get_block_binding()

    a = integers(1, (64,), "int32")
    everywhere(kernel, [a], a)


def test_a_variable_without_a_kernel_is_a_plain_one():
    made = T.uint64()
    assert str((made & T.uint64(2**64 - 1)).dtype) == "uint64"


@pytest.mark.parametrize("space", ["shared", "fragment", "global"])
def test_votes_over_the_elements_of_a_tile(space):
    @T.prim_func
    def kernel(A: T.Tensor((8, 3, 8), "int32"), B: T.Tensor((8, 3), "int32")):
        with T.Kernel(8, threads=64) as bx:
            tile = A
            if space != "global":
                tile = T.alloc_shared((1, 3, 8), "int32") if space == "shared" else T.alloc_fragment((1, 3, 8), "int32")
                T.copy(A[bx : bx + 1, :, :], tile)
            at = bx if space == "global" else 0
            B[bx, 0] = T.any_of(tile[at, :, :])
            B[bx, 1] = T.if_then_else(T.all_of(tile[at, 1:3, 4:7]), 5, 6)
            if T.any_of(tile[at, 0:3, 3]):
                B[bx, 2] = 7
            else:
                B[bx, 2] = 8

    rng = np.random.default_rng(4)
    a = (rng.random((8, 3, 8)) < np.array([0, 0.01, 0.02, 0.5, 0.8, 0.9, 0.97, 1])[:, None, None]).astype(np.int32) * 3
    rows = [a.any((1, 2)), np.where(a[:, 1:3, 4:7].all((1, 2)), 5, 6), np.where(a[:, :, 3].any(1), 7, 8)]
    everywhere(kernel, [a], np.stack(rows, 1))


def test_a_list_of_coordinates_is_an_index():
    @T.prim_func
    def kernel(A: T.Tensor((6, 8), "int32"), B: T.Tensor((8, 6), "int32")):
        with T.Kernel(1, threads=48):
            for n in T.Parallel(48):
                at = T.index_to_coordinates(n, (8, 6))
                B[at] = A[[at[1], at[0]]]

    a = integers(5, (6, 8), "int32")
    everywhere(kernel, [a], a.T)


def test_constants_beyond_the_range_of_a_type_are_infinite():
    @T.prim_func
    def kernel(C: T.Tensor((3,), "float16")):
        with T.Kernel(1, threads=32):
            C[0] = T.max_value("bfloat16")
            C[1] = T.cast(-1e30, "float16")
            C[2] = 65504

    everywhere(kernel, [], np.array([np.inf, -np.inf, 65504]))
