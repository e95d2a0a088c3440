"""What TileLang's helpers for 2:4 sparsity say about metadata, answered by the instruction rows of this package."""

from __future__ import annotations

from typing import Any

from ..errors import ShapeError
from ..language.dtypes import dtype
from ..layout import metadata_elements
from ..layout.mma_sp import group

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
