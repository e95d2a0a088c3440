"""Calls that are not functions of their arguments alone, at thread level: exchanges and votes between threads, meetings
and fences that a kernel writes itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeGuard

from ..errors import LanguageError, Loc, TargetError
from ..ir.dtype import BOOL, DTYPES, INT32, DType
from ..ir.expr import Call, Const, Expr, Load, Special, cast, compare, const
from ..ir.instr import Addr, Elect, Fence, GridDep, LoadMem, Match, Shuffle, StoreMem, Sync, Vote, WaitGroup
from ..ir.mathfn import math_call
from ..ir.node import Node
from ..ir.stmt import ONE, ZERO, Eval, For, Stmt, Store
from ..ir.uniform import rank
from .context import Context, run
from .reduction import combine

WARP = 32  # lanes of one exchange or combination, on every target
_KINDS = {"shfl_sync": "idx", "shfl_xor": "xor", "shfl_down": "down", "shfl_up": "up"}
_EFFECTS = frozenset((
    "sync_threads", "sync_warp", "named_barrier_arrive", "fence_proxy_async", "sync_grid", "cluster_sync",
    "cluster_arrive", "cluster_arrive_relaxed", "cluster_wait", "pdl_trigger", "pdl_sync",
))  # fmt: skip


def block_meeting(s: Stmt) -> bool:
    """True for a statement at which all threads of the block (or of the grid) meet."""
    if not isinstance(s, Eval) or not isinstance(s.value, Call):
        return False
    return s.value.fn == "sync_grid" or (s.value.fn == "sync_threads" and not s.value.args)


def grid_meeting(s: Node) -> bool:
    """True for a statement at which all blocks of the grid meet."""
    return isinstance(s, Eval) and isinstance(s.value, Call) and s.value.fn == "sync_grid"


def named_meeting(s: Stmt) -> bool:
    """True for any meeting of several warps that the kernel asks for."""
    return isinstance(s, Eval) and isinstance(s.value, Call) and s.value.fn in ("sync_threads", "named_barrier_arrive")


def is_intrinsic(e: Call) -> bool:
    """True when `value` gives the call's meaning."""
    return e.fn in _VALUES


def is_effect(e: Expr) -> TypeGuard[Call]:
    """Whether the expression is a call that does something, not only gives a value."""
    return isinstance(e, Call) and e.fn in _EFFECTS


def value(e: Call, args: list[Expr], ctx: Context, pre: list[Stmt]) -> Expr:
    """The call's value in terms of registers that statements added to `pre` fill."""
    return _VALUES[e.fn](e, args, ctx, pre)


def _together(e: Call, ctx: Context, scope: str) -> None:
    if rank(ctx.flow) < rank(scope):
        raise LanguageError(
            f"T.{e.fn} where only some threads of the {scope} come",
            rule=f"all threads of a {scope} execute it together",
            fix="move it out of the branch on the thread index",
            loc=e.loc,
        )


def _hold(value: Expr, ctx: Context, pre: list[Stmt], name: str = "x") -> Load:
    """The value in a register of its own."""
    made = ctx.registers(name, 1, value.dtype)
    pre.append(Store(made, (ZERO,), value))
    return Load(made, (ZERO,))


# --- exchanges --------------------------------------------------------------------------------------------------------
def _exchange(x: Expr, kind: str, lane: Expr, width: int, ctx: Context, pre: list[Stmt], loc: Loc | None) -> Expr:
    given = _hold(x, ctx, pre)
    got = ctx.registers("y", 1, x.dtype)
    pre.append(Shuffle(run(got), run(given.buffer), kind, lane, width, loc=loc))
    return Load(got, (ZERO,))


def _shuffle(e: Call, args: list[Expr], ctx: Context, pre: list[Stmt]) -> Expr:
    x, lane, width, _ = args
    _together(e, ctx, "warp")
    if not isinstance(width, Const):
        raise LanguageError(
            f"T.{e.fn}: the width is an expression", rule="it is known while compiling", fix="pass an int", loc=e.loc
        )
    return _exchange(x, _KINDS[e.fn], lane, int(width.value), ctx, pre, e.loc)


def _reduction(e: Call, args: list[Expr], ctx: Context, pre: list[Stmt]) -> Expr:
    _together(e, ctx, "warp")
    kind = e.fn.removeprefix("warp_reduce_")
    held = _hold(args[0], ctx, pre)
    for bit in (16, 8, 4, 2, 1):
        other = ctx.registers("y", 1, held.dtype)
        pre.append(Shuffle(run(other), run(held.buffer), "xor", const(bit), WARP, loc=e.loc))
        both = combine(kind, held, Load(other, (ZERO,)), False)
        pre.append(Store(held.buffer, (ZERO,), cast(both, held.dtype)))
    return held


def _thread_reduction(e: Call, args: list[Expr], ctx: Context, pre: list[Stmt]) -> Expr:
    """Over threads `stride` apart, in groups of `extent`: exchanges between lanes as far as a warp reaches, the rest
    through shared memory."""
    _together(e, ctx, "role")
    kind = e.fn.removeprefix("thread_reduce_")
    held = _hold(args[0], ctx, pre)
    stride, extent = int(args[1].value), int(args[2].value)  # type: ignore[attr-defined]
    lanes = ctx.target.arch.warp_size
    while extent % 2 == 0 and stride < lanes and lanes % (2 * stride) == 0:
        other = ctx.registers("y", 1, held.dtype)
        pre.append(Shuffle(run(other), run(held.buffer), "xor", const(stride), lanes, loc=e.loc))
        both = combine(kind, held, Load(other, (ZERO,)), False)
        pre.append(Store(held.buffer, (ZERO,), cast(both, held.dtype)))
        stride, extent = 2 * stride, extent // 2
    if extent > 1:
        pre += _through_shared(kind, held, stride, extent, ctx, e.loc)
    return held


def _through_shared(kind: str, held: Load, stride: int, extent: int, ctx: Context, loc: Loc | None) -> tuple[Stmt, ...]:
    """Every thread writes its value, meets the others, and combines those of its group."""
    group = stride * extent
    scratch = ctx.scratch("values", -(-ctx.threads // group) * group, held.dtype)  # lanes beyond the block look there
    part, w = ctx.registers("part", 1, held.dtype), ctx.var("w")
    first = ctx.facts.simplify(ctx.thread - ctx.thread // stride % extent * stride)
    both = combine(kind, held, Load(part, (ZERO,)), False)
    return (
        Sync("role", reason="earlier values have been read", loc=loc),
        StoreMem(Addr(scratch, ctx.thread), run(held.buffer), loc=loc),
        Sync("role", reason="every thread's value is there", loc=loc),
        LoadMem(run(held.buffer), Addr(scratch, first), loc=loc),
        For(w, ONE, const(extent), ONE, (
            LoadMem(run(part), Addr(scratch, first + w * stride), loc=loc),
            Store(held.buffer, (ZERO,), cast(both, held.dtype)),
        ), "unroll"),
    )  # fmt: skip


# --- votes ------------------------------------------------------------------------------------------------------------
def _ask(kind: str, pred: Expr, dtype: DType, ctx: Context, pre: list[Stmt], loc: Loc | None) -> Expr:
    made = ctx.registers("vote", 1, dtype)
    pre.append(Vote(run(made), kind, pred, loc=loc))
    return Load(made, (ZERO,))


def _vote(kind: str) -> Callable[[Call, list[Expr], Context, list[Stmt]], Expr]:
    def made(e: Call, args: list[Expr], ctx: Context, pre: list[Stmt]) -> Expr:
        _together(e, ctx, "warp")
        pred = args[0] if args else const(True)
        dtype = BOOL if kind != "ballot" else _mask_type(ctx)
        return cast(_ask(kind, pred, dtype, ctx, pre, e.loc), e.dtype)

    return made


def _match(e: Call, args: list[Expr], ctx: Context, pre: list[Stmt]) -> Expr:
    _together(e, ctx, "warp")
    if ctx.target.dialect != "cuda":
        raise TargetError(
            f"T.{e.fn} for {ctx.target.name}",
            rule="its lanes have no instruction that compares values with one another",
            fix="compare with T.shfl_sync and T.ballot_sync, or compile for an NVIDIA target",
            loc=e.loc,
        )
    given = _hold(args[0], ctx, pre)
    found = ctx.registers("match", 1, e.dtype)
    pre.append(Match(run(found), run(given.buffer), "any" if e.fn == "match_any_sync" else "all", loc=e.loc))
    return Load(found, (ZERO,))


def _mask_type(ctx: Context) -> DType:
    return DTYPES["uint32" if ctx.target.arch.warp_size == WARP else "uint64"]


def _count(e: Call, args: list[Expr], ctx: Context, pre: list[Stmt]) -> Expr:
    """Counts over the block: a ballot a warp, the sums through shared memory."""
    _together(e, ctx, "role")
    warps, lanes = ctx.warps, ctx.target.arch.warp_size
    votes = _ask("ballot", args[0], _mask_type(ctx), ctx, pre, e.loc)
    mine = _hold(cast(math_call("popcount", votes), INT32), ctx, pre)
    scratch = ctx.scratch("counts", warps, INT32)
    part, total = ctx.registers("part", 1, INT32), ctx.registers("total", 1, INT32)
    warp = ctx.facts.simplify(ctx.thread // lanes)
    w = ctx.var("w")
    pre += [
        Sync("role", reason="earlier counts have been read", loc=e.loc),
        Elect("warp", (StoreMem(Addr(scratch, warp), run(mine.buffer), loc=e.loc),), loc=e.loc),
        Sync("role", reason="every warp's count is there", loc=e.loc),
        Store(total, (ZERO,), const(0)),
        For(w, ZERO, const(warps), ONE, (
            LoadMem(run(part), Addr(scratch, w), loc=e.loc),
            Store(total, (ZERO,), Load(total, (ZERO,)) + Load(part, (ZERO,))),
        ), "unroll"),
    ]  # fmt: skip
    found: Expr = Load(total, (ZERO,))
    if e.fn == "syncthreads_count":
        return cast(found, e.dtype)
    return compare("gt", found, 0) if e.fn == "syncthreads_or" else compare("eq", found, ctx.present)


def _elected(e: Call, args: list[Expr], ctx: Context, pre: list[Stmt]) -> Expr:
    extent = int(args[0].value) if isinstance(args[0], Const) else 0
    return compare("eq", ctx.thread % extent if extent else ctx.thread, 0)


def _rank(e: Call, args: list[Expr], ctx: Context, pre: list[Stmt]) -> Expr:
    return Special("cluster_rank") if ctx.target.has("cluster") else const(0)


THREAD_KINDS = ("sum", "prod", "max", "min", "bitand", "bitor", "bitxor")
_VALUES: dict[str, Callable[[Call, list[Expr], Context, list[Stmt]], Expr]] = {
    **dict.fromkeys(_KINDS, _shuffle),
    **{f"warp_reduce_{kind}": _reduction for kind in ("sum", "max", "min", "bitand", "bitor")},
    **{f"thread_reduce_{kind}": _thread_reduction for kind in THREAD_KINDS},
    "any_sync": _vote("any"),
    "all_sync": _vote("all"),
    "ballot_sync": _vote("ballot"),
    "activemask": _vote("ballot"),
    "match_any_sync": _match,
    "match_all_sync": _match,
    "syncthreads_count": _count,
    "syncthreads_and": _count,
    "syncthreads_or": _count,
    "shuffle_elect": _elected,
    "block_rank_in_cluster": _rank,
}


# --- meetings and fences ----------------------------------------------------------------------------------------------
def effect(e: Call, ctx: Context) -> tuple[Stmt, ...]:
    """The instructions of a statement that only orders."""
    asked = "the kernel asks for it"
    if e.fn == "sync_threads":
        return _sync(e, ctx)
    if e.fn == "sync_warp":
        _together(e, ctx, "warp")
        return (Sync("warp", reason=asked, loc=e.loc),)
    if e.fn == "named_barrier_arrive":
        return (_named(e, ctx, "arrive"),)
    if e.fn == "fence_proxy_async":
        return (Fence("proxy_async", asked, loc=e.loc),) if ctx.target.has("proxy_fence") else ()
    if e.fn.startswith("pdl_"):
        action = "wait" if e.fn == "pdl_sync" else "launch"
        return (GridDep(action, loc=e.loc),) if ctx.target.has("griddep") else ()
    return _grid(e, ctx) if e.fn == "sync_grid" else _cluster(e, ctx)


def _sync(e: Call, ctx: Context) -> tuple[Stmt, ...]:
    if e.args:
        return (_named(e, ctx, "both"),)
    _together(e, ctx, "role")
    return (Sync("role" if ctx.apart else "block", reason="the kernel asks for it", loc=e.loc),)


def _named(e: Call, ctx: Context, mode: str) -> Stmt:
    """A barrier of the block by number; threads counted as the kernel says, else all of them."""
    numbers = [int(a.value) for a in e.args if isinstance(a, Const)]
    number = numbers[0]
    threads = numbers[1] if len(numbers) > 1 else ctx.block_threads
    if ctx.target.arch.named_barriers <= 1 or not 0 <= number < ctx.target.arch.named_barriers:
        raise TargetError(
            f"T.{e.fn} on barrier {number}",
            rule=f"{ctx.target.name} has the block barriers 0 … {max(ctx.target.arch.named_barriers, 1) - 1}",
            fix="use T.sync_threads() without a number",
            loc=e.loc,
        )
    if threads % ctx.target.arch.warp_size or not 0 < threads <= ctx.block_threads:
        raise LanguageError(
            f"T.{e.fn}: barrier {number} counts {threads} threads",
            rule=f"it counts whole warps of {ctx.target.arch.warp_size}, at most the {ctx.block_threads} of the block",
            fix="give the number of threads that reach it",
            loc=e.loc,
        )
    _together(e, ctx, "warp")
    return Sync("named", mode, number, threads, "the kernel asks for it", loc=e.loc)


def _grid(e: Call, ctx: Context) -> tuple[Stmt, ...]:
    """What this block has stored, by the copy engine too, is there when another block goes on."""
    _together(e, ctx, "role")
    stored: tuple[Stmt, ...] = (WaitGroup("bulk", 0, loc=e.loc),) if ctx.target.has("bulk_copy") else ()
    made = Fence("proxy_async_all", "memory that other blocks touch", loc=e.loc)
    fence: tuple[Stmt, ...] = (made,) if ctx.target.has("proxy_fence") else ()
    return (*stored, *fence, Sync("grid", reason="the kernel asks for it", loc=e.loc), *fence)


def _cluster(e: Call, ctx: Context) -> tuple[Stmt, ...]:
    if not ctx.target.has("cluster"):
        raise TargetError(f"T.{e.fn}", rule=f"{ctx.target.name} has no clusters", fix="compile for sm_90a", loc=e.loc)
    mode = {"cluster_sync": "both", "cluster_wait": "wait"}.get(e.fn, "arrive")
    return (Sync("cluster", mode, reason="the kernel asks for it", loc=e.loc),)
