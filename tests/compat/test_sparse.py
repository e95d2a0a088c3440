"""What TileLang's helpers for 2:4 sparsity say, and CUTLASS's orders of metadata over every index."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tileworkbench.language as T
from tests.end_to_end.harness import everywhere
from tests.end_to_end.test_sparse import operands
from tileworkbench.compat.alias import alias_tilelang
from tileworkbench.compat.sparse import (
    GROUP_CONFIG,
    get_e_factor,
    get_e_replicate_factor,
    make_cutlass_metadata_layout,
)
from tileworkbench.errors import LayoutError, ShapeError, TargetError
from tileworkbench.ir.dtype import dtype
from tileworkbench.ir.expr import Buffer


def tile(shape: tuple[int, ...], kind: str) -> Buffer:
    return Buffer("E", shape, dtype(kind), "shared")


def test_one_metadata_element_speaks_of_a_run() -> None:
    assert get_e_factor(T.float16, T.int16) == 16 and get_e_factor("int8", T.int32) == 32
    assert get_e_factor(T.float32, "int8") == 4 and get_e_factor(T.float8_e5m2, T.int8) == 8
    assert GROUP_CONFIG[T.float] == (1, 2) and GROUP_CONFIG[T.bfloat16] == GROUP_CONFIG[T.uint8] == (2, 4)
    assert [get_e_replicate_factor(x) for x in (T.float32, T.float16, T.int8)] == [2, 2, 1]
    with pytest.raises(ShapeError, match="sparse operands of float64"):
        get_e_factor("float64", "int8")


def test_the_helpers_have_their_import_paths() -> None:
    alias_tilelang()
    from tilelang.cuda.intrinsics.sparse_layout import get_e_factor as found
    from tilelang.layout import make_cutlass_metadata_layout as made

    assert found is get_e_factor and made is make_cutlass_metadata_layout


def mixed(values: np.ndarray, extents: list[int], strides: list[int]) -> np.ndarray:
    """The offset of an index whose digits, smallest first, have these extents and strides."""
    total = np.zeros_like(values)
    for extent, stride in zip(extents, strides, strict=True):
        total += values % extent * stride
        values = values // extent
    return total


@pytest.mark.parametrize("block_k", [32, 64, 128, 256])
def test_panels_of_sixteen_bits(block_k: int) -> None:
    """CUTLASS's atom for sm_90: rows (8, 2, 4), bytes (2, 2, steps), the strides in its order (3, 1, 5, 0, 4, 2)."""
    steps = min(block_k, 128) // 32
    rows, columns = np.indices((128, 32))
    want = mixed(rows, [8, 2, 4, 2], [4 * steps, 2, 64 * steps, 256 * steps])
    want += mixed(columns, [2, 2, steps, 32], [1, 32 * steps, 4, 512 * steps])
    layout = make_cutlass_metadata_layout(tile((128, 32), "uint8"), T.float16, "9.0", block_k=block_k)
    assert np.array_equal(layout.table(), want) and len(np.unique(want)) == want.size


@pytest.mark.parametrize(("kind", "meta", "group", "deal"), [("float16", "int16", 32, 4), ("int8", "uint32", 16, 2)])
def test_interleaved_columns(kind: str, meta: str, group: int, deal: int) -> None:
    rows, columns = 64, 8
    table = make_cutlass_metadata_layout(tile((rows, columns), meta), kind, "8.0").table()
    assert len(np.unique(table)) == rows * columns
    for i in range(rows):
        for j in range(columns):
            row, column = i // group * group + i % 8 * deal + i % group // 8, j
            if row % 2 == 0 and j % 2 == 1:
                row, column = row + 1, j - 1
            elif row % 2 == 1 and j % 2 == 0:
                row, column = row - 1, j + 1
            assert table[i, j] == column // 2 * rows * 2 + row * 2 + column % 2


def test_refusals() -> None:
    make = make_cutlass_metadata_layout
    with pytest.raises(TargetError, match=r"7\.5"):
        make(tile((64, 4), "int16"), "float16", "7.5")
    with pytest.raises(LayoutError, match="is 8-bit here"):
        make(tile((64, 4), "int16"), "float16", "9.0", block_k=32)
    with pytest.raises(LayoutError, match="is 16-bit here"):
        make(tile((64, 4), "int8"), "float16", "8.0")
    with pytest.raises(LayoutError, match="block_k = 32"):
        make(tile((64, 4), "int8"), "int8", "9.0", block_k=32)
    with pytest.raises(LayoutError, match="whole atoms of 64 × 8"):
        make(tile((32, 8), "int8"), "float16", "9.0", block_k=64)


@pytest.mark.parametrize(("capability", "meta"), [("8.0", "int16"), ("9.0", "int8")])
def test_a_kernel_that_asks_for_the_order(capability: str, meta: str) -> None:
    factor = get_e_factor("float16", meta)
    options: dict[str, Any] = {"block_k": 64} if capability == "9.0" else {}

    @T.prim_func
    def kernel(
        A: T.Tensor((64, 32), "float16"),
        E: T.Tensor((64, 64 // factor), meta),
        B: T.Tensor((64, 32), "float16"),
        C: T.Tensor((64, 32), "float32"),
    ):
        with T.Kernel(1, threads=128) as _:
            A_s = T.alloc_shared((64, 32), "float16")
            E_s = T.alloc_shared((64, 64 // factor), meta)
            B_s = T.alloc_shared((64, 32), "float16")
            C_l = T.alloc_fragment((64, 32), "float32")
            T.annotate_layout({E_s: make_cutlass_metadata_layout(E_s, T.float16, capability, **options)})
            T.copy(A, A_s)
            T.copy(E, E_s)
            T.copy(B, B_s)
            T.gemm_sp(A_s, E_s, B_s, C_l, clear_accum=True)
            T.copy(C_l, C)

    a, e, b, truth = operands(64, 32, 64, "float16", meta)
    everywhere(kernel, [a, e, b], truth, ("sm_90a",))
