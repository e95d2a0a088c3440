"""TileLang's names for where the elements of a matrix instruction's operands lie: (thread, register) of an element
("shared_…_to_mma_…"), the element of a (thread, register) ("mma_…_to_shared_…"), and the row whose address a lane gives
to ldmatrix. Each is read off this package's fragments; arguments may be numbers or expressions.

In the names, sr_a and sr_b take (row, k) of A and of B; rs_a and rs_b take (k, row)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..errors import LayoutError
from ..layout.fragment import Fragment
from ..layout.ldmatrix import ROW_BYTES, matrix_move
from ..layout.mma import accumulator_fragment, operand_fragment
from ..layout.transform import tile
from .tirx import DataType

Map = Callable[[Any, Any], tuple[Any, Any]]
_K = {32: 8, 16: 16, 8: 32}  # elements along K of one step, by bits


def operand(matrix: str, bits: int) -> Fragment:
    """A (16, K) or B (16, K) of one step; B is two instructions of eight columns."""
    if matrix == "A":
        return operand_fragment(16, _K[bits], bits)
    return tile(operand_fragment(8, _K[bits], bits), (2, 1))


def _owner(fragment: Fragment, swapped: bool = False) -> Map:
    return lambda i, j: fragment.owner(*((j, i) if swapped else (i, j)))


def _element(fragment: Fragment) -> Map:
    def element(thread_id: Any, local_id: Any) -> tuple[Any, Any]:
        row, column = fragment.coords(thread_id, local_id)
        return row, column

    return element


def _row(matrix: str, bits: int, transposed: bool) -> Map:
    """The element that is `local_id` further in the row of a lane's address. `transposed`: rows run along the rows of
    the operand, (K, row) in memory."""
    move = matrix_move(operand(matrix, bits), 0 if transposed else 1, bits // 8)
    if move is None:
        raise LayoutError(f"ldmatrix of {bits}-bit elements, transposed", rule="16-bit elements are transposed")
    width = ROW_BYTES * 8 // bits

    def row(thread_id: Any, local_id: Any) -> tuple[Any, Any]:
        mn, k = move.row_start(thread_id)
        first, second = (k, mn) if transposed else (mn, k)
        return first, second + local_id % width

    return row


ACCUMULATOR = tile(accumulator_fragment(16), (1, 2))
mma_store_index_map = _element(ACCUMULATOR)
mma_store_index_map_fp64 = _element(accumulator_fragment(8))
NAMES: dict[str, Map] = {
    "mma_store_32x8_to_shared_16x16_layout": mma_store_index_map,
    "mma_32x8_to_shared_16x16_layout": mma_store_index_map,
    "mma_store_32x2_to_shared_8x8_layout_fp64": mma_store_index_map_fp64,
    "ldmatrix_32x8_to_shared_16x16_layout": _row("A", 16, False),
    "ldmatrix_trans_32x8_to_shared_16x16_layout": _row("A", 16, True),
    "shared_32x16_to_mma_32x16_layout": _owner(operand("B", 8), swapped=True),
}
for _bits, _k in _K.items():
    _step, _registers = f"16x{_k}", f"32x{_k // 2}"
    for _letter in "ab":
        _held = operand(_letter.upper(), _bits)
        NAMES[f"shared_{_step}_to_mma_{_registers}_layout_sr_{_letter}"] = _owner(_held)
        NAMES[f"shared_{_step}_to_mma_{_registers}_layout_rs_{_letter}"] = _owner(_held, swapped=True)
        NAMES[f"shared_{_step}_to_mma_{_letter}_{_registers}_layout"] = _owner(_held)
        NAMES[f"mma_load_{_letter}_{_registers}_to_shared_{_step}_layout"] = _element(_held)
        if _bits != 16:
            NAMES[f"ldmatrix_{_registers}_to_shared_{_step}_layout_{_letter}"] = _row(_letter.upper(), _bits, False)
    if _bits != 32:
        NAMES[f"shared_{_step}_to_mma_{_registers}_layout"] = _owner(operand("A", _bits))


def __getattr__(name: str) -> Map:
    if name in NAMES:
        return NAMES[name]
    raise AttributeError(name)


def get_ldmatrix_offset(
    matrix: str, row_idx: Any, col_idx: Any, stride: Any, dtype: Any = "float16", transposed: bool = False
) -> tuple[Any, Any]:
    """Row and column in the shared tile of the row that lane `row_idx` points to. `transposed` says how the operand is
    stored: A as (K, M), B as (N, K). LayoutError where elements of this width cannot be loaded so."""
    bits = DataType(dtype).bits
    along_k = transposed == (matrix == "B")
    if not along_k and bits != 16:
        raise LayoutError(f"ldmatrix of {dtype}, {matrix} not along K", rule="16-bit elements are transposed")
    return _row(matrix, max(bits, 8), not along_k)(row_idx, col_idx)
