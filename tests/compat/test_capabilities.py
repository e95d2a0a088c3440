"""What targets can do, which memory a tile is in, and settings of TVM's contexts."""

from __future__ import annotations

import pytest

import tileworkbench as tw
import tileworkbench.language as T
from tileworkbench.compat import capabilities as can
from tileworkbench.compat import memories
from tileworkbench.compat.device import determine_target, get_device_name
from tileworkbench.compat.lowering import cached, lower
from tileworkbench.compat.passcontext import PassContext
from tileworkbench.errors import MissingDependency

FAMILIES = ("target_is_volta", "target_is_turing", "target_is_ampere", "target_is_hopper", "target_is_sm120")


@pytest.mark.parametrize(
    ("target", "family", "has"),
    [
        ("sm_75", 1, ("target_has_ldmatrix", "have_tensorcore")),
        ("sm_80", 2, ("target_has_ldmatrix", "target_has_async_copy", "have_tensorcore")),
        ("sm_89", 2, ("target_has_ldmatrix", "target_has_async_copy", "have_tensorcore")),
        (
            "sm_90a",
            3,
            (
                *("target_has_ldmatrix", "target_has_async_copy", "target_has_stmatrix", "target_has_bulk_copy"),
                *("have_tensorcore", "have_pdl", "have_mbarrier", "is_hopper"),
            ),
        ),
        ("gfx942", None, ()),
        ("cpu", None, ()),
    ],
)
def test_families(target, family, has):
    assert [name for name in FAMILIES if getattr(can, name)(target)] == ([FAMILIES[family]] if family else [])
    asked = [n for n in dir(can) if n.startswith("target_has_")] + ["have_pdl", "have_mbarrier", "is_hopper"]
    assert {n for n in asked if getattr(can, n)(target)} == set(has) - {"have_tensorcore"}
    assert can.have_tensorcore(target=target) == ("have_tensorcore" in has)


def test_compute_versions():
    assert [can.get_target_arch(v) for v in ("8.0", (8, 9), "9.0")] == ["80", "89", "90a"]
    assert [can.have_fp16(v) for v in ("5.2", "5.3", "7.0")] == [False, True, True]
    assert can.have_int8("6.1") and not can.have_int8("5.3") and can.have_tensorcore("7.0")
    assert not can.have_tensorcore("6.1") and can.get_cuda_version() >= (12, 0) and can.cpu_count() >= 1
    assert can.IS_CUDA == can.have_cudagraph() == can.check_cuda_availability() and not can.IS_MPS


def test_a_toolkit_is_looked_for(monkeypatch, tmp_path):
    monkeypatch.setenv("CUDA_HOME", str(tmp_path))
    assert can.find_cuda_path() == str(tmp_path)
    monkeypatch.setenv("CUDA_HOME", str(tmp_path / "nowhere"))
    with pytest.raises(MissingDependency, match="no CUDA toolkit"):
        can.find_cuda_path()


def test_targets_as_objects_and_names():
    found = determine_target({"kind": "cuda", "arch": "sm_90a"}, return_object=True)
    assert (found.kind.name, found.attrs["arch"], determine_target("sm_80")) == ("cuda", "sm_90a", "sm_80")
    assert isinstance(get_device_name(), str)


def test_memories():
    seen = {}

    @T.prim_func
    def kernel(A: T.Tensor((8,), "float32")):
        with T.Kernel(threads=32):
            s, f = T.alloc_shared((8,), "float32"), T.alloc_fragment((8,), "float32")
            x, v = T.alloc_local((8,), "float32"), T.alloc_var("int32")
            T.copy(A, s)
            T.copy(s, f)
            seen.update(A=A, s=s, f=f, x=x, row=s[0:4], one=A[0])

    names = ("is_global", "is_shared", "is_shared_dynamic", "is_fragment", "is_local", "is_local_var")
    told = {k: [n for n in names if getattr(memories, n)(v)] for k, v in seen.items()}
    assert told["A"] == told["one"] == ["is_global"] and told["f"] == ["is_fragment"] and told["x"] == ["is_local"]
    assert told["s"] == told["row"] == ["is_shared", "is_shared_dynamic"]
    assert not memories.is_shared(seen["s"], allow_dynamic=False)
    with pytest.raises(TypeError, match="the memory of int"):
        memories.is_global(3)


def test_a_context_of_passes_reaches_lower():
    @T.prim_func
    def kernel(A: T.Tensor((256, 64), "float16"), B: T.Tensor((256, 64), "float16")):
        with T.Kernel(4, threads=128) as bx:
            s = T.alloc_shared((64, 64), "float16")
            T.copy(A[bx * 64, 0], s)
            T.copy(s, B[bx * 64, 0])

    def engines():
        return {d.chosen for d in lower(kernel, target="sm_90a").kernel.plan.decisions}

    assert "tma" in engines() and PassContext.current().config == {}
    with PassContext(config={tw.PassConfigKey.TL_DISABLE_TMA_LOWER: True}) as outer:
        assert PassContext.current() is outer and outer.config == {"tl.disable_tma_lower": True}
        assert "tma" not in engines()
        with PassContext(opt_level=3):
            assert "tma" in engines()
    assert "tma" in engines()
    assert cached(kernel, target="sm_80") is tw.compile(kernel, target="sm_80")
