"""Kernels whose device code is the user's own CUDA C++: built for NVIDIA cards, refused with the line elsewhere."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tileworkbench as tw
import tileworkbench.language as T
from tileworkbench.codegen.emit import emit
from tileworkbench.errors import BuildError, LanguageError, NotSimulated, SimulationError, TargetError
from tileworkbench.runtime import nvrtc
from tileworkbench.runtime.launch import Launcher
from tileworkbench.target import Target

from ..runtime.fakes import FakeDriver
from .harness import HOPPER, NVIDIA, lowered, on_card

pytest.importorskip("cuda.bindings", reason="NVRTC is not installed")

SCALE = """#include <cuda_runtime.h>
#include <stdint.h>
// A kernel named in a comment is none: __global__ void ghost(float* A);
extern "C" __global__ void __launch_bounds__(128) scale(const float* __restrict__ A, float* B, int N, float s) {
  uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < N && i <= INT_MAX) B[i] = A[i] * s;
}
"""
WRONG = """
extern "C" __global__ void wrong(float* A) {
  A[threadIdx.x] = missing;
}
"""


def scale(source: str | Path = SCALE, entry: str = "scale", **more: Any) -> Any:
    N = T.dynamic("N")

    @T.prim_func
    def kernel(s: T.float32, A: T.Tensor((N,), "float32"), B: T.Tensor((N,), "float32")):
        T.CUDASourceCodeKernel(T.ceildiv(N, 128), threads=128, source_code_or_path=source, entry_name=entry, **more)

    return kernel


@pytest.mark.parametrize("target", NVIDIA)
def test_a_text_is_built_and_launched_with_the_arguments_that_it_names(target: str) -> None:
    func = scale()
    source = emit(lowered(func, target), Target.of(target))
    binary = nvrtc.build(source)
    assert source.entry == "scale" and ".entry scale(" in (binary.ptx or "") and SCALE in source.text
    assert [(a.kind, a.name) for a in source.args] == [
        ("pointer", "A"), ("pointer", "B"), ("symbol", "N"), ("scalar", "s")
    ]  # fmt: skip
    assert not source.facts, "a text that nobody read assumes nothing"
    driver = FakeDriver(capabilities=((int(target[3]), 0),))
    a, b = np.zeros(300, np.float32), np.zeros(300, np.float32)
    Launcher([(source, binary)], driver=driver)(2.0, a, b)
    done = driver.launches[0]
    assert (done.grid, done.threads) == ((3, 1, 1), 128)


def test_on_a_card() -> None:
    if not HOPPER:
        pytest.skip("no card of capability 9.0")
    N = 256

    @T.prim_func
    def kernel(A: T.Tensor((N,), "float32"), B: T.Tensor((N,), "float32")):
        T.CUDASourceCodeKernel(2, threads=128, source_code_or_path=COPY, entry_name="copied")

    a = np.arange(N, dtype=np.float32)
    on_card(kernel, [a], [a], None, "sm_90a")


COPY = """
extern "C" __global__ void copied(float* A, float* B) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  B[i] = A[i];
}
"""


def test_tensors_come_sorted_by_name_then_numbers() -> None:
    """TileLang's order, whatever the signature's."""
    n, m = T.dynamic("n"), T.dynamic("m", "int64")
    text = 'extern "C" __global__ void k(float* a, int* b, unsigned short* z, long long rows, int cols) {}'

    @T.prim_func
    def kernel(z: T.Tensor((n, m), "float16"), b: T.Tensor((n,), "int32"), a: T.Tensor((m,), "float32")):
        T.CUDASourceCodeKernel(n, threads=32, source_code_or_path=text, entry_name="k")

    source = emit(lowered(kernel, "sm_80"), Target.of("sm_80"))
    assert [(a.name, a.dtype) for a in source.args] == [
        ("a", "float32"), ("b", "int32"), ("z", "float16"), ("m", "int64"), ("n", "int32")
    ]  # fmt: skip
    nvrtc.build(source)


def test_a_text_without_a_place_for_scalars_gets_none() -> None:
    """TileLang passes tensors and their symbols alone."""
    text = 'extern "C" __global__ void k(float* A, float* B, int n) {}'
    source = emit(lowered(scale(text, "k"), "sm_80"), Target.of("sm_80"))
    assert [a.name for a in source.args] == ["A", "B", "N"]


def test_blocks_clusters_and_a_prelude() -> None:
    text = 'extern "C" __global__ void k(float* A) { A[threadIdx.y * blockDim.x + threadIdx.x] = TWO; }'

    @T.prim_func
    def kernel(A: T.Tensor((64,), "float32")):
        T.CUDASourceCodeKernel(
            4, 2, threads=(16, 4), source_code_or_path=text, entry_name="k", cluster_dims=2, prelude="#define TWO 2.0f"
        )

    source = emit(lowered(kernel, "sm_90a"), Target.of("sm_90a"))
    assert (source.block, source.threads, source.cluster) == ((16, 4), 64, (2, 1, 1))
    driver = FakeDriver()
    Launcher([(source, nvrtc.build(source))], driver=driver)(np.zeros(64, np.float32))
    assert driver.launches[0].block == (16, 4, 1) and driver.launches[0].cluster == (2, 1, 1)


def test_a_file_and_the_place_of_its_error(tmp_path: Path) -> None:
    path = tmp_path / "own.cu"
    path.write_text(SCALE, encoding="utf-8")
    assert SCALE in tw.compile(scale(path), target="sm_80").source
    assert SCALE in tw.compile(scale(str(path)), target="sm_80").source
    path.write_text(SCALE.replace("B[i] =", "b[i] ="), encoding="utf-8")
    with pytest.raises(BuildError, match='"b" is undefined') as error:
        tw.compile(scale(path), target="sm_80")
    assert error.value.loc is not None and error.value.loc.file == str(path) and error.value.loc.line == 6
    with pytest.raises(LanguageError, match="there is no file"):
        scale(tmp_path / "other.cu")


def test_an_error_of_the_compiler_shows_the_line_of_the_users_text() -> None:
    @T.prim_func
    def kernel(A: T.Tensor((64,), "float32")):
        T.CUDASourceCodeKernel(1, threads=64, source_code_or_path=WRONG, entry_name="wrong")

    with pytest.raises(BuildError, match='"missing" is undefined') as error:
        tw.compile(kernel, target="sm_80")
    lines = Path(__file__).read_text(encoding="utf-8").splitlines()
    assert error.value.loc is not None and "= missing;" in lines[error.value.loc.line - 1]
    assert "line 3 of the kernel's own text" in str(error.value) and "generated" not in str(error.value)


def test_an_error_in_an_imported_source_shows_its_line() -> None:
    made = "__device__ float f(float x) {\n  return x + " + "nothing; }"

    @T.prim_func
    def kernel(A: T.Tensor((64,), "float32")):
        with T.Kernel(1, threads=64):
            T.import_source(WRONG)
            T.import_source(made)
            A[T.get_thread_binding()] = T.call_extern("float32", "f", 1.0)

    with pytest.raises(BuildError, match='"missing" is undefined') as error:
        tw.compile(kernel, target="sm_80")
    lines = Path(__file__).read_text(encoding="utf-8").splitlines()
    assert error.value.loc is not None and "= missing;" in lines[error.value.loc.line - 1]
    assert [note.text for note in error.value.notes if "nothing" in note.text and "line 2 of" in note.text]


def test_machines_and_other_targets_refuse_it_with_its_line() -> None:
    func = scale()
    args = [2.0, np.zeros(4, np.float32), np.zeros(4, np.float32)]
    with pytest.raises(SimulationError, match="CUDASourceCodeKernel of `scale`") as error:
        tw.compile(func, target="cpu")(*args)
    assert error.value.loc is not None
    with pytest.raises(SimulationError, match="foreign text"):
        tw.simulate(func, *args, level="thread")
    for target in ("cpu",) if HOPPER else ("cpu", "sm_90a"):  # on a card it is run and compared
        with pytest.raises(NotSimulated) as unknown:  # not "wrong"
            tw.check(tw.compile(func, target=target, out_idx=[2]), lambda s, a: a * s)
        assert unknown.value.loc is not None
    with pytest.raises(TargetError, match="gfx942") as refused:
        tw.compile(func, target="gfx942")
    assert refused.value.loc is not None


@pytest.mark.parametrize(
    ("text", "entry", "says"),
    [
        (COPY, "main_kernel", "Available entries: copied"),
        ("__device__ void f() {}\n", "main_kernel", "no __global__ function"),
        ("__global__ void k(float* A, float* B, int N) {}\n", "k", 'not declared extern "C"'),
        ('extern "C" __global__ void k(float* A, float* B) {}\n', "k", "takes 2 parameters, the launch passes 4"),
        ('extern "C" __global__ void k(float* B, float* A, int N) {}\n', "k", "parameter 1, `float\\* B`"),
        ('extern "C" __global__ void k(float* A, float B, int N) {}\n', "k", "no pointer"),
        ('extern "C" __global__ void k(float* A, float* B, long long N) {}\n', "k", "`N` of int32"),
        ('extern "C" __global__ void k(float* A, float* B, int N, double s) {}\n', "k", "`s` of float32"),
    ],
)
def test_what_does_not_fit_is_refused(text: str, entry: str, says: str) -> None:
    with pytest.raises(LanguageError, match=says) as error:
        scale(text, entry)
    assert error.value.loc is not None


def test_a_block_of_c_linkage_and_text_without_names() -> None:
    text = 'namespace { int x; }\nextern "C" {\n__global__ void\nk(float*, float[], const int) {}\n}'
    assert [a.name for a in emit(lowered(scale(text, "k"), "sm_80"), Target.of("sm_80")).args] == ["A", "B", "N"]


def test_eager_functions_and_launches_one_after_another() -> None:
    @tw.jit(target="sm_80")
    def twice(A: Any) -> Any:
        N = T.const("N")
        A: T.Tensor[[N], "float32"]
        B = T.empty((N,), "float32")
        T.CUDASourceCodeKernel(T.ceildiv(N, 128), threads=128, source_code_or_path=COPY, entry_name="copied")
        with T.Kernel(T.ceildiv(N, 128), threads=128) as bx:
            for i in T.Parallel(128):
                B[bx * 128 + i] = B[bx * 128 + i] * 2.0
        return B

    kernel = twice.compile(A=T.Tensor((256,), "float32"))
    assert len(kernel.parts) == 2 and COPY in kernel.parts[0].source
