from __future__ import annotations

import pytest

from tileworkbench.codegen.cuda import CudaPrinter
from tileworkbench.codegen.cuda_scalar import MATH
from tileworkbench.codegen.emit import emit
from tileworkbench.errors import InternalError, TargetError
from tileworkbench.ir import instr, mathfn
from tileworkbench.ir.dtype import DTYPES
from tileworkbench.ir.expr import Buffer, const
from tileworkbench.layout.wgmma import wgmma_atom
from tileworkbench.target import Target

from . import rows
from .samples import Frame, addr, run

pytest.importorskip("cuda.bindings.nvrtc", reason="cuda-bindings is not installed")
from tileworkbench.runtime import nvrtc

ARCHS = ("sm_75", "sm_80", "sm_90a", "sm_100a", "sm_120a")
# Rows whose forms are spread over several kernels elsewhere, or that end the kernel.
STAMPS = Buffer("stamps", (4, 8), DTYPES["uint64"])


def kernel(kind: type, target: Target):
    f = Frame()
    body = rows.ROWS[kind](f, target)
    if kind is instr.Stamp:
        f.params.append(STAMPS)
        return f.kernel(*body, attrs={"stamps": STAMPS})
    return f.kernel(*body)


def test_every_row_has_text_or_a_named_reason() -> None:
    for kind in instr.rows():
        assert kind in CudaPrinter.rows or CudaPrinter.refused.get(kind), kind.__name__
    assert set(rows.ROWS) == set(instr.rows())


@pytest.mark.parametrize("arch", ARCHS)
@pytest.mark.parametrize("kind", instr.rows(), ids=lambda k: k.__name__)
def test_row_builds_where_the_target_has_it(kind: type, arch: str) -> None:
    target = Target.of(arch)
    if kind in CudaPrinter.refused:
        with pytest.raises(InternalError, match="AMD"):
            emit(kernel(kind, target), target)
        return
    if kind.needs is not None and not target.has(kind.needs):
        with pytest.raises(TargetError, match=kind.needs):
            emit(kernel(kind, target), target)
        return
    binary = nvrtc.build(emit(kernel(kind, target), target))
    # printf takes its arguments on the stack; eighteen accumulators at once are tested one by one below.
    assert binary.stack == 0 or kind in (instr.Trap, instr.Wgmma), "a register array was not kept in registers"
    assert not binary.serialised or kind is instr.Wgmma


@pytest.mark.parametrize("from_registers", [False, True])
@pytest.mark.parametrize("dtypes", rows.WGMMA_TYPES, ids="-".join)
def test_wgmma_keeps_its_operands_in_registers(dtypes: tuple[str, str, str], from_registers: bool) -> None:
    f = Frame()
    atom = wgmma_atom(64, *dtypes)
    b = instr.Desc(addr(f.shared(8192), 1024), 128, 16, 1024)
    a, d = f.reg(atom.a.registers, DTYPES[atom.a_dtype]), f.reg(atom.c.registers, DTYPES[atom.c_dtype])
    body = (rows.clear(f, a), instr.WgmmaFence((run(d),)),
            instr.Wgmma(atom.instruction, run(d), run(a) if from_registers else b, b, const(True)),
            instr.CommitGroup("wgmma"), instr.WaitGroup("wgmma", 0))  # fmt: skip
    binary = nvrtc.build(emit(f.kernel(*body), Target.of("sm_90a")))
    assert binary.stack == 0 and binary.spills == 0 and not binary.warnings


@pytest.mark.parametrize("arch", ["sm_75", "sm_90a"])  # conversions in software, and in hardware
def test_conversions_build(arch: str) -> None:
    f = Frame()
    nvrtc.build(emit(f.kernel(*rows.casts(f)), Target.of(arch)))


def test_mathematics_builds() -> None:
    f = Frame()
    nvrtc.build(emit(f.kernel(*rows.calls(f, MATH)), Target.of("sm_80")))


def test_every_function_of_the_table_has_text() -> None:
    assert set(mathfn.MATH) <= set(MATH)
    wide = {name for name, row in mathfn.MATH.items() if row.ulp64 is not None or row.kind in ("test", "bits")}
    assert all(MATH[name][1] for name in wide)


def test_specials_build() -> None:
    f = Frame()
    nvrtc.build(emit(f.kernel(*rows.specials(f)), Target.of("sm_90a")))
