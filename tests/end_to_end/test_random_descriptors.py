"""Descriptors of random tensors, boxes, places, swizzles and fills, against elements counted out one by one."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import tileworkbench.language as T

from .harness import HOPPER, everywhere

NUMBERS = {
    "uint8": 0, "int8": 0, "int16": 1, "int32": 3, "int64": 5, "float16": 6, "float32": 7, "float64": 8, "bfloat16": 9,
    "float8_e4m3fn": 0,
}  # fmt: skip
SPANS = (0, 32, 64, 128)


@dataclass
class Case:
    """Numbers innermost first; `shape` of the tensor, `tile` and `place` as the kernel writes them."""

    dtype: str
    dims: list[int]
    strides: list[int]  # elements
    shape: tuple[int, ...]
    box: list[int]
    coords: list[int]
    swizzle: int
    fill: int
    tile: tuple[int, ...]
    at: int
    place: tuple[slice | int, ...]
    late: bool  # the coordinates are known only at run time


def random_case(seed: int) -> Case:
    g = np.random.default_rng(seed)

    def some(low: int, high: int, count: int) -> list[int]:
        return [int(n) for n in g.integers(low, high, count)]

    dtype = str(g.choice(list(NUMBERS)))
    item = np.dtype(T.Tensor((1,), dtype).dtype.numpy).itemsize
    rank, swizzle, unit = int(g.integers(1, 6)), int(g.integers(4)), 16 // item
    box = [SPANS[swizzle] // item or int(g.integers(1, 5)) * unit, *some(1, 5, rank - 1)]
    dims = [int(g.integers(1, 5)) * unit, *some(1, 8, rank - 1)]
    how = str(g.choice(["itself", "as one row", "a part"]))
    full = [dims[0] + unit * int(g.integers(3)), *(d * n for d, n in zip(dims[1:], some(1, 3, rank - 1), strict=True))]
    full = full if how == "a part" else dims
    strides = [math.prod(full[:d]) for d in range(rank)]
    if how == "a part":
        strides = [s * (full[d] // dims[d] if d and g.integers(2) else 1) for d, s in enumerate(strides)]
    shape = (math.prod(full),) if how == "as one row" else tuple(full[::-1])
    coords = [int(g.integers(-3, dims[0] // unit + 2)) * unit, *(int(g.integers(-3, d + 2)) for d in dims[1:])]
    fill = int(g.integers(2)) if dtype in ("float16", "float32", "float64") else 0
    rows, step = math.prod(box[1:]), 128 // item
    if swizzle:
        high, panels = -(-rows // 8) * 8, int(g.integers(1, 3))
        which, panel = int(g.integers(2)), int(g.integers(panels))
        tile: tuple[int, ...] = (2, high, panels * box[0])
        at = (which * panels + panel) * high * box[0]
        place: tuple[slice | int, ...] = (which, slice(rows), slice(panel * box[0], (panel + 1) * box[0]))
    else:
        at = int(g.integers(3)) * step
        tile, place = (at + -(-rows * box[0] // step) * step + step,), (slice(at, at + rows * box[0]),)
    late = bool(g.integers(2))
    return Case(dtype, dims, strides, shape, box, coords, swizzle, fill, tile, at, place, late)


def kernel(c: Case) -> Any:
    rank, item = len(c.dims), np.dtype(T.Tensor((1,), c.dtype).dtype.numpy).itemsize
    pitches = [s * item for s in c.strides]

    @T.prim_func
    def load(A: T.Tensor(c.shape, c.dtype), Zero: T.Tensor((1,), "int32"), B: T.Tensor(c.tile, c.dtype)):
        with T.Kernel(1, threads=64):
            S = T.alloc_shared(c.tile, c.dtype)
            bar = T.alloc_barrier(1)
            T.clear(S)
            T.fence_proxy_async()
            T.sync_threads()
            if T.get_thread_binding() == 32:
                T.mbarrier_arrive_expect_tx(bar[0], math.prod(c.box) * item)
                desc = T.create_tma_descriptor(
                    NUMBERS[c.dtype], rank, A.data, *c.dims, *pitches, *c.box, *[1] * rank, 0, c.swizzle, 2, c.fill
                )
                coords = [n + Zero[0] for n in c.coords] if c.late else c.coords
                T.tma_load(desc, bar[0], T.tvm_access_ptr(c.dtype, S.data, c.at, math.prod(c.box), 2), *coords, 0)
            T.mbarrier_wait_parity(bar[0], 0)
            T.copy(S, B)

    return load


def loaded(c: Case, a: np.ndarray) -> np.ndarray:
    flat, rank = a.reshape(-1), len(c.dims)
    box = np.zeros(c.box[::-1], a.dtype)
    for index in np.ndindex(*box.shape):
        at = [c.coords[d] + index[rank - 1 - d] for d in range(rank)]
        if all(0 <= n < size for n, size in zip(at, c.dims, strict=True)):
            box[index] = flat[sum(n * s for n, s in zip(at, c.strides, strict=True))]
        elif c.fill:
            box[index] = np.nan
    out = np.zeros(c.tile, a.dtype)
    out[c.place] = box.reshape(out[c.place].shape)
    return out


@pytest.mark.parametrize("seed", range(40))
def test_boxes(seed: int) -> None:
    c = random_case(seed)
    dtype = T.Tensor((1,), c.dtype).dtype.numpy
    a = np.random.default_rng(seed).integers(0 if c.dtype == "uint8" else -16, 17, c.shape).astype(np.float32)
    zero = np.zeros(1, np.int32)
    everywhere(
        kernel(c), [a.astype(dtype), zero], loaded(c, a.astype(dtype)), ("sm_90a",), build=HOPPER or seed % 10 == 0
    )
