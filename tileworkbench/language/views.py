"""Views: a buffer's storage seen with another shape or dtype."""

from __future__ import annotations

import math
from typing import Any

from ..errors import ShapeError
from ..ir.dtype import DType
from ..ir.expr import Buffer
from ..ir.stmt import Alloc
from .builder import require
from .dtypes import as_dtype
from .extents import as_shape
from .faults import fault


def reshape(src: Buffer, shape: Any) -> Buffer:
    """The same storage with another shape of equally many elements."""
    return view(src, shape, None)


def view(src: Buffer, shape: Any = None, dtype: Any = None) -> Buffer:
    """The same storage with another shape and dtype of equally many bits."""
    builder = require("T.view")
    if not isinstance(src, Buffer):
        raise fault("T.view of something else than a tile", "views are made of whole buffers", "name the buffer")
    to = as_dtype(dtype) if dtype is not None else src.dtype
    extents = as_shape(shape, "T.view") if shape is not None else src.shape
    if to is not src.dtype and (to.is_packed or src.dtype.is_packed):
        raise fault(
            f"T.view of `{src.name}`, {src.dtype}, as {to}",
            "elements narrower than a byte have one layout in global memory and another in shared memory",
            "declare the tensor as int8 and take the elements apart",
        )
    bits = [_bits(s, d) for s, d in ((src.shape, src.dtype), (extents, to))]
    if None not in bits and bits[0] != bits[1]:
        raise ShapeError(
            f"T.view of `{src.name}`: {bits[0]} bits seen as {bits[1]} bits",
            rule="a view has as many bits as its source",
            fix="check the product of the extents",
        )
    root = src.attr("view_of", src)
    made = Buffer(builder.take_hint(src.name), extents, to, src.space, None, (("view_of", root),), loc=builder.here)
    builder.emit(Alloc(made, loc=builder.here))
    builder.define(made)
    return made


def _bits(shape: tuple[Any, ...], of: DType) -> int | None:
    return math.prod(shape) * of.bits if all(isinstance(s, int) for s in shape) else None
