"""Operations that make one fragment from another: repeat, replicate, reduce, permute, split, condense."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from math import prod

from tileworkbench.errors import LayoutError
from tileworkbench.layout.fragment import Axis, Fragment, Mode


@cache
def repeat(
    fragment: Fragment,
    dim: int,
    count: int,
    axis: Axis = "reg",
    stride: int | None = None,
) -> Fragment:
    """`count` copies side by side along `dim`, spread over registers or threads.

    `stride` is the weight of the new mode; modes of the same axis with that weight or more move up. Default: outermost.
    """
    if dim in fragment.guard_dims:
        raise LayoutError(f"dimension {dim} of {fragment.shape} is padded and cannot be repeated")
    size = fragment.registers if axis == "reg" else fragment.threads
    at = size if stride is None else stride
    grown = list(fragment.shape)
    grown[dim] *= count
    added = Mode(count, axis, at, dim, fragment.covered[dim])
    return replace(
        fragment,
        shape=tuple(grown),
        modes=(*_make_room(fragment.modes, axis, at, count), added),
    )


@cache
def replicate(fragment: Fragment, count: int, stride: int | None = None) -> Fragment:
    """`count` times as many threads, the new ones holding what the old ones hold. Default: outermost."""
    at = fragment.threads if stride is None else stride
    return replace(
        fragment,
        modes=(
            *_make_room(fragment.modes, "thread", at, count),
            Mode(count, "thread", at),
        ),
    )


def _make_room(modes: Sequence[Mode], axis: Axis, stride: int, count: int) -> list[Mode]:
    return [replace(m, stride=m.stride * count) if m.axis == axis and m.stride >= stride else m for m in modes]


def with_threads(fragment: Fragment, threads: int) -> Fragment:
    """Replicated over `threads` threads, a multiple of those it has."""
    if threads % fragment.threads:
        raise LayoutError(f"{fragment.threads} threads do not divide {threads}")
    return replicate(fragment, threads // fragment.threads) if threads != fragment.threads else fragment


def tile(fragment: Fragment, times: Sequence[int], axis: Axis = "reg") -> Fragment:
    """Repeated times[d] along each dimension d; the last dimension varies fastest among the copies."""
    for dim in reversed(range(fragment.rank)):
        fragment = repeat(fragment, dim, times[dim], axis) if times[dim] > 1 else fragment
    return fragment


def offset_threads(fragment: Fragment, base: int) -> Fragment:
    """The same fragment on threads base, base + 1, …"""
    return replace(fragment, base=base)


@cache
def reduce_dim(fragment: Fragment, dim: int, keep: bool = False) -> Fragment:
    """Layout of the result of reducing `dim`: threads along it become replicas, registers along it disappear.

    `keep` leaves the dimension with extent 1. A tile of rank 1 always keeps it, so that the result has shape (1,).
    """
    keep = keep or fragment.rank == 1
    threads = [replace(m, dim=None, step=0) if m.dim == dim else m for m in fragment.thread_modes]
    registers: list[Mode] = []
    for mode in reversed(fragment.reg_modes):
        if mode.dim != dim:
            registers.append(replace(mode, stride=prod(m.extent for m in registers)))
    modes = (*threads, *registers)
    if keep:
        shape = tuple(1 if d == dim else extent for d, extent in enumerate(fragment.shape))
        return replace(fragment, shape=shape, modes=modes)
    shape = tuple(extent for d, extent in enumerate(fragment.shape) if d != dim)
    lowered = (replace(m, dim=m.dim - 1) if m.dim is not None and m.dim > dim else m for m in modes)
    return replace(fragment, shape=shape, modes=tuple(lowered))


def expand(fragment: Fragment, leading: Sequence[int]) -> Fragment:
    """New leading dimensions of extents `leading`, held in registers, outermost; row-major among themselves."""
    shift = len(leading)
    modes = [replace(m, dim=m.dim + shift) if m.dim is not None else m for m in fragment.modes]
    for dim, extent in enumerate(leading):
        modes.append(Mode(extent, "reg", fragment.registers * prod(leading[dim + 1 :]), dim, 1))
    return replace(fragment, shape=(*leading, *fragment.shape), modes=tuple(modes))


def permute_dims(fragment: Fragment, order: Sequence[int]) -> Fragment:
    """Dimension i of the result is dimension order[i] of `fragment`."""
    if sorted(order) != list(range(fragment.rank)):
        raise LayoutError(f"{tuple(order)} is not a permutation of the {fragment.rank} dimensions")
    place = {old: new for new, old in enumerate(order)}
    modes = tuple(replace(m, dim=place[m.dim]) if m.dim is not None else m for m in fragment.modes)
    return replace(fragment, shape=tuple(fragment.shape[d] for d in order), modes=modes)


def split_mode(fragment: Fragment, mode: Mode, inner: int) -> Fragment:
    """The same map with `mode` written as two: `inner` fast indices and the rest."""
    if mode not in fragment.modes or mode.extent % inner:
        raise LayoutError(f"{mode} cannot be split by {inner}")
    low = replace(mode, extent=inner)
    high = replace(
        mode,
        extent=mode.extent // inner,
        stride=mode.stride * inner,
        step=mode.step * inner,
    )
    return replace(fragment, modes=(*(m for m in fragment.modes if m != mode), low, high))


@cache
def condense(fragment: Fragment) -> Fragment:
    """The same map with as few modes as can be: neighbours that continue each other are merged."""
    merged: list[Mode] = []
    for mode in reversed(fragment.modes):
        last = merged[-1] if merged else None
        if last is not None and _continues(last, mode):
            merged[-1] = replace(last, extent=last.extent * mode.extent)
        else:
            merged.append(mode)
    return replace(fragment, modes=tuple(merged))


def _continues(low: Mode, high: Mode) -> bool:
    same_line = low.axis == high.axis and low.dim == high.dim and low.stride * low.extent == high.stride
    return same_line and low.step * low.extent == high.step
