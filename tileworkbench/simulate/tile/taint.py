"""Values nobody wrote: which points of an expression's value depend on one.

The tile machine computes with whatever lies in an unwritten element and reports it only where it matters: in a store
to global memory, an address, a branch, or an operand of a gemm. Tiles written as a whole cost nothing here; the walk
over the expression happens only while one of its buffers has unwritten elements.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import Loc, SimulationError
from ...ir.expr import Binary, Expr, Load, Select, Var
from ...ir.node import children, walk
from .access import load
from .expression import lift
from .state import State, both, negate
from .storage import ALL, Slot

if TYPE_CHECKING:
    from .program import Program

Check = Callable[[State], Any]


def compile_taint(e: Expr, depth: int, program: Program) -> Check:
    """A closure that gives None, or an array that is true where the value of `e` was never written."""
    buffers = tuple({n.buffer: None for n in walk(e) if isinstance(n, Load)})
    variables = tuple({n: None for n in walk(e) if isinstance(n, Var)})

    def check(st: State) -> Any:
        for buffer in buffers:
            if st.slot(buffer).undefined is not None:
                return _marked(_taint(st, e, depth, program))
        if st.taints and any(v in st.taints for v in variables):
            return _marked(_taint(st, e, depth, program))
        return None

    return check


def _marked(mask: Any) -> Any:
    return mask if mask is not None and np.any(mask) else None


def _either(a: Any, b: Any) -> Any:
    if a is None or b is None:
        return b if a is None else a
    return np.logical_or(a, b)


def _taint(st: State, e: Expr, depth: int, program: Program) -> Any:
    if isinstance(e, Load):
        for index in e.indices:
            _refuse(st, _taint(st, index, depth, program), "an address", e.loc, index)
        slot = st.slot(e.buffer)
        if slot.undefined is None:
            return None
        return load(st, slot, [program.expression(i, depth)(st) for i in e.indices], e.loc, undefined_of(slot))
    if isinstance(e, Var):
        mask = st.taints.get(e)
        return None if mask is None else lift(mask, depth - program.depths.get(e, 0))
    if isinstance(e, Select) or (isinstance(e, Binary) and e.op in ("land", "lor")):
        return _chosen(st, e, depth, program)
    out: Any = None
    for child in children(e):
        if isinstance(child, Expr):
            out = _either(out, _taint(st, child, depth, program))
    return out


def _chosen(st: State, e: Any, depth: int, program: Program) -> Any:
    """Of a lazy expression only the evaluated sides count."""
    first = e.cond if isinstance(e, Select) else e.a
    own = _taint(st, first, depth, program)
    cond = program.expression(first, depth)(st)
    cond = cond if isinstance(cond, np.ndarray) else bool(cond)
    sides = (
        [(e.a, cond), (e.b, negate(cond))]
        if isinstance(e, Select)
        else [(e.b, cond if e.op == "land" else negate(cond))]
    )
    for side, where in sides:
        saved = st.mask
        st.mask = both(saved, where)
        mask = None if where is False else _taint(st, side, depth, program)
        st.mask = saved
        own = _either(own, mask if mask is None or where is True else np.logical_and(mask, where))
    return own


def undefined_of(slot: Slot) -> np.ndarray:
    """The slot's `undefined` as an array of the shape of its values."""
    if isinstance(slot.undefined, np.ndarray):
        return slot.undefined
    return np.broadcast_to(np.asarray(slot.undefined is ALL), slot.array.shape)


def refuse(st: State, check: Check, e: Expr, what: str, loc: Loc | None) -> None:
    """Raises when an active point's value of `e` was never written."""
    _refuse(st, check(st), what, loc, e)


def _refuse(st: State, mask: Any, what: str, loc: Loc | None, e: Expr) -> None:
    if mask is None or not np.any(np.logical_and(mask, st.mask)):
        return
    names = [n.buffer.name for n in walk(e) if isinstance(n, Load) and st.slot(n.buffer).undefined is not None]
    names += [n.name for n in walk(e) if isinstance(n, Var) and n in st.taints]
    raise never_written(names[0] if names else "a value", what, loc or e.loc)


def never_written(name: str, what: str, loc: Loc | None) -> SimulationError:
    """The error for an element of `name` that nothing wrote."""
    return SimulationError(
        f"an element of `{name}` that was never written reaches {what}",
        rule="shared, fragment and local buffers hold nothing until they are written",
        fix=f"fill `{name}` first (T.clear, T.fill, T.copy), or do not read that part of it",
        loc=loc,
    )
