"""T.copy, T.fill, T.clear, T.reduce_*, T.cumsum … build the operations of the ops room."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

from ..errors import ShapeError
from ..ir.expr import Buffer, Load, as_expr, cast
from ..ir.stmt import Region, Store
from ..ops.copy import Copy
from ..ops.fill import Fill
from ..ops.reduce import Reduce
from ..ops.scan import Scan
from .barrier import one_barrier as _barrier
from .builder import require
from .edges import fit_to_tile
from .faults import fault, shown
from .fitted import fitted
from .layouts import check_layout
from .regions import equal, pair, to_region
from .remarks import remarks

REDUCTIONS = ("sum", "max", "min", "abssum", "absmax", "bitand", "bitor", "bitxor")


def hints(annotations: Any, **given: Any) -> tuple[tuple[str, Any], ...]:
    """The hints that were given; what annotations say comes before arguments."""
    given = {k: v for k, v in given.items() if v is not None and v is not False}
    return tuple({**given, **remarks(annotations)}.items())


def copy(
    src: Any,
    dst: Any,
    *,
    coalesced_width: int | None = None,
    disable_tma: bool = False,
    eviction_policy: str | None = None,
    prefer_instruction: str | None = None,
    annotations: Any = None,
    loop_layout: Any = None,
) -> None:
    """Moves a tile between any two memories, casting elementwise. Reads outside a tensor give 0, writes are dropped."""
    given = hints(
        annotations,
        coalesced_width=coalesced_width,
        disable_tma=disable_tma,
        eviction_policy=eviction_policy,
        prefer_instruction=prefer_instruction,
        loop_layout=loop_layout,
    )
    move("T.copy", src, dst, given)


def move(what: str, src: Any, dst: Any, given: tuple[tuple[str, Any], ...], barrier: Region | None = None) -> None:
    """Emits a Copy, or a plain store when both sides are elements and nothing is hinted."""
    builder = require(what)
    if isinstance(src, Load) and isinstance(dst, Load) and not given:
        value = cast(as_expr(src), dst.buffer.dtype)
        builder.emit(Store(dst.buffer, dst.indices, value, loc=builder.here))
        return
    a, b = pair(*fit_to_tile(builder, src, dst), what)
    if (layout := dict(given).get("loop_layout")) is not None:
        check_layout(builder, "the copy", [e for e in b.extents if e != 1], layout, spread=True)
    builder.emit(Copy(a, b, given, barrier, loc=builder.here))


def async_copy(
    src: Any, dst: Any, *, coalesced_width: int | None = None, annotations: Any = None, loop_layout: Any = None
) -> None:
    """Starts a copy from global to shared memory and does not wait for it."""
    given = hints(annotations, coalesced_width=coalesced_width, loop_layout=loop_layout, force="async")
    move("T.async_copy", src, dst, given)


def tma_copy(
    src: Any,
    dst: Any,
    *,
    barrier: Any = None,
    cluster_mask: Any = None,
    leader_scope_threads: int | None = None,
    eviction_policy: str | None = None,
    annotations: Any = None,
) -> None:
    """A copy by the tensor memory engine: a load announces its bytes on `barrier` and does not wait, a store is
    committed and not waited for."""
    a = to_region(src, "T.tma_copy: the source")
    if barrier is None and a.buffer.space == "global":
        raise fault("T.tma_copy loads without a barrier", "a load signals an mbarrier", "barrier=bar[i]")
    given = hints(
        annotations,
        force="tma",
        cluster_mask=cluster_mask,
        leader_scope_threads=leader_scope_threads,
        eviction_policy=eviction_policy,
    )
    move("T.tma_copy", src, dst, given, _barrier("T.tma_copy", barrier) if barrier is not None else None)


def fill(buffer: Any, value: Any, annotations: Any = None) -> None:
    """Sets every element to `value`, cast to the buffer's dtype."""
    builder = require("T.fill")
    remarks(annotations)
    region = to_region(buffer, "T.fill: the tile")
    if isinstance(value, Buffer | Region):
        raise fault("T.fill with a tile as the value", "a tile is filled with one scalar", "use T.copy")
    made = fitted(value, region.buffer)
    if isinstance(buffer, Load):
        builder.emit(Store(region.buffer, region.starts, made, loc=builder.here))
    else:
        start = Fill(region, made, loc=builder.here)
        builder.emit(start)
        if buffer in builder.reduced:
            builder.reduced[buffer].begin(start, builder.frames)


def clear(buffer: Any, annotations: Any = None) -> None:
    """Sets every element to 0."""
    fill(buffer, 0, annotations)


REDUCTIONS = ("sum", "max", "min", "abssum", "absmax", "bitand", "bitor", "bitxor")


# -- reductions and scans --


def reduce(
    buffer: Any,
    out: Any,
    reduce_type: str,
    dim: int = -1,
    clear: bool = True,
    batch: int = 1,
    nan_propagate: bool = False,
    annotations: Any = None,
) -> None:
    """Reduces `buffer` along `dim` into `out`, which lacks that dimension or has extent 1 there. `batch`, TileLang's
    number of results that go over the threads together, changes nothing here; it must divide that of all results."""
    builder = require("T.reduce")
    said = remarks(annotations)
    if reduce_type not in REDUCTIONS:
        raise fault(
            f"T.reduce: reduce_type={shown(reduce_type)}", f"it is one of {', '.join(REDUCTIONS)}", 'reduce_type="sum"'
        )
    what = f"T.reduce_{reduce_type}"
    src, dst = to_region(buffer, f"{what}: the source"), to_region(out, f"{what}: the result")
    axis = _axis(what, dim, len(src.extents))
    without = (*src.extents[:axis], *src.extents[axis + 1 :])
    kept = (*src.extents[:axis], 1, *src.extents[axis + 1 :])
    fits = [len(s) == len(dst.extents) and all(map(equal, s, dst.extents)) for s in (without or (1,), kept)]
    if not any(fits):
        raise ShapeError(
            f"{what}: `{src.buffer.name}` {src.extents} along dim {axis} into `{dst.buffer.name}` {dst.extents}",
            rule=f"the result has shape {without or (1,)} or {kept}",
            fix="allocate the result with that shape, or reduce another dim",
        )
    check_batch(what, said.get("batch", 1) if batch == 1 else batch, dst)
    if reduce_type.startswith("bit") and src.buffer.dtype.is_float:
        raise ShapeError(
            f"{what} of {src.buffer.dtype}", rule="bitwise reductions take integers", fix="reduce an integer tile"
        )
    propagates = bool(nan_propagate or said.get("nan_propagate"))
    builder.emit(Reduce(reduce_type, src, dst, axis, bool(clear), propagates, loc=builder.here))


def check_batch(what: str, batch: Any, results: Region) -> None:
    """LanguageError unless the results are whole batches."""
    if isinstance(batch, bool) or not isinstance(batch, int) or batch < 1:
        raise fault(f"{what}: batch={shown(batch)}", "batch must be >= 1, an int", "leave it out")
    extents = [e for e in results.extents if isinstance(e, int)]
    if len(extents) != len(results.extents) or not (count := prod(extents)) % batch:
        return
    said = f"{what}: batch={batch} of {count} elements"
    if batch > count:
        raise fault(said, "batch exceeds total output elements: it divides their number", f"batch={count}")
    raise fault(said, "batch must evenly divide the number of output elements", "batch=1")


def _axis(what: str, dim: Any, rank: int) -> int:
    if isinstance(dim, bool) or not isinstance(dim, int) or not -rank <= dim < rank:
        raise ShapeError(
            f"{what}: dim={shown(dim)} of {rank} dimensions",
            rule=f"dim names one dimension, {-rank} … {rank - 1}",
            fix="dim=-1 for the last dimension",
        )
    return dim % rank


def _reduction(kind: str, text: str) -> Callable[..., None]:
    def reduction(
        buffer: Any, out: Any, dim: int = -1, clear: bool = True, batch: int = 1, annotations: Any = None
    ) -> None:
        reduce(buffer, out, kind, dim, clear, batch, annotations=annotations)

    reduction.__name__ = reduction.__qualname__ = f"reduce_{kind}"
    reduction.__doc__ = f"{text} along `dim`; clear=False combines with the old contents of `out`."
    return reduction


reduce_sum = _reduction("sum", "The sum")
reduce_bitand = _reduction("bitand", "The bitwise and")
reduce_bitor = _reduction("bitor", "The bitwise or")
reduce_bitxor = _reduction("bitxor", "The bitwise exclusive or")


def reduce_abssum(buffer: Any, out: Any, dim: int = -1, batch: int = 1, annotations: Any = None) -> None:
    """The sum of absolute values along `dim`; always starts from 0."""
    reduce(buffer, out, "abssum", dim, True, batch, annotations=annotations)


def reduce_absmax(
    buffer: Any, out: Any, dim: int = -1, clear: bool = True, batch: int = 1, nan_propagate: bool = False,
    annotations: Any = None,
) -> None:  # fmt: skip
    """The largest absolute value along `dim`; NaN is ignored unless nan_propagate."""
    reduce(buffer, out, "absmax", dim, clear, batch, nan_propagate, annotations)


def reduce_max(
    buffer: Any, out: Any, dim: int = -1, clear: bool = True, batch: int = 1, nan_propagate: bool = False,
    annotations: Any = None,
) -> None:  # fmt: skip
    """The maximum along `dim`; NaN is ignored unless nan_propagate."""
    reduce(buffer, out, "max", dim, clear, batch, nan_propagate, annotations)


def reduce_min(
    buffer: Any, out: Any, dim: int = -1, clear: bool = True, batch: int = 1, nan_propagate: bool = False,
    annotations: Any = None,
) -> None:  # fmt: skip
    """The minimum along `dim`; NaN is ignored unless nan_propagate."""
    reduce(buffer, out, "min", dim, clear, batch, nan_propagate, annotations)


def _scan(what: str, kind: str, src: Any, dst: Any, dim: int, reverse: bool) -> None:
    builder = require(what)
    a = to_region(src, f"{what}: the source")
    b = to_region(dst, f"{what}: the result") if dst is not None else a
    if len(a.extents) != len(b.extents) or not all(map(equal, a.extents, b.extents)):
        raise ShapeError(
            f"{what}: `{a.buffer.name}` {a.extents} into `{b.buffer.name}` {b.extents}",
            rule="source and result have the same shape",
            fix="allocate the result with the source's shape",
        )
    builder.emit(Scan(kind, a, b, _axis(what, dim, len(a.extents)), bool(reverse), loc=builder.here))


def cumsum(src: Any, dst: Any = None, dim: int = 0, reverse: bool = False, annotations: Any = None) -> None:
    """Inclusive prefix sum along `dim`; in place without `dst`."""
    remarks(annotations)
    _scan("T.cumsum", "sum", src, dst, dim, reverse)


def cummax(src: Any, dst: Any = None, dim: int = 0, reverse: bool = False, annotations: Any = None) -> None:
    """Running maximum along `dim`; in place without `dst`."""
    remarks(annotations)
    _scan("T.cummax", "max", src, dst, dim, reverse)
