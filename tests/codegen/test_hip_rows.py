from __future__ import annotations

import re

import pytest

from tileworkbench.codegen.emit import emit
from tileworkbench.codegen.hip import HipPrinter
from tileworkbench.codegen.hip_scalar import MATH
from tileworkbench.errors import InternalError, MissingDependency
from tileworkbench.ir import instr, mathfn
from tileworkbench.runtime import clang
from tileworkbench.target import Target

from . import rows, samples
from .samples import Frame
from .test_cuda_rows import kernel

ARCHS = ("gfx90a", "gfx942", "gfx950")


@pytest.fixture(scope="module", autouse=True)
def tool() -> None:
    try:
        clang.clang("gfx950")
    except MissingDependency as missing:
        pytest.skip(str(missing))


def test_every_row_has_text_or_a_named_reason() -> None:
    for kind in instr.rows():
        assert (kind in HipPrinter.rows) != bool(HipPrinter.refused.get(kind)), kind.__name__


@pytest.mark.parametrize("kind", instr.rows(), ids=lambda k: k.__name__)
def test_row_compiles_or_is_refused_by_name(kind: type) -> None:
    for arch in ARCHS if kind in (instr.Mma, instr.LdsDirect, instr.AtomicMem) else ARCHS[1:2]:
        target = Target.of(arch)
        if kind in HipPrinter.refused:
            with pytest.raises(InternalError, match=f"{kind.__name__}.* reached the text for {arch}"):
                emit(kernel(kind, target), target)
        else:
            binary = clang.build(emit(kernel(kind, target), target))
            assert binary.stack == 0, "a register array was not kept in registers"


def test_conversions_compile() -> None:
    f = Frame()
    clang.build(emit(f.kernel(*rows.casts(f)), Target.of("gfx942")))


def test_mathematics_compiles() -> None:
    f = Frame()
    assert set(mathfn.MATH) <= set(MATH)
    clang.build(emit(f.kernel(*rows.calls(f, MATH), *rows.specials(f)), Target.of("gfx942")))


def test_elementwise_uses_wide_global_accesses() -> None:
    text = clang.build(emit(samples.elementwise(), Target.of("gfx942"))).code.decode()
    assert (
        "global_load_dwordx4" in text and "global_store_dwordx4" in text and not re.search(r"\bflat_(load|store)", text)
    )
