"""TileLang's methods of a layout, for every shared layout of this package."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np

from ..errors import LayoutError
from ..ir.expr import Const, Var
from ..layout import FunctionLayout
from ..layout.distribution import row_major_index


class LayoutMethods:
    """Mixed into a SharedLayout."""

    shape: tuple[int, ...]
    size: int
    offset: Callable[..., Any]
    table: Callable[[], Any]

    @property
    def index(self) -> list[Any]:
        """Expressions of the physical index over the variables i0, i1, …"""
        return self.map_forward_index([Var(f"i{dim}") for dim in range(len(self.shape))])

    def get_forward_index(self) -> list[Any]:
        """Expressions of the physical index, as `index`."""
        return self.index

    def get_linearized_forward_index(self) -> Any:
        """The offset in elements over the same variables."""
        return self.offset(*[Var(f"i{dim}") for dim in range(len(self.shape))])

    def get_input_shape(self) -> list[int]:
        """Extents of the tile."""
        return list(self.shape)

    def get_output_shape(self) -> list[int]:
        """Extents of the physical index: several for a function that gives several, else the number of elements."""
        return list(getattr(self, "physical_shape", None) or (self.size,))

    def map_forward_index(self, indices: Sequence[Any]) -> list[Any]:
        """The physical index of a logical one: numbers, arrays or expressions."""
        function = getattr(self, "function", None)
        found = function(*indices) if function is not None else self.offset(*indices)
        return list(found) if isinstance(found, tuple | list) else [found]

    def __call__(self, *indices: Any) -> list[Any]:
        return self.map_forward_index(indices)

    def repeat(self, dim: int, factor: int) -> Any:
        """`factor` copies along `dim`; the copy's number is a new leading physical index."""
        if not -len(self.shape) <= dim < len(self.shape):
            raise LayoutError(f"repeat along dim {dim} of {self.shape}", rule="dim names one dimension of the layout")
        place = dim % len(self.shape)
        if factor < 1:
            raise LayoutError(f"repeat by {factor}", rule="the factor is at least 1")
        if factor == 1:
            return self
        extent = self.shape[place]

        def repeated(*index: Any) -> list[Any]:
            inner = [i % extent if d == place else i for d, i in enumerate(index)]
            return [index[place] // extent, *self.map_forward_index(inner)]

        return self._like([e * factor if d == place else e for d, e in enumerate(self.shape)], repeated)

    def expand(self, leading_shape: int | Sequence[int]) -> Any:
        """New leading dimensions, which are leading physical indices as well."""
        leading = [leading_shape] if isinstance(leading_shape, int) else list(leading_shape)
        if not leading:
            return self
        if min(leading) < 1:
            raise LayoutError(f"leading extents {leading}", rule="extents are at least 1")
        count = len(leading)
        return self._like(
            [*leading, *self.shape], lambda *index: [*index[:count], *self.map_forward_index(index[count:])]
        )

    def reshape(self, shape: Sequence[int], rescale_num: int = 1, rescale_den: int = 1) -> Any:
        """The same places for indices of another shape with as many elements."""
        if rescale_num != rescale_den or prod(shape) != prod(self.shape):
            raise LayoutError(
                f"a layout of {self.shape} reshaped to {tuple(shape)} by {rescale_num}/{rescale_den}",
                rule="both shapes have as many elements of one size",
            )
        old, new = self.shape, tuple(shape)

        def reshaped(*index: Any) -> list[Any]:
            flat = row_major_index(index, new)
            return self.map_forward_index([flat // prod(old[d + 1 :]) % e for d, e in enumerate(old)])

        return self._like(new, reshaped)

    def inverse(self) -> Any:
        """The logical index of a physical one, by table: for numbers and arrays. LayoutError when places are shared, or
        some hold nothing."""
        outputs = self.get_output_shape()
        if prod(outputs) != prod(self.shape):
            raise LayoutError(f"{self!r} leaves places empty", rule="a layout that fills its range has an inverse")
        table = self.table().reshape(-1)
        back = np.full(prod(outputs), -1, np.int64)
        back[table] = np.arange(table.size)
        if (back < 0).any():
            raise LayoutError(f"{self!r} puts two elements into one place", rule="a one-to-one layout has an inverse")

        def inverted(*index: Any) -> list[Any]:
            flat = back[row_major_index(index, tuple(outputs))]
            return [flat // prod(self.shape[d + 1 :]) % e for d, e in enumerate(self.shape)]

        return self._like(outputs, inverted)

    def is_equal(self, other: Any) -> bool:
        """Same shape, same places."""
        return bool(self == other)

    def _like(self, shape: Sequence[int], function: Callable[..., Any]) -> Any:
        return Layout(shape, function)


class Layout(LayoutMethods, FunctionLayout):
    """`forward_fn(*index)` gives the physical index, or several, of a tile's element."""

    def __init__(self, shape: Sequence[int], forward_fn: Callable[..., Any]) -> None:
        super().__init__(tuple(int(extent) for extent in shape), numbers_of(forward_fn))


def numbers_of(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function with numbers for constant expressions."""

    @functools.wraps(function)
    def made(*index: Any) -> Any:
        found = function(*index)
        return [_number(value) for value in found] if isinstance(found, tuple | list) else _number(found)

    return made


def _number(value: Any) -> Any:
    return value.value if isinstance(value, Const) else value
