"""What the tile machine reports, each with the user's line."""

import inspect

import numpy as np
import pytest

import tileworkbench.language as T
from tileworkbench.errors import LaunchError, ResourceError, ShapeError, SimulationError
from tileworkbench.options import options
from tileworkbench.simulate.tile import run


def refused(function, args, match, marker=None, error=SimulationError):
    """The run must raise `error` matching `match`, at the line that ends with the comment `# marker`."""
    with pytest.raises(error, match=match) as caught:
        run(function.kernel, args)
    if marker is not None:
        lines, first = inspect.getsourcelines(function.fn)
        want = next(first + n for n, line in enumerate(lines) if line.rstrip().endswith(f"# {marker}"))
        assert caught.value.loc.line == want
        assert caught.value.rule
    return caught.value


def zeros(*shapes, dtype=np.float32):
    return [np.zeros(s, dtype) for s in shapes]


# --- never written ---------------------------------------------------------------------------------------------------
def test_unwritten_tile_reaches_global_memory_by_copy():
    @T.prim_func
    def kernel(B: T.Tensor((8,), "float32")):
        with T.Kernel(1, threads=32):
            s = T.alloc_shared((8,), "float32")
            T.copy(s, B)  # here

    refused(kernel, zeros(8), "never written reaches a store to global memory", "here")


def test_unwritten_part_reaches_global_memory_through_other_tiles():
    @T.prim_func
    def kernel(A: T.Tensor((8,), "float32"), B: T.Tensor((8,), "float32")):
        with T.Kernel(1, threads=32):
            s = T.alloc_shared((8,), "float32")
            f = T.alloc_fragment((8,), "float32")
            for i in T.Parallel(7):
                s[i] = A[i]
            for i in T.Parallel(8):
                f[i] = s[i] + 1.0
            for i in T.Parallel(8):
                B[i] = f[i]  # here

    refused(kernel, zeros(8, 8), "`f` that was never written", "here")


def test_unwritten_part_that_is_masked_is_legal():
    @T.prim_func
    def kernel(A: T.Tensor((8,), "float32"), B: T.Tensor((8,), "float32")):
        with T.Kernel(1, threads=32):
            s = T.alloc_shared((8,), "float32")
            for i in T.Parallel(7):
                s[i] = A[i]
            for i in T.Parallel(8):
                B[i] = T.if_then_else(i < 7, s[i], 5.0)

    b = np.zeros(8, np.float32)
    run(kernel.kernel, [np.ones(8, np.float32), b])
    assert b.tolist() == [1] * 7 + [5]


def test_rows_written_one_by_one_make_a_whole_tile():
    @T.prim_func
    def kernel(A: T.Tensor((8, 4), "float32"), B: T.Tensor((8, 4), "float32")):
        with T.Kernel(2, threads=32) as bx:
            s = T.alloc_shared((4, 4), "float32")
            for r in T.serial(4):
                for j in T.Parallel(4):
                    s[r, j] = A[bx * 4 + r, j]
            T.copy(s, B[bx * 4, 0])

    a = np.arange(32, dtype=np.float32).reshape(8, 4)
    b = np.zeros_like(a)
    run(kernel.kernel, [a, b])
    assert np.array_equal(a, b)


def test_unwritten_gemm_operand_and_accumulator():
    def make(clear):
        @T.prim_func
        def kernel(A: T.Tensor((16, 16), "float16"), C: T.Tensor((16, 16), "float32")):
            with T.Kernel(1, threads=32):
                a = T.alloc_shared((16, 16), "float16")
                b = T.alloc_shared((16, 16), "float16")
                c = T.alloc_fragment((16, 16), "float32")
                T.copy(A, a)
                if clear:
                    T.clear(c)
                    T.gemm(a, b, c)  # operand
                else:
                    T.gemm(a, a, c)  # accumulator
                T.copy(c, C)

        return kernel

    args = [np.zeros((16, 16), np.float16), np.zeros((16, 16), np.float32)]
    refused(make(True), args, "`b` that was never written reaches a gemm", "operand")
    refused(make(False), args, "`c` that was never written reaches a gemm's accumulator", "accumulator")


def test_unwritten_value_in_a_branch_an_address_and_a_loop_bound():
    def make(use):
        @T.prim_func
        def kernel(B: T.Tensor((8,), "int32")):
            with T.Kernel(1, threads=32):
                s = T.alloc_shared((8,), "int32")
                if use == "branch":
                    for i in T.Parallel(8):
                        if s[i] > 0:  # branch
                            B[i] = 1
                elif use == "address":
                    for i in T.Parallel(8):
                        B[s[i]] = 1  # address
                else:
                    for k in T.serial(s[0]):  # bound
                        B[k] = 1

        return kernel

    args = zeros(8, dtype=np.int32)
    refused(make("branch"), args, "reaches a branch", "branch")
    refused(make("address"), args, "reaches an address", "address")
    refused(make("bound"), args, "reaches a loop bound", "bound")


def test_reading_an_output_before_it_is_written():
    @T.prim_func
    def kernel(A: T.Tensor((8,), "float32"), B: T.Tensor((8,), "float32")):
        with T.Kernel(1, threads=32):
            for i in T.Parallel(8):
                B[i] = B[i] + A[i]  # here

    made = kernel.kernel.with_(outputs=(1,))
    with pytest.raises(SimulationError, match="never written"):
        run(made, zeros(8))
    result = run(made, [np.ones(8, np.float32), np.ones(8, np.float32)])
    assert result.outputs[0].tolist() == [2] * 8


def test_elements_never_written_are_reported():
    @T.prim_func
    def kernel(A: T.Tensor((10,), "float32"), B: T.Tensor((10,), "float32")):
        with T.Kernel(2, threads=32) as bx:
            for i in T.Parallel(4):
                B[bx * 5 + i] = A[bx * 5 + i]

    result = run(kernel.kernel.with_(outputs=(1,)), zeros(10))
    assert np.flatnonzero(result.unwritten["B"]).tolist() == [4, 9]


# --- out of range ----------------------------------------------------------------------------------------------------
def test_index_outside_a_tile():
    @T.prim_func
    def kernel(B: T.Tensor((8,), "float32")):
        with T.Kernel(1, threads=32):
            s = T.alloc_shared((8,), "float32")
            T.clear(s)
            for i in T.Parallel(8):
                B[i] = s[i + 1]  # here

    error = refused(kernel, zeros(8), "index 8 is outside dimension 0 of `s`, whose extent is 8", "here")
    assert "guard" in error.fix


def test_guarded_index_outside_a_tile_is_legal():
    @T.prim_func
    def kernel(A: T.Tensor((8,), "float32"), B: T.Tensor((8,), "float32")):
        with T.Kernel(1, threads=32):
            s = T.alloc_shared((8,), "float32")
            T.copy(A, s)
            for i in T.Parallel(8):
                B[i] = T.if_then_else(i < 7, s[i + 1], 0.0)
            for i in T.Parallel(8):
                if i > 0 and s[i - 1] > 100.0:
                    B[i] = 1.0

    a = np.arange(8, dtype=np.float32)
    b = np.zeros_like(a)
    run(kernel.kernel, [a, b])
    assert b.tolist() == [1, 2, 3, 4, 5, 6, 7, 0]


def test_store_outside_a_tile_names_the_value():
    @T.prim_func
    def kernel(I: T.Tensor((8,), "int32"), B: T.Tensor((8,), "float32")):  # noqa: E741
        with T.Kernel(1, threads=32):
            s = T.alloc_shared((8,), "float32")
            for i in T.Parallel(8):
                s[I[i]] = 1.0  # here
            T.copy(s, B)

    index = np.arange(8, dtype=np.int32)
    index[5] = -3
    refused(kernel, [index, *zeros(8)], "index -3 is outside dimension 0 of `s`", "here")


def test_global_accesses_outside_read_zero_and_drop_stores():
    @T.prim_func
    def kernel(A: T.Tensor((10,), "float32"), B: T.Tensor((10,), "float32")):
        with T.Kernel(2, threads=32) as bx:
            for i in T.Parallel(8):
                B[bx * 8 + i] = A[bx * 8 + i + 1] + A[bx * 8 + i - 1] + 1.0

    a = np.arange(1, 11, dtype=np.float32)
    guarded = np.full(30, -1, np.float32)
    run(kernel.kernel, [a, guarded[10:20]])
    padded = np.concatenate([[0], a, [0]])
    assert np.array_equal(guarded[10:20], padded[2:] + padded[:-2] + 1)
    assert (guarded[:10] == -1).all() and (guarded[20:] == -1).all()


def test_safe_value_outside():
    @T.prim_func
    def kernel(A: T.Tensor((5,), "float32"), B: T.Tensor((8,), "float32")):
        with T.Kernel(1, threads=32):
            T.annotate_safe_value({A: -1.5})
            s = T.alloc_shared((8,), "float32")
            T.copy(A[0:8], s)
            T.copy(s, B)

    b = np.zeros(8, np.float32)
    run(kernel.kernel, [np.ones(5, np.float32), b])
    assert b.tolist() == [1] * 5 + [-1.5] * 3


# --- agreement -------------------------------------------------------------------------------------------------------
def test_colliding_writes():
    @T.prim_func
    def kernel(A: T.Tensor((8,), "float32"), B: T.Tensor((8,), "float32")):
        with T.Kernel(1, threads=32):
            for i in T.Parallel(8):
                B[i // 2] = A[i]  # here

    refused(kernel, [np.arange(8, dtype=np.float32), *zeros(8)], r"`B\[0\]` is written with 0.0 and with 1.0", "here")
    b = np.zeros(8, np.float32)
    run(kernel.kernel, [np.repeat(np.arange(4, dtype=np.float32), 2), b])  # equal values do not collide
    assert b.tolist() == [0, 1, 2, 3, 0, 0, 0, 0]


def test_every_iteration_writes_one_element():
    @T.prim_func
    def kernel(A: T.Tensor((8,), "float32"), B: T.Tensor((1,), "float32")):
        with T.Kernel(1, threads=32):
            s = T.alloc_shared((1,), "float32")
            for i in T.Parallel(8):
                s[0] = A[i]  # here
            T.copy(s, B)

    refused(kernel, [np.arange(8, dtype=np.float32), *zeros(1)], r"`s\[0\]` is written", "here")


def test_a_private_variable_that_differs_between_iterations_ends_with_the_loop():
    @T.prim_func
    def kernel(A: T.Tensor((8,), "float32"), B: T.Tensor((1,), "float32")):
        with T.Kernel(1, threads=32):
            last = T.alloc_var("float32", 0.0)
            for i in T.Parallel(8):
                last = A[i]
            B[0] = last  # here

    refused(kernel, [np.arange(8, dtype=np.float32), *zeros(1)], "`last` that was never written", "here")


# --- values ----------------------------------------------------------------------------------------------------------
def test_division_by_zero():
    @T.prim_func
    def kernel(A: T.Tensor((8,), "int32"), B: T.Tensor((8,), "int32")):
        with T.Kernel(1, threads=32):
            for i in T.Parallel(8):
                B[i] = 10 // A[i]  # here

    refused(kernel, [np.arange(8, dtype=np.int32), *zeros(8, dtype=np.int32)], "division by zero", "here")


def test_device_assert():
    @T.prim_func
    def kernel(A: T.Tensor((8,), "int32")):
        with T.Kernel(1, threads=32):
            for i in T.serial(8):
                T.device_assert(A[i] < 5, "small")  # here

    refused(kernel, [np.arange(8, dtype=np.int32)], "does not hold: small", "here")


def test_print(capsys):
    @T.prim_func
    def kernel(A: T.Tensor((2,), "int32")):
        with T.Kernel(2, threads=32) as bx:
            T.print(A[bx], msg="value")

    run(kernel.kernel, [np.array([7, 9], np.int32)])
    assert capsys.readouterr().out.splitlines() == ["[block 0] value:  7", "[block 1] value:  9"]


# --- arguments and budgets -------------------------------------------------------------------------------------------
@T.prim_func
def square(A: T.Tensor((4, 4), "float32"), B: T.Tensor((4, 4), "float32")):
    with T.Kernel(1, threads=32):
        for i, j in T.Parallel(4, 4):
            B[i, j] = A[i, j] * A[i, j]


@pytest.mark.parametrize(
    "args,match",
    [
        (zeros((4, 4)), "called with 1 arguments"),
        (zeros((4, 4), (4, 5)), r"`B` has shape \(4, 5\)"),
        (zeros((4, 4), (4,)), "`B` has 1 dimension"),
        (zeros((4, 4)) + zeros((4, 4), dtype=np.float64), "`B` is float64"),
        ([[1, 2], *zeros((4, 4))], "`A` is a list"),
    ],
)
def test_wrong_arguments(args, match):
    refused(square, args, match, error=LaunchError)


def test_arrays_that_are_not_contiguous():
    a = np.arange(32, dtype=np.float32).reshape(4, 8)[:, ::2]
    b = np.zeros((8, 4), np.float32).T[:, ::2]
    run(square.kernel, [a, b])
    assert np.array_equal(b, a * a)


def test_step_limit():
    @T.prim_func
    def kernel(A: T.Tensor((1,), "int32")):
        with T.Kernel(1, threads=32):
            n = T.alloc_var("int32", 1)
            while n > 0:
                n = n % 7 + 1

    with options(simulate_step_limit=500):
        refused(kernel, zeros(1, dtype=np.int32), "more than 500 statements", error=ResourceError)


def test_memory_limit():
    with options(simulate_memory_limit="1MiB"):
        refused(square, zeros((4, 4), (4, 4)), "needs about", error=ResourceError)


def test_collected_events_and_progress():
    seen = []
    result = run(square.kernel, zeros((4, 4), (4, 4)), collect=True, progress=seen.append)
    assert [e.op for e in result.events] == ["Parallel"] and result.events[0].end >= result.events[0].start
    assert seen[-1] == 1.0


def test_copy_of_extents_that_do_not_fit():
    from tileworkbench.ops.copy import Copy

    from .build import kernel as build
    from .build import tensor, tile, var, whole

    a, s = tensor("A", (4, 6)), tile("S", (6, 4))
    with pytest.raises(ShapeError, match="source region"):
        run(build([a], [1], [var("bx")], Copy(whole(a), whole(s))), zeros((4, 6)))
