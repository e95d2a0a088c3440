from __future__ import annotations

from dataclasses import replace

import pytest

from tileworkbench.codegen.source import Source
from tileworkbench.errors import BuildError, Loc, MissingDependency

pytest.importorskip("cuda.bindings.nvrtc", reason="cuda-bindings is not installed")
from tileworkbench.runtime import disassemble, nvrtc

TEXT = """\
#include "own.h"
extern "C" __global__ void __launch_bounds__(128) k(float* a, const float* b, int n) {
  int i = blockIdx.x * 128 + threadIdx.x;
  if (i < n)
    a[i] = own(b, i);
}
"""
HEADER = """\
#pragma once
__device__ inline float inner(const float* b, int i) {
  return b[i] * 3.0f;
}
__device__ inline float own(const float* b, int i) {
  return inner(b, i);
}
"""
PLACES = tuple(Loc("<cell 2>", 10 + i) for i in range(6))


@pytest.fixture(scope="module")
def source() -> Source:
    try:
        disassemble.nvdisasm()
    except MissingDependency as missing:
        pytest.skip(str(missing))
    return Source(
        text=TEXT,
        entry="k",
        dialect="cuda",
        arch="sm_90a",
        params=(),
        args=(),
        grid=(1,),
        threads=128,
        headers=(("own.h", HEADER),),
        line_map=PLACES,
    )


def test_every_line_knows_where_it_came_from(source: Source) -> None:
    lines = disassemble.sass(nvrtc.build(source), source)
    assert [line.address for line in lines] == list(range(0, 16 * len(lines), 16))
    load = next(line for line in lines if line.opcode.startswith("LDG"))
    multiply = next(line for line in lines if line.opcode.startswith("FMUL"))
    store = next(line for line in lines if line.opcode.startswith("STG"))
    assert {load.generated_line, multiply.generated_line, store.generated_line} == {5}
    assert load.loc == PLACES[4]
    first = next(line for line in lines if line.opcode == "S2R")
    assert first.generated_line == 3 and first.loc == PLACES[2]


def test_predicates_are_not_opcodes(source: Source) -> None:
    lines = disassemble.sass(nvrtc.build(source))
    early = next(line for line in lines if line.text.startswith("@"))
    assert early.opcode == "EXIT" and early.loc is None


def test_live_registers_stay_within_the_count(source: Source) -> None:
    binary = nvrtc.build(source)
    lines = disassemble.sass(binary, source, live=True)
    counts = [line.live for line in lines if line.live is not None]
    assert counts and 0 < max(counts) <= binary.registers


def test_what_is_no_cubin_is_refused(source: Source) -> None:
    binary = nvrtc.build(source)
    with pytest.raises(BuildError, match="nvdisasm cannot read"):
        disassemble.sass(replace(binary, code=b"\x7fELF" + bytes(100)))
    with pytest.raises(BuildError, match="no SASS"):
        disassemble.sass(replace(binary, kind="asm"))
