"""Indexing of buffers and the rules by which two regions of a copy get their extents."""

from __future__ import annotations

from typing import Any

from ..errors import Loc, ShapeError
from ..ir.expr import Buffer, Const, Expr, Load, as_expr, same
from ..ir.stmt import ZERO, Region, whole
from ..ir.text import show_expr
from .faults import exact, fault
from .linear import difference

_SCOPES = {
    "global": "global",
    "shared": "shared.dyn",
    "fragment": "local.fragment",
    "local": "local",
    "var": "local.var",
    "barrier": "shared.barrier",
}


def scope_name(buffer: Buffer) -> str:
    """The storage scope in the language's words."""
    return str(buffer.attr("scope") or _SCOPES.get(buffer.space, buffer.space))


def element(buffer: Buffer, loc: Loc | None = None) -> Load:
    """Element 0 of a scalar variable."""
    return Load(buffer, (ZERO,) * buffer.rank, loc=loc)


def index_buffer(buffer: Buffer, index: Any, loc: Loc) -> Load | Region:
    """`buffer[index]`: an element when all entries are scalars, a region when one is a slice. A list of entries, such
    as T.index_to_coordinates gives, is one index too."""
    entries = tuple(index) if isinstance(index, tuple | list) else (index,)
    if len(entries) != buffer.rank or any(e is Ellipsis for e in entries):
        shape = ", ".join(show(s) for s in buffer.shape)
        raise exact(
            ShapeError(
                f"`{buffer.name}` has {buffer.rank} dimension{'s' * (buffer.rank != 1)} ({shape}) "
                f"and is indexed with {len(entries)}",
                rule="an index has one entry a dimension (a slice counts as one)",
                fix="write `:` for the dimensions that are taken whole",
                loc=loc,
            )
        )
    if not any(isinstance(e, slice | Region) for e in entries):
        return Load(buffer, tuple(_position(buffer, d, e, loc) for d, e in enumerate(entries)), loc=loc)
    boxes = [_range(buffer, d, e, loc) for d, e in enumerate(entries)]
    return Region(buffer, tuple(b[0] for b in boxes), tuple(b[1] for b in boxes), loc=loc)


def show(value: Any) -> str:
    """An extent in a message: a number, or a symbol's name."""
    return show_expr(value) if isinstance(value, Expr) else str(value)


def _position(buffer: Buffer, dim: int, entry: Any, loc: Loc) -> Expr:
    if isinstance(entry, Buffer) and entry.space == "var":
        entry = element(entry, loc)
    kind = _bad_index(entry)
    if kind:
        raise fault(
            f"index {dim} of `{buffer.name}` is {kind}",
            "indices are integers",
            "use `//`, or T.cast(x, 'int32')" if "float" in kind else "index with an integer expression",
            loc,
        )
    extent = buffer.shape[dim]
    value = entry.value if isinstance(entry, Const) else entry
    if isinstance(value, int) and not isinstance(value, bool):
        written = value
        if value < 0:
            entry = extent + value
            value = entry if isinstance(entry, int) else 0
        if isinstance(extent, int) and not 0 <= value < extent and buffer.space != "global":
            raise exact(
                ShapeError(
                    f"index {written} of `{buffer.name}` dimension {dim}",
                    rule=f"the dimension has {extent} elements",
                    fix=f"stay within 0 … {extent - 1}",
                    loc=loc,
                )
            )
    return as_expr(entry)


def _bad_index(entry: Any) -> str:
    if hasattr(entry, "__index__") and not isinstance(entry, Expr):
        return ""
    if isinstance(entry, Expr):
        return "" if entry.dtype.is_int or entry.dtype.kind == "bool" else f"of type {entry.dtype}, a float"
    if isinstance(entry, float):
        return f"the float {entry}"
    if isinstance(entry, Buffer | Region):
        return "a tile"
    return f"a {type(entry).__name__}"


def _range(buffer: Buffer, dim: int, entry: Any, loc: Loc) -> tuple[Expr, Any]:
    """Start and extent of one entry of a region."""
    extent = buffer.shape[dim]
    if not isinstance(entry, slice):
        return _position(buffer, dim, entry, loc), 1
    if entry.step not in (None, 1):
        raise fault(
            "a slice with a step", "slices of tiles are contiguous", "copy the elements in a T.Parallel loop", loc
        )
    start, stop = (_bound(v, extent, default) for v, default in ((entry.start, 0), (entry.stop, extent)))
    for bound in (start, stop):
        if _bad_index(bound):
            raise fault(
                f"a bound of `{buffer.name}` dimension {dim} is {_bad_index(bound)}",
                "bounds of a slice are integers",
                "use `//`, or T.cast(x, 'int32')",
                loc,
            )
    size = difference(stop, start)
    if isinstance(size, int) and size <= 0:
        raise exact(
            ShapeError(
                f"the slice of `{buffer.name}` dimension {dim} has {size} elements",
                rule="a slice has at least one element",
                fix="its end comes after its start",
                loc=loc,
            )
        )
    return as_expr(start), size


def _bound(value: Any, extent: Any, default: Any) -> Any:
    if value is None:
        return default
    if isinstance(value, Buffer) and value.space == "var":
        return element(value)
    if isinstance(value, int) and value < 0:
        return extent + value
    return value


def to_region(value: Any, what: str) -> Region:
    """A tile operand as a region: a whole buffer, a slice, or one element."""
    if isinstance(value, Region):
        return value
    if isinstance(value, Buffer):
        return whole(value)
    if isinstance(value, Load):
        return Region(value.buffer, value.indices, (1,) * value.buffer.rank, loc=value.loc)
    raise fault(
        f"{what} is {'an expression' if isinstance(value, Expr) else 'a ' + type(value).__name__}, not a tile",
        "operands of tile operations are tensors, tiles, or slices of them",
        "name a buffer made by T.Tensor, T.alloc_shared or T.alloc_fragment",
    )


def pair(src: Any, dst: Any, what: str) -> tuple[Region, Region]:
    """Both sides of a copy with their extents settled.

    An element `A[y, x]` takes the other side's extents, aligned from the right. Two whole buffers have equal shapes.
    Regions with equally many extents above 1 map in order, and between slices of tensors a smaller source fills the
    first part of the destination; otherwise, aligned from the right, an extent 1 takes the other side's. Other extents
    that are not known to be equal are refused."""
    a, b = to_region(src, f"{what}: the source"), to_region(dst, f"{what}: the destination")
    if isinstance(src, Buffer) and isinstance(dst, Buffer):
        if a.buffer.rank != b.buffer.rank or not all(map(equal, a.extents, b.extents)):
            raise mismatch(a, b, what, "two whole buffers in a copy have the same shape")
        return a, b
    if len(wide(a)) != len(wide(b)):
        a, b = _aligned(a, b), _aligned(b, a)
    elif what == "T.copy" and isinstance(src, Region) and isinstance(dst, Region) and _holds(b, a):
        b = _cut(b, wide(a))
    if len(wide(a)) != len(wide(b)) or not all(map(equal, wide(a), wide(b))):
        raise mismatch(a, b, what, "both sides have the same extents, leaving out those that are 1")
    return a, b


def _holds(b: Region, a: Region) -> bool:
    """The destination's slice is larger than the source's in some dimensions and smaller in none: between slices of
    tensors the source says how much is moved."""
    if a.buffer.space != "global" or b.buffer.space != "global":
        return False
    sizes = list(zip(wide(a), wide(b), strict=True))
    known = all(isinstance(e, int) for pair in sizes for e in pair)
    return known and all(x <= y for x, y in sizes) and any(x < y for x, y in sizes)


def _cut(region: Region, sizes: list[Any]) -> Region:
    """The region with other extents where they are not 1."""
    left = iter(sizes)
    extents = tuple(e if is_one(e) else next(left) for e in region.extents)
    return Region(region.buffer, region.starts, extents, loc=region.loc)


def _aligned(region: Region, other: Region) -> Region:
    extents = list(region.extents)
    for back in range(1, min(len(extents), len(other.extents)) + 1):
        if is_one(extents[-back]):
            extents[-back] = other.extents[-back]
    return Region(region.buffer, region.starts, tuple(extents), loc=region.loc)


def mismatch(a: Region, b: Region, what: str, rule: str) -> ShapeError:
    """The error for two operands whose extents differ."""
    shapes = [f"`{r.buffer.name}` ({', '.join(show(e) for e in r.extents)})" for r in (a, b)]
    return ShapeError(
        f"{what}: {shapes[0]} does not fit {shapes[1]}",
        rule=rule,
        fix="slice the larger side, or change the tile's shape",
    )


def is_one(extent: Any) -> bool:
    return isinstance(extent, int) and extent == 1


def wide(region: Region) -> list[Any]:
    return [e for e in region.extents if not is_one(e)]


def equal(a: Any, b: Any) -> bool:
    delta = difference(a, b)
    return same(a, b) or (isinstance(delta, int) and delta == 0)
