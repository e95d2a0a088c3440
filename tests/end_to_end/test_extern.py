"""Device functions that a kernel brings as source text: called on CUDA, refused with the line on the machines."""

from __future__ import annotations

import numpy as np
import pytest

import tileworkbench.language as T
from tileworkbench.codegen.emit import emit
from tileworkbench.errors import BuildError, LanguageError, OptionError, SimulationError
from tileworkbench.jitkernel import compile as compile_kernel
from tileworkbench.runtime import nvrtc
from tileworkbench.simulate import thread, tile
from tileworkbench.target import Target

from .harness import HOPPER, NVIDIA, lowered, on_card

pytest.importorskip("cuda.bindings", reason="NVRTC is not installed")

SOURCE = """
__device__ __forceinline__ float twice(float x) { return 2.0f * x; }
__device__ __forceinline__ void put(float* to, const float* from, int n) {
  for (int i = 0; i < n; ++i) to[i] = from[i];
}
__device__ __forceinline__ void bits(unsigned short* to, const unsigned short* from) { *to = *from; }
"""


def test_source_and_calls() -> None:
    @T.prim_func
    def kernel(
        A: T.Tensor((128,), "float32"),
        H: T.Tensor((128,), "float16"),
        B: T.Tensor((128,), "float32"),
        G: T.Tensor((128,), "float16"),
    ):
        with T.Kernel(1, threads=128):
            T.import_source(SOURCE)
            tx = T.get_thread_binding()
            S = T.alloc_shared((128,), "float32")
            L = T.alloc_local((2,), "float32")
            L[0] = T.call_extern("float32", "twice", A[tx])
            T.call_extern("handle", "put", T.access_ptr(S[127 - tx], "w"), T.access_ptr(L[0], "r"), 1)
            T.call_extern("handle", "bits", T.access_ptr(G[tx], "w"), T.access_ptr(H[tx], "r"))
            B[tx] = S[tx]

    for t in NVIDIA:
        k = lowered(kernel, t)
        src = emit(k, Target.of(t))
        assert nvrtc.build(src).code
        assert "__syncthreads" in src.text

    with pytest.raises(SimulationError, match="twice") as error:
        tile.run(
            kernel.kernel,
            [
                np.zeros(128, np.float32),
                np.zeros(128, np.float16),
                np.zeros(128, np.float32),
                np.zeros(128, np.float16),
            ],
        )
    assert error.value.loc is not None
    with pytest.raises(SimulationError, match="foreign") as error:
        thread.run(
            k,
            [
                np.zeros(128, np.float32),
                np.zeros(128, np.float16),
                np.zeros(128, np.float32),
                np.zeros(128, np.float16),
            ],
            target=Target.of("sm_90a"),
        )


def test_in_parallel() -> None:
    @T.prim_func
    def kernel(A: T.Tensor((128,), "float32"), B: T.Tensor((128,), "float32")):
        with T.Kernel(1, threads=64, prelude=SOURCE):
            for i in T.Parallel(128):
                B[i] = T.call_extern("float32", "twice", A[i]) + 1.0

    for t in NVIDIA:
        assert nvrtc.build(emit(lowered(kernel, t), Target.of(t))).code


def test_fragment_pointer() -> None:
    @T.prim_func
    def kernel(A: T.Tensor((128,), "float32")):
        with T.Kernel(1, threads=64, prelude=SOURCE):
            F = T.alloc_fragment((128,), "float32")
            T.copy(A, F)
            T.call_extern("void", "put", F, F, 1)

    with pytest.raises(LanguageError, match="fragment"):
        lowered(kernel, "sm_80")


def test_dtype_by_keyword_and_a_value_that_nobody_reads() -> None:
    @T.prim_func
    def kernel(A: T.Tensor((128,), "float32"), B: T.Tensor((128,), "float32")):
        with T.Kernel(1, threads=128):
            T.import_source(SOURCE)
            tx = T.get_thread_binding()
            L = T.alloc_local((1,), "float32")
            L[0] = A[tx]
            T.call_extern("put", T.access_ptr(B[tx], "w"), T.access_ptr(L, "r"), 1, dtype="float32")
            B[tx] = B[tx] + T.call_extern("twice", L[0], dtype="float32")

    for t in NVIDIA:
        assert nvrtc.build(emit(lowered(kernel, t), Target.of(t))).code  # `put` has no value


NAMES = """
template <typename T1, typename T2> __device__ void widen(T1* from, T2* to, const int n) {
  static_assert(sizeof(T1) == 1 && sizeof(T2) == 2, "the storage of int8 and float16");
  uint const packed = *reinterpret_cast<uint*>(from);
  ushort* bits = reinterpret_cast<ushort*>(to);
  for (size_t i = 0; i < n; ++i) bits[i] = (uint16_t)(packed >> (8 * i)) & 0xffu;
}
"""
CLASSES = """#include <cuda_fp16.h>
template <typename T> __device__ void twice(T* x) { *x = __hadd(*x, *x); }
"""


def test_templates_are_told_the_storage_and_names_of_integers_are_known() -> None:
    @T.prim_func
    def kernel(A: T.Tensor((128,), "int8"), H: T.Tensor((128,), "float16")):
        with T.Kernel(1, threads=32):
            T.import_source(NAMES)
            tx = T.get_thread_binding()
            a = T.alloc_local((4,), "int8")
            h = T.alloc_local((4,), "float16")
            for i in T.vectorized(4):
                a[i] = A[tx * 4 + i]
            T.call_extern("handle", "widen", T.access_ptr(a[0], "r"), T.access_ptr(h[0], "w"), 4)
            for i in T.vectorized(4):
                H[tx * 4 + i] = h[i]

    for t in NVIDIA:
        text = emit(lowered(kernel, t), Target.of(t))
        assert nvrtc.build(text).code and "tw_any_pointer" not in text.text


NUMBERS = """
template <typename From, typename To> __device__ void halved(From* from, To* to) {
  for (int i = 0; i < 4; ++i) to[i] = To(float(from[i]) * 0.5f + 1);
}
"""


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float8_e4m3fn"])
def test_templates_compute_with_numbers_and_not_with_their_bits(dtype: str) -> None:
    @T.prim_func
    def kernel(A: T.Tensor((128,), dtype), H: T.Tensor((128,), dtype)):
        with T.Kernel(1, threads=32):
            T.import_source(NUMBERS)
            tx = T.get_thread_binding()
            a = T.alloc_local((4,), dtype)
            h = T.alloc_local((4,), dtype)
            for i in T.vectorized(4):
                a[i] = A[tx * 4 + i]
            T.call_extern("handle", "halved", T.access_ptr(a[0], "r"), T.access_ptr(h[0], "w"))
            for i in T.vectorized(4):
                H[tx * 4 + i] = h[i]

    kind = kernel.kernel.params[0].dtype.numpy
    a = (np.arange(128) % 15 - 7).astype(np.float32)
    for t in NVIDIA:
        assert nvrtc.build(emit(lowered(kernel, t), Target.of(t))).code
        if HOPPER:
            on_card(kernel, [a.astype(kind)], [(a * 0.5 + 1).astype(kind)], None, t)


def test_templates_are_told_the_class_that_their_text_includes() -> None:
    @T.prim_func
    def kernel(H: T.Tensor((32,), "float16")):
        with T.Kernel(1, threads=32, prelude=CLASSES):
            tx = T.get_thread_binding()
            T.call_extern("handle", "twice", T.access_ptr(H[tx], "rw"))

    text = emit(lowered(kernel, "sm_80"), Target.of("sm_80"))
    assert nvrtc.build(text).code and "(__half*)(" in text.text


def test_macros_of_the_users_flags() -> None:
    source = (
        "#ifndef N\n#error no N\n#endif\n#ifdef GONE\n#error GONE\n#endif\n"
        "__device__ float scaled(float x) { return SCALE(x) * N; }"
    )

    @T.prim_func
    def kernel(A: T.Tensor((64,), "float32"), B: T.Tensor((64,), "float32")):
        with T.Kernel(1, threads=64):
            T.import_source(source)
            N = T.alloc_var("int32", 3)
            t = T.get_thread_binding()
            B[t] = T.call_extern("float32", "scaled", A[t]) + N

    for flags in (["-DN=8", "-DSCALE(x)=x", "-DGONE", "-UGONE"], ["-D", "N", "-D SCALE=float --undefine-macro=GONE"]):
        made = compile_kernel(kernel, target="sm_80", compile_flags=flags)
        assert made.registers and made.source.index("#define N") < made.source.index("#undef N")
        assert made.source.rindex("#undef N") > made.source.index("scaled(float x)")
    with pytest.raises(BuildError, match="no N"):
        compile_kernel(kernel, target="sm_80")
    with pytest.raises(OptionError, match="the compile flag '-D7=1'"):
        compile_kernel(kernel, target="sm_80", compile_flags=["-D7=1"])


def test_macros_in_a_kernel_of_the_users_text() -> None:
    text = 'extern "C" __global__ void twice(const float* a, float* b) { b[threadIdx.x] = FACTOR * a[threadIdx.x]; }'

    @T.prim_func
    def kernel(A: T.Tensor((64,), "float32"), B: T.Tensor((64,), "float32")):
        T.CUDASourceCodeKernel(1, threads=64, source_code_or_path=text, entry_name="twice")

    made = compile_kernel(kernel, target="sm_80", compile_flags="-DFACTOR=2")
    assert made.registers and "#define FACTOR 2" in made.source
