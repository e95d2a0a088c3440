"""Warpgroup products (Hopper): B, and A unless it is a fragment, come from swizzled shared tiles through descriptors;
the accumulator stays in registers until its group has been waited for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import InternalError, LayoutError
from ...ir.arith import Facts
from ...ir.expr import Buffer, Const, Expr, compare, const, logical
from ...ir.instr import Addr, CommitGroup, Desc, Reg, WaitGroup, Wgmma, WgmmaFence
from ...ir.op import Impl, Refusal
from ...ir.stmt import ONE, ZERO, For, Region, Stmt
from ...layout import SharedLayout
from ...layout.descriptor import GROUP, Descriptor, wgmma_descriptor
from ...layout.tiles import wgmma_accumulator, wgmma_operand_a
from ...layout.wgmma import wgmma_atom, wgmma_n
from ...target import Target
from ..context import Context, run
from ..copies.pairs import is_whole
from .operands import operand_dtype
from .partition import partition

if TYPE_CHECKING:
    from .op import Gemm

NAME = "wgmma"
MAX_N = 256
MOST_SPAN = 128  # bytes of the widest swizzle
WARPS = 4
K_BYTES = 32


def wgmma_impl(op: Gemm, facts: Facts, target: Target, warps: int) -> Impl | Refusal:
    """The widest instruction whose N divides a warpgroup's share, or the reason why there is none."""
    if not target.has("wgmma"):
        return Refusal(NAME, f"{target.name} has no wgmma")
    reason = refusal(op, facts, warps)
    if reason:
        return Refusal(NAME, reason)
    m, n, k = op.mnk
    a, b = op.a.buffer, op.b.buffer
    asynchronous = op.manual
    groups = partition(m, n, warps // WARPS, 64, 8, "full_row" if op.policy == "square" else op.policy)
    if groups is None:
        return Refusal(NAME, f"a {m}×{n} tile is not made of 64×8 pieces for {warps // WARPS} warpgroups")
    gm, gn = groups
    names = [operand_dtype(x) for x in (a, b)]
    width = n // gn
    n_inst = next((w for w in sorted(wgmma_n(names[0]), reverse=True) if w <= MAX_N and width % w == 0), 0)
    if not n_inst:
        return Refusal(NAME, f"no instruction width divides {width} columns")
    try:
        atom = wgmma_atom(n_inst, *names, op.c.buffer.dtype.name)
    except LayoutError as error:
        return Refusal(NAME, error.found)
    layouts: dict[Buffer, tuple[Any, ...]] = {op.c.buffer: (wgmma_accumulator((m, n), gm, gn, n_inst),)}
    if a.space == "fragment":
        layouts[a] = (wgmma_operand_a(names[0], (m, k), gm, gn),)
    shared = [(op.a, op.transpose_a), (op.b, not op.transpose_b)][a.space == "fragment" :]
    for region, mn_major in shared:
        buffer = region.buffer
        found = swizzles(region, mn_major, n_inst if region is op.b else 64)
        layouts[buffer] = tuple(x for x in layouts.get(buffer, found) if x in found)
        if not layouts[buffer]:
            return Refusal(NAME, f"rows of `{buffer.name}` fit no swizzle span")
    detail = {"atom": atom, "groups": groups, "n_inst": n_inst}
    proxies = {region.buffer: "async" for region, _ in shared}
    name = f"wgmma m64n{n_inst}k{atom.k}"
    done = "manual" if asynchronous else "group"
    return Impl(name, "tensor", "warpgroup", done, layouts, proxies, cost=m * n * k / 4096, detail=detail)


def refusal(op: Any, facts: Facts | None, warps: int, k_bytes: int = K_BYTES) -> str:
    """Why a warpgroup cannot do the product; `k_bytes` of a dense operand's row are one instruction's. Without `facts`
    places are constants."""
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


def _late(region: Region) -> bool:
    """The place in the tile is known only at run time."""
    return not all(isinstance(s, Const) for s in region.starts[-2:])


def _placed(region: Region, mn_major: bool, facts: Facts | None) -> bool:
    """Where the place is known only at run time, it is surely one at which a descriptor may begin, whatever the span:
    whole groups of rows, and along the columns whole spans of MN or whole steps of K."""
    row, column = region.starts[-2:]
    step = (MOST_SPAN if mn_major else K_BYTES) // region.buffer.dtype.bytes
    if not _late(region):
        return True
    return facts is not None and facts.divides(GROUP, row) and facts.divides(step, column)


def swizzles(region: Region, mn_major: bool, extent_mn: int, k_bytes: int = K_BYTES) -> tuple[SharedLayout, ...]:
    """Swizzled layouts that a descriptor can read, widest span first."""
    buffer, item = region.buffer, region.buffer.dtype.bytes
    # All places are alike that begin at whole groups.
    row, column = (0, 0) if _late(region) else (int(s.value) for s in region.starts[-2:])  # type: ignore[attr-defined]
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


def issue(op: Gemm, impl: Impl, ctx: Context) -> tuple[Stmt, ...]:
    """All instructions of the tile as one group: for each 64-row and n_inst-column piece, K in steps."""
    atom, (gm, gn), n_inst = impl.detail["atom"], impl.detail["groups"], impl.detail["n_inst"]
    m, n, k = op.mnk
    rows, columns, steps = m // gm // 64, n // gn // n_inst, k // atom.k
    mi, ni, ki = ctx.var("mi"), ctx.var("ni"), ctx.var("ki")
    group: Expr = ctx.facts.simplify(ctx.thread // (WARPS * ctx.target.arch.warp_size))
    unit_m = ctx.facts.simplify(group % gm) if gm > 1 else ZERO
    unit_n = ctx.facts.simplify(group // gm) if gn > 1 else ZERO
    c = ctx.reg(op.c.buffer)
    d = run(c, (mi * columns + ni) * atom.c.registers, atom.c.registers)
    if op.a.buffer.space == "fragment":
        a: Any = run(ctx.reg(op.a.buffer), (mi * steps + ki) * atom.a.registers, atom.a.registers)
    else:
        a = desc(op.a, op.transpose_a, 64, ((unit_m, gm, m // gm), (mi, rows, 64)), (ki, steps, atom.k), ctx)
    b = desc(op.b, not op.transpose_b, n_inst, ((unit_n, gn, n // gn), (ni, columns, n_inst)), (ki, steps, atom.k), ctx)
    zero = ctx.facts.simplify(zero_flag(op.clear, ki))
    product: Stmt = Wgmma(atom.instruction, d, a, b, zero, loc=op.loc)
    body: tuple[Stmt, ...] = (product,)
    for var, count in ((ki, steps), (ni, columns), (mi, rows)):
        body = (For(var, ZERO, const(count), ONE, body, "unroll"),)
    ctx.in_flight.append(op)
    return (WgmmaFence(touched(op, ctx), loc=op.loc), *body, CommitGroup("wgmma", loc=op.loc))


def zero_flag(clear: Expr, ki: Expr) -> Expr:
    """Old contents are ignored by the first k-step of a clearing product."""
    first = compare("eq", ki, 0)
    if isinstance(clear, Const):
        return first if clear.value else const(False)
    return logical("land", clear, first)


def desc(
    region: Region, mn_major: bool, extent_mn: int, along_mn: Any, along_k: Any, ctx: Context, k_bytes: int = K_BYTES
) -> Desc:
    """The operand's descriptor with its start as a linear form of the loops, proven over all of them."""
    if _late(region):
        return _late_desc(region, mn_major, extent_mn, along_mn, along_k, ctx)
    buffer, item = region.buffer, region.buffer.dtype.bytes
    layout = ctx.layouts[buffer]
    axes = [*along_mn, along_k]
    counts = [count for _, count, _ in axes]
    starts = np.empty(counts, dtype=np.int64)
    first: Descriptor | None = None
    row, column = (int(s.value) for s in region.starts[-2:])  # type: ignore[attr-defined]
    at_mn, at_k = (column, row) if mn_major else (row, column)
    for index in np.ndindex(*counts):
        mn = sum(i * size for i, (_, _, size) in zip(index[:-1], along_mn, strict=True))
        made = wgmma_descriptor(
            layout, item, mn_major, at_mn + mn, at_k + index[-1] * along_k[2], extent_mn, k_bytes=k_bytes
        )
        first = first or made
        starts[index] = made.start
    offset: Expr = const(int(starts.flat[0]) // item)
    for axis, (var, count, _) in enumerate(axes):
        if count == 1:
            continue
        along = np.moveaxis(starts, axis, 0)
        offset = offset + _piecewise(along, var, item)
    if first is None:
        raise InternalError("a wgmma operand without an instruction", loc=region.loc)
    base = ctx.address(buffer, (*region.starts[:-2], ZERO, ZERO))
    place = Addr(base.buffer, ctx.facts.simplify(base.offset + offset))
    return Desc(place, first.span, first.leading, first.stride, "mn" if mn_major else "k")


def _late_desc(region: Region, mn_major: bool, extent_mn: int, along_mn: Any, along_k: Any, ctx: Context) -> Desc:
    """The descriptor of an operand whose place in the tile is worked out at run time."""
    buffer, item = region.buffer, region.buffer.dtype.bytes
    layout = ctx.layouts[buffer]
    first = wgmma_descriptor(layout, item, mn_major, 0, 0, extent_mn)
    tile = SharedLayout.swizzled(layout.shape, item, first.span)
    row, column = region.starts[-2:]
    along: list[Expr] = [ZERO, ZERO]
    for axis, parts in ((0, along_mn), (1, (along_k,))):
        for var, count, size in parts:
            along[axis] = along[axis] + (var * size if count > 1 else ZERO)
    row = ctx.facts.simplify(row + along[1 if mn_major else 0])
    column = ctx.facts.simplify(column + along[0 if mn_major else 1])
    width = tile.panel_columns
    offset = column // width * tile.panel_size + row * width + column % width
    base = ctx.address(buffer, (*region.starts[:-2], ZERO, ZERO))
    place = Addr(base.buffer, ctx.facts.simplify(base.offset + offset))
    return Desc(place, first.span, first.leading, first.stride, "mn" if mn_major else "k")


def _piecewise(along: np.ndarray[Any, Any], var: Expr, item: int) -> Expr:
    """Elements added per index of one axis: one stride, or two when panels are crossed (period found by table)."""
    profile = along.reshape(along.shape[0], -1)
    steps = profile - profile[0]
    if not (steps == steps[:, :1]).all():
        raise LayoutError("a wgmma operand's place is not a sum over its loops")
    values = steps[:, 0] // item
    count = len(values)
    for period in (d for d in range(1, count + 1) if count % d == 0):
        inner, outer = int(values[1 % count]) if period > 1 else 0, int(values[period]) if period < count else 0
        index = np.arange(count)
        if np.array_equal(index % period * inner + index // period * outer, values):
            low = var % period * inner if period > 1 else ZERO
            return low + (var // period * outer if period < count else ZERO)
    raise LayoutError("a wgmma operand's place is no strided form of its loop")


def complete(op: Any, impl: Impl, ctx: Context, pending: int = 0) -> tuple[Stmt, ...]:
    """After this the accumulator may be read and the operands overwritten."""
    still = ctx.in_flight[len(ctx.in_flight) - pending :] if pending else []
    ctx.in_flight = list(still)
    busy = {reg.buffer for other in still for reg in touched(other, ctx)}
    # Naming every register tile that may be touched keeps the device compiler from moving work that should overlap with
    # the product behind the wait.
    held = [made for tile, made in ctx.storage.items() if tile.space == "fragment" and made not in busy]
    regs = tuple(run(made, 0, made.shape[0]) for made in dict.fromkeys(held))
    return (WaitGroup("wgmma", pending, regs=regs, loc=op.loc),)


def touched(op: Any, ctx: Context) -> tuple[Reg, ...]:
    """Registers that the product reads or writes while it is in flight."""
    fragments = [r.buffer for r in (op.c, op.a) if r.buffer.space == "fragment"]
    return tuple(run(ctx.reg(b), 0, ctx.reg(b).shape[0]) for b in fragments)
