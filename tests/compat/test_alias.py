"""`import tilelang` under the alias: the import paths of real scripts, undoing, and names that are not there."""

from __future__ import annotations

import importlib
import subprocess
import sys
import textwrap
import types
from pathlib import Path

import numpy as np
import pytest

import tileworkbench.language as T
from tileworkbench.compat import alias_tilelang, remove_alias, run_script
from tileworkbench.compat.surface import PAGES, page
from tileworkbench.errors import LanguageError, OptionError, TargetError, TileError
from tileworkbench.ir.text import show, show_expr

SCRIPT = """
import sys
import numpy as np
import tilelang
import tilelang.language as T

@tilelang.jit(out_idx=[-1], target="cpu", pass_configs={tilelang.PassConfigKey.TL_DISABLE_WARP_SPECIALIZED: True})
def add(n, block=64):
    @T.prim_func
    def main(A: T.Tensor((n,), T.float32), B: T.Tensor((n,), "float32"), C: T.Tensor((n,), "float32")):
        with T.Kernel(T.ceildiv(n, block), threads=128) as bx:
            for i in T.Parallel(block):
                C[bx * block + i] = A[bx * block + i] + B[bx * block + i]
    return main

if __name__ == "__main__":
    a = np.arange(100, dtype=np.float32)
    result = add(100)(a, a)
    arguments = sys.argv[1:]
"""


@pytest.fixture(autouse=True)
def clean():
    before = {name: module for name, module in sys.modules.items() if name.partition(".")[0] in ("tilelang", "tvm")}
    yield
    remove_alias()
    assert {n for n in sys.modules if n.partition(".")[0] == "tilelang"} == set(before)


@pytest.mark.parametrize("path", sorted(PAGES))
def test_every_name_of_every_page_is_there_or_says_what_it_needs(path):
    with alias_tilelang():
        module = importlib.import_module(path)
        for name in PAGES[path].names:
            assert getattr(module, name) is not None
        for name in PAGES[path].needs:
            with pytest.raises(TargetError, match="needs"):
                getattr(module, name)
        for name in PAGES[path].star or ():
            assert hasattr(module, name)


@pytest.mark.parametrize(
    "line",
    [
        "import tilelang.testing",
        "from tilelang import language as T",
        "from tilelang import tvm as tvm",
        "from tilelang.profiler import do_bench",
        "from tilelang.autotuner import *",
        "from tilelang.carver.arch import driver, CUDA, CDNA",
        "from tilelang.tools import plot_layout, Analyzer",
        "from tilelang.utils.tensor import torch_assert_close, get_tensor_supply, TensorSupplyType",
        "from tilelang.language.fp8 import determine_fp8_type, determine_torch_fp8_type",
        "from tilelang.tileop.base import GemmWarpPolicy",
        "from tilelang.carver.template import MatmulTemplate",
        "from tilelang.carver.roller.rasterization import NoRasterization",
        "from tilelang.cuda.intrinsics.macro.mma_macro_generator import TensorCoreIntrinEmitter",
        "from tilelang.cuda.intrinsics import make_mma_swizzle_layout, get_swizzle_layout",
        "from tilelang.layout import make_swizzled_layout",
        "from tilelang.engine.callback import register_cuda_postproc_callback",
        "from tilelang.transform import simplify_prim_func, PassConfigKey",
        "from tilelang.contrib import nvcc",
        "from tilelang.language.dtypes import dtype, _TORCH_DTYPE_TO_STR",
        "from tilelang.language.kernel import get_thread_binding",
        "from tilelang.language.proxy import ptr",
        "from tilelang.language.eager.builder import prim_func, macro, const, PrimFunc",
        "from tilelang.language.copy_op import copy",
        "from tilelang.cuda.language.warpgroup import ws",
        "from tilelang.cuda.target import target_is_hopper",
        "from tilelang.carver.template.base import BaseTemplate",
        "from tilelang.utils.language import is_fragment, is_shared",
        "from tilelang.cache import cached",
        "from tvm.transform import PassContext",
        "from tvm import DataType, tirx",
        "from tvm.tirx.stmt_functor import post_order_visit",
    ],
)
def test_import_lines_of_real_scripts(line):
    with alias_tilelang():
        exec(line, {})


def test_functions_keep_their_place_beside_submodules_of_the_same_name():
    with alias_tilelang():
        import tilelang

        importlib.import_module("tilelang.jit.kernel")
        importlib.import_module("tilelang.engine.lower")
        assert callable(tilelang.jit) and callable(tilelang.engine.lower)
        assert tilelang.jit is importlib.import_module("tileworkbench").jit
        from tilelang.language import parser, print

        own = importlib.import_module("tileworkbench.language")
        assert print is own.print and parser.prim_func is own.prim_func


def test_undoing_restores_what_was_imported_before():
    marker = type(sys)("tilelang")
    sys.modules["tilelang"] = marker
    try:
        undo = alias_tilelang()
        assert importlib.import_module("tilelang") is not marker
        with alias_tilelang():  # inside another alias nothing changes
            pass
        assert importlib.import_module("tilelang") is not marker
        undo()
        assert sys.modules["tilelang"] is marker
        undo()
    finally:
        del sys.modules["tilelang"]


def test_a_misspelt_name_is_an_attribute_error_with_the_nearest_one():
    with alias_tilelang():
        import tilelang

        assert not hasattr(tilelang, "compil")
        with pytest.raises(LanguageError, match="did you mean `compile`"):
            tilelang.compil
        with pytest.raises(ModuleNotFoundError):
            importlib.import_module("tilelang.nowhere")


def test_names_of_the_other_compiler_can_be_imported_and_refuse_to_be_used():
    with alias_tilelang():
        import tilelang

        pass_ = tilelang.transform.ThreadSync
        assert not isinstance(3, pass_)
        for use in (lambda: pass_("shared"), lambda: pass_ + 1, lambda: bool(pass_), lambda: list(pass_)):
            with pytest.raises(TargetError, match=r"tilelang\.transform\.ThreadSync was used"):
                use()
        with pytest.raises(TargetError, match="was used"):
            types.new_class("Mine", (pass_,))


def test_every_module_below_the_compiler_is_known():
    assert page("tilelang.cuda.op.gemm.gemm_mma") is not None and page("tilelang.nowhere") is None


def test_a_script_runs_as_main_with_its_arguments(tmp_path: Path):
    file = tmp_path / "script.py"
    file.write_text(SCRIPT)
    before = list(sys.argv)
    found = run_script(str(file), ["--size", "3"])
    np.testing.assert_array_equal(found["result"], 2 * np.arange(100, dtype=np.float32))
    assert found["arguments"] == ["--size", "3"] and sys.argv == before
    with pytest.raises(OptionError, match="no file"):
        run_script(str(tmp_path / "absent.py"))


def test_the_command_gives_the_scripts_status(tmp_path: Path):
    file = tmp_path / "script.py"
    file.write_text(SCRIPT + "\n    sys.exit(int(result[3]))\n")
    ran = subprocess.run([sys.executable, "-m", "tileworkbench.compat", str(file)], capture_output=True, timeout=120)
    assert ran.returncode == 6, ran.stderr
    ran = subprocess.run([sys.executable, "-m", "tileworkbench.compat"], capture_output=True, timeout=120)
    assert ran.returncode == 2


def test_the_alias_needs_no_optional_package():
    code = """
    import sys
    from tileworkbench.compat import alias_tilelang
    alias_tilelang()
    import tilelang, tilelang.language as T, tilelang.testing, tilelang.autotuner
    from tilelang.profiler import do_bench
    print(*sorted({"torch", "cupy", "cuda", "pytest"} & set(sys.modules)))
    """
    ran = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, timeout=120)
    assert ran.returncode == 0 and ran.stdout.split() == [], ran.stderr


def test_dtypes_by_tvms_name():
    with alias_tilelang():
        from tvm import DataType

        assert (DataType("float16").bits, DataType("int8x4").bits, DataType("int8x4").lanes) == (16, 8, 4)
        assert (DataType("float8_e4m3").itemsize, DataType("int4").bits) == (1, 4)
        assert DataType("float16") == "float16"
        assert isinstance(T.float16, DataType) and isinstance(T.float6_e2m3fn, DataType)
        assert isinstance(DataType("int8"), DataType) and not isinstance("int8", DataType)


def test_conditions_by_tvms_names():
    with alias_tilelang():
        import tvm.tirx as tirx
        from tvm.tirx.expr import And, Not, Or, Var

        a, b = Var("a", T.int32), Var("b", T.int32)
        made = Or(Not(tirx.all(a < b, b < 4)), And(a > 1, b > 1))
        assert isinstance(T.exp(Var("x", T.float32)), tirx.Call) and not isinstance(a + b, tirx.Call)
        with pytest.raises(TargetError, match="intermediate form"):
            tirx.Call("float32", "exp", [a])
        assert str(made.dtype) == "bool" and show_expr(made) == "not (a < b and b < 4) or a > 1 and b > 1"


def test_tvms_targets_name_ours():
    from tileworkbench import options
    from tileworkbench.target import Target

    with alias_tilelang():
        from tvm.target import Target as TvmTarget

        assert str(Target.of(TvmTarget("cuda -arch=sm_80"))) == "sm_80"
        assert Target.of(TvmTarget("llvm")).name == "cpu" and TvmTarget("c").kind.name == "c"
        with TvmTarget("cuda -arch=sm_90"):
            assert options.target == "sm_90a"
        with pytest.raises(TileError, match="unknown target"):
            TvmTarget("vulkan")


def test_storage_of_packed_types():
    with alias_tilelang():
        import tilelang.language as T
        from tilelang.language.dtypes import resolve_torch_storage_dtype

        assert resolve_torch_storage_dtype(T.float16) == T.float16 and resolve_torch_storage_dtype(T.int4) == T.int8
        assert resolve_torch_storage_dtype(T.float4_e2m1fn) == T.float4_e2m1fnx2


def test_helper_functions_compare_types_by_name():
    """A helper outside the kernel's text sees the value's own type."""
    seen = []

    def doubled(x, tile):
        seen.append(
            (x.dtype == "float16", x.dtype == "float32", x.dtype in ("float16", "int8"), tile.dtype == T.float16)
        )
        return x * 2 if x.dtype == "float16" else x * 3

    @T.prim_func
    def kernel(A: T.Tensor((32,), "float16"), B: T.Tensor((32,), "float16")):
        with T.Kernel(1, threads=32):
            for i in T.Parallel(32):
                B[i] = doubled(A[i], A)

    assert seen == [(True, False, True, True)]
    assert "A[i] * 2.0" in show(kernel.kernel)
