"""Calls that are not functions of their arguments alone: exchanges and votes between threads, ordering."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import SimulationError
from ...ir.dtype import DType
from ...ir.expr import Call, Expr
from .affine import Affine
from .arithmetic import as_array
from .rounding import rounder
from .state import State

if TYPE_CHECKING:
    from .program import Program

Closure = Callable[[State], Any]
_WARP = 32

# All threads run a statement before any runs the next one, so ordering has nothing left to do inside one agent.
ORDERING = frozenset((
    "sync_threads", "sync_warp", "named_barrier_arrive", "fence_proxy_async", "cluster_sync", "cluster_arrive",
    "cluster_arrive_relaxed", "cluster_wait", "pdl_trigger", "pdl_sync", "sync_grid",
))  # fmt: skip


def compile_effect(e: Expr, depth: int, program: Program) -> Callable[[State], None] | None:
    """The effect of a call that stands as a statement; None when `e` is evaluated like any other expression."""
    if isinstance(e, Call) and e.fn == "sync_grid":
        return lambda st: _all_blocks(st, e)
    if isinstance(e, Call) and e.fn in ORDERING:
        return lambda st: None
    return None


def _all_blocks(st: State, e: Expr) -> None:
    if st.mask is not True:
        raise SimulationError(
            "T.sync_grid where only some blocks or threads come", rule="all blocks of the grid reach it together",
            fix="move it out of the branch or loop", loc=e.loc,
        )  # fmt: skip


def compile_value(e: Call, depth: int, program: Program) -> Closure | None:
    """The value of an intrinsic; None when `e` is a math function."""
    made = _made(e)
    if made is None:
        return None
    if depth:
        raise SimulationError(
            f"T.{e.fn} inside T.Parallel",
            rule="it works between the threads of a warp or block",
            fix="move it out of the loop",
            loc=e.loc,
        )
    args = [(program.expression(a, 0), a.dtype) for a in e.args]
    return lambda st: made(st, [_spread(st, a(st), d) for a, d in args], e.dtype)


def _made(e: Call) -> Callable[[State, list[np.ndarray], DType], Any] | None:
    if e.fn in _SHUFFLES:
        return _shuffle(_SHUFFLES[e.fn])
    if e.fn.startswith("warp_reduce_"):
        return _reduce(e.fn.removeprefix("warp_reduce_"))
    if e.fn.startswith("thread_reduce_"):
        return _reduce_axis(e.fn.removeprefix("thread_reduce_"))
    return _OTHERS.get(e.fn)


def _spread(st: State, value: Any, dtype: DType) -> np.ndarray:
    """The value with every machine axis, threads last and at full extent."""
    array = np.asarray(value.dense(dtype.numpy) if isinstance(value, Affine) else as_array(value, dtype))
    array = array.reshape((1,) * st.base) if array.ndim == 0 else array
    return np.broadcast_to(array, (*array.shape[:-1], st.threads))


def _groups(x: np.ndarray, width: int, fill: Any) -> np.ndarray:
    """Threads as (groups, width); the last group is filled up."""
    missing = -x.shape[-1] % width
    if missing:
        x = np.concatenate([x, np.full((*x.shape[:-1], missing), fill, x.dtype)], axis=-1)
    return x.reshape(*x.shape[:-1], -1, width)


# --- exchanges ---------------------------------------------------------------------------------------------------
_SHUFFLES: dict[str, Callable[[Any, Any, Any], Any]] = {
    "shfl_sync": lambda lane, d, width: d % width,
    "shfl_xor": lambda lane, d, width: lane ^ d,
    "shfl_down": lambda lane, d, width: lane + d,
    "shfl_up": lambda lane, d, width: lane - d,
}


def _shuffle(source: Callable[[Any, Any, Any], Any]) -> Callable[[State, list[np.ndarray], DType], Any]:
    def run(st: State, args: list[np.ndarray], dtype: DType) -> Any:
        value, delta, width = args[0], args[1].astype(np.int64), args[2].astype(np.int64)
        thread = np.arange(st.threads)
        lane = thread % width
        other = source(lane, delta, width)
        # A lane outside the group gives the own value.
        take = np.where((other >= 0) & (other < width), thread - lane + other, thread)
        take = np.where(take < st.threads, take, thread)
        shape = np.broadcast_shapes(value.shape, take.shape)
        return np.take_along_axis(np.broadcast_to(value, shape), np.broadcast_to(take, shape), axis=-1)

    return run


# --- combinations over a warp, and along one thread index ---------------------------------------------------------
_COMBINE: dict[str, tuple[np.ufunc, str]] = {
    "sum": (np.add, "zero"),
    "prod": (np.multiply, "one"),
    "max": (np.fmax, "least"),
    "min": (np.fmin, "greatest"),
    "bitand": (np.bitwise_and, "ones"),
    "bitor": (np.bitwise_or, "zero"),
    "bitxor": (np.bitwise_xor, "zero"),
}


def _neutral(name: str, dtype: DType) -> Any:
    return {
        "zero": 0,
        "one": 1,
        "ones": -1 if dtype.kind == "int" else dtype.max_value() if dtype.is_int else 0,
        "least": -np.inf if dtype.is_float else dtype.min_value(),
        "greatest": np.inf if dtype.is_float else dtype.max_value(),
    }[name]


def _reduce(kind: str) -> Callable[[State, list[np.ndarray], DType], Any]:
    fn, name = _COMBINE[kind]

    def run(st: State, args: list[np.ndarray], dtype: DType) -> Any:
        neutral = _neutral(name, dtype)
        value = args[0]
        if isinstance(st.mask, np.ndarray):
            value = np.where(st.mask, value, np.asarray(neutral, value.dtype))
        out = fn.reduce(_groups(value, _WARP, neutral), axis=-1, keepdims=True, dtype=value.dtype)
        rounding = rounder(dtype)
        return _per_thread(st, out if rounding is None else rounding(out))

    return run


def _reduce_axis(kind: str) -> Callable[[State, list[np.ndarray], DType], Any]:
    """Over threads `stride` apart, in groups of `extent`."""
    fn = _COMBINE[kind][0]

    def run(st: State, args: list[np.ndarray], dtype: DType) -> Any:
        value, stride, extent = args[0], int(args[1].flat[0]), int(args[2].flat[0])
        split = value.reshape(*value.shape[:-1], -1, extent, stride)
        out = fn.reduce(split, axis=-2, keepdims=True, dtype=value.dtype)
        rounding = rounder(dtype)
        out = np.broadcast_to(out if rounding is None else rounding(out), split.shape)
        return out.reshape(value.shape)

    return run


def _per_thread(st: State, per_warp: np.ndarray) -> np.ndarray:
    """One value a warp, given to each of its threads."""
    full = np.broadcast_to(per_warp, (*per_warp.shape[:-1], _WARP))
    return full.reshape(*full.shape[:-2], -1)[..., : st.threads]


# --- votes -------------------------------------------------------------------------------------------------------
def _active(st: State, predicate: np.ndarray, neutral: bool) -> np.ndarray:
    return predicate if st.mask is True else np.asarray(np.where(st.mask, predicate, neutral))


def _any(st: State, args: list[np.ndarray], dtype: DType) -> Any:
    return _per_thread(st, np.asarray(_groups(_active(st, args[0], False), _WARP, False).any(axis=-1, keepdims=True)))


def _all(st: State, args: list[np.ndarray], dtype: DType) -> Any:
    return _per_thread(st, np.asarray(_groups(_active(st, args[0], True), _WARP, True).all(axis=-1, keepdims=True)))


def _ballot(st: State, args: list[np.ndarray], dtype: DType) -> Any:
    votes = _groups(_active(st, args[0], False), _WARP, False)
    return _per_thread(st, _mask(votes)[..., None])


def _mask(lanes: np.ndarray) -> np.ndarray:
    """(…, lane) of flags → (…) of words with a bit a lane."""
    return np.asarray((lanes * (np.uint64(1) << np.arange(_WARP, dtype=np.uint64))).sum(axis=-1, dtype=np.uint64))


def _alike(st: State, value: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(groups, lane, lane): whether the second lane is there and has the bits of the first; and who is there."""
    bits = np.ascontiguousarray(value).view(f"u{value.dtype.itemsize}")
    there = np.broadcast_to(_active(st, np.ones(bits.shape, bool), False), bits.shape)
    groups, active = _groups(bits, _WARP, 0), _groups(there, _WARP, False)
    return (groups[..., :, None] == groups[..., None, :]) & active[..., None, :], active


def _match_any(st: State, args: list[np.ndarray], dtype: DType) -> Any:
    alike, _ = _alike(st, args[0])
    masks = _mask(alike)
    return masks.astype(dtype.numpy).reshape(*masks.shape[:-2], -1)[..., : st.threads]


def _match_all(st: State, args: list[np.ndarray], dtype: DType) -> Any:
    alike, active = _alike(st, args[0])
    agree = (alike | ~active[..., None, :] | ~active[..., :, None]).all(axis=(-2, -1))
    return _per_thread(st, np.where(agree, _mask(active), np.uint64(0)).astype(dtype.numpy)[..., None])


def _activemask(st: State, args: list[np.ndarray], dtype: DType) -> Any:
    return _ballot(st, [np.ones((1,) * (st.base - 1) + (st.threads,), bool)], dtype)


def _block(fn: Callable[[np.ndarray], Any], neutral: bool) -> Callable[[State, list[np.ndarray], DType], Any]:
    return lambda st, args, dtype: fn(_active(st, args[0], neutral))


def _elect(st: State, args: list[np.ndarray], dtype: DType) -> Any:
    extent = int(args[0].reshape(-1)[0])
    thread = np.arange(st.threads).reshape((1,) * (st.base - 1) + (-1,))
    return thread % extent == 0 if extent else thread == 0


_OTHERS: dict[str, Callable[[State, list[np.ndarray], DType], Any]] = {
    "any_sync": _any,
    "all_sync": _all,
    "ballot_sync": _ballot,
    "activemask": _activemask,
    "match_any_sync": _match_any,
    "match_all_sync": _match_all,
    "shuffle_elect": _elect,
    "syncthreads_count": _block(lambda p: p.sum(axis=-1, keepdims=True, dtype=np.int32), False),
    "syncthreads_and": _block(lambda p: p.all(axis=-1, keepdims=True), True),
    "syncthreads_or": _block(lambda p: p.any(axis=-1, keepdims=True), False),
    "block_rank_in_cluster": lambda st, args, dtype: st.env.cluster_rank(),
}
