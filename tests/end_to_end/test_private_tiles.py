"""Tile operations on arrays that each thread has of its own."""

from __future__ import annotations

import numpy as np
import pytest

import tileworkbench as tw
import tileworkbench.language as T
from tileworkbench.errors import TargetError

from .harness import everywhere, integers


@T.prim_func
def product(A: T.Tensor((8, 16), "float32"), B: T.Tensor((16, 8), "float32"), C: T.Tensor((8, 8), "float32")):
    with T.Kernel(1):
        a = T.alloc_local((8, 16), "float32")
        b = T.alloc_local((16, 8), "float32")
        c = T.alloc_local((8, 8), "float32")
        T.copy(A, a)
        T.copy(B, b)
        T.clear(c)
        T.gemm(a, b, c)
        T.copy(c, C)


def test_a_block_of_one_thread_multiplies_its_own_arrays() -> None:
    a, b, c = integers(1, (8, 16)), integers(2, (16, 8)), np.zeros((8, 8), np.float32)
    tw.compile(product, target="llvm")(a, b, c)
    assert np.array_equal(c, a @ b)


def test_cards_refuse_it() -> None:
    with pytest.raises(TargetError, match="each thread's own array") as caught:
        tw.compile(product, target="sm_90a")
    assert caught.value.loc is not None and "T.gemm" in caught.value.loc.source_line()


@pytest.mark.parametrize("kind", ("add", "max", "min"))
def test_a_tile_of_updates_of_an_own_array(kind):  # type: ignore[no-untyped-def]
    update = getattr(T, f"atomic_{kind}")

    @T.prim_func
    def kernel(A: T.Tensor((3, 4), "float32"), B: T.Tensor((3, 4), "float32"), C: T.Tensor((3, 4), "float32")):
        with T.Kernel(1, threads=1):
            own = T.alloc_local((3, 4), "float32")
            for i, j in T.grid(3, 4):
                own[i, j] = A[i, j]
            update(own, B)
            for i, j in T.grid(3, 4):
                C[i, j] = own[i, j]

    a, b = integers(1, (3, 4)), integers(2, (3, 4))
    fn = {"add": np.add, "max": np.maximum, "min": np.minimum}[kind]
    everywhere(kernel, [a, b], fn(a, b), ("sm_90a",))
