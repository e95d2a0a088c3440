"""Reductions and scans over any number of threads, dtypes and destinations."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

import tileworkbench.language as T
from tests.end_to_end.harness import integers, lowered
from tileworkbench.errors import ShapeError, TileError

from .machines import Machine

DTYPES = {"bfloat16": ml_dtypes.bfloat16, "float16": np.float16, "float32": np.float32}


@pytest.mark.parametrize("threads", range(32, 257, 16))
def test_tl2542_a_reduction_over_any_number_of_threads(machine: Machine, threads: int) -> None:
    """As many elements as threads, and rows of 48 in the same block: 1 … n sums up to n (n + 1) / 2."""

    @T.prim_func
    def kernel(
        A: T.Tensor((threads,), "int32"),
        B: T.Tensor((5, 48), "int32"),
        Sum: T.Tensor((1,), "int32"),
        Max: T.Tensor((1,), "int32"),
        Rows: T.Tensor((5,), "int32"),
        Columns: T.Tensor((48,), "int32"),
    ):
        with T.Kernel(1, threads=threads):
            a = T.alloc_fragment((threads,), "int32")
            b = T.alloc_fragment((5, 48), "int32")
            one = T.alloc_fragment((1,), "int32")
            two = T.alloc_fragment((1,), "int32")
            rows = T.alloc_fragment((5,), "int32")
            columns = T.alloc_fragment((48,), "int32")
            T.copy(A, a)
            T.copy(B, b)
            T.reduce_sum(a, one, dim=0)
            T.reduce_max(a, two, dim=0)
            T.reduce_sum(b, rows, dim=1)
            T.reduce_min(b, columns, dim=0)
            T.copy(one, Sum)
            T.copy(two, Max)
            T.copy(rows, Rows)
            T.copy(columns, Columns)

    a, b = np.random.default_rng(1).permutation(threads).astype(np.int32) + 1, integers(2, (5, 48), "int32")
    total = np.array([threads * (threads + 1) // 2], np.int32)
    truth = [total, np.array([threads], np.int32), b.sum(1, dtype=np.int32), b.min(0)]
    slow = ("sm_80", "gfx942") if threads % 64 else ("sm_80",)  # of 64 lanes each, on gfx942
    machine.check(kernel, [a, b], truth, ("sm_80", "sm_90a") if machine.thorough else slow)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("kind", ("absmax", "max", "abssum"))
def test_tl2305_the_largest_of_a_row_in_each_position(machine: Machine, kind: str, dtype: str) -> None:
    """Rows of 5 rounds of 4 elements a thread; the extreme stands in each place in turn, with either sign."""
    places = machine.some(range(640), 24)
    rows, op = len(places), getattr(T, f"reduce_{kind}")

    @T.prim_func
    def kernel(A: T.Tensor((rows, 640), dtype), B: T.Tensor((rows,), dtype)):
        with T.Kernel(T.ceildiv(rows, 4), threads=32) as bx:
            x = T.alloc_fragment((4, 640), dtype)
            r = T.alloc_fragment((4,), dtype)
            T.copy(A[bx * 4, 0], x)
            op(x, r, dim=1)
            T.copy(r, B[bx * 4])

    small = 0 if kind == "abssum" else 20  # so that a sum is exact in every type
    a = integers(1, (rows, 640), "int64", small)
    a[np.arange(rows), places] = [100 if p % 2 and kind != "max" else -100 for p in places]
    if kind == "max":
        a = -a
    truth = {"absmax": abs(a).max, "max": a.max, "abssum": abs(a).sum}[kind](1)
    assert (truth == 100).all()
    machine.check(kernel, [a.astype(DTYPES[dtype])], truth.astype(DTYPES[dtype]), ("sm_80", "sm_90a"))


@pytest.mark.parametrize("vector", (2, 4, 8))
@pytest.mark.parametrize("rounds", (1, 3, 5))
def test_tl2294_rounds_and_vectors_of_a_given_layout(machine: Machine, rounds: int, vector: int) -> None:
    """The fragment's layout is given by a loop: `rounds` strides of `vector` neighbours a thread."""
    width = 32 * vector * rounds
    places = machine.some(range(width), 12)
    rows = len(places)

    @T.prim_func
    def kernel(A: T.Tensor((rows, width), "bfloat16"), B: T.Tensor((rows,), "bfloat16")):
        with T.Kernel(rows, threads=32) as bx:
            x = T.alloc_fragment((1, width), "bfloat16")
            r = T.alloc_fragment((1,), "bfloat16")
            for i, j in T.Parallel(1, width, coalesced_width=vector):
                x[i, j] = A[bx + i, j]
            T.reduce_absmax(x, r, dim=1)
            T.copy(r, B[bx])

    a = integers(1, (rows, width), "int64", 20)
    a[np.arange(rows), places] = -77
    found = abs(a).max(1).astype(ml_dtypes.bfloat16)
    machine.check(kernel, [a.astype(ml_dtypes.bfloat16)], found, ("sm_80",))


@pytest.mark.parametrize("batch", (1, 2))
@pytest.mark.parametrize("threads", (64, 128, 256))
def test_tl2524_several_reductions_with_fewer_threads_than_the_block(
    machine: Machine, threads: int, batch: int
) -> None:
    """One behind the other in a loop, so that no workspace may be taken again too early."""

    @T.prim_func
    def kernel(A: T.Tensor((6, 8, 16), "float32"), Out: T.Tensor((3, 4, 2, 16), "float32")):
        with T.Kernel(1, threads=threads):
            s = T.alloc_shared((2, 8, 16), "float32")
            f = T.alloc_fragment((2, 8, 16), "float32")
            total = T.alloc_fragment((2, 16), "float32")
            high = T.alloc_fragment((2, 16), "float32")
            low = T.alloc_fragment((2, 16), "float32")
            size = T.alloc_fragment((2, 16), "float32")
            for k in T.serial(3):
                T.copy(A[k * 2, 0, 0], s)
                T.copy(s, f)
                T.reduce_sum(f, total, dim=1, batch=batch)
                T.reduce_max(f, high, dim=1, batch=batch)
                T.reduce_min(f, low, dim=1, batch=batch)
                T.reduce_absmax(f, size, dim=1, batch=batch)
                T.copy(total, Out[k, 0, :, :])
                T.copy(high, Out[k, 1, :, :])
                T.copy(low, Out[k, 2, :, :])
                T.copy(size, Out[k, 3, :, :])

    a = integers(1, (6, 8, 16))
    pairs = a.reshape(3, 2, 8, 16)
    wanted = np.stack([pairs.sum(2), pairs.max(2), pairs.min(2), abs(pairs).max(2)], 1)
    machine.check(kernel, [a], wanted)


@pytest.mark.parametrize("dim", (0, 1))
@pytest.mark.parametrize("kept", (True, False))
def test_tl2530_a_destination_that_keeps_the_dimension(machine: Machine, dim: int, kept: bool) -> None:
    shape = tuple(1 if d == dim else e for d, e in enumerate((12, 40)) if kept or d != dim)

    @T.prim_func
    def kernel(A: T.Tensor((12, 40), "float32"), B: T.Tensor(shape, "float32"), C: T.Tensor((12, 40), "float32")):
        with T.Kernel(1, threads=64):
            x = T.alloc_fragment((12, 40), "float32")
            r = T.alloc_fragment(shape, "float32")
            T.copy(A, x)
            T.reduce_sum(x, r, dim=dim)
            T.copy(r, B)
            for i, j in T.Parallel(12, 40):
                if kept:
                    C[i, j] = A[i, j] - (r[i, 0] if dim else r[0, j])
                else:
                    C[i, j] = A[i, j] - (r[i] if dim else r[j])

    a = integers(1, (12, 40))
    total = a.sum(dim, keepdims=True)
    machine.check(kernel, [a], [total.reshape(shape), a - total])


@pytest.mark.parametrize("shape", [(12, 2), (1, 12), (13,), (12, 1, 1)])
def test_tl2530_other_destinations_are_refused_with_both_shapes(shape: tuple[int, ...]) -> None:
    with pytest.raises(ShapeError) as error:

        @T.prim_func
        def kernel(A: T.Tensor((12, 40), "float32")):
            with T.Kernel(1, threads=64):
                x = T.alloc_fragment((12, 40), "float32")
                r = T.alloc_fragment(shape, "float32")
                T.reduce_sum(x, r, dim=1)

    text = str(error.value)
    assert error.value.loc is not None and "(12, 40)" in text and str(shape) in text and "(12, 1)" in text


@pytest.mark.parametrize("dtype", ("uint8", "uint16", "uint32", "uint64"))
def test_tl2624_absolute_values_of_unsigned_numbers(machine: Machine, dtype: str) -> None:
    """absmax is max and abssum is sum, for values above half of the type's range too."""

    @T.prim_func
    def kernel(
        A: T.Tensor((4, 32), dtype),
        High: T.Tensor((4,), dtype),
        Total: T.Tensor((4,), dtype),
        Same: T.Tensor((4, 32), dtype),
    ):
        with T.Kernel(1, threads=32):
            x = T.alloc_fragment((4, 32), dtype)
            high = T.alloc_fragment((4,), dtype)
            total = T.alloc_fragment((4,), dtype)
            T.copy(A, x)
            T.reduce_absmax(x, high, dim=1)
            T.reduce_abssum(x, total, dim=1)
            T.copy(high, High)
            T.copy(total, Total)
            for i, j in T.Parallel(4, 32):
                Same[i, j] = T.abs(x[i, j])

    top = np.iinfo(dtype).max
    a = np.random.default_rng(1).integers(0, top, (4, 32), dtype, endpoint=True)
    a[0], a[1], a[2] = 1, 0, top // 2 + 1
    a[1, 9] = top
    machine.check(kernel, [a], [a.max(1), a.sum(1, dtype=dtype), a])


@pytest.mark.parametrize("space", ("shared", "fragment"))
@pytest.mark.parametrize(
    ("shape", "dim", "reverse"), [((96,), 0, False), ((96,), 0, True), ((5, 96), 1, False), ((96, 5), 0, True)]
)
def test_tl2576_a_cumulative_sum_with_96_threads(
    machine: Machine, shape: tuple[int, ...], dim: int, reverse: bool, space: str
) -> None:
    alloc = T.alloc_shared if space == "shared" else T.alloc_fragment

    @T.prim_func
    def kernel(A: T.Tensor(shape, "int32"), B: T.Tensor(shape, "int32")):
        with T.Kernel(1, threads=96):
            x = alloc(shape, "int32")
            y = alloc(shape, "int32")
            T.copy(A, x)
            T.cumsum(x, y, dim=dim, reverse=reverse)
            T.copy(y, B)

    a = integers(1, shape, "int32")
    sums = np.flip(np.cumsum(np.flip(a, dim), dim), dim) if reverse else np.cumsum(a, dim)
    machine.check(kernel, [a], sums.astype(np.int32))


def test_tl2959_an_atomic_update_of_a_whole_buffer_inside_parallel_is_refused() -> None:
    """The element is to be named: `Out[0]`."""
    with pytest.raises(TileError, match=r"inside T\.Parallel") as error:

        @T.prim_func
        def kernel(A: T.Tensor((128,), "int32"), Out: T.Tensor((1,), "int32")):
            with T.Kernel(1, threads=128):
                for i in T.Parallel(128):
                    T.atomic_add(Out, A[i])

        lowered(kernel, "sm_90a")

    assert error.value.loc is not None
