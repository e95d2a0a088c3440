"""What TileLang's helpers for 2:4 sparsity say about metadata, answered by the instruction rows of this package."""

from __future__ import annotations

from typing import Any

from ..errors import LayoutError, ShapeError, TargetError
from ..language.dtypes import dtype
from ..layout import metadata_elements
from ..layout.mma_sp import group
from .device import get_target_compute_version, parse_compute_version
from .layoutmethods import Layout
from .layouts import tile_of

# (held elements, elements) of a group, by element type
GROUP_CONFIG: dict[Any, tuple[int, int]] = {
    dtype(name): group(dtype(name).bits)
    for name in ("float32", "float16", "bfloat16", "int8", "uint8", "float8_e4m3fn", "float8_e5m2")
}


def get_e_factor(a_dtype: Any, meta_dtype: Any) -> int:
    """Elements of a row of A that one metadata element speaks of."""
    kind = dtype(a_dtype)
    if kind not in GROUP_CONFIG:
        raise ShapeError(
            f"sparse operands of {kind}", rule=f"they are {', '.join(map(str, GROUP_CONFIG))}", fix="cast A first"
        )
    return metadata_elements(kind.bits, dtype(meta_dtype).bits)


def get_e_replicate_factor(a_dtype: Any) -> int:
    """How many lanes of a quad hold the same metadata."""
    return 1 if dtype(a_dtype).bits <= 8 else 2


def make_cutlass_metadata_layout(buffer: Any, mma_dtype: Any = "float16", arch: str | None = None, **given: Any) -> Any:
    """The order in memory that CUTLASS's compressors give the metadata tile `buffer`, for compute capability `arch`
    ("9.0"; None: the card here). From 9.0 on `block_k` says how much of K a tile of the product spans."""
    capability = parse_compute_version(arch or get_target_compute_version())
    kind, shape = dtype(mma_dtype), tile_of(buffer)[0]
    if capability < (8, 0):
        raise TargetError(f"metadata of compute capability {arch}", rule="sparse products need 8.0 or newer")
    if capability >= (9, 0):
        return _panels(buffer, kind, shape, **given)
    return _interleaved(buffer, kind, shape)


def _require(buffer: Any, bits: int, kind: Any) -> None:
    if buffer.dtype.bits != bits or not buffer.dtype.is_int:
        raise LayoutError(
            f"metadata `{buffer.name}` is {buffer.dtype}",
            rule=f"CUTLASS's metadata of {kind} operands is {bits}-bit here",
            fix="leave the layout out: T.gemm_sp reads rows of any metadata dtype",
        )


def _interleaved(buffer: Any, kind: Any, shape: tuple[int, ...]) -> Any:
    """sm_80: rows of a group are dealt out by eights, the low bits of row and column change places, and pairs of
    columns follow one another down the rows."""
    _require(buffer, 32 if kind.bits == 8 else 16, kind)
    rows, columns = shape
    group, deal = (32, 4) if buffer.dtype.bits == 16 else (16, 2)

    def place(i: Any, j: Any) -> tuple[Any, Any]:
        dealt = i // group * group + i % 8 * deal + i % group // 8
        row, column = dealt // 2 * 2 + j % 2, j // 2 * 2 + dealt % 2
        offset = column // 2 * (rows * 2) + row * 2 + column % 2
        return offset // columns, offset % columns

    return Layout(shape, place)


def _panels(buffer: Any, kind: Any, shape: tuple[int, ...], block_k: int) -> Any:
    """sm_90: atoms of 64 rows and `block_k` (at most 128) elements of K, rows of atoms first. Within one of 16 or
    32 bits, from the smallest stride up: the bytes of half a step of K, the row 8 below, the step, the row in its
    eight, the other half of the step, the 16 rows; one of 8 bits is row-major."""
    _require(buffer, 8, kind)
    block_k = min(int(block_k), 128)
    step = 512 // kind.bits
    if block_k % step:
        raise LayoutError(f"block_k = {block_k}", rule=f"for {kind} it is a multiple of {step}")
    rows, columns = shape
    width = block_k // 8
    steps, half = block_k // step, 32 // kind.bits
    if rows % 64 or columns % width:
        raise LayoutError(f"a metadata tile of {shape}", rule=f"it is made of whole atoms of 64 × {width}")

    def inside(i: Any, j: Any) -> Any:
        if kind.bits == 8:
            return i * width + j
        low = j % half + i // 8 % 2 * half + j // (2 * half) * (2 * half)
        eights = 2 * half * steps
        return low + i % 8 * eights + j // half % 2 * (8 * eights) + i // 16 * (16 * eights)

    def place(i: Any, j: Any) -> Any:
        atom = j // width * (rows // 64) + i // 64
        return atom * (64 * width) + inside(i % 64, j % width)

    return Layout(shape, place)
