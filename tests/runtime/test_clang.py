from __future__ import annotations

from dataclasses import replace

import pytest

from tileworkbench.codegen.source import Source
from tileworkbench.errors import BuildError, Loc, MissingDependency, TargetError
from tileworkbench.runtime import clang

TEXT = """\
#include "own.h"
extern "C" __attribute__((global, amdgpu_flat_work_group_size(64, 64))) void k(float* a, const float* b) {
  __attribute__((shared)) static float s[64];
  int i = __builtin_amdgcn_workitem_id_x();
  s[i] = b[i];
  __builtin_amdgcn_s_barrier();
  float4v c = {0, 0, 0, 0};
  half4v x = {1, 2, 3, (_Float16)s[63 - i]};
  c = __builtin_amdgcn_mfma_f32_16x16x16f16(x, x, c, 0, 0, 0);
  a[i] = c[0];
}
"""
HEADER = """\
typedef float float4v __attribute__((ext_vector_type(4)));
typedef _Float16 half4v __attribute__((ext_vector_type(4)));
"""


@pytest.fixture(scope="module")
def source() -> Source:
    try:
        clang.clang("gfx942")
    except MissingDependency as missing:
        pytest.skip(str(missing))
    return Source(
        text=TEXT,
        entry="k",
        dialect="hip",
        arch="gfx942",
        params=(),
        args=(),
        grid=(1,),
        threads=64,
        headers=(("own.h", HEADER),),
    )


def test_mfma_text_becomes_mfma_assembly(source: Source) -> None:
    binary = clang.build(source)
    assert binary.kind == "asm" and b"v_mfma_f32_16x16x16" in binary.code
    assert binary.shared == 256 and binary.spills == 0 and 4 <= binary.registers <= 64
    assert binary.code == clang.build(source).code and b"tileworkbench-" not in binary.code


def test_errors_go_back_to_the_users_line(source: Source) -> None:
    cell = Loc("<cell 4>", 7)
    bad = replace(source, text=TEXT.replace("= c[0]", "= missing"), line_map=(None,) * 9 + (cell, None))
    with pytest.raises(BuildError, match="undeclared identifier 'missing'") as caught:
        clang.build(bad)
    assert caught.value.line == 10 and caught.value.loc == cell


def test_other_targets_and_headers_are_refused(source: Source) -> None:
    with pytest.raises(TargetError, match="not an AMD"):
        clang.build(replace(source, arch="sm_90a"))
    with pytest.raises(BuildError, match="no CUDA header"):
        clang.build(replace(source, text="#include <cuda_fp16.h>\n" + TEXT))
    with pytest.raises(BuildError, match="header is named"):
        clang.build(replace(source, headers=(("own.h", HEADER), ("../x.h", ""))))
    with pytest.raises(MissingDependency, match="no clang"):
        clang.clang("gfxffff")
