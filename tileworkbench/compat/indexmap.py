"""Maps of indices given by functions, with TVM's methods."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..errors import LayoutError


class IndexMap:
    """`function(*index)` gives the new index; `back` does the reverse, where it is known."""

    def __init__(self, function: Callable[..., Any], back: Callable[..., Any] | None = None) -> None:
        self.function, self.back = function, back

    @classmethod
    def from_func(cls, mapping_function: Callable[..., Any], index_dtype: Any = None) -> IndexMap:
        """The map of a function; `index_dtype` makes no difference."""
        return cls(mapping_function)

    def map_indices(self, indices: Sequence[Any]) -> list[Any]:
        """The new index of an index: numbers or expressions."""
        found = self.function(*indices)
        return list(found) if isinstance(found, list | tuple) else [found]

    def inverse(self, shape: Sequence[int] = ()) -> IndexMap:
        """The map back; LayoutError where nothing says it."""
        if self.back is None:
            raise LayoutError("the inverse of an index map given by a function", rule="its reverse is given with it")
        return IndexMap(self.back, self.function)
