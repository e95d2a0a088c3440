"""Rows of matrix instructions: on the thread machine here, on a card in the gpu ring."""

from __future__ import annotations

import numpy as np
import pytest

from tests.layout.probes import operands, warp_probe, wgmma_probe
from tileworkbench.layout.atoms import Atom
from tileworkbench.layout.mfma import mfma_atoms
from tileworkbench.layout.mma import mma_atoms
from tileworkbench.layout.wgmma import wgmma_atom
from tileworkbench.simulate import thread
from tileworkbench.target import Target

MMA = [a for a in mma_atoms() if a.supports("sm_90a")]
WIDTHS = (8, 24, 64, 96, 128, 176, 256)
KINDS = [
    ("float16", "float16", "float32"), ("float16", "float16", "float16"), ("bfloat16", "bfloat16", "float32"),
    ("tfloat32", "tfloat32", "float32"), ("float8_e4m3fn", "float8_e5m2", "float32"), ("int8", "int8", "int32"),
    ("uint8", "int8", "int32"),
]  # fmt: skip


def wgmma_cases() -> list[tuple[Atom, int, str, str]]:
    cases = []
    for kinds in KINDS:
        for n in WIDTHS:
            if kinds[0].endswith("int8") and n > 32 and n % 16:
                continue
            atom = wgmma_atom(n, *kinds)
            cases += [(atom, span, major, "k") for span, major in ((32, "k"), (64, "reg"), (128, "k"))]
    for n, span in ((64, 128), (96, 64), (176, 32), (256, 128)):
        atom = wgmma_atom(n, "float16", "float16", "float32")
        cases += [(atom, span, a, b) for a, b in (("mn", "k"), ("k", "mn"), ("mn", "mn"), ("reg", "mn"))]
    return cases


def name(value: object) -> str:
    return value.instruction if isinstance(value, Atom) else str(value)


def simulate(kernel, inputs, product, target: str) -> None:  # type: ignore[no-untyped-def]
    out = np.zeros(product.shape, kernel.params[-1].dtype.numpy)
    thread.run(kernel, [*inputs, out], target=Target.of(target), outputs=[len(inputs)])
    np.testing.assert_array_equal(out.astype(np.int64), product)


def stored(array: np.ndarray, major: str) -> np.ndarray:
    return np.ascontiguousarray(array.T) if major == "mn" else array


@pytest.mark.parametrize("atom", MMA, ids=name)
def test_mma(atom: Atom) -> None:
    a, b, product = operands(atom)
    simulate(warp_probe(atom), [a, b], product, "sm_90a")


@pytest.mark.parametrize("atom", mfma_atoms(), ids=name)
def test_mfma(atom: Atom) -> None:
    a, b, product = operands(atom)
    simulate(warp_probe(atom), [a, b], product, atom.archs[0])


@pytest.mark.parametrize(("atom", "span", "a_major", "b_major"), wgmma_cases()[::7], ids=name)
def test_wgmma(atom: Atom, span: int, a_major: str, b_major: str) -> None:
    a, b, product = operands(atom)
    inputs = [stored(a, a_major), stored(b, b_major)]
    simulate(wgmma_probe(atom, span, a_major, b_major), inputs, product, "sm_90a")


def on_card(kernel, inputs, product) -> None:  # type: ignore[no-untyped-def]
    from tileworkbench.codegen.emit import emit
    from tileworkbench.runtime import nvrtc
    from tileworkbench.runtime.launch import Launcher

    torch = pytest.importorskip("torch")
    source = emit(kernel, Target.of("sm_90a"))
    kinds = [p.dtype.name for p in kernel.params]
    pairs = zip(inputs, kinds, strict=False)
    tensors = [torch.from_numpy(x.astype(np.float64)).to(getattr(torch, k)).cuda() for x, k in pairs]
    out = torch.full(product.shape, -77, dtype=getattr(torch, kinds[-1]), device="cuda")
    Launcher([(source, nvrtc.build(source))])(*tensors, out)
    np.testing.assert_array_equal(out.double().cpu().numpy(), product)


@pytest.mark.gpu
@pytest.mark.parametrize("atom", MMA, ids=name)
def test_mma_on_card(atom: Atom) -> None:
    a, b, product = operands(atom, 1)
    on_card(warp_probe(atom), [a, b], product)


@pytest.mark.gpu
@pytest.mark.parametrize(("atom", "span", "a_major", "b_major"), wgmma_cases(), ids=name)
def test_wgmma_on_card(atom: Atom, span: int, a_major: str, b_major: str) -> None:
    a, b, product = operands(atom, 1)
    on_card(wgmma_probe(atom, span, a_major, b_major), [stored(a, a_major), stored(b, b_major)], product)
