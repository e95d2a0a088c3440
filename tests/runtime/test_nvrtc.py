from __future__ import annotations

import signal
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from tileworkbench.codegen.source import KernelArg, Source
from tileworkbench.errors import BuildError, Loc, OptionError, TargetError
from tileworkbench.options import options

pytest.importorskip("cuda.bindings.nvrtc", reason="cuda-bindings is not installed")
from tileworkbench.runtime import cudaheaders, elf, nvrtc, ptxas
from tileworkbench.runtime.buildoptions import BuildOptions

TEXT = """\
extern "C" __global__ void __launch_bounds__(128) k(float* a, const float* b, int n) {
  __shared__ float s[128];
  int i = blockIdx.x * 128 + threadIdx.x;
  s[threadIdx.x] = b[i];
  __syncthreads();
  if (i < n) a[i] = s[127 - threadIdx.x] * 2;
}
"""


def source(text: str = TEXT, **fields: object) -> Source:
    base = Source(
        text=text,
        entry="k",
        dialect="cuda",
        arch="sm_90a",
        params=(),
        args=(KernelArg("pointer", "a"),),
        grid=(1,),
        threads=128,
    )
    return replace(base, **fields)


@pytest.mark.parametrize("arch", ["sm_75", "sm_80", "sm_90a", "sm_100a", "sm_120a"])
def test_build_gives_a_cubin_and_its_figures(arch: str) -> None:
    binary = nvrtc.build(source(arch=arch))
    assert binary.code[:4] == b"\x7fELF" and binary.kind == "cubin" and binary.arch == arch
    assert binary.shared == 512 and binary.spills == 0 and binary.stack == 0
    assert 4 <= binary.registers <= 64
    assert f".target {arch}" in binary.ptx
    assert not binary.warnings and not binary.serialised


def test_the_drivers_cache_is_not_asked() -> None:
    """What comes from there comes without the assembler's report."""
    keeps = nvrtc._release() >= (12, 9)
    assert ("--no-cache" in nvrtc._flags("sm_90a", BuildOptions.parse(()))) == keeps
    assert nvrtc.build(source()).spills == nvrtc.build(source()).spills == 0


def test_the_cubin_itself_tells_the_same_figures() -> None:
    binary = nvrtc.build(source())
    told = elf.cubin_usage(binary.code, "k")
    assert (told.registers, told.stack) == (binary.registers, binary.stack)
    # From sm_90 on the section also counts what the system reserves, 1 KiB a block.
    assert told.shared in (512, 512 + 1024)


def test_error_goes_back_to_the_users_line() -> None:
    cell = Loc("<cell 3>", 12, 4)
    bad = source(
        TEXT.replace("s[127 - threadIdx.x] * 2", "missing * 2; other()"), line_map=(None,) * 5 + (cell,) + (None,)
    )
    with pytest.raises(BuildError) as caught:
        nvrtc.build(bad)
    assert caught.value.loc == cell and caught.value.line == 6
    assert '"missing" is undefined' in caught.value.found and "other" in caught.value.notes[0].text
    assert [d.line for d in caught.value.errors] == [6, 6] and "other" in caught.value.log


def test_a_line_without_a_place_takes_the_nearest_above() -> None:
    cell = Loc("<cell 3>", 9)
    bad = source(TEXT.replace("s[127", "missing + s[127"), line_map=(None, cell, None, None, None, None, None))
    with pytest.raises(BuildError) as caught:
        nvrtc.build(bad)
    assert caught.value.loc == cell


def test_ptxas_error_goes_back_to_the_users_line() -> None:
    cell = Loc("<cell 1>", 2)
    bad = source(
        TEXT.replace("__syncthreads();", 'asm volatile("bogus.f32 %0, 1.0;" : "=f"(a[i]));'),
        line_map=(None,) * 4 + (cell, None, None),
    )
    with pytest.raises(BuildError) as caught:
        nvrtc.build(bad)
    assert caught.value.line == 5 and caught.value.loc == cell and "ptxas" in caught.value.found


def test_options_are_typed() -> None:
    with pytest.raises(OptionError, match="unknown build option '-I'"):
        nvrtc.build(source(options=(("-I", "/etc"),)))
    with pytest.raises(OptionError, match="max_registers"):
        nvrtc.build(source(options=(("max_registers", "7; -I/"),)))
    with pytest.raises(TargetError, match="sm_20"):
        nvrtc.build(source(arch="sm_20"))
    with pytest.raises(TargetError, match="not an NVIDIA"):
        nvrtc.build(source(arch="sm_90a --pre-include=/etc/passwd"))


def test_fast_math_and_line_info_reach_the_compiler() -> None:
    text = TEXT.replace("* 2", "/ b[0]")
    assert "div.approx.ftz" in nvrtc.build(source(text, options=(("fast_math", "1"),))).ptx
    plain = nvrtc.build(source(text, options=(("line_info", "0"),))).ptx
    assert "div.rn.f32" in plain and ".loc" not in plain
    assert ".loc" in nvrtc.build(source(text)).ptx


def test_spills_are_counted() -> None:
    body = "".join(f"  v[{i}] = a[{i} * n + threadIdx.x];\n" for i in range(64))
    uses = "".join(f"  a[{i} * n + threadIdx.x] = v[{(i * 7 + 1) % 64}] * t;\n" for i in range(64))
    text = (
        'extern "C" __global__ void k(float* a, const float* b, int n) {\n  float v[64], t = 0;\n'
        + body
        + "  for (int i = 0; i < 64; i++) t += v[i] * b[i];\n  __syncthreads();\n"
        + uses
        + "}\n"
    )
    binary = nvrtc.build(source(text, options=(("max_registers", "24"),)))
    assert binary.spills > 0 and binary.stack > 0 and binary.registers <= 24
    assert any("spill" in w for w in binary.warnings)


def test_environment_cannot_add_options(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NVCC_APPEND_FLAGS", "-DTHREADS=1 -Dthreadidx")
    with nvrtc.scrubbed_environment():
        import os

        assert "NVCC_APPEND_FLAGS" not in os.environ
    assert __import__("os").environ["NVCC_APPEND_FLAGS"].startswith("-D")
    assert nvrtc.build(source()).registers


def test_a_changed_header_is_never_served_stale() -> None:
    text = '#include "own.h"\n' + TEXT.replace("* 2", "* own()")
    first = nvrtc.build(source(text, headers=(("own.h", "__device__ float own() { return 3.0f; }\n"),)))
    second = nvrtc.build(source(text, headers=(("own.h", "__device__ float own() { return 5.0f; }\n"),)))
    assert "0f40400000" in first.ptx and "0f40A00000" in second.ptx


def test_cuda_headers_come_as_text() -> None:
    pytest.importorskip("cuda.pathfinder")
    text = "#include <cuda_fp16.h>\n#include <cuda_bf16.h>\n#include <cuda_fp8.h>\n" + TEXT.replace(
        "* 2", "* __half2float(__float2half(b[0]))"
    )
    first, again = nvrtc.build(source(text)), nvrtc.build(source(text))
    assert "cvt.rn.f16.f32" in first.ptx and first.code == again.code
    assert not first.warnings and "precompiled" not in first.log
    assert cudaheaders.closure(("../../etc/passwd",)) == ()


@pytest.mark.parametrize(
    "directive",
    [
        "#include </etc/hostname>",
        '#include "/etc/hostname"',
        "# include MACRO",
        "#inc\\\nlude </etc/hostname>",
        "%:include </etc/hostname>",
        "/* */ #include </etc/hostname>",
        '#include "other.h"',
    ],
)
def test_includes_that_a_source_does_not_bring_are_refused(directive: str) -> None:
    cell = Loc("<cell 5>", 2)
    with pytest.raises(BuildError, match="has the directive") as caught:
        nvrtc.build(source(directive + "\n" + TEXT, line_map=(cell,)))
    assert caught.value.loc == cell


def test_the_working_directory_leaves_no_trace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = '#include <cuda_fp16.h>\n#include "own.h"\n' + TEXT.replace("* 2", "* own(b[0])")
    header = (
        '#include "inner.h"\n'
        "__device__ inline float own(float x) { return inner(x) + __half2float(__float2half(x)); }\n"
    )
    headers = (("own.h", header), ("inner.h", "__device__ inline float inner(float x) { return x * x; }\n"))
    here = nvrtc.build(source(text, headers=headers))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "own.h").write_text("#error this file must not be read")
    there = nvrtc.build(source(text, headers=headers))
    assert here.code == there.code and str(tmp_path).encode() not in there.code
    assert '"/kernel.cu"' in there.ptx and '"/own.h"' in there.ptx


def test_threads_build_beside_one_another() -> None:
    texts = [TEXT.replace("* 2", f"* {i + 3}.0f") for i in range(6)]
    alone = [nvrtc.build(source(t)).code for t in texts]
    got: dict[int, bytes] = {}
    work = [threading.Thread(target=lambda i=i: got.update({i: nvrtc.build(source(texts[i])).code})) for i in range(6)]
    for t in work:
        t.start()
    for t in work:
        t.join()
    assert [got[i] for i in range(6)] == alone


def test_ptxas_log_reader_and_serialised_codes() -> None:
    log = """ptxas info    : (C7514) Potential Performance Loss: wgmma.mma_async instructions are serialized in 'k'
ptxas info    : Compiling entry function 'other' for 'sm_90a'
ptxas info    : Used 9 registers, used 1 barriers
ptxas info    : Compiling entry function 'k' for 'sm_90a'
ptxas info    : Function properties for k
    16 bytes stack frame, 24 bytes spill stores, 40 bytes spill loads
ptxas info    : Used 168 registers, used 4 barriers, 1024+16 bytes smem, 400 bytes cmem[0]
"""
    told = ptxas.usage(log, "k")
    assert told == ptxas.Usage(registers=168, spills=64, stack=16, shared=1024, barriers=4)
    assert ptxas.usage(log, "absent") == ptxas.Usage()
    binary = replace(nvrtc.build(source()), warnings=ptxas.warnings(log))
    assert len(binary.serialised) == 1 and "C7514" in binary.serialised[0]


def test_the_version_is_the_loaded_librarys(monkeypatch: pytest.MonkeyPatch) -> None:
    major, minor = nvrtc._release()
    assert nvrtc.version().startswith(f"nvrtc {major}.{minor}")
    monkeypatch.setattr(nvrtc, "_wheel_version", lambda: "11.2.9")  # a wheel that is not the one in use
    assert nvrtc.version() == f"nvrtc {major}.{minor}"
    monkeypatch.setattr(nvrtc, "_loaded", lambda: False)
    assert nvrtc.version() == "nvrtc 11.2.9"


def slow() -> Source:
    """A kernel that takes a second or two to build."""
    steps = "".join(f"    v[{i}] = v[{(i * 7 + 1) % 64}] * a[{i}] + v[{(i * 3 + 2) % 64}];\n" for i in range(64))
    text = (
        'extern "C" __global__ void k(float* a, const float* b, int n) {\n  float v[64];\n'
        "  for (int i = 0; i < 64; i++) v[i] = a[i * 128 + threadIdx.x];\n"
        "  #pragma unroll\n  for (int j = 0; j < 60; j++) {\n" + steps + "  }\n"
        "  for (int i = 0; i < 64; i++) a[i * 128 + threadIdx.x] = v[i];\n}\n"
    )
    return source(text)


stoppable = pytest.mark.skipif(
    not hasattr(nvrtc.library(), "nvrtcSetFlowCallback"), reason="this NVRTC cannot be stopped"
)


@stoppable
def test_a_build_ends_when_its_time_is_over() -> None:
    with options(compile_timeout=0.05), pytest.raises(BuildError, match=r"took longer than 0.05 s"):
        nvrtc.build(slow())
    assert nvrtc.build(source()).registers


@stoppable
def test_an_interrupt_ends_a_build() -> None:
    timer = threading.Timer(0.1, signal.raise_signal, [signal.SIGINT])
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        timer.start()
        with pytest.raises(KeyboardInterrupt):
            nvrtc.build(slow())
    finally:
        timer.join()
        signal.signal(signal.SIGINT, before)
    assert nvrtc.build(source()).registers
