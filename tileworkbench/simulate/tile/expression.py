"""Expressions compiled once to closures `state -> value`.

A value is a Python int or bool (the same everywhere), an Affine, a NumPy scalar, or an array over the machine's axes
with extent 1 where it does not vary. Floats are in the container of their dtype, rounded at every node.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import Loc, SimulationError
from ...ir.dtype import BOOL, DType
from ...ir.expr import Binary, Bitcast, Call, Cast, Compare, Const, Expr, Load, Select, Special, Unary, Var
from ...ir.node import walk
from . import mathfn
from .access import load
from .affine import Affine, scale
from .arithmetic import DIVISIONS, as_array, comparison, dense, float_operator, integer_operator
from .rounding import container, convert, rounder, wrapper
from .state import State, both, negate

if TYPE_CHECKING:
    from .program import Program

Closure = Callable[[State], Any]


def compile_expression(e: Expr, depth: int, program: Program) -> Closure:
    """The closure of `e` inside `depth` open T.Parallel axes."""
    build = _BUILD.get(type(e))
    if build is None:
        raise SimulationError(
            f"{type(e).__name__} has no meaning at tile level", rule="the CPU target runs tile-level values", loc=e.loc
        )
    made: Closure = build(e, depth, program)
    return made


def lift(value: Any, axes: int) -> Any:
    """A value from outside `axes` T.Parallel axes, seen inside."""
    if axes == 0 or type(value) is int or type(value) is bool:
        return value
    if type(value) is Affine:
        return value.lift(axes)
    return value.reshape(value.shape + (1,) * axes) if isinstance(value, np.ndarray) and value.ndim else value


def guarded(e: Expr) -> bool:
    """Whether evaluating `e` where it is not chosen could be taken for a mistake (loads and divisions)."""
    return any(
        isinstance(n, Load) or (isinstance(n, Binary) and (n.op in DIVISIONS or n.op in ("land", "lor")))
        for n in walk(e)
    )


def under(st: State, cond: Any, closure: Closure) -> Any:
    """`closure` evaluated for the points where `cond` holds."""
    saved = st.mask
    st.mask = both(saved, cond)
    try:
        return closure(st)
    finally:
        st.mask = saved


def _const(e: Const, depth: int, program: Program) -> Closure:
    if e.dtype is BOOL:
        value: Any = bool(e.value)
    else:
        value = int(e.value) if e.dtype.is_int else container(e.dtype).type(e.value)
    return lambda st: value


def _var(e: Var, depth: int, program: Program) -> Closure:
    axes = depth - program.depths.get(e, 0)
    if axes <= 0:

        def plain(st: State) -> Any:
            try:
                return st.vars[e]
            except KeyError:
                raise unbound(e) from None

        return plain
    return lambda st: lift(st.vars[e], axes)


def unbound(e: Var) -> SimulationError:
    """The error for a variable without a value."""
    return SimulationError(
        f"`{e.name}` has no value here",
        rule="a name is used after the statement that defines it",
        fix="define it before, or pass it as an argument",
        loc=e.loc,
    )


def _special(e: Special, depth: int, program: Program) -> Closure:
    if e.name == "thread":
        return lambda st: lift(st.env.thread_index(), depth)
    if e.name == "lane":
        return lambda st: lift((st.env.thread_index().dense() % 32).astype(np.int32), depth)
    if e.name == "warp":
        return lambda st: lift((st.env.thread_index().dense() // 32).astype(np.int32), depth)
    raise SimulationError(f"{e.name} has no meaning at tile level", rule="", loc=e.loc)


def _load(e: Load, depth: int, program: Program) -> Closure:
    indices = [program.expression(i, depth) for i in e.indices]
    buffer, loc = e.buffer, e.loc

    def apply(st: State) -> Any:
        return load(st, st.slot(buffer), [i(st) for i in indices], loc)

    return apply


def _unary(e: Unary, depth: int, program: Program) -> Closure:
    a = program.expression(e.a, depth)
    if e.op == "lnot":
        return lambda st: negate(a(st))
    if e.dtype.is_float:
        fn: Any = {"neg": np.negative, "abs": np.abs}[e.op]
        return lambda st: fn(a(st))
    wrap = wrapper(e.dtype)
    plain: Any = {"neg": lambda v: -v, "abs": abs, "not": lambda v: ~v}[e.op]
    array: Any = {"neg": np.negative, "abs": np.abs, "not": np.invert}[e.op]
    dtype = e.dtype

    def apply(st: State) -> Any:
        x = a(st)
        if type(x) is int:
            return wrap(plain(x))
        if type(x) is Affine and e.op == "neg":
            return scale(x, -1)
        return array(dense(x, dtype))

    return apply


def _binary(e: Binary, depth: int, program: Program) -> Closure:
    a, b = program.expression(e.a, depth), program.expression(e.b, depth)
    if e.op in ("land", "lor"):
        return _logical(e, a, b)
    if e.dtype.is_float:
        fn = float_operator(e.op, e.dtype)
        return lambda st: fn(a(st), b(st))
    fn = integer_operator(e.op, e.dtype)
    if e.op not in DIVISIONS:
        return lambda st: fn(a(st), b(st))
    loc = e.loc

    def divide(st: State) -> Any:
        x, y = a(st), b(st)
        if type(y) is not int or y == 0:
            y = _divisor(st, y, e.dtype, loc)
        return fn(x, y)

    return divide


def _divisor(st: State, y: Any, dtype: DType, loc: Loc | None) -> Any:
    """The divisor with zeros of inactive points made 1; an active zero is the user's mistake."""
    zero = np.equal(dense(y, dtype), 0)
    if not np.any(zero):
        return y
    if np.any(np.logical_and(zero, st.mask)):
        raise SimulationError(
            "integer division by zero", rule="the divisor is not 0", fix="guard the division with `if`", loc=loc
        )
    return np.where(zero, dtype.numpy.type(1), dense(y, dtype))


def _logical(e: Binary, a: Closure, b: Closure) -> Closure:
    conjunction = e.op == "land"
    lazy = guarded(e.b)

    def apply(st: State) -> Any:
        x = a(st)
        if not isinstance(x, np.ndarray):
            return b(st) if bool(x) == conjunction else x
        y = under(st, x if conjunction else ~x, b) if lazy else b(st)
        if not isinstance(y, np.ndarray):
            return x if bool(y) == conjunction else y
        return np.logical_and(x, y) if conjunction else np.logical_or(x, y)

    return apply


def _compare(e: Compare, depth: int, program: Program) -> Closure:
    a, b = program.expression(e.a, depth), program.expression(e.b, depth)
    fn = comparison(e.op, e.a.dtype)
    return lambda st: fn(a(st), b(st))


def _select(e: Select, depth: int, program: Program) -> Closure:
    cond = program.expression(e.cond, depth)
    a, b = program.expression(e.a, depth), program.expression(e.b, depth)
    lazy_a, lazy_b, dtype = guarded(e.a), guarded(e.b), e.dtype

    def apply(st: State) -> Any:
        c = cond(st)
        if not isinstance(c, np.ndarray):
            return a(st) if c else b(st)
        x = under(st, c, a) if lazy_a else a(st)
        y = under(st, ~c, b) if lazy_b else b(st)
        return np.where(c, as_array(x, dtype), as_array(y, dtype))

    return apply


def _cast(e: Cast, depth: int, program: Program) -> Closure:
    a, source, to, saturate = program.expression(e.a, depth), e.a.dtype, e.dtype, e.saturate
    if source.is_int and to.is_int:
        wrap = wrapper(to)
        low, high = int(to.min_value()), int(to.max_value())

        def integer(st: State) -> Any:
            x = a(st)
            if type(x) is int:
                return wrap(x)
            if type(x) is Affine and low <= x.low and x.high <= high:
                return x
            return dense(x, source).astype(to.numpy)

        return integer
    if source is BOOL and to.is_int:
        return lambda st: x.astype(to.numpy) if isinstance(x := a(st), np.ndarray) else int(x)

    def apply(st: State) -> Any:
        out = convert(dense(a(st), source), source, to, saturate)
        if isinstance(out, np.ndarray):
            return out
        return int(out) if to.is_int else (bool(out) if to is BOOL else out)

    return apply


def _bitcast(e: Bitcast, depth: int, program: Program) -> Closure:
    a, source, to = program.expression(e.a, depth), e.a.dtype, e.dtype

    def apply(st: State) -> Any:
        native = np.ascontiguousarray(np.asarray(as_array(a(st), source)).astype(source.numpy))
        out = native.view(to.numpy).astype(container(to))
        return out if out.ndim else (int(out) if to.is_int else out[()])

    return apply


def _call(e: Call, depth: int, program: Program) -> Closure:
    special = program.intrinsic(e, depth)
    if special is not None:
        return special
    args = [program.expression(a, depth) for a in e.args]
    dtypes = [a.dtype for a in e.args]
    if e.fn in mathfn.TESTS:
        test = mathfn.TESTS[e.fn]
        return lambda st: test(as_array(args[0](st), dtypes[0]))
    if e.fn in mathfn.BITS:
        count = mathfn.bits_function(e.fn, dtypes[0].bits)
        return lambda st: count(dense(args[0](st), dtypes[0]))
    directed = mathfn.nextafter if e.fn == "nextafter" else mathfn.ieee(e.fn)
    if directed is not None:
        return lambda st: directed(*(as_array(a(st), d) for a, d in zip(args, dtypes, strict=True)))
    fn = mathfn.FLOAT.get(e.fn)
    if fn is None:
        raise SimulationError(
            f"T.{e.fn} has no meaning on the CPU target",
            rule="math functions and intrinsics of the tile machine are listed in simulate/tile/mathfn.py",
            fix="run the kernel on a GPU, or write the function with others",
            loc=e.loc,
        )
    to, rounding = container(e.dtype), rounder(e.dtype)

    def apply(st: State) -> Any:
        values = [np.asarray(as_array(a(st), d), np.float64) for a, d in zip(args, dtypes, strict=True)]
        out = np.asarray(fn(*values)).astype(to)
        out = out if rounding is None else np.asarray(rounding(out))
        return out if out.ndim else out[()]

    return apply


_BUILD: dict[type, Callable[..., Closure]] = {
    Const: _const,
    Var: _var,
    Special: _special,
    Load: _load,
    Unary: _unary,
    Binary: _binary,
    Compare: _compare,
    Select: _select,
    Cast: _cast,
    Bitcast: _bitcast,
    Call: _call,
}
