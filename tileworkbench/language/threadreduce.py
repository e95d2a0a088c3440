"""T.comm_reducer, T.attr and T.tvm_thread_allreduce: values of threads combined over the block; T.dp4a."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from ..errors import ShapeError
from ..ir.dtype import DType
from ..ir.expr import Binary, Buffer, Call, Const, Expr, Load, Var, as_expr, binary, cast, const, select, truth
from ..ir.stmt import Region, Store
from .builder import require
from .faults import fault
from .launch import get_thread_bindings, get_thread_extents
from .mathfns import scalar

_KINDS = {"add": "sum", "max": "max", "min": "min", "and": "bitand", "or": "bitor", "xor": "bitxor", "mul": "prod"}


@dataclass(frozen=True)
class Reducer:
    """A way to combine two values (sum, prod, max, min, bitand, bitor, bitxor) and the value that changes nothing."""

    kind: str
    identity: Expr


def comm_reducer(combiner: Callable[[Any, Any], Any], identity: Any) -> Reducer:
    """The combination `combiner(x, y)` with its identity (a value, or a list of one)."""
    given = identity[0] if isinstance(identity, Sequence) and not isinstance(identity, str) else identity
    neutral = as_expr(given)
    x, y = Var("x", dtype=neutral.dtype), Var("y", dtype=neutral.dtype)
    made = combiner(x, y)
    if isinstance(made, Binary) and made.op in _KINDS and {id(made.a), id(made.b)} == {id(x), id(y)}:
        return Reducer(_KINDS[made.op], neutral)
    raise fault(
        "T.comm_reducer of another combination",
        "it is x + y, x * y, T.max(x, y), T.min(x, y), x & y, x | y or x ^ y",
        "reduce a fragment with T.reduce_*, or exchange values with T.shfl_xor",
    )


@contextmanager
def attr(node: Any, attr_key: str, value: Any = None) -> Iterator[None]:
    """A remark about the statements inside; "reduce_scope" names the reducer of T.tvm_thread_allreduce."""
    builder = require("T.attr")
    if attr_key != "reduce_scope" or not isinstance(node, Reducer):
        yield
        return
    builder.reducers.append(node)
    try:
        yield
    finally:
        builder.reducers.pop()


def tvm_thread_allreduce(size: Any, value: Any, cond: Any, out: Any, *threads: Any, dtype: Any = None) -> None:
    """Combines `value` over the threads along the given thread indices; each of them finds the result in `out`, an
    element of a private array. Threads where `cond` is false add nothing. Stands inside T.attr(reducer,
    "reduce_scope", …)."""
    builder = require("T.tvm_thread_allreduce")
    what = "T.tvm_thread_allreduce"
    if not builder.reducers:
        raise fault(
            f"{what} without a reducer",
            "it stands in `with T.attr(reducer, 'reduce_scope', …)`",
            "open that block around it",
        )
    if not isinstance(out, Load) or out.buffer.space not in ("local", "var"):
        raise fault(f"{what}: the result is no private element", "each thread writes its own", "use T.alloc_local")
    reducer: Reducer = builder.reducers[-1]
    made = scalar(value, what)
    wanted = truth(cond)
    if not (isinstance(wanted, Const) and wanted.value):
        made = select(wanted, made, cast(reducer.identity, made.dtype))
    for stride, extent in _axes(what, threads):
        if extent > 1:
            made = Call(f"thread_reduce_{reducer.kind}", (made, const(stride), const(extent)), dtype=made.dtype)
    builder.emit(Store(out.buffer, out.indices, cast(made, out.buffer.dtype), loc=builder.here))


def _axes(what: str, threads: Sequence[Any]) -> list[tuple[int, int]]:
    """(distance of neighbours in threads, count) of each thread index that is named."""
    found, steps, step = get_thread_bindings(), [], 1
    for extent in (*get_thread_extents(), 1, 1)[:3]:
        steps.append((step, extent))
        step *= extent
    axes = []
    for t in threads:
        place = next((n for n, v in enumerate(found) if v is t), None)
        if place is None:
            raise fault(
                f"{what} over another value than a thread index",
                "it takes T.get_thread_binding(d)",
                "pass the thread index itself",
            )
        axes.append(steps[place])
    return axes


def dp4a(A: Any, B: Any, C: Any) -> None:
    """C += Σ A[i]·B[i] over four neighbouring int8 elements that begin at the elements `A` and `B` (a tensor's or
    slice's first); C is an int32 element. ShapeError for other types, or where fewer than four are left."""
    builder = require("T.dp4a")
    a, b, c = (_first("T.dp4a", word, v) for word, v in (("A", A), ("B", B), ("C", C)))
    for first, dtype in ((a, "int8"), (b, "int8"), (c, "int32")):
        if first.buffer.dtype.name != dtype:
            raise ShapeError(
                f"T.dp4a requires {dtype} here, `{first.buffer.name}` holds {first.buffer.dtype}",
                rule="A and B hold int8, C int32",
                fix="use `+=` with the products",
            )
        at, extent = first.indices[-1], first.buffer.shape[-1]
        if dtype == "int8" and isinstance(at, Const) and isinstance(extent, int) and at.value + 4 > extent:
            raise ShapeError(
                f"T.dp4a: four elements of `{first.buffer.name}` from {at.value} on, of {extent}",
                rule="the four elements lie in one row",
                fix="use `+=` with the products",
            )
    total: Expr = Load(c.buffer, c.indices, loc=builder.here)
    for n in range(4):
        total = total + _lane(a, n, c.buffer.dtype) * _lane(b, n, c.buffer.dtype)
    builder.emit(Store(c.buffer, c.indices, total, loc=builder.here))


def _first(what: str, word: str, value: Any) -> Load:
    if isinstance(value, Buffer) and value.space != "var":
        return Load(value, (const(0),) * value.rank, loc=value.loc)
    if isinstance(value, Region):
        return Load(value.buffer, value.starts, loc=value.loc)
    if not isinstance(value, Load):
        raise fault(f"{what}: {word} is no element", "operands begin at an element", "write `A[i]`")
    return value


def _lane(first: Any, n: int, to: DType) -> Expr:
    place = (*first.indices[:-1], binary("add", first.indices[-1], n))
    return cast(Load(first.buffer, place, loc=first.loc), to)
