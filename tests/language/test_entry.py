"""How functions become kernels: prim_func, factories, eager functions, macros, and where their text comes from."""

from __future__ import annotations

import ast
import linecache
import traceback

import numpy as np
import pytest

import tileworkbench.language as T
from tileworkbench.errors import LanguageError, LaunchError, Loc
from tileworkbench.ir.expr import Var, same
from tileworkbench.language import eager
from tileworkbench.language.source import find

from .cells import kernel_lines, run_cell


def scale(x, factor=2):
    """A plain helper: it runs as Python and returns an expression."""
    return x * factor


@T.macro
def store_twice(A, i, value):
    A[i] = value
    A[i + 1] = value


@T.macro
def bump(x: T.Ref, by):
    x += by
    return x, by + 1


@T.macro
def power(A, x, n):
    if n == 0:
        return 1
    return x * power(A, x, n - 1)


def test_closures_helpers_defaults_and_string_annotations():
    def factory(M, dtype="float32", unused="x"):
        block = 32

        @T.prim_func
        def main(A: T.Tensor((M,), dtype), count: T.int32 = 5):
            with T.Kernel(T.ceildiv(M, block), threads=block) as bx:
                for i in T.Parallel(block):
                    A[bx * block + i] = scale(A[bx * block + i]) + count

        return main

    kernel = factory(100).kernel
    assert kernel.grid == (4,) and kernel.params[0].shape == (100,)
    assert kernel.defaults == {kernel.params[1]: 5}
    assert kernel_lines(kernel)[1].strip() == 'A[bx * 32 + i] = A[bx * 32 + i] * 2.0 + T.cast(count, "float32")'


def test_dynamic_extents_stay_symbols():
    m = T.dynamic("m")

    @T.prim_func
    def main(A: T.Tensor((m, 64), "float32"), B: T.StridedTensor((m, 64), (128, 1), "float32")):
        with T.Kernel(T.ceildiv(m, 16)) as bx:
            T.copy(A[bx * 16, 0], B[bx * 16 : bx * 16 + 16, :])

    kernel = main.kernel
    assert kernel.symbols() == (m,) and kernel.params[1].strides == (128, 1)
    assert same(kernel.grid[0], (m + 15) // 16)


def test_forms_of_tensor_annotations():
    m, k = T.dynamic("m, k")
    for made in (T.Tensor((m, k), "float16"), T.Tensor[[m, k], "float16"], T.Tensor[m, k, T.float16]):
        assert made.shape == (m, k) and made.dtype.name == "float16"
    assert T.Tensor((4,)).dtype.name == "float32" and T.Tensor(7, "int8").shape == (7,)
    assert T.Tensor[(3,), "int32"].shape == (3,)
    assert T.float16 == "float16" and T.float16 == np.float16 and T.float16.bits == 16 and T.dtype("half") == T.float16


def test_macros_have_names_of_their_own_and_nest():
    @T.prim_func
    def main(A: T.Tensor((64,), "int32"), n: T.int32):
        with T.Kernel(1) as bx:
            value = n + 7
            store_twice(A, 3, value * 2)
            v = T.alloc_var("int32", init=1)
            a, b = bump(v, n)
            A[0] = a + b + v
            bump(A[n + 1], 2)
            A[1] = power(A, n, 3)

    assert kernel_lines(main.kernel) == [
        "value = n + 7",
        "value_1 = value * 2",
        "A[3] = value_1",
        "A[4] = value_1",
        'v = T.alloc_var("int32")',
        "v = 1",
        "v = v + n",
        "a = v",
        "b = n + 1",
        "A[0] = a + b + v",
        "x = n + 1",
        "A[x] = A[x] + 2",
        "A[1] = n * (n * n)",
    ]
    inner = main.kernel.body[2]
    assert [call.source_line().strip() for call in inner.loc.calls] == ["store_twice(A, 3, value * 2)"]


def gemm(A, B, block_M: int = 64, block_N: int = 64, block_K: int = 32):
    M, N, K = T.const("M, N, K")
    A: T.Tensor[[M, K], "float16"]
    B: T.Tensor[[K, N], "float16"]
    C = T.empty((M, N), "float32")
    with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=128) as (bx, by):
        A_s = T.alloc_shared((block_M, block_K), A.dtype)
        B_s = T.alloc_shared((block_K, block_N), B.dtype)
        C_l = T.alloc_fragment((block_M, block_N), T.float32)
        T.clear(C_l)
        for k in T.Pipelined(T.ceildiv(K, block_K), num_stages=2):
            T.copy(A[by * block_M, k * block_K], A_s)
            T.copy(B[k * block_K, bx * block_N], B_s)
            T.gemm(A_s, B_s, C_l)
        T.copy(C_l, C[by * block_M, bx * block_N])
    return C


def test_eager_signature_names_where_constants_come_from():
    found = eager.signature(gemm)
    assert [(p.name, p.kind) for p in found.params] == [
        ("A", "tensor"),
        ("B", "tensor"),
        ("block_M", "constant"),
        ("block_N", "constant"),
        ("block_K", "constant"),
    ]
    assert found.consts == {"M": ("A", "shape", 0), "N": ("B", "shape", 1), "K": ("A", "shape", 1)}
    assert isinstance(found.params[0].shape[0], Var) and found.params[2].default == 64


def test_eager_elaboration_reads_shapes():
    a, b = np.zeros((128, 256), np.float16), np.zeros((256, 192), np.float16)
    kernel = eager.elaborate(gemm, {"A": a, "B": b}, {"block_K": 64})
    assert [p.name for p in kernel.params] == ["A", "B", "C"] and kernel.outputs == (2,)
    assert [p.shape for p in kernel.params] == [(128, 256), (256, 192), (128, 192)]
    assert kernel.grid == (3, 2) and kernel.params[2].dtype.name == "float32"
    placeholders = {"A": T.Tensor((128, 256), "float16"), "B": T.Tensor((256, 192), "float16")}
    assert eager.elaborate(gemm, placeholders).grid == (3, 2)


def test_eager_arguments_that_do_not_fit_are_named():
    a = np.zeros((128, 256), np.float16)
    with pytest.raises(LaunchError, match="`B` has extent 255 in dimension 0, `K` is 256"):
        eager.elaborate(gemm, {"A": a, "B": np.zeros((255, 192), np.float16)})
    with pytest.raises(LaunchError, match="`B` has dtype float32"):
        eager.elaborate(gemm, {"A": a, "B": np.zeros((256, 192), np.float32)})
    with pytest.raises(LaunchError, match="has 1 dimension"):
        eager.elaborate(gemm, {"A": np.zeros(128, np.float16), "B": a})
    with pytest.raises(LaunchError, match=r"the value of T.const `N` is not known"):
        eager.elaborate(gemm, {"A": a})


def test_a_constant_needs_a_direct_use():
    def doubled(A):
        M = T.const("M")
        A: T.Tensor[[M * 2], "float32"]
        with T.Kernel(1) as bx:
            T.clear(A)

    with pytest.raises(LanguageError, match=r"T.const `M` cannot be read"):
        eager.signature(doubled)
    assert eager.elaborate(doubled, {"A": np.zeros(8, np.float32)}, {"M": 4}).params[0].shape == (8,)


def test_constants_from_strides_dynamic_extents_and_scalars():
    def main(A, count: T.int32, scale: T.float32 = 2.0, M=None):
        N, S = T.const("N, S")
        m = T.dynamic("m")
        A: T.StridedTensor[[m, N], [S, 1], "float32"]
        M: T.int32
        with T.Kernel(T.ceildiv(m, 8)) as bx:
            for i in T.Parallel(N):
                A[bx, i] = count * scale + S + M

    kernel = eager.elaborate(main, {"A": np.zeros((6, 32), np.float32)[:, :16], "count": 3, "M": 9})
    assert [p.name for p in kernel.params] == ["A", "count", "scale", "M"]
    assert kernel.params[0].strides == (32, 1) and kernel.params[0].shape[1] == 16
    assert kernel.defaults[kernel.params[2]] == 2.0


def test_text_that_needs_values_is_not_run_with_symbols():
    def main(A):
        M = T.const("M")
        A: T.Tensor[[M], "float32"]
        steps = [2**i for i in range(M.bit_length())]
        with T.Kernel(len(steps)) as bx:
            A[bx] = 0

    assert eager.elaborate(main, {"A": np.zeros(9, np.float32)}).grid == (4,)


def test_outputs_of_eager_kernels_are_returned():
    def one(A):
        A: T.Tensor[[4], "float32"]
        B = T.empty((4,), "float32")
        with T.Kernel(1) as bx:
            T.copy(A, B)

    with pytest.raises(LanguageError, match=r"makes 1 T.empty tensors and returns 0"):
        eager.elaborate(one, {"A": np.zeros(4, np.float32)})

    def two(A):
        A: T.Tensor[[4], "float32"]
        B = T.empty((4,), "float32")
        C = T.empty(4, 2, dtype="int8")
        with T.Kernel(1) as bx:
            T.copy(A, B)
        return C, B

    kernel = eager.elaborate(two, {"A": np.zeros(4, np.float32)})
    assert kernel.outputs == (2, 1) and kernel.params[2].shape == (4, 2)


def test_pointers_get_their_shape_in_the_body():
    @T.prim_func
    def main(p: T.ptr, n: T.int32):
        A = T.make_tensor(p, (n, 4), "float16")
        with T.Kernel(n) as bx:
            A[bx, 0] = 1

    tensor = main.kernel.params[0]
    assert tensor.shape == (main.kernel.params[1], 4) and tensor.dtype.name == "float16"


def test_text_that_cannot_be_found():
    space = {"T": T}
    exec("def lost(A: T.Tensor((4,), 'int32')):\n    pass\n", space)
    with pytest.raises(LanguageError, match="source text of `lost` cannot be found"):
        T.prim_func(space["lost"])


def test_text_that_changed_after_it_ran():
    space = run_cell("def f(A: T.Tensor((4,), 'int32')):\n    pass\n")
    file = space["f"].__code__.co_filename
    linecache.cache[file] = (9, None, ["x = 1\n"], file)
    with pytest.raises(LanguageError, match="no longer holds `f`"):
        T.read(space["f"])


def test_a_cell_run_again_is_read_again():
    text = "@T.prim_func\ndef f(A: T.Tensor((4,), 'int32')):\n    with T.Kernel(1) as bx:\n        A[0] = {}\n"
    for value in (1, 2):
        assert kernel_lines(run_cell(text.format(value))["f"].kernel) == [f"A[0] = {value}"]


def broken_helper():
    return {}["missing"]


def test_errors_of_the_users_python_keep_their_own_traceback():
    with pytest.raises(KeyError) as caught:

        @T.prim_func
        def main(A: T.Tensor((4,), "int32")):
            with T.Kernel(1) as bx:
                A[0] = broken_helper()

    frames = traceback.extract_tb(caught.value.__traceback__)
    assert [f.name for f in frames][-2:] == ["main", "broken_helper"]
    assert frames[-2].line == "A[0] = broken_helper()"
    inner = [f for f in frames[-2:] if "/tileworkbench/language/" in f.filename]
    assert not inner


def test_python_assertions_fail_while_compiling():
    with pytest.raises(AssertionError, match="not a multiple"):

        @T.prim_func
        def main(A: T.Tensor((4,), "int32")):
            assert 5 % 4 == 0, "not a multiple"
            with T.Kernel(1) as bx:
                A[0] = 1


def test_layout_functions_run_after_reading():
    @T.prim_func
    def main(A: T.Tensor((8, 8), "int32")):
        with T.Kernel(1) as bx:
            s = T.alloc_shared((8, 8), "int32")
            T.annotate_layout({s: lambda i, j: (i, j ^ (i % 4))})
            T.copy(A, s)

    (layout,) = main.kernel.attrs["layouts"].values()
    assert layout.table()[5, 2] == 5 * 8 + 3


def test_attributes():
    @T.prim_func
    def main(A: T.Tensor((8, 8), "int32"), n: T.int32):
        with T.Kernel(1) as bx:
            T.use_swizzle(panel_size=4, order="column")
            T.assume(n > 3)
            T.annotate_safe_value({A: 7})
            T.disable_warp_group_reg_alloc()
            T.clear(A)

    attrs = main.kernel.attrs
    assert attrs["swizzle"] == (4, "column") and attrs["set_max_nreg"] is False
    assert attrs["safe_values"][main.kernel.params[0]].value == 7
    assert [fact.cond.op for fact in main.kernel.assumed] == ["gt"]


def test_places_do_not_count_bytes():
    kernel = run_cell(
        "@T.prim_func\ndef f(A: T.Tensor((4,), 'int32'), n: T.int32):\n    with T.Kernel(1) as bx:\n"
        "        A[0] = n if 'äöü€' == '' else n * 2\n"
    )["f"].kernel
    loc = kernel.body[0].value.loc
    assert isinstance(loc, Loc) and loc.source_line()[loc.col : loc.end_col] == "n * 2"


def test_repr_is_the_text():
    @T.prim_func
    def main(A: T.Tensor((4,), "int32")):
        with T.Kernel(1, threads=32) as bx:
            A[0] = 1

    assert repr(main).splitlines()[0] == "@T.prim_func" and "A[0] = 1" in repr(main)
    with pytest.raises(LanguageError, match="not a callable"):
        main(np.zeros(4))


def test_a_function_may_launch_one_kernel_after_another():
    @T.macro
    def split(A, partial):
        with T.Kernel(4, threads=64) as bx:
            T.use_swizzle(2)
            for i in T.Parallel(16):
                partial[bx, i] = A[bx * 16 + i] * 2

    @T.prim_func
    def main(A: T.Tensor((64,), "float32"), B: T.Tensor((16,), "float32")):
        partial = T.alloc_global((4, 16), "float32")
        split(A, partial)
        with T.Kernel(1, threads=32) as bx:
            for i in T.Parallel(16):
                B[i] = partial[0, i] + partial[1, i]

    first, second = main.kernels
    assert first.params is second.params or first.params == second.params
    assert [p.name for p in first.params] == ["A", "B", "partial"] and first.attrs["workspaces"] == (2,)
    assert (first.name, second.name, first.threads, second.threads) == ("main", "main_1", 64, 32)
    assert first.attrs["swizzle"] == (2, "row") and "swizzle" not in second.attrs
    with pytest.raises(LanguageError, match="launches 2 kernels"):
        main.kernel
    assert T.read_all(main) == main.kernels


def test_storage_that_may_stand_for_another_dtype():
    def main(A, B):
        A: T.Tensor[[4], "tfloat32"]
        B: T.Tensor[[4], "bool"]
        with T.Kernel(1) as bx:
            T.clear(A)

    kernel = eager.elaborate(main, {"A": np.zeros(4, np.float32), "B": np.zeros(4, np.uint8)})
    assert [p.dtype.name for p in kernel.params] == ["tfloat32", "bool"]
    with pytest.raises(LaunchError, match="`A` has dtype float64"):
        eager.elaborate(main, {"A": np.zeros(4), "B": np.zeros(4, np.bool_)})


def test_links_that_other_tools_leave_in_syntax_trees_are_not_followed():
    def main(A: T.Tensor((4,), "float32")):
        with T.Kernel(1, threads=4) as _bx:
            A[T.get_thread_binding()] = 1.0

    node = find(main).node
    for inner in ast.walk(node):
        for child in ast.iter_child_nodes(inner):
            child.parent = inner
    assert T.prim_func(main).params[0].name == "A"
    assert ast.dump(find(main).node) == ast.dump(node)  # reading leaves the file's own tree alone
