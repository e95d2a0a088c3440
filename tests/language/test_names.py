"""The names of the language: those that kernels use most exist, others say what they need."""

from __future__ import annotations

import inspect

import pytest

import tileworkbench.language as T
from tileworkbench.errors import LanguageError, TargetError

from .cells import body, build

# The names used by real kernels, most used first.
USED = """
Kernel Tensor alloc_fragment copy alloc_shared ceildiv Pipelined gemm Parallel clear prim_func if_then_else
reduce_sum exp2 empty fill const max reduce_max GemmWarpPolicy infinity serial min log2 use_swizzle
annotate_layout alloc_var dynamic atomic_add get_thread_binding floordiv exp alloc_local Layout alloc_barrier
access_ptr cast vectorized disable_warp_group_reg_alloc tma_copy barrier_wait barrier_arrive reinterpret macro
call_extern reduce_absmax ws unroll clamp wgmma_gemm wait_wgmma import_source tvm_thread_allreduce
comm_reducer thread_binding evaluate attr floormod im2col alloc_global cp_async_barrier_noinc set_max_nreg
ptx_cp_async rsqrt reshape mbarrier_wait_parity mbarrier_arrive SharedBuffer sync_threads shift_left dp4a
Buffer Cast fence_proxy_async ptx_wait_group annotate_producer_reg_dealloc annotate_consumer_reg_alloc
ptx_commit_group FragmentBuffer symbolic log view get_block_binding alloc_buffer index_to_coordinates rng_init
rng_rand Persistent sync_grid no_set_max_nreg Serial ptr make_tensor parallel tvm_warp_shuffle gemm_sp
device_assert atomic_addx4 alloc_reducer finalize_reducer cumsum sigmoid
""".split()  # noqa: SIM905


def test_the_list_is_whole():
    assert len(USED) == 102 and len(set(USED)) == 102


@pytest.mark.parametrize("name", USED)
def test_name(name):
    made = getattr(T, name)
    if inspect.isfunction(made):
        assert made.__doc__, name


def test_unknown_names_name_the_nearest():
    with pytest.raises(LanguageError, match="did you mean `alloc_shared`"):
        T.alloc_share
    assert not hasattr(T, "alloc_share") and not hasattr(T, "__wrapped__")


def test_dtypes():
    for name in (
        "float16",
        "bfloat16",
        "float8_e4m3fn",
        "int8",
        "uint64",
        "bool",
        "tfloat32",
        "float",
        "half",
        "int",
        "long",
    ):
        assert getattr(T, name) == name
    assert T.dtypes.float16 == T.float16 and T.float16 != T.float32 and len({T.half, T.float16}) == 1
    assert T.float16x2 == "float16x2" and T.float16x2.lanes == 2 and T.dtypes.float32x4.bits == 32
    with pytest.raises(TargetError, match="vectors"):
        T.Tensor((4,), T.float16x2)
    with pytest.raises(TargetError, match="vectors"):
        T.Tensor((4,), "float32x4")


def test_values_outside_a_kernel():
    assert T.ceildiv(7, 2) == 4 and T.align_up(7, 4) == 8 and T.min(3, 2) == 2 and T.truncmod(-7, 2) == -1
    assert T.index_to_coordinates(13, (2, 3, 4)) == [1, 0, 1]
    assert T.GemmWarpPolicy.FullRow.compute_warp_partition(64, 64, 4) == (4, 1)
    assert T.GemmWarpPolicy.Square.compute_warp_partition(128, 64, 8) == (4, 2)
    with pytest.raises(LanguageError, match=r"T.copy outside a kernel"):
        T.copy(None, None)


def test_small_element_operations():
    assert body("T.transpose(A, B)") == ["for i, j in T.Parallel(64, 64):", "    B[j, i] = A[i, j]"]
    assert body("I[0] = T.cast(T.any_of(I[3:5]), 'int32')") == ['I[0] = T.cast(I[3] != 0 or I[4] != 0, "int32")']
    assert body("T.atomic_addx2(A[0, n], B[1, 2])") == [
        "T.atomic_add(A[0, n], B[1, 2])",
        "T.atomic_add(A[0, n + 1], B[1, 3])",
    ]
    assert body("for t in T.thread_binding(0, 128, thread='threadIdx.x'):\n    I[t] = 1")[1:] == ["I[tx] = 1"]


def test_printing_a_tile_is_a_loop():
    lines = body("s = T.alloc_shared((2, 3), 'int32')\nT.print(s, 's')")
    assert [line.strip() for line in lines[-4:]] == [
        "if tx == 0:",
        "for i in T.serial(2):",
        "for j in T.serial(3):",
        'T.print("s: ", "s[", i, ", ", j, "] = ", s[i, j])',
    ]


def test_views_share_storage():
    kernel = build(
        "s = T.alloc_shared((8, 8), 'float16')\nv = T.view(s, (64,), 'int16')\nw = T.reshape(v, (4, 16))\nT.clear(w)"
    )
    s, v, w = (statement.buffer for statement in kernel.body[:3])
    assert v.attr("view_of") is s and w.attr("view_of") is s
    assert (v.shape, v.dtype.name, w.shape, w.space) == ((64,), "int16", (4, 16), "shared")


def test_methods_of_meta_classes_are_inlined():
    @T.meta_class
    class Scaled:
        def __init__(self, factor):
            self.factor = factor

        def apply(self, x):
            if x > 0:
                T.device_assert(x < 100)
            return x * self.factor

    lines = body("s = scaled\nI[0] = s.apply(n)", scaled=Scaled(3))
    assert lines == ["if n > 0:", "    T.device_assert(n < 100)", "I[0] = n * 3"]


def test_layouts_of_functions():
    layout = T.Layout((4, 4), lambda i, j: (j, i))
    assert layout.table()[1, 2] == 2 * 4 + 1
    fragment = T.Fragment((8, 4), lambda i, j: (i * 2 + j // 2, j % 2))
    assert fragment.threads == 16


def test_cp_async_is_its_stores():
    lines = body(
        "s = T.alloc_shared((64,), 'float32')\n"
        "T.ptx_cp_async(T.access_ptr(s[n], 'w', 4), T.access_ptr(A[bx, 8], 'r', 4), 4, n > 3)\n"
        "T.ptx_commit_group()\nT.ptx_wait_group(0)"
    )
    assert lines[1:3] == [
        "for lane in T.vectorized(4, cp_async=True):",
        "    s[n + lane] = T.if_then_else(n > 3, A[bx, 8 + lane], 0.0)",
    ]


def test_dtypes_are_their_names():
    assert "".join(c for c in T.int8 if c.isdigit()) == "8" and f"{T.float16}" == "float16" and {T.int8: 1}["int8"] == 1
    assert T.int4 == "int4" and T.int4 != T.int8 and T.int4.bits == 4
    with pytest.raises(TargetError, match="narrower than a byte"):
        T.Tensor((4,), T.int2)
    with pytest.raises(TargetError, match="narrower than a byte"):
        T.Tensor((4,), "float6_e3m2fn")


def test_names_that_are_not_built_say_what_they_need():
    """A name of the language is never silently missing."""
    for name, words in {
        "alloc_tmem": "sm_100",
        "ptx_mma_block_scale": "sm_120",
        "func_attr": "TVM's own IR",
        "create_barriers": "T.alloc_barrier",
    }.items():
        with pytest.raises(TargetError, match=words) as error:
            getattr(T, name)
        assert name in str(error.value)


def test_older_spellings_of_exchanges():
    def shuffled(call: str) -> list[str]:
        return body(f"x = T.alloc_local((1,), 'float32')\nx[0] = {call}")

    assert shuffled("T.tvm_warp_shuffle_down(-1, x[0], 2, 32, 32)")[-1] == shuffled("T.shfl_down(x[0], 2, 32, -1)")[-1]
    assert shuffled("T.tvm_warp_shuffle_up(0xFFFFFFFF, x[0], 1, 16, 32)")[-1] == shuffled("T.shfl_up(x[0], 1, 16)")[-1]
