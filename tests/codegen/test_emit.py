"""The records beside the text: parameters, grid, maps, facts; and what the sample kernels become."""

from __future__ import annotations

import pytest

from tileworkbench.codegen.emit import emit
from tileworkbench.codegen.host import host
from tileworkbench.codegen.source import KernelArg, ScalarParam, Source, TensorMap, TensorParam
from tileworkbench.errors import InternalError
from tileworkbench.ir.dtype import FLOAT16, FLOAT32
from tileworkbench.ir.expr import Binary, Buffer, Special, Var, ceildiv, logical, select
from tileworkbench.ir.instr import AtomicMem, LoadMem, StoreMem
from tileworkbench.ir.kernel import Assumed, Kernel
from tileworkbench.target import Target

from . import samples
from .samples import THREAD, addr, reg, run


def evaluate(e: object, env: dict[str, int]) -> int:
    """An independent reading of host expressions."""
    if isinstance(e, int):
        return e
    if isinstance(e, str):
        return env[e]
    op, *args = e
    a, b = (evaluate(x, env) for x in args)
    made = {"add": a + b, "sub": a - b, "mul": a * b, "floordiv": a // (b or 1), "mod": a % (b or 1), "min": min(a, b)}
    told = {"max": max(a, b), "eq": a == b, "ne": a != b, "lt": a < b, "le": a <= b, "gt": a > b, "ge": a >= b}
    return int({**made, **told}[op])


def test_host_expressions_keep_their_value() -> None:
    m, n = Var("M"), Var("N")
    names = {m: "M", n: "N"}
    cases = (
        (ceildiv(m, 128) * n, lambda a, b: -(-a // 128) * b), (m % 8 + (n >> 2), lambda a, b: a % 8 + b // 4),
        (select(m < n, m, n), min), (Binary("max", m, n - m), lambda a, b: max(a, b - a)), (m << 3, lambda a, b: a * 8),
        (logical("land", m > 3, n > 3), lambda a, b: int(a > 3 and b > 3)), (n & 15, lambda a, b: b % 16),
        (logical("lor", m.__eq__(5), n), lambda a, b: int(a == 5 or b != 0)),
        (-m + abs(n - m), lambda a, b: abs(b - a) - a),
    )  # fmt: skip
    for e, truth in cases:
        for a, b in ((5, 0), (5, 17), (300, 4), (3, 3)):
            assert evaluate(host(e, names), {"M": a, "N": b}) == truth(a, b)
    with pytest.raises(InternalError, match="Special cannot be computed"):
        host(Special("thread") + m, names)


def test_parameters_arguments_and_facts() -> None:
    n, alpha = Var("n"), Var("alpha", dtype=FLOAT32)
    a = Buffer("A", (n, 8), FLOAT16, strides=(Var("lda"), 1))
    b, c = Buffer("B", (n * 2,), FLOAT16), Buffer("C", (n,), FLOAT16)
    r = reg("r", 1, FLOAT16)
    body = (
        LoadMem(run(r), addr(a, THREAD)),
        StoreMem(addr(c, THREAD), run(r)),
        AtomicMem("add", addr(b, THREAD), run(r)),
    )
    kernel = Kernel("k", (a, alpha, b, c), (ceildiv(n, 32), 2), (), 64, body, level="thread", buffers=(r,),
                    defaults={alpha: 0.5}, assumed=(Assumed((n % 8).__eq__(0), "n is a multiple of 8"),),
                    shared_bytes=2048, cluster=(2, 1, 1))  # fmt: skip
    source = emit(kernel, Target.of("sm_90a"), {"fast_math": True})
    assert source.params == (
        TensorParam("A", "float16", ("n", 8), ("lda", 1), "r"), ScalarParam("alpha", "float32", 0.5),
        TensorParam("B", "float16", (("mul", "n", 2),), None, "rw"), TensorParam("C", "float16", ("n",), None, "w"),
    )  # fmt: skip
    assert source.args == (
        KernelArg("pointer", "A", "float16"), KernelArg("pointer", "B", "float16"),
        KernelArg("pointer", "C", "float16"),
        KernelArg("symbol", "n", "int32"), KernelArg("symbol", "lda", "int32"), KernelArg("scalar", "alpha", "float32"),
    )  # fmt: skip
    assert "const unsigned short* __restrict__ A, unsigned short* __restrict__ B" in source.text
    assert "const int n, const int lda, const float alpha)" in source.text
    assert [evaluate(g, {"n": 100}) for g in source.grid] == [4, 2]
    assert evaluate(source.facts[0].condition, {"n": 16}) == 1 and evaluate(source.facts[0].condition, {"n": 12}) == 0
    assert source.facts[0].text == "n is a multiple of 8" and source.options == (("fast_math", "1"),)
    assert (source.entry, source.threads, source.shared_bytes, source.cluster) == ("k_kernel", 64, 2048, (2, 1, 1))
    assert "__launch_bounds__(64, 1) __cluster_dims__(2, 1, 1)" in source.text


def test_maps_are_recipes() -> None:
    source = emit(samples.wgmma_gemm(), Target.of("sm_90a"))
    assert source.maps[0] == TensorMap("A_map", "A", "float16", ("K", "M"), (("mul", "K", 2),), (64, 128), 128)
    assert source.args[-2:] == (KernelArg("map", "A_map"), KernelArg("map", "B_map"))
    assert source.threads == 384 and "const __grid_constant__ tw_map A_map" in source.text


def opcodes(source: Source) -> tuple[set[str], object]:
    pytest.importorskip("cuda.bindings.nvrtc", reason="cuda-bindings is not installed")
    from tileworkbench.errors import MissingDependency
    from tileworkbench.runtime import disassemble, nvrtc

    binary = nvrtc.build(source)
    try:
        return {line.opcode.split(".")[0] for line in disassemble.sass(binary, source)}, binary
    except MissingDependency as missing:
        pytest.skip(str(missing))


def test_sm_90a_gemm_becomes_wgmma_and_tensor_copies() -> None:
    found, binary = opcodes(emit(samples.wgmma_gemm(), Target.of("sm_90a")))
    assert {"HGMMA", "UTMALDG", "SYNCS", "USETMAXREG", "ELECT"} <= found and not found & {"LDL", "STL"}
    # Conversions of neighbours become one instruction each.
    assert "F2FP" in found and "PRMT" not in found
    assert not binary.warnings and binary.spills == 0 and binary.registers == 168


def test_sm_80_gemm_becomes_mma_and_asynchronous_copies() -> None:
    found, binary = opcodes(emit(samples.mma_gemm(), Target.of("sm_80")))
    assert {"HMMA", "LDGSTS", "LDSM", "LDGDEPBAR", "DEPBAR"} <= found and not found & {"LDL", "STL"}
    assert binary.spills == 0 and not binary.warnings


def test_elementwise_halves_use_one_instruction_an_element() -> None:
    found, binary = opcodes(emit(samples.elementwise(), Target.of("sm_80")))
    assert {"LDG", "STG"} <= found and found & {"HADD2", "HFMA2"} and "F2F" not in found and binary.spills == 0
