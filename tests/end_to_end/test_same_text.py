"""The same kernel becomes the same text wherever it is compiled: the disk cache and compiling processes count on it."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import pytest

import tileworkbench.language as T
from tests.end_to_end.test_builds import KERNELS
from tileworkbench.codegen.emit import emit
from tileworkbench.codegen.source import Source
from tileworkbench.ir.kernel import Kernel
from tileworkbench.ir.plain import Plain, read
from tileworkbench.pipeline import run_passes
from tileworkbench.target import Target


def source(kernel: Kernel, target: str) -> Source:
    goal = Target.of(target)
    return emit(run_passes(kernel, goal, fit_stages=True), goal)


def many_tiles() -> Any:
    """Tiles of one size, which only their order can tell apart."""

    @T.prim_func
    def many_tiles(A: T.Tensor((6, 64, 64), "float16"), B: T.Tensor((6, 64, 64), "float16")):
        with T.Kernel(1, threads=128) as _bx:
            tiles = [T.alloc_shared((64, 64), "float16") for _ in range(6)]
            [T.copy(A[k, 0, 0], tile) for k, tile in enumerate(tiles)]
            [T.copy(tile, B[5 - k, 0, 0]) for k, tile in enumerate(tiles)]

    return many_tiles


@pytest.mark.parametrize("target", ["sm_80", "sm_90a", "gfx942"])
@pytest.mark.parametrize("name", ["gemm", "softmax", "attention_causal", "many_tiles"])
def test_a_kernel_at_other_addresses_gives_the_same_source(name: str, target: str) -> None:
    kernel = {**KERNELS, "many_tiles": many_tiles}[name]().kernel
    first, kept = source(kernel, target), []
    for round_ in range(3):
        kept.append([object() for _ in range(1 + 997 * round_)])
        plain = Plain(kernel)
        kept.append(read(plain.text, plain.files))
        again = source(kept[-1], target)
        for f in fields(Source):
            assert getattr(again, f.name) == getattr(first, f.name), f.name
