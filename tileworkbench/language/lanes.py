"""Vectors while compiling: T.Ramp and T.Broadcast, elements at a ramp of indices, and T.add2 … on them. Each lane is an
expression of its own; accesses side by side become wide ones later, as in any loop that is written out."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from ..errors import Loc, ShapeError
from ..ir.dtype import DTYPES, DType
from ..ir.expr import Binary, Buffer, Const, Expr, Load, Var, as_expr, binary, cast, compare, select, unary
from ..ir.fold import SYMBOLS
from .arithmetic import abs as scalar_abs
from .arithmetic import max as scalar_max
from .arithmetic import min as scalar_min
from .builder import current
from .dtypes import VectorDtype, as_dtype
from .faults import fault, shown
from .mathfns import ieee_fmaf, named, scalar
from .regions import index_buffer

_MOST = 128  # lanes


class Ramp:
    """The indices base, base + stride, …: as an index it names as many elements."""

    def __init__(self, base: Any, stride: Any, lanes: Any) -> None:
        self.base, self.stride, self.lanes = as_expr(base), as_expr(stride), _count("T.Ramp", lanes)

    def __len__(self) -> int:
        return self.lanes

    def lane(self, n: int) -> Expr:
        return binary("add", self.base, binary("mul", self.stride, n))


class Lanes(Sequence[Expr]):
    """A vector: one expression a lane. Operators work lane by lane; a scalar stands for as many of itself."""

    def __init__(self, lanes: Sequence[Any]) -> None:
        self.lanes = tuple(as_expr(x) for x in lanes)

    @property
    def dtype(self) -> DType:
        return self.lanes[0].dtype

    def __len__(self) -> int:
        return len(self.lanes)

    def __getitem__(self, n: Any) -> Any:
        return self.lanes[n]

    def __iter__(self) -> Iterator[Expr]:
        return iter(self.lanes)

    def __neg__(self) -> Lanes:
        return self.mapped(lambda lane: unary("neg", lane))

    def mapped(self, change: Callable[[Expr], Expr]) -> Lanes:
        """The vector of what `change` makes of each lane."""
        return Lanes([change(lane) for lane in self.lanes])


class VectorVariable(Lanes):
    """What T.alloc_var of a vector type makes: the elements of a private array of as many as it has lanes."""

    def __init__(self, buffer: Buffer) -> None:
        self.buffer = buffer
        super().__init__([Load(buffer, (as_expr(n),)) for n in range(buffer.shape[0])])

    def value(self) -> Lanes:
        """What it holds, as a vector."""
        return Lanes(self.lanes)


def lanewise(op: str, a: Any, b: Any) -> Lanes:
    """An operator lane by lane, where one side at least is a vector."""
    count = len(a) if isinstance(a, Lanes) else len(b)
    what = f"`{SYMBOLS.get(op, op)}`"
    pairs = zip(alike(a, count, what), alike(b, count, what), strict=True)
    return Lanes([binary(op, x, y) for x, y in pairs])


def _operator(op: str, swapped: bool = False) -> Callable[[Lanes, Any], Lanes]:
    def made(self: Lanes, other: Any) -> Lanes:
        return lanewise(op, other, self) if swapped else lanewise(op, self, other)

    return made


_NAMES = {"add": "add", "sub": "sub", "mul": "mul", "truediv": "div", "floordiv": "floordiv", "mod": "floormod",
          "and": "and", "or": "or", "xor": "xor", "lshift": "shl", "rshift": "shr"}  # fmt: skip
for _name, _op in _NAMES.items():
    setattr(Lanes, f"__{_name}__", _operator(_op))
    setattr(Lanes, f"__r{_name}__", _operator(_op, swapped=True))


def alike(value: Any, lanes: int, what: str) -> Lanes:
    """A vector of as many lanes: the value itself, or copies of a scalar."""
    made = value if isinstance(value, Lanes) else Lanes([value] * lanes)
    if len(made) != lanes:
        raise ShapeError(
            f"{what}: {len(made)} lanes and {lanes}",
            rule="vectors have equally many lanes",
            fix="give both the same number",
        )
    return made


def vector_of(of: VectorDtype, values: Sequence[Any]) -> Lanes:
    """A vector of a type from its lanes, from one number for all of them, or from a vector of another type."""
    element = as_dtype(of.element)
    lanes = [x for v in values for x in (v if isinstance(v, Lanes) and len(values) == 1 else (scalar(v, f"T.{of}"),))]
    if len(lanes) not in (1, of.lanes):
        raise ShapeError(
            f"T.{of} of {len(lanes)} values",
            rule=f"it has {of.lanes} lanes",
            fix=f"give {of.lanes} numbers, or one for all of them",
        )
    return Lanes([cast(x, element) for x in (lanes if len(lanes) == of.lanes else lanes * of.lanes)])


VectorDtype.made = staticmethod(vector_of)


def _count(what: str, lanes: Any) -> int:
    given = lanes.value if isinstance(lanes, Const) else lanes
    if not isinstance(given, int) or isinstance(given, bool) or not 1 <= given <= _MOST:
        raise fault(
            f"{what} of {shown(lanes)} lanes",
            f"a vector has 1 to {_MOST} lanes, known while compiling",
            "T.Ramp(i, 1, 4)",
        )
    return given


def Broadcast(value: Any, lanes: Any) -> Lanes:
    """A vector of `lanes` copies of a scalar."""
    return Lanes([scalar(value, "T.Broadcast")] * _count("T.Broadcast", lanes))


def extract_lane(vector: Any, lane: Any) -> Expr:
    """One lane of a vector, by a number known while compiling."""
    if not isinstance(vector, Lanes):
        raise fault(
            "T.extract_lane of what is no vector",
            "it takes elements at a T.Ramp, a T.Broadcast, or a variable of a vector type",
            "T.extract_lane(A[T.Ramp(i, 1, 2)], 0)",
        )
    place = lane.value if isinstance(lane, Const) else lane
    if not isinstance(place, int) or not 0 <= place < len(vector):
        raise fault(
            f"T.extract_lane: lane {shown(lane)} of {len(vector)}",
            f"lanes are 0 … {len(vector) - 1}",
            "count lanes from 0",
        )
    return vector.lanes[place]


# -- elements at a ramp ------------------------------------------------------------------------------------------------


def has_ramp(index: Any) -> bool:
    """Whether an index names several elements by a ramp."""
    return any(isinstance(e, Ramp) for e in (index if isinstance(index, tuple) else (index,)))


def elements_at(buffer: Buffer, index: Any, loc: Loc) -> Lanes:
    """The elements at a ramp of indices. Negative indices count from the end, lane by lane."""
    entries = index if isinstance(index, tuple) else (index,)
    counts = {len(e) for e in entries if isinstance(e, Ramp)}
    if len(counts) > 1:
        raise ShapeError(
            f"ramps of {sorted(counts)} lanes",
            rule="ramps of one index have equally many lanes",
            fix="give all the same number",
        )
    lanes = []
    for n in range(counts.pop()):
        places = [_from_end(e.lane(n), buffer, d) if isinstance(e, Ramp) else e for d, e in enumerate(entries)]
        lanes.append(index_buffer(buffer, tuple(places), loc))
    return Lanes(lanes)


def _from_end(index: Expr, buffer: Buffer, dim: int) -> Expr:
    if isinstance(index, Const) or dim >= buffer.rank or not_negative(index):
        return index
    return select(compare("lt", index, 0), binary("add", index, buffer.shape[dim]), index)


def not_negative(e: Expr) -> bool:
    """Whether an index is plainly at least 0: made of block and thread indices and constants by +, *, // and %."""
    builder = current()
    launch = builder.launch if builder is not None else None
    if isinstance(e, Const):
        return bool(e.value >= 0)
    if isinstance(e, Var) and builder is not None and e in builder.lets:
        return not_negative(builder.lets[e])
    if isinstance(e, Var):
        known = (*launch.block_vars, *launch.thread_vars) if launch is not None else ()
        return any(e is v for v in known)
    plain = isinstance(e, Binary) and e.op in ("add", "mul", "floordiv", "floormod")
    return plain and not_negative(e.a) and not_negative(e.b)  # type: ignore[attr-defined]


# -- arithmetic of two lanes -------------------------------------------------------------------------------------------


def _packed(name: str, names: str, apply: Callable[..., Expr]) -> Callable[..., Lanes]:
    signature = named(names)

    def made(*args: Any, **given: Any) -> Lanes:
        what, operands = f"T.{name}", signature.bind(*args, **given).args
        if not all(isinstance(x, Lanes) and len(x) == 2 for x in operands):
            raise fault(
                f"{what} takes {len(names)} vectors of two lanes",
                "elements at T.Ramp(i, 1, 2) are one",
                "A[T.Ramp(i, 1, 2)]",
            )
        kinds = {x.dtype.name for x in operands}
        if len(kinds) > 1 or not operands[0].dtype.is_float:
            raise ShapeError(
                f"{what} of {', '.join(sorted(kinds))}", rule="operands are floats of one type", fix="cast them first"
            )
        return Lanes([apply(*row) for row in zip(*operands, strict=True)])

    made.__name__ = made.__qualname__ = name
    made.__doc__ = f"{name[:-1]} of the lanes of {len(names)} vectors of two."
    made.__signature__ = signature  # type: ignore[attr-defined]
    return made


def _fused(a: Expr, b: Expr, c: Expr) -> Expr:
    """One rounding, where the type has it; narrow types are exact in float32."""
    if a.dtype.bits >= 32:
        return as_expr(ieee_fmaf(a, b, c))
    x, y, z = (cast(e, DTYPES["float32"]) for e in (a, b, c))
    return cast(binary("add", binary("mul", x, y), z), a.dtype)


add2 = _packed("add2", "xy", lambda a, b: binary("add", a, b))
sub2 = _packed("sub2", "xy", lambda a, b: binary("sub", a, b))
mul2 = _packed("mul2", "xy", lambda a, b: binary("mul", a, b))
max2, min2 = _packed("max2", "xy", scalar_max), _packed("min2", "xy", scalar_min)
fma2 = _packed("fma2", "xyz", _fused)
abs2 = _packed("abs2", "x", scalar_abs)
