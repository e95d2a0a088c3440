"""What a product on warpgroups chooses, dense or with a sparse A: how groups share the tile, the widest instruction,
and swizzled layouts that its descriptors can read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ...errors import LayoutError
from ...ir.arith import Facts
from ...ir.expr import Buffer, Const
from ...ir.op import Impl, Refusal
from ...ir.stmt import Region
from ...ir.uniform import WARP, WARPGROUP
from ...layout import SharedLayout
from ...layout.atoms import Atom
from ...layout.descriptor import GROUP, wgmma_descriptor
from ...layout.tiles import wgmma_accumulator, wgmma_operand_a
from ...layout.wgmma import K_BYTES, wgmma_n
from ...target import Target
from ..copies.pairs import is_whole
from .operands import operand_dtype
from .partition import partition

if TYPE_CHECKING:
    from .product import Product

MAX_N = 256
MOST_SPAN = 128  # bytes of the widest swizzle
WARPS = WARPGROUP // WARP  # of a warpgroup


@dataclass(frozen=True)
class Family:
    """Instructions of one kind. `atom` gives the row for N and the dtypes of A, B and C; `k_bytes` of B's extent along
    K are one instruction's (of A's always 32, as stored); `rate` products are a unit of cost."""

    name: str
    atom: Callable[[int, str, str, str], Atom]
    k_bytes: int
    rate: int


def choose(op: Product, family: Family, facts: Facts | None, target: Target, warps: int) -> Impl | Refusal:
    """The widest instruction whose N divides a warpgroup's share, or the reason why there is none. Without `facts`
    places are constants."""
    if not target.has("wgmma"):
        return Refusal(family.name, f"{target.name} has no wgmma")
    reason = _refusal(op, facts, warps, family.k_bytes)
    if reason:
        return Refusal(family.name, reason)
    m, n, k = op.mnk
    groups = partition(m, n, warps // WARPS, 64, 8, "full_row" if op.policy == "square" else op.policy)
    if groups is None:
        return Refusal(family.name, f"a {m}×{n} tile is not made of 64×8 pieces for {warps // WARPS} warpgroups")
    a_dtype, b_dtype = (operand_dtype(region.buffer) for region in (op.a, op.b))
    width = n // groups[1]
    n_inst = next((w for w in sorted(wgmma_n(a_dtype), reverse=True) if w <= MAX_N and width % w == 0), 0)
    if not n_inst:
        return Refusal(family.name, f"no instruction width divides {width} columns")
    try:
        atom = family.atom(n_inst, a_dtype, b_dtype, op.c.buffer.dtype.name)
    except LayoutError as error:
        return Refusal(family.name, error.found)
    layouts = _layouts(op, family, groups, n_inst)
    for buffer, found in layouts.items():
        if not found:
            return Refusal(family.name, f"rows of `{buffer.name}` fit no swizzle span")
    detail = {"atom": atom, "groups": groups, "n_inst": n_inst}
    proxies = {region.buffer: "async" for region in (op.a, op.b) if region.buffer.space == "shared"}
    name = f"{family.name} m64n{n_inst}k{atom.k}"
    done = "manual" if op.manual else "group"
    cost = m * n * k / family.rate
    return Impl(name, "tensor", "warpgroup", done, layouts, proxies, cost=cost, detail=detail)


def _layouts(op: Product, family: Family, groups: tuple[int, int], n_inst: int) -> dict[Buffer, tuple[Any, ...]]:
    """Of C, A and B: fragments as the instruction has them, swizzled shared tiles in order of preference."""
    m, n, _ = op.mnk
    layouts: dict[Buffer, tuple[Any, ...]] = {op.c.buffer: (wgmma_accumulator((m, n), *groups, n_inst),)}
    operands = [(op.a, op.transpose_a, 64, K_BYTES), (op.b, not op.transpose_b, n_inst, family.k_bytes)]
    if op.a.buffer.space == "fragment":
        layouts[op.a.buffer] = (wgmma_operand_a(operand_dtype(op.a.buffer), (m, op.a.extents[-1]), *groups),)
        operands = operands[1:]
    for region, mn_major, extent_mn, k_bytes in operands:
        found = swizzles(region, mn_major, extent_mn, k_bytes)
        layouts[region.buffer] = tuple(x for x in layouts.get(region.buffer, found) if x in found)
    return layouts


def _refusal(op: Product, facts: Facts | None, warps: int, k_bytes: int) -> str:
    """Why a warpgroup cannot do the product."""
    m, _, k = op.mnk
    a, b = op.a.buffer, op.b.buffer
    if warps % WARPS:
        return f"{warps} warps are no whole warpgroups of {WARPS}"
    if m % 64:
        return f"M = {m} is not a multiple of 64"
    if b.space != "shared":
        return f"B `{b.name}` is not a shared tile"
    if a.space not in ("shared", "fragment"):
        return f"A `{a.name}` is neither a shared tile nor a fragment"
    if a.space == "fragment" and op.transpose_a:
        return "A in registers cannot be transposed"
    for region, mn_major in ((op.a, op.transpose_a), (op.b, not op.transpose_b)):
        if region.buffer.space == "shared" and not _placed(region, mn_major, facts):
            return f"the place in `{region.buffer.name}` is known only at run time, and not surely at whole groups"
    if not is_whole(op.c) or (a.space == "fragment" and not is_whole(op.a)):
        return "a part of a fragment takes part"
    if k % (k_bytes // a.dtype.bytes):
        return f"K = {k} is not a multiple of {k_bytes // a.dtype.bytes}"
    if a.dtype.bytes != 2 and (op.transpose_a or not op.transpose_b):
        return f"{a.dtype} operands must both be contiguous along K (A not transposed, B transposed)"
    return ""


def is_late(region: Region) -> bool:
    """The place in the tile is known only at run time."""
    return not all(isinstance(s, Const) for s in region.starts[-2:])


def _placed(region: Region, mn_major: bool, facts: Facts | None) -> bool:
    """Where the place is known only at run time, it is surely one at which a descriptor may begin, whatever the span:
    whole groups of rows, and along the columns whole spans of MN or whole steps of K."""
    row, column = region.starts[-2:]
    step = (MOST_SPAN if mn_major else K_BYTES) // region.buffer.dtype.bytes
    if not is_late(region):
        return True
    return facts is not None and facts.divides(GROUP, row) and facts.divides(step, column)


def swizzles(region: Region, mn_major: bool, extent_mn: int, k_bytes: int = K_BYTES) -> tuple[SharedLayout, ...]:
    """Swizzled layouts that a descriptor can read, widest span first."""
    buffer, item = region.buffer, region.buffer.dtype.bytes
    # All places are alike that begin at whole groups.
    row, column = (0, 0) if is_late(region) else (int(s.value) for s in region.starts[-2:])  # type: ignore[attr-defined]
    mn, k = (column, row) if mn_major else (row, column)
    found = []
    for span in (128, 64, 32):
        if buffer.shape[-1] * item % span:
            continue
        layout = SharedLayout.swizzled(tuple(buffer.shape), item, span)
        size = int(region.extents[-1 if mn_major else -2])
        try:
            for at in range(mn, mn + size - size % extent_mn, extent_mn):
                wgmma_descriptor(layout, item, mn_major, at, k, extent_mn, k_bytes=k_bytes)
        except LayoutError:
            continue
        found.append(layout)
    return tuple(found)
