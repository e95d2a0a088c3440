"""Tiles and tensors seen with another shape or element type: the same bytes, whatever layout they lie in."""

from __future__ import annotations

import numpy as np
import pytest

import tileworkbench.language as T
from tests.end_to_end.harness import everywhere, lowered
from tileworkbench.errors import LayoutError
from tileworkbench.layout import SharedLayout

PAIRS = [
    ((32, 64), "float32", (32, 128), "bfloat16"),
    ((32, 128), "float16", (32, 64), "float32"),
    ((64, 64), "int8", (64, 16), "int32"),
    ((16, 32), "int32", (64, 16), "int16"),
]


def pattern(shape, dtype):
    """Values whose bytes all differ from their neighbours' and are finite numbers of 16 and 32 bits."""
    size = int(np.prod(shape)) * dtype.itemsize
    raw = (np.arange(size) * 37 % 113).astype(np.uint8)
    return raw.view(dtype).reshape(shape)


@pytest.mark.parametrize("layout", ["chosen", "swizzled", "function", "padded"])
@pytest.mark.parametrize(("shape", "dtype", "seen", "other"), PAIRS)
def test_shared_tiles_as_another_dtype(shape, dtype, seen, other, layout):
    @T.prim_func
    def kernel(A: T.Tensor(shape, dtype), B: T.Tensor(seen, other)):
        with T.Kernel(1, threads=128):
            tile = T.alloc_shared(shape, dtype)
            as_other = T.view(tile, seen, dtype=other)
            item = T.dtype(dtype).bytes
            swizzle = SharedLayout.swizzled(shape, item, 64)
            if layout == "swizzled":
                T.annotate_layout({tile: swizzle})
            elif layout == "function":
                T.annotate_layout({tile: lambda i, j: swizzle.offset(i, j)})
            elif layout == "padded":
                T.annotate_layout({tile: SharedLayout.padded(shape, 16 // item)})
            T.copy(A, tile)
            T.copy(as_other, B)

    a = pattern(shape, kernel.kernel.params[0].dtype.numpy)
    everywhere(kernel, [a], a.view(np.uint8).view(kernel.kernel.params[1].dtype.numpy).reshape(seen))


def test_a_tile_written_through_a_view():
    @T.prim_func
    def kernel(A: T.Tensor((32, 128), "int16"), B: T.Tensor((32, 64), "int32")):
        with T.Kernel(1, threads=64):
            tile = T.alloc_shared((32, 64), "int32")
            halves = T.view(tile, (32, 128), dtype="int16")
            T.clear(tile)
            for i, j in T.Parallel(32, 64):
                halves[i, 2 * j + 1] = A[i, 2 * j + 1]
            for i, j in T.Parallel(32, 64):
                B[i, j] = tile[i, j] + halves[i, 2 * j]

    a = pattern((32, 128), np.dtype(np.int16))
    everywhere(kernel, [a], a[:, 1::2].astype(np.int32) << 16)


@pytest.mark.parametrize("way", ["copy", "through shared", "into", "elements"])
@pytest.mark.parametrize(("shape", "dtype", "seen", "other"), [*PAIRS, ((33, 3), "int32", (33, 6), "int16")])
def test_tensors_as_another_dtype(shape, dtype, seen, other, way):
    @T.prim_func
    def kernel(A: T.Tensor(shape, dtype), B: T.Tensor(seen, other)):
        with T.Kernel(1, threads=64):
            if way == "into":
                tile = T.alloc_shared(shape, dtype)
                T.copy(A, tile)
                T.copy(tile, T.view(B, shape, dtype=dtype))
            else:
                view = T.view(A, seen, dtype=other)
                if way == "copy":
                    T.copy(view, B)
                elif way == "elements":
                    for i, j in T.Parallel(*seen):
                        B[i, j] = view[i, j]
                else:
                    staged = T.alloc_shared(seen, other)
                    T.copy(view, staged)
                    T.copy(staged, B)

    a = pattern(shape, kernel.kernel.params[0].dtype.numpy)
    everywhere(kernel, [a], a.view(np.uint8).view(kernel.kernel.params[1].dtype.numpy).reshape(seen))


def test_a_reshaped_swizzled_tile_in_one_run():
    """The copy engine's run of bytes would not be the row-major order of the elements."""

    @T.prim_func
    def kernel(A: T.Tensor((32, 32), "float32"), B: T.Tensor((1024,), "float32")):
        with T.Kernel(1, threads=32):
            tile = T.alloc_shared((32, 32), "float32")
            swizzle = SharedLayout.swizzled((32, 32), 4, 128)
            T.annotate_layout({tile: lambda i, j: swizzle.offset(i, j)})
            T.copy(A, tile)
            T.copy(T.reshape(tile, [1024]), B)

    a = np.arange(1024, dtype=np.float32).reshape(32, 32)
    everywhere(kernel, [a], a.reshape(-1))


@pytest.mark.parametrize("kind", ["absmax", "sum"])
@pytest.mark.parametrize(("shape", "seen", "threads"), [((2, 384), (2, 3, 128), 128), ((4, 90), (12, 30), 64)])
def test_a_fragment_reduced_in_groups_that_no_thread_holds_evenly(shape, seen, threads, kind):
    reduce = T.reduce_absmax if kind == "absmax" else T.reduce_sum

    @T.prim_func
    def kernel(A: T.Tensor(shape, "int64"), B: T.Tensor(seen[:-1], "int64"), C: T.Tensor(shape, "int64")):
        with T.Kernel(1, threads=threads):
            held = T.alloc_fragment(shape, "int64")
            groups = T.reshape(held, list(seen))
            found = T.alloc_fragment(seen[:-1], "int64")
            T.copy(A, held)
            reduce(groups, found, dim=len(seen) - 1)
            T.copy(found, B)
            T.copy(held, C)

    a = np.random.default_rng(1).integers(-100, 100, shape)
    rows = a.reshape(seen)
    everywhere(kernel, [a], [np.abs(rows).max(-1) if kind == "absmax" else rows.sum(-1), a])


def test_fragments_keep_their_dtype():
    @T.prim_func
    def kernel(A: T.Tensor((32, 32), "float32"), B: T.Tensor((32, 64), "int16")):
        with T.Kernel(1, threads=32):
            held = T.alloc_fragment((32, 32), "float32")
            T.copy(A, held)
            T.copy(T.view(held, (32, 64), dtype="int16"), B)

    with pytest.raises(LayoutError, match="sees float32 elements"):
        lowered(kernel, "sm_90a")


@pytest.mark.parametrize(("first", "threads", "copies"), [(64, 128, 1), (32, 256, 2), (64, 256, 1)])
def test_fragments_of_threads_that_do_not_begin_at_0(first, threads, copies):
    @T.prim_func
    def kernel(A: T.Tensor((2, 256), "float32"), B: T.Tensor((2, 256), "float32"), C: T.Tensor((2,), "float32")):
        with T.Kernel(1, threads=threads):
            f = T.alloc_fragment((2, 256), "float32")
            g = T.alloc_fragment((2, 256), "float32")
            total = T.alloc_fragment((2,), "float32")
            each = T.Fragment((2, 256), lambda i, j, *c: (first + j // 4 + (64 * c[0] if c else 0), i * 4 + j % 4),
                              replicate=copies)  # fmt: skip
            T.annotate_layout({f: each})
            for i, j in T.Parallel(2, 256):
                f[i, j] = A[i, j] * 2
            T.copy(f, g)
            T.reduce_sum(f, total, dim=1)
            for i, j in T.Parallel(2, 256):
                B[i, j] = f[i, j] + g[i, j]
            T.copy(total, C)

    a = np.arange(512, dtype=np.float32).reshape(2, 256) % 37
    everywhere(kernel, [a], [a * 4, a.sum(1) * 2])
