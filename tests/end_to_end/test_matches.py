"""Matches between the lanes of a warp, and the n-th one bit: against NumPy on both machines, built for NVIDIA."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tileworkbench as tw
import tileworkbench.language as T
from tileworkbench.errors import LanguageError, TargetError

from .harness import ALL, NVIDIA, everywhere, lowered

DTYPES = ("int8", "int32", "uint32", "float32", "int64", "float64")


def lanes_alike(values: np.ndarray) -> np.ndarray:
    """For each lane of each warp the lanes that hold its bits."""
    bits = values.view(f"u{values.dtype.itemsize}").reshape(-1, 32)
    return ((bits[:, :, None] == bits[:, None, :]) * (1 << np.arange(32, dtype=np.int64))).sum(-1).reshape(-1)


@pytest.mark.parametrize("dtype", DTYPES)
def test_matches(dtype: str) -> None:
    @T.prim_func
    def kernel(A: T.Tensor((64,), dtype), B: T.Tensor((64,), "uint32"), C: T.Tensor((64,), "uint32")):
        with T.Kernel(1, threads=64):
            tx = T.get_thread_binding()
            B[tx] = T.match_any_sync(A[tx])
            C[tx] = T.match_all_sync(A[tx])

    a = np.random.default_rng(1).integers(0, 5, 64).astype(dtype)
    a[32:] = 3
    if dtype.startswith("float"):
        a[:2] = [0.0, -0.0]  # equal numbers of different bits
        a[2:4] = np.nan
    alls = np.repeat(np.array([0, 0xFFFFFFFF], np.uint32), 32)
    everywhere(kernel, [a], [lanes_alike(a), alls], NVIDIA)


def test_high_halves_count() -> None:
    @T.prim_func
    def kernel(A: T.Tensor((32,), "uint64"), B: T.Tensor((32,), "uint32")):
        with T.Kernel(1, threads=32):
            tx = T.get_thread_binding()
            B[tx] = T.match_any_sync(A[tx], mask=0xFFFFFFFF)

    a = (np.arange(32, dtype=np.uint64) % 4) << np.uint64(33)
    everywhere(kernel, [a], [lanes_alike(a)], NVIDIA)


def test_constants_and_a_part_of_a_warp() -> None:
    @T.prim_func
    def kernel(B: T.Tensor((48,), "uint32")):
        with T.Kernel(1, threads=48):
            tx = T.get_thread_binding()
            B[tx] = T.match_all_sync(7) + (T.match_any_sync(tx // 8) & 0)

    # The second warp has 16 lanes; those that are not there are in no mask.
    everywhere(kernel, [], [np.repeat([0xFFFFFFFF, 0xFFFF], [32, 16]).astype(np.uint32)], NVIDIA)


def pairs() -> Any:
    @T.prim_func
    def kernel(A: T.Tensor((32,), "int32"), B: T.Tensor((32,), "uint32")):
        with T.Kernel(1, threads=32):
            tx = T.get_thread_binding()
            B[tx] = T.match_any_sync(A[tx])

    return kernel


def test_other_targets_refuse_them() -> None:
    with pytest.raises(TargetError, match="match_any_sync for gfx942") as error:
        lowered(pairs(), "gfx942")
    assert error.value.loc is not None


def test_part_of_a_warp_is_refused_before_it_runs() -> None:
    @T.prim_func
    def kernel(A: T.Tensor((32,), "int32"), B: T.Tensor((32,), "uint32")):
        with T.Kernel(1, threads=32):
            tx = T.get_thread_binding()
            if tx < 8:
                B[tx] = T.match_any_sync(A[tx])

    with pytest.raises(LanguageError, match="only some threads"):
        tw.compile(kernel, target="sm_80")


@pytest.mark.parametrize(("base", "offset"), [(0, 1), (0, 3), (5, 2), (31, 1), (31, -1), (20, -4), (3, 0), (0, 32)])
def test_the_nth_bit(base: int, offset: int) -> None:
    @T.prim_func
    def kernel(A: T.Tensor((64,), "uint32"), B: T.Tensor((64,), "uint32")):
        with T.Kernel(1, threads=64):
            tx = T.get_thread_binding()
            B[tx] = T.__fns(A[tx], base, offset)

    a = np.random.default_rng(2).integers(0, 1 << 32, 64).astype(np.uint32)
    a[:3] = [0, 0xFFFFFFFF, 1 << base]

    def found(mask: int) -> int:
        ones = [i for i in range(32) if mask >> i & 1]
        if offset == 0:
            return base if base in ones else 0xFFFFFFFF
        left = [i for i in ones if i >= base] if offset > 0 else [i for i in ones if i <= base][::-1]
        return left[abs(offset) - 1] if len(left) >= abs(offset) else 0xFFFFFFFF

    everywhere(kernel, [a], [np.array([found(int(x)) for x in a], np.uint32)], ALL, build=offset in (3, -4))
