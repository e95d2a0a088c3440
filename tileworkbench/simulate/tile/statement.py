"""Element statements compiled to closures: stores, lets, evaluations, assertions, prints."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import SimulationError
from ...ir.expr import Binary, Buffer, Call, Cast, Compare, Const, Expr, Select, Unary
from ...ir.stmt import Alloc, Assert, Eval, Let, Print, Region, Store, whole
from . import mathfn
from .affine import Affine
from .arithmetic import as_array, dense
from .rounding import changes, convert, native
from .state import State
from .storage import Slot, tile_slot
from .taint import refuse
from .write import replace, store

if TYPE_CHECKING:
    from .program import Program

Run = Callable[[State], None]


def fresh(e: Expr) -> bool:
    """Whether evaluating `e` makes a new array that nothing else refers to."""
    if isinstance(e, Binary):
        return e.op not in ("land", "lor")
    if isinstance(e, Select):
        return all(isinstance(x, Const) or fresh(x) for x in (e.a, e.b))
    if isinstance(e, Cast):
        return fresh(e.a) or changes(e.a.dtype, e.dtype)
    if isinstance(e, Call):
        return e.fn in mathfn.FLOAT
    return isinstance(e, (Unary, Compare)) and getattr(e, "op", "") != "lnot"


def compile_store(s: Store, depth: int, program: Program) -> Run:
    """`buffer[indices] = value`, with the checks of what reaches what."""
    value = program.expression(s.value, depth)
    indices = [program.expression(i, depth) for i in s.indices]
    tainted = program.taint(s.value, depth)
    addresses = [(program.taint(i, depth), i) for i in s.indices if not isinstance(i, Const)]
    buffer, source, loc, keep = s.buffer, s.value.dtype, s.loc, fresh(s.value)
    to = buffer.dtype

    def run(st: State) -> None:
        at = [i(st) for i in indices]
        for check, index in addresses:
            refuse(st, check, index, "an address", loc)
        v = dense(value(st), source)
        slot = st.slot(buffer, write=True)
        if slot.lead == 0:
            refuse(st, tainted, s.value, f"a store to global memory, `{buffer.name}`", loc)
            store(st, slot, at, native(v, source, to) if slot.narrow else convert(v, source, to), loc)
            return
        new = keep
        if source is not to:
            new = keep or changes(source, to)
            v = convert(v, source, to, saturate=True)
        mark = tainted(st)
        if _whole(st, slot, at, v, mark):
            replace(st, slot, v, new, mark)
        else:
            store(st, slot, at, v, loc, mark)

    return run


def _whole(st: State, slot: Slot, at: list[Any], value: Any, mark: Any) -> bool:
    """Whether the store writes element (i, j, …) of the whole tile in iteration (i, j, …) of every block."""
    if st.mask is not True or slot.private or slot.view or st.sizes[st.base :] != slot.shape or not slot.shape:
        return False
    for array in (value, mark):
        if isinstance(array, np.ndarray) and array.ndim and array.shape[st.base - 1] != 1:
            return False
    for d, index in enumerate(at):
        if slot.shape[d] == 1:
            if index != 0:
                return False
        elif (
            not (type(index) is Affine and index.base == 0 and index.sizes[st.base + d] == slot.shape[d])
            or index.steps[st.base + d] != 1
            or sum(map(abs, index.steps)) != 1
        ):
            return False
    return True


def compile_let(s: Let, depth: int, program: Program) -> Run:
    """An immutable variable."""
    value, tainted, var, source = (
        program.expression(s.value, depth),
        program.taint(s.value, depth),
        s.var,
        s.value.dtype,
    )
    program.depths[var] = depth
    keep = fresh(s.value)

    def run(st: State) -> None:
        v = value(st)
        if source is not var.dtype:
            v = convert(dense(v, source), source, var.dtype)
            v = v if isinstance(v, np.ndarray) or var.dtype.is_float else v.item()
        if isinstance(v, np.ndarray) and v.ndim and not keep:
            v = v.copy()
        st.vars[var] = v
        mark = tainted(st)
        if mark is not None:
            st.taints[var] = mark
        elif st.taints:
            st.taints.pop(var, None)

    return run


def compile_alloc(s: Alloc, depth: int, program: Program) -> Run:
    """A new, empty buffer."""
    buffer = s.buffer

    def run(st: State) -> None:
        # Where the declaration stands in a loop, every trip gets a new, empty buffer.
        if not st.ring.owns(buffer) and buffer not in st.views:
            st.tiles[buffer] = tile_slot(buffer, st.shape(buffer), st.base)

    return run


def compile_eval(s: Eval, depth: int, program: Program) -> Run:
    """An expression for its effect."""
    effect = program.effect(s.value, depth)
    if effect is not None:
        return effect
    value = program.expression(s.value, depth)

    def run(st: State) -> None:
        value(st)

    return run


def compile_assert(s: Assert, depth: int, program: Program) -> Run:
    """A condition that must hold for every active point."""
    cond, tainted = program.expression(s.cond, depth), program.taint(s.cond, depth)

    def run(st: State) -> None:
        refuse(st, tainted, s.cond, "an assertion", s.loc)
        holds = cond(st)
        if np.any(np.logical_and(np.logical_not(holds), st.mask)):
            raise SimulationError(
                f"the assertion does not hold{': ' + s.message if s.message else ''}",
                rule="T.device_assert states what is true for every active thread",
                fix="check the values it compares",
                loc=s.loc,
            )

    return run


_MOST_LINES = 64


def compile_print(s: Print, depth: int, program: Program) -> Run:
    """Prints one line for each active point."""
    parts = [p if isinstance(p, (str, Buffer, Region)) else (program.expression(p, depth), p.dtype) for p in s.parts]
    tiles = any(isinstance(p, (Buffer, Region)) for p in parts)

    def run(st: State) -> None:
        values = [_printed(st, p) for p in parts]
        lead = st.base if tiles else st.rank
        shapes = [v.shape[:lead] for v in values if isinstance(v, np.ndarray) and v.ndim >= lead]
        shape = np.broadcast_shapes(np.shape(st.mask), *shapes)
        places = np.argwhere(st.active(shape)) if shape else [()]
        for place in places[:_MOST_LINES]:
            at = tuple(int(i) for i in place)
            text = " ".join(v if isinstance(v, str) else str(_at(v, at, lead)) for v in values)
            program.printed(f"{st.env.block_name(at)}{text}")
        if len(places) > _MOST_LINES:
            program.printed(f"… and {len(places) - _MOST_LINES} more")

    return run


def _printed(st: State, part: Any) -> Any:
    if isinstance(part, str):
        return part
    if isinstance(part, (Buffer, Region)):
        return st.env.read(part if isinstance(part, Region) else whole(part))
    return np.asarray(as_array(part[0](st), part[1]))


def _at(value: np.ndarray, place: tuple[int, ...], lead: int) -> Any:
    if value.ndim < lead:
        return value
    return value[tuple(i if n > 1 else 0 for i, n in zip(place, value.shape, strict=False))]
