"""Numbers the host computes at launch: evaluated by composed closures, printed as a user reads them, and solved."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping

from ..codegen.source import Host
from ..errors import InternalError

Values = Mapping[str, int]
Compiled = Callable[[Values], int]

_BINARY: dict[str, tuple[Callable[[int, int], int], str]] = {
    "add": (operator.add, "+"),
    "sub": (operator.sub, "-"),
    "mul": (operator.mul, "*"),
    "floordiv": (operator.floordiv, "//"),
    "mod": (operator.mod, "%"),
    "ceildiv": (lambda a, b: -(-a // b), "ceildiv"),
    "min": (min, "min"),
    "max": (max, "max"),
    "eq": (lambda a, b: int(a == b), "=="),
    "ne": (lambda a, b: int(a != b), "!="),
    "lt": (lambda a, b: int(a < b), "<"),
    "le": (lambda a, b: int(a <= b), "<="),
    "gt": (lambda a, b: int(a > b), ">"),
    "ge": (lambda a, b: int(a >= b), ">="),
}
_MANY = {"add", "mul", "min", "max"}
_CALLED = {"ceildiv", "min", "max"}


def compiled(expr: Host) -> Compiled:
    """A function from symbol values to the number; a missing symbol raises KeyError, a division by 0 its own error."""
    if isinstance(expr, int):
        return lambda values: expr
    if isinstance(expr, str):
        return operator.itemgetter(expr)
    function, operands = _BINARY[_operator(expr)][0], [compiled(e) for e in expr[1:]]
    if len(operands) == 2:
        left, right = operands
        return lambda values: function(left(values), right(values))
    return lambda values: _fold(function, [e(values) for e in operands])


def evaluate(expr: Host, values: Values) -> int:
    return compiled(expr)(values)


def symbols(expr: Host) -> Iterator[str]:
    """Every symbol of `expr`, as often as it stands there."""
    if isinstance(expr, str):
        yield expr
    elif isinstance(expr, tuple):
        for operand in expr[1:]:
            yield from symbols(operand)


def text(expr: Host) -> str:
    """`expr` as Python would write it."""
    return _text(expr, top=True)


def solve(expr: Host, value: int, unknown: str, values: Values) -> int | None:
    """The number `unknown` must be for `expr` to equal `value`; None when there is none, or more than one. The unknown
    may stand once, under add, sub and mul."""
    while expr != unknown:
        if not isinstance(expr, tuple) or expr[0] not in ("add", "sub", "mul"):
            return None
        holders = [i for i, e in enumerate(expr[1:]) if unknown in symbols(e)]
        if len(holders) != 1:
            return None
        others = [evaluate(e, values) for i, e in enumerate(expr[1:]) if i != holders[0]]
        undone = _undo(expr[0], value, others, holders[0])
        if undone is None:
            return None
        expr, value = expr[1 + holders[0]], undone
    return value


def _undo(name: str, value: int, others: list[int], place: int) -> int | None:
    if name == "add":
        return value - sum(others)
    if name == "sub":
        return value + others[0] if place == 0 else others[0] - value
    factor = _fold(operator.mul, others)
    return value // factor if factor and value % factor == 0 else None


def _operator(expr: Host) -> str:
    name = expr[0] if isinstance(expr, tuple) and expr else None
    if name not in _BINARY or (len(expr) != 3 and not (name in _MANY and len(expr) > 1)):  # type: ignore[arg-type]
        raise InternalError(f"{expr!r} is no host expression", rule=f"operators are {', '.join(_BINARY)}")
    return str(name)


def _fold(function: Callable[[int, int], int], numbers: list[int]) -> int:
    result = numbers[0]
    for number in numbers[1:]:
        result = function(result, number)
    return result


def _text(expr: Host, top: bool) -> str:
    if not isinstance(expr, tuple):
        return str(expr)
    name = _operator(expr)
    if name in _CALLED:
        return f"{name}({', '.join(_text(e, True) for e in expr[1:])})"
    joined = f" {_BINARY[name][1]} ".join(_text(e, False) for e in expr[1:])
    return joined if top else f"({joined})"
