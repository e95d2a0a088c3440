"""Integer expressions evaluated on NumPy arrays, for the proofs by table that layouts need."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ..errors import InternalError
from .expr import Binary, Cast, Compare, Const, Expr, Select, Special, Unary, Var

_BINARY: dict[str, Callable[[Any, Any], Any]] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "floordiv": np.floor_divide,
    "floormod": np.mod,
    "truncdiv": lambda a, b: np.trunc(np.true_divide(a, b)).astype(np.int64),
    "truncmod": np.fmod,
    "min": np.minimum,
    "max": np.maximum,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
    "shl": np.left_shift,
    "shr": np.right_shift,
    "land": np.logical_and,
    "lor": np.logical_or,
}
_COMPARE: dict[str, Callable[[Any, Any], Any]] = {
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
}


def evaluate(e: Any, env: Mapping[Any, Any]) -> Any:
    """The value of an integer or truth expression; `env` maps Vars (and names of Specials) to ints or arrays.
    KeyError when a variable is missing, InternalError for an expression that is no index arithmetic."""
    if isinstance(e, (int, bool)):
        return e
    if isinstance(e, Const):
        return e.value
    if isinstance(e, Var):
        return env[e]
    if isinstance(e, Special):
        return env[e.name]
    if isinstance(e, Binary):
        return _BINARY[e.op](evaluate(e.a, env), evaluate(e.b, env))
    if isinstance(e, Compare):
        return _COMPARE[e.op](evaluate(e.a, env), evaluate(e.b, env))
    if isinstance(e, Select):
        return np.where(evaluate(e.cond, env), evaluate(e.a, env), evaluate(e.b, env))
    if isinstance(e, Unary):
        a = evaluate(e.a, env)
        return {"neg": np.negative, "abs": np.abs, "not": np.invert, "lnot": np.logical_not}[e.op](a)
    if isinstance(e, Cast):
        return evaluate(e.a, env)
    raise InternalError(f"{type(e).__name__} is not index arithmetic")


def is_index_arithmetic(e: Expr) -> bool:
    """True when `evaluate` can give its value."""
    if isinstance(e, (Const, Var, Special)):
        return True
    if isinstance(e, (Binary, Compare)):
        return is_index_arithmetic(e.a) and is_index_arithmetic(e.b)
    if isinstance(e, Select):
        return all(is_index_arithmetic(x) for x in (e.cond, e.a, e.b))
    return isinstance(e, (Unary, Cast)) and is_index_arithmetic(e.a)
