"""check finds planted mistakes, says what it has proven, and refuses nothing that is right."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

import tileworkbench as tw
import tileworkbench.language as T
from tileworkbench.checks.bounds import bound, ulp
from tileworkbench.errors import LaunchError, OptionError
from tileworkbench.ir.dtype import DTYPES
from tileworkbench.jitkernel.work import work

from ..jit.kernels import copy_kernel, gemm


def product(a, b):
    return a @ b


@pytest.mark.parametrize("dtype, out", [("float16", "float32"), ("bfloat16", "bfloat16"), ("float16", "float16"),
                                        ("int8", "float32")])  # fmt: skip
def test_a_right_product_passes_and_is_exact_on_whole_numbers(dtype, out):
    found = tw.check(tw.compile(gemm(70, 40, 50, dtype, out), target="cpu"), product)
    assert found.ok and found.proven == "reference"
    whole = next(case for case in found.cases if case.kind == "integer")
    assert whole.error == 0 and "equal to the bit" in whole.bound


@pytest.mark.parametrize("ref", [
    lambda a, b: a @ b + 0.01, lambda a, b: (a @ b) * 1.001, lambda a, b: np.zeros((a.shape[0], b.shape[1])),
    lambda a, b: a @ b[::-1],
])  # fmt: skip
def test_a_wrong_reference_or_kernel_is_found(ref):
    found = tw.check(tw.compile(gemm(70, 40, 50), target="cpu"), ref)
    assert not found.ok and found.worst.output == "C"
    assert "expected" in str(found) and found.worst.index


def test_one_wrong_element_is_found_and_named():
    @T.prim_func
    def off_by_one(A: T.Tensor((40, 40), "float32"), B: T.Tensor((40, 40), "float32")):
        with T.Kernel(1, threads=32):
            for i, j in T.Parallel(40, 40):
                B[i, j] = T.if_then_else(i * 40 + j == 777, A[i, j] + 1.0, A[i, j])

    found = tw.check(tw.compile(off_by_one, target="cpu"), lambda a: a)
    assert not found.ok and found.worst.index == (19, 17)
    assert float(found.worst.found) == float(found.worst.expected) + 1


def test_an_element_that_is_never_written_is_found_although_it_is_right_by_chance():
    @T.prim_func
    def hole(A: T.Tensor((40,), "float32"), B: T.Tensor((40,), "float32")):
        with T.Kernel(1, threads=32):
            for i in T.Parallel(39):
                B[i] = A[i] * 0.0

    found = tw.check(tw.compile(hole, target="cpu"), lambda a: a * 0)
    assert not found.ok and "B[39] is never written" in str(found)


def test_an_undefined_value_is_a_failed_case():
    @T.prim_func
    def undefined(A: T.Tensor((32,), "float32"), B: T.Tensor((32,), "float32")):
        with T.Kernel(1, threads=32):
            s = T.alloc_shared((32,), "float32")
            T.copy(s, B)

    found = tw.check(tw.compile(undefined, target="cpu"))
    assert not found.ok and found.worst.trouble is not None


def test_without_a_reference_the_text_is_the_truth():
    assert tw.check(tw.compile(gemm(70, 64, 40), target="cpu")).proven == "runs"
    found = tw.check(tw.compile(gemm(70, 64, 40), target="sm_80"))
    assert found.ok and found.proven == "meaning" and "thread machine" in found.machine


def test_references_of_torch():
    torch = pytest.importorskip("torch")
    kernel = tw.compile(gemm(70, 40, 50), target="cpu")
    assert tw.check(kernel, torch.matmul).ok
    assert tw.check(kernel, lambda a, b: a.double().matmul(b.double())).ok
    assert not tw.check(kernel, lambda a, b: torch.matmul(a, b) * 1.01).ok


def test_a_reference_cannot_change_what_the_kernel_gets():
    def greedy(a):
        a[:] = 0
        return a

    assert not tw.check(tw.compile(copy_kernel(8, 8), target="cpu"), greedy).ok


def test_run_time_extents_have_a_size_with_a_tail():
    m, n = T.dynamic("m n")
    found = tw.check(tw.compile(copy_kernel(m, n), target="cpu"), lambda a: a + a)
    sizes = {tuple(case.sizes.values()) for case in found.cases}
    assert found.ok and sizes == {(64, 64), (49, 49)}
    found = tw.check(tw.compile(copy_kernel(m, n), target="cpu"), lambda a: a + a, {"m": 3}, seeds=(1, 2))
    assert {case.sizes["m"] for case in found.cases} == {3} and len(found.cases) == 8


def test_run_time_extents_that_break_what_the_fast_variant_assumes():
    m, n = T.dynamic("m n")
    kernel = tw.compile(copy_kernel(m, n), target="gfx942", out_idx=[-1])
    found = tw.check(kernel, lambda a: a * 2, set={"m": 33, "n": 35})
    assert found.ok and "thread machine" in found.machine


def test_mistakes():
    kernel = tw.compile(copy_kernel(8, 8), target="cpu")
    with pytest.raises(OptionError, match="`q`"):
        tw.check(kernel, set={"q": 3})
    with pytest.raises(LaunchError, match="2 results"):
        tw.check(kernel, lambda a: (a, a))
    with pytest.raises(LaunchError, match="shape"):
        tw.check(kernel, lambda a: a[0])
    with pytest.raises(ZeroDivisionError):
        tw.check(kernel, lambda a: 1 / 0)


def test_work_of_a_product():
    done = work(gemm(128, 64, 96).kernel, {})
    assert done.flops == {"float16": 2.0 * 128 * 64 * 96}
    assert done.depth == 96 and done.accumulator == "float32"
    assert done.nbytes == 2 * (128 * 96 + 96 * 64) + 4 * 128 * 64


@pytest.mark.parametrize("name", ["float16", "bfloat16", "float32", "float8_e4m3fn"])
def test_an_ulp_is_the_distance_to_the_next_number(name):
    dtype = DTYPES[name]
    values = np.array([1.0, 1.5, 2.0, 3.0, 100.0, 0.0]).astype(dtype.numpy)
    bits = values.view(f"uint{dtype.bits}")
    following = (bits + 1).astype(bits.dtype).view(dtype.numpy).astype(float)
    # At zero the smallest normal number's step counts, which is the distance to the first subnormal.
    assert np.array_equal(ulp(values.astype(float), dtype), following - values.astype(float))


def test_the_bound_of_a_sum_is_the_one_of_its_derivation():
    done = work(gemm(64, 64, 32).kernel, {})
    truth, terms = np.full((2, 2), 0.5), np.full((2, 2), 8.0)
    found = bound(truth, terms, done, DTYPES["float32"], integers=False)
    assert np.allclose(found.limit, 32 * 2.0**-23 * 8.0 + 2.0**-24 / 2, rtol=1e-12)
    assert bound(truth, terms, done, DTYPES["int32"], integers=False).exact


def test_float8_inputs_get_the_bound_of_their_unit():
    kernel = tw.compile(gemm(64, 64, 32, "float8_e4m3fn"), target="cpu")
    found = tw.check(kernel, product)
    assert (found.ok and "0.00012" in found.worst.bound) or found.worst.error == 0
    assert ml_dtypes.finfo(ml_dtypes.float8_e4m3fn).nmant == 3
