"""The constructive layout algebra: shape:stride with nested modes, as CuTe's users know it.

Coordinates are colexicographic: the first mode varies fastest. A layout maps a coordinate, or a linear index over its
shape, to an offset. The functions follow the published definitions of CuTe's layout algebra.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod
from typing import Any, TypeAlias

from tileworkbench.errors import LayoutError

IntTuple: TypeAlias = "int | tuple[IntTuple, ...]"


def flatten(tree: IntTuple) -> tuple[int, ...]:
    """The leaves, left to right."""
    return (tree,) if isinstance(tree, int) else tuple(leaf for branch in tree for leaf in flatten(branch))


def compact_stride(shape: IntTuple, start: int = 1) -> IntTuple:
    """Strides without gaps, first mode fastest."""
    if isinstance(shape, int):
        return start
    strides: list[IntTuple] = []
    for mode in shape:
        strides.append(compact_stride(mode, start))
        start *= prod(flatten(mode))
    return tuple(strides)


def _same_tree(a: IntTuple, b: IntTuple) -> bool:
    if isinstance(a, int) or isinstance(b, int):
        return isinstance(a, int) and isinstance(b, int)
    return len(a) == len(b) and all(_same_tree(x, y) for x, y in zip(a, b, strict=True))


@dataclass(frozen=True)
class Layout:
    """`shape`:`stride`, equally nested; strides default to compact ones. Extents are ≥ 1, strides ≥ 0."""

    shape: IntTuple
    stride: IntTuple = ()

    def __post_init__(self) -> None:
        if self.stride == () and self.shape != ():
            object.__setattr__(self, "stride", compact_stride(self.shape))
        if not _same_tree(self.shape, self.stride):
            raise LayoutError(f"{self.shape}:{self.stride}", rule="shape and stride are nested alike")
        if any(extent < 1 for extent in flatten(self.shape)) or any(step < 0 for step in flatten(self.stride)):
            raise LayoutError(f"{self.shape}:{self.stride}", rule="extents are at least 1, strides at least 0")

    @property
    def size(self) -> int:
        """Number of logical elements."""
        return prod(flatten(self.shape))

    @property
    def cosize(self) -> int:
        """One more than the greatest offset."""
        return 1 + sum((extent - 1) * step for extent, step in self.leaves())

    @property
    def rank(self) -> int:
        """Number of top-level modes."""
        return 1 if isinstance(self.shape, int) else len(self.shape)

    def leaves(self) -> list[tuple[int, int]]:
        """(extent, stride) of the flattened modes."""
        return list(zip(flatten(self.shape), flatten(self.stride), strict=True))

    def __iter__(self) -> Iterator[Layout]:
        """The top-level modes."""
        if isinstance(self.shape, int) or isinstance(self.stride, int):
            return iter((self,))
        return iter([Layout(s, d) for s, d in zip(self.shape, self.stride, strict=True)])

    def __getitem__(self, mode: int) -> Layout:
        return list(self)[mode]

    def __call__(self, *coord: Any) -> Any:
        """Offset of one linear index, or of one (nested) coordinate per mode; NumPy and symbolic values too."""
        return _offset(coord[0] if len(coord) == 1 else coord, self.shape, self.stride)

    def __str__(self) -> str:
        return f"{self.shape}:{self.stride}".replace(" ", "")


def _offset(coord: Any, shape: IntTuple, stride: IntTuple) -> Any:
    if isinstance(shape, int) or isinstance(stride, int):
        if isinstance(coord, tuple):
            raise LayoutError(
                f"coordinate {coord} for an extent of {shape}", rule="coordinates are nested as the shape"
            )
        return coord * stride
    if isinstance(coord, tuple):
        if len(coord) != len(shape):
            raise LayoutError(f"coordinate {coord} for shape {shape}", rule="one coordinate per mode")
        return sum(_offset(c, s, d) for c, s, d in zip(coord, shape, stride, strict=True))
    total: Any = 0
    for position, (s, d) in enumerate(zip(shape, stride, strict=True)):
        extent = prod(flatten(s))
        last = position == len(shape) - 1
        total = total + _offset(coord if last else coord % extent, s, d)
        coord = coord // extent
    return total


def from_leaves(leaves: list[tuple[int, int]]) -> Layout:
    """A flat layout of (extent, stride) modes; a single mode is not wrapped, none is 1:0."""
    if not leaves:
        return Layout(1, 0)
    if len(leaves) == 1:
        return Layout(*leaves[0])
    return Layout(tuple(s for s, _ in leaves), tuple(d for _, d in leaves))


def concat(*layouts: Layout) -> Layout:
    """The layouts as modes of one."""
    return Layout(tuple(layout.shape for layout in layouts), tuple(layout.stride for layout in layouts))


def coalesce(layout: Layout) -> Layout:
    """The same function of the linear index with as few modes as can be."""
    merged: list[tuple[int, int]] = []
    for extent, step in layout.leaves():
        if extent == 1:
            continue
        if merged and merged[-1][0] * merged[-1][1] == step:
            merged[-1] = (merged[-1][0] * extent, merged[-1][1])
        else:
            merged.append((extent, step))
    return from_leaves(merged)
