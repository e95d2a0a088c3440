"""How the elements of two copied regions correspond: extents that are not 1, in order."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...errors import ShapeError
from ...ir.arith import Facts
from ...ir.expr import Const, Expr, Load, Var, as_expr, cast
from ...ir.region import root
from ...ir.stmt import Region, Store
from ...target import Target
from ..parallel import Parallel

if TYPE_CHECKING:
    from ..copy import Copy

PACKED = "elements of `{}` share bytes, which are taken apart on their way to shared memory"


def extent(e: Any) -> Any:
    """A Python int where the extent is constant."""
    return int(e.value) if isinstance(e, Const) else e


def walked(region: Region) -> tuple[int, ...]:
    """The dimensions of a region that are walked (extent not 1)."""
    return tuple(d for d, e in enumerate(region.extents) if isinstance(extent(e), Expr) or extent(e) != 1)


def sized_late(region: Region) -> bool:
    """Whether an extent is known only at run time."""
    return any(isinstance(extent(e), Expr) for e in region.extents)


def is_whole(region: Region) -> bool:
    """True when the region covers all of its buffer."""
    return all(
        isinstance(s, Const) and s.value == 0 and extent(e) == n
        for s, e, n in zip(region.starts, region.extents, region.buffer.shape, strict=True)
    )


def at(region: Region, loop_vars: tuple[Var, ...]) -> tuple[Expr, ...]:
    """Indices of the region's element for one index per walked dimension."""
    indices = list(region.starts)
    for var, d in zip(loop_vars, walked(region), strict=False):
        indices[d] = indices[d] + var
    return tuple(indices)


def stays_inside(region: Region, facts: Facts) -> bool:
    """True when the region surely lies in its buffer."""
    for start, length, whole in zip(region.starts, region.extents, region.buffer.shape, strict=True):
        first, last = as_expr(start) >= 0, as_expr(start) + length <= whole
        if facts.prove(first) is not True or facts.prove(last) is not True:
            return False
    return True


def engine_refusal(op: Copy, target: Target, feature: str, what: str) -> str:
    """Why the copy engine cannot take the copy whatever its shape, or an empty text. `what` names the feature."""
    spaces = (op.src.buffer.space, op.dst.buffer.space)
    if spaces not in (("global", "shared"), ("shared", "global")):
        return f"it moves between global and shared memory, not {spaces[0]} to {spaces[1]}"
    if not target.has(feature):
        return f"{target.name} has no {what}"
    if op.hint("disable_tma"):
        return "disable_tma was given"
    far = op.src.buffer if spaces[0] == "global" else op.dst.buffer
    if far.dtype is not root(far).dtype:
        return f"`{far.name}` sees {root(far).dtype} elements as {far.dtype}"
    if far.dtype.is_packed:
        return PACKED.format(far.name)
    return f"the address of `{far.name}` is known only at run time" if root(far).attr("address") is not None else ""


def as_parallel(op: Copy) -> Parallel:
    """The copy as an element loop."""
    shape = tuple(extent(op.dst.extents[d]) for d in walked(op.dst))
    other = tuple(extent(op.src.extents[d]) for d in walked(op.src))
    if [e for e in shape if isinstance(e, int)] != [e for e in other if isinstance(e, int)] or len(shape) != len(other):
        raise ShapeError(
            f"T.copy from `{op.src.buffer.name}` {op.src.extents} to `{op.dst.buffer.name}` {op.dst.extents}",
            rule="extents that are not 1 must agree in order",
            fix="give both sides slices of the same shape",
            loc=op.loc,
        )
    names = "ijklmnpq"
    loop_vars = tuple(Var(names[d % 8]) for d in range(max(1, len(shape))))
    value = cast(Load(op.src.buffer, at(op.src, loop_vars), loc=op.loc), op.dst.buffer.dtype)
    store = Store(op.dst.buffer, at(op.dst, loop_vars), value, loc=op.loc)
    return Parallel(loop_vars, shape or (1,), (store,), op.hints, loc=op.loc)
