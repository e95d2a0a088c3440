"""T.ldg32 … T.sts128: so many bits of global or shared memory at once; T.__ldg; and tests of addresses."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..errors import ShapeError
from ..ir.dtype import DType
from ..ir.expr import Buffer, Const, Expr, Load, Var, as_expr, binary, compare, select, truth
from ..ir.stmt import ONE, ZERO, Alloc, For, If, Region, Stmt, Store
from .builder import Builder, require
from .elements import index_to_coordinates
from .faults import fault, shown
from .lanes import Lanes
from .mathfns import scalar
from .regions import to_region
from .views import reshape
from .words import WORD, Words, elements, width

_WORDS = {"global": "global memory", "shared": "shared memory"}


def _named(made: Callable[..., Any], name: str, text: str) -> Callable[..., Any]:
    made.__name__ = made.__qualname__ = name
    made.__doc__ = text
    return made


def _ldg(bits: int) -> Callable[..., Any]:
    def made(src: Any, pred: Any = None) -> Any:
        return _load(f"ldg{bits}", bits, "global", src, pred)

    return _named(made, f"ldg{bits}", f"{bits} bits of global memory at `src` as words of uint32; 0 where not `pred`.")


def _lds(bits: int) -> Callable[..., Any]:
    def made(src: Any) -> Any:
        return _load(f"lds{bits}", bits, "shared", src, None)

    return _named(made, f"lds{bits}", f"{bits} bits of shared memory at `src` as words of uint32.")


def _stg(bits: int) -> Callable[..., None]:
    def made(dst: Any, value: Any, pred: Any = None) -> None:
        _store(f"stg{bits}", bits, "global", dst, value, pred)

    return _named(made, f"stg{bits}", f"Stores a value of {bits} bits to global memory at `dst`, where `pred` holds.")


def _sts(bits: int) -> Callable[..., None]:
    def made(dst: Any, value: Any) -> None:
        _store(f"sts{bits}", bits, "shared", dst, value, None)

    return _named(made, f"sts{bits}", f"Stores a value of {bits} bits to shared memory at `dst`.")


ldg32, ldg64, ldg128, ldg256 = _ldg(32), _ldg(64), _ldg(128), _ldg(256)
stg32, stg64, stg128, stg256 = _stg(32), _stg(64), _stg(128), _stg(256)
lds32, lds64, lds128 = _lds(32), _lds(64), _lds(128)
sts32, sts64, sts128 = _sts(32), _sts(64), _sts(128)


def _load(name: str, bits: int, space: str, src: Any, pred: Any) -> Any:
    builder = require(f"T.{name}")
    place = _place(f"T.{name}", src, bits, space)
    count, of = bits // place.buffer.dtype.bits, place.buffer.dtype
    held = None if pred is None else truth(pred)

    def value(n: Any) -> Expr:
        read = Load(place.buffer, _element(place, n), loc=builder.here)
        return read if held is None else select(held, read, as_expr(0, of))

    if builder.within("parallel") is not None:
        words = Words([value(n) for n in range(count)])
    else:
        raw = _registers(builder, count, of)
        lane = Var(builder.unique("lane"), loc=builder.here)
        _vector(builder, lane, count, Store(raw, (lane,), value(lane), loc=builder.here))
        words = Words([Load(raw, (as_expr(n),), loc=builder.here) for n in range(count)])
    return words.lanes[0] if bits == 32 else words


def _store(name: str, bits: int, space: str, dst: Any, value: Any, pred: Any) -> None:
    what = f"T.{name}"
    builder = require(what)
    place = _place(what, dst, bits, space)
    parts = _parts(what, value, bits, place.buffer.dtype)
    held = None if pred is None else truth(pred)
    if builder.within("parallel") is not None or len(parts) == 1:
        stores = tuple(Store(place.buffer, _element(place, n), p, loc=builder.here) for n, p in enumerate(parts))
        _guarded(builder, held, stores)
        return
    raw = _registers(builder, len(parts), place.buffer.dtype)
    for n, part in enumerate(parts):
        builder.emit(Store(raw, (as_expr(n),), part, loc=builder.here))
    lane = Var(builder.unique("lane"), loc=builder.here)
    loaded = Load(raw, (lane,), loc=builder.here)
    store = Store(place.buffer, _element(place, lane), loaded, loc=builder.here)
    _guarded(builder, held, (_loop(builder, lane, len(parts), store),))


def _parts(what: str, value: Any, bits: int, of: DType) -> Sequence[Expr]:
    given = value if isinstance(value, Lanes) else scalar(value, what)
    if isinstance(given, Const) and given.dtype.is_int and bits == 32:
        given = as_expr(given.value, WORD)
    if width(given) != bits:
        raise ShapeError(
            f"{what} of {width(given)} bits",
            rule=f"it stores {bits} bits",
            fix="T.reinterpret the value, or use the instruction of its width",
        )
    return elements(given, of)


def _guarded(builder: Builder, held: Expr | None, body: tuple[Stmt, ...]) -> None:
    for s in body if held is None else (If(held, body, (), loc=builder.here),):
        builder.emit(s)


def _registers(builder: Builder, count: int, of: DType) -> Buffer:
    made = Buffer(builder.unique("raw"), (count,), of, "local", loc=builder.here)
    builder.emit(Alloc(made, loc=builder.here))
    builder.define(made)
    return made


def _vector(builder: Builder, lane: Var, count: int, store: Stmt) -> None:
    builder.emit(_loop(builder, lane, count, store))


def _loop(builder: Builder, lane: Var, count: int, store: Stmt) -> For:
    return For(lane, ZERO, as_expr(count), ONE, (store,), "vector", loc=builder.here)


def _element(place: Region, n: Any) -> tuple[Expr, ...]:
    return (*place.starts[:-1], binary("add", place.starts[-1], n))


def _place(what: str, given: Any, bits: int, space: str) -> Region:
    """The first element, in rows that the access stays in."""
    region = to_region(given, f"{what}: its place")
    buffer, of = region.buffer, region.buffer.dtype
    if buffer.space != space:
        raise fault(
            f"{what} of `{buffer.name}`, {_WORDS.get(buffer.space, 'registers')}",
            f"{what} accesses {_WORDS[space]}",
            "read or write the element by its index",
        )
    if of.bits not in (8, 16, 32, 64) or of.bits > bits or of.kind == "bool" or of.is_packed:
        raise fault(
            f"{what} of elements of {of}",
            f"{bits} bits are whole numbers of one to eight bytes",
            "use another width, or T.view",
        )
    count = bits // of.bits
    extent = region.extents[-1]
    if isinstance(given, Region) and isinstance(extent, int) and extent not in (1, count):
        raise ShapeError(
            f"{what} of a slice of {extent} elements of {of}",
            rule=f"{bits} bits are {count} elements of {of}",
            fix=f"write the first element, or a slice of {count}",
        )
    return _in_rows(what, region, count)


def _in_rows(what: str, region: Region, count: int) -> Region:
    """The place in the buffer itself where its rows hold whole accesses, else in the buffer as one row."""
    buffer = region.buffer
    row = buffer.shape[-1]
    if buffer.rank == 1 or (isinstance(row, int) and row % count == 0):
        return region
    if buffer.space != "global" or buffer.strides is not None:
        raise ShapeError(
            f"{what} of `{buffer.name}` with rows of {shown(row)} elements",
            rule=f"rows are made of accesses of {count} elements each",
            fix="pad the rows, or access single elements",
        )
    at: Expr = region.starts[0]
    for start, extent in zip(region.starts[1:], buffer.shape[1:], strict=True):
        at = binary("add", binary("mul", at, extent), start)
    size: Any = 1
    for extent in buffer.shape:
        size = binary("mul", size, extent) if isinstance(size, Expr) or isinstance(extent, Expr) else size * extent
    flat = reshape(buffer, (size,))
    return Region(flat, (at,), (1,), loc=region.loc)


def __ldg(load_or_buf: Any, index: Any = None) -> Expr:
    """An element of global memory through the read-only cache, where the kernel does not write the tensor."""
    what = "T.__ldg"
    builder = require(what)
    if isinstance(load_or_buf, Buffer) and index is not None:
        entries = tuple(index) if isinstance(index, list | tuple) else (index,)
        places = (
            entries if len(entries) == load_or_buf.rank else tuple(index_to_coordinates(entries[0], load_or_buf.shape))
        )
        load_or_buf = Load(load_or_buf, tuple(as_expr(p) for p in places), loc=builder.here)
    if not isinstance(load_or_buf, Load) or load_or_buf.buffer.space != "global":
        raise fault(
            f"{what} of {shown(load_or_buf)}",
            "it loads one element of global memory",
            "T.__ldg(A[i]), or T.__ldg(A, i)",
        )
    return load_or_buf


def isnullptr(x: Any) -> Expr:
    """Whether an address, a 64-bit number, is null."""
    value = scalar(x, "T.isnullptr") if not isinstance(x, Buffer | Region) or getattr(x, "space", "") == "var" else None
    if value is None or not value.dtype.is_int or value.dtype.bits != 64:
        raise fault(
            f"T.isnullptr of {shown(x)}",
            "it tests an address, a 64-bit number; a tensor that a kernel uses is always there",
            "pass a flag to the kernel, or a table of addresses (T.Tensor((n,), T.ptr))",
        )
    return compare("eq", value, as_expr(0, value.dtype))
