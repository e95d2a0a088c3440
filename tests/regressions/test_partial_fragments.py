"""Fragments that a part of the block's threads hold: an operation's other threads have nothing to say in it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tileworkbench.language as T

from .machines import Machine

TARGETS = ("sm_80", "sm_90a")
SHAPE = M, _ = 4, 512
HELD = [(64, 0), (64, 64), (16, 0), (16, 16), (8, 3)]  # threads that hold the tile, and the first of them


def along_rows(shape: tuple[int, int], holders: int, first: int) -> Any:
    """Each holder has a run of every row."""
    run = shape[1] // holders
    return T.Fragment(shape, lambda i, j: (first + j // run, i * run + j % run))


def folded(held: tuple[int, int], dim: int) -> Any:
    kept = SHAPE[1 - dim]

    @T.prim_func
    def kernel(A: T.Tensor(SHAPE, "float32"), B: T.Tensor((kept,), "float32")):
        with T.Kernel(1, threads=128):
            x = T.alloc_fragment(SHAPE, "float32")
            total = T.alloc_fragment((kept,), "float32")
            T.annotate_layout({x: along_rows(SHAPE, *held)})
            T.copy(A, x)
            T.reduce_sum(x, total, dim=dim)
            T.copy(total, B)

    return kernel


def rows(held: tuple[int, int]) -> Any:
    return folded(held, 1)


def columns(held: tuple[int, int]) -> Any:
    return folded(held, 0)


def running(held: tuple[int, int]) -> Any:
    @T.prim_func
    def kernel(A: T.Tensor(SHAPE, "float32"), B: T.Tensor(SHAPE, "float32")):
        with T.Kernel(1, threads=128):
            x = T.alloc_fragment(SHAPE, "float32")
            T.annotate_layout({x: along_rows(SHAPE, *held)})
            T.copy(A, x)
            T.cumsum(x, dim=1)
            T.copy(x, B)

    return kernel


def through_shared(held: tuple[int, int]) -> Any:
    @T.prim_func
    def kernel(A: T.Tensor(SHAPE, "float32"), B: T.Tensor(SHAPE, "float32")):
        with T.Kernel(1, threads=128):
            x = T.alloc_fragment(SHAPE, "float32")
            tile = T.alloc_shared(SHAPE, "float32")
            y = T.alloc_fragment(SHAPE, "float32")
            T.annotate_layout({x: along_rows(SHAPE, *held)})
            T.copy(A, x)
            T.copy(x, tile)
            T.copy(tile, y)
            for i, j in T.Parallel(*SHAPE):
                y[i, j] = 2 * y[i, j] + x[i, j]
            T.copy(y, B)

    return kernel


def added_at_once(held: tuple[int, int]) -> Any:
    @T.prim_func
    def kernel(A: T.Tensor(SHAPE, "float32"), B: T.Tensor(SHAPE, "float32")):
        with T.Kernel(1, threads=128):
            x = T.alloc_fragment(SHAPE, "float32")
            T.annotate_layout({x: along_rows(SHAPE, *held)})
            T.copy(A, x)
            for i, j in T.Parallel(*SHAPE):
                B[i, j] = 0
            T.sync_threads()
            T.atomic_add(B, x)

    return kernel


def reduced(held: tuple[int, int]) -> Any:
    @T.prim_func
    def kernel(A: T.Tensor(SHAPE, "float32"), B: T.Tensor((M,), "float32")):
        with T.Kernel(1, threads=128):
            x = T.alloc_fragment(SHAPE, "float32")
            total = T.alloc_reducer((M,), "float32", op="sum", replication="all")
            T.annotate_layout({x: along_rows(SHAPE, *held)})
            T.copy(A, x)
            T.clear(total)
            for i, j in T.Parallel(*SHAPE):
                total[i] += x[i, j]
            T.finalize_reducer(total)
            T.copy(total, B)

    return kernel


KERNELS: dict[Callable[..., Any], Callable[[np.ndarray], np.ndarray]] = {
    rows: lambda a: a.sum(1),
    columns: lambda a: a.sum(0),
    running: lambda a: a.cumsum(1),
    through_shared: lambda a: 3 * a,
    added_at_once: lambda a: a,
    reduced: lambda a: a.sum(1),
}


@pytest.mark.parametrize("make", KERNELS)
def test_a_part_of_the_threads_holds_the_tile(machine: Machine, make: Callable[..., Any]) -> None:
    a = np.random.default_rng(9).integers(-9, 10, SHAPE).astype(np.float32)
    for held in machine.some(HELD, 3):
        machine.check(make(held), [a], KERNELS[make](a).astype(np.float32), TARGETS, note=held)


@pytest.mark.parametrize("operand", [True, False])
def test_products_with_such_tiles(machine: Machine, operand: bool) -> None:
    """As the first operand, and as what is added to."""
    a = np.random.default_rng(9).integers(-4, 5, (64, 64)).astype(np.float16)
    for held in machine.some(HELD, 3):

        @T.prim_func
        def kernel(A: T.Tensor((64, 64), "float16"), B: T.Tensor((64, 64), "float32")):
            with T.Kernel(1, threads=128):
                tile = T.alloc_shared((64, 64), "float16")
                x = T.alloc_fragment((64, 64), "float16")
                c = T.alloc_fragment((64, 64), "float32")
                T.annotate_layout({(x if operand else c): along_rows((64, 64), *held)})  # noqa: B023
                T.copy(A, tile)
                T.copy(A, x)
                T.clear(c)
                T.gemm(x if operand else tile, tile, c)
                T.copy(c, B)

        truth = a.astype(np.float32) @ a.astype(np.float32)
        machine.check(kernel, [a], truth, TARGETS, note=held)
