"""Arguments to parameters: tensors into slots, symbols from the shapes, scalars."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...errors import LaunchError
from ...ir.dtype import BOOL
from ...ir.expr import Binary, Buffer, Const, Expr, Var
from ...ir.kernel import Kernel
from ...ir.linear import linear
from ...ir.node import walk
from .rounding import is_narrow, widen
from .storage import Slot

# Inputs of narrow floats are kept as float32 when a call then stays below three times its tensors and this many bytes;
# else they are widened at every access.
_WIDEN_ROOM = 128 * 2**20


@dataclass(slots=True)
class Bound:
    """Slots of the tensors, values of scalars and symbols, and the arrays that go back to the caller."""

    slots: dict[Buffer, Slot]
    values: dict[Var, Any]
    arrays: list[Any]  # by parameter
    returned: list[tuple[np.ndarray, np.ndarray]]  # (the caller's array, the contiguous one that was written)


def bind(kernel: Kernel, args: Sequence[Any], written: set[Buffer], solve: Any) -> Bound:
    """The kernel's parameters with `args` in parameter order; `outputs` may be left out and are allocated.

    `solve(expr, values)` evaluates an expression of symbols."""
    given = _positions(kernel, args)
    bound = Bound({}, {}, [None] * len(kernel.params), [])
    for at, param in enumerate(kernel.params):
        if isinstance(param, Var):
            bound.values[param] = _scalar(kernel, param, given[at])
    for at, param in enumerate(kernel.params):
        if isinstance(param, Buffer) and given[at] is not None:
            _symbols(param, given[at], bound.values)
    _sums(kernel, given, bound.values)
    for at, param in enumerate(kernel.params):
        if isinstance(param, Buffer) and given[at] is None and _is_untouched(kernel, at):
            given[at] = _absent(param, bound.values, solve)
    for at, param in enumerate(kernel.params):
        if isinstance(param, Buffer):
            _tensor(kernel, at, param, given[at], bound, param in written, solve)
    _widen(bound, written)
    return bound


def _positions(kernel: Kernel, args: Sequence[Any]) -> list[Any]:
    count, outputs = len(kernel.params), {o % len(kernel.params) for o in kernel.outputs}
    if len(args) == count:
        return list(args)
    if len(args) == count - len(outputs):
        rest = iter(args)
        return [None if at in outputs else next(rest) for at in range(count)]
    defaults = sum(1 for p in kernel.params if isinstance(p, Var) and p in kernel.defaults)
    if count - defaults <= len(args) < count:
        return [*args, *[None] * (count - len(args))]
    names = ", ".join(p.name for p in kernel.params)
    raise LaunchError(
        f"{kernel.name} was called with {len(args)} arguments",
        rule=f"it takes {count}: {names}" + (f" (or without its {len(outputs)} outputs)" if outputs else ""),
        fix="pass one argument a parameter, in order",
        loc=kernel.loc,
    )


def _is_untouched(kernel: Kernel, at: int) -> bool:
    """Whether None may be given for a tensor: it is no output, and no statement names it."""
    return at not in {o % len(kernel.params) for o in kernel.outputs} and not any(
        n is kernel.params[at] for n in walk(kernel.body)
    )


def _absent(param: Buffer, values: dict[Var, Any], solve: Any) -> np.ndarray:
    """An array for a tensor given as None; a size that no other argument tells is 0."""
    for entry in (e for e in (*param.shape, *(param.strides or ())) if isinstance(e, Expr)):
        for symbol in (n for n in walk(entry) if isinstance(n, Var)):
            values.setdefault(symbol, 0)
    return np.zeros([s if isinstance(s, int) else _extent(param, s, values, solve) for s in param.shape],
                    param.dtype.numpy)  # fmt: skip


def _scalar(kernel: Kernel, param: Var, value: Any) -> Any:
    if value is None:
        value = kernel.defaults.get(param)
        value = value.value if isinstance(value, Const) else value
    if value is None:
        raise LaunchError(f"scalar `{param.name}` is missing", rule="it has no default", fix="pass it", loc=kernel.loc)
    if isinstance(value, np.generic) or (isinstance(value, np.ndarray) and value.ndim == 0):
        value = value.item()
    if not isinstance(value, (int, float, bool)):
        raise LaunchError(
            f"scalar `{param.name}` is a {type(value).__name__}",
            rule=f"a parameter of type {param.dtype} takes a number",
            fix="pass a number",
            loc=kernel.loc,
        )
    if param.dtype is BOOL:
        return bool(value)
    if param.dtype.is_int:
        if isinstance(value, float) or not param.dtype.min_value() <= value <= param.dtype.max_value():
            raise LaunchError(
                f"scalar `{param.name}` is {value!r}",
                rule=f"a parameter of type {param.dtype} takes whole numbers it can hold",
                fix="pass an int it can hold",
                loc=kernel.loc,
            )
        return int(value)
    exact = param.dtype.numpy.type(value)
    return np.float32(exact) if is_narrow(param.dtype) else exact


def _symbols(param: Buffer, array: Any, values: dict[Var, Any]) -> None:
    if not isinstance(array, np.ndarray):
        raise LaunchError(
            f"`{param.name}` is a {type(array).__name__}",
            rule="the CPU target takes NumPy arrays",
            fix="np.asarray(…)",
            loc=param.loc,
        )
    if array.ndim != param.rank:
        raise LaunchError(
            f"`{param.name}` has {array.ndim} dimension{'s' * (array.ndim != 1)}",
            rule=f"the parameter has {param.rank}",
            fix="reshape it",
            loc=param.loc,
        )
    for entry, size in zip(param.shape, array.shape, strict=True):
        if isinstance(entry, Var):
            _one_value(param, entry, int(size), values)
    for entry, stride in zip(param.strides or (), array.strides, strict=False):
        if isinstance(entry, Var):
            _one_value(param, entry, stride // array.itemsize, values)


def _sums(kernel: Kernel, given: Sequence[Any], values: dict[Var, Any]) -> None:
    """Symbols that stand in sums only (`n * 4`, `n + m`): each is solved where it is the only unknown one."""
    tensors = [(p, a) for p, a in zip(kernel.params, given, strict=True) if isinstance(p, Buffer) and a is not None]
    sums = [(p, e, n) for p, a in tensors for e, n in zip(p.shape, a.shape, strict=True) if isinstance(e, Binary)]
    found = True
    while found:
        found = False
        for param, entry, size in sums:
            terms = linear(entry)
            rest = size - terms.get(None, 0)
            unknown = [a for a in terms if isinstance(a, Var) and a not in values]
            if len(unknown) != 1 or not all(a is None or isinstance(a, Var) for a in terms):
                continue
            rest -= sum(f * values[a] for a, f in terms.items() if isinstance(a, Var) and a is not unknown[0])
            value, over = divmod(rest, terms[unknown[0]])
            if over or value < 0:
                raise LaunchError(
                    f"`{param.name}` has extent {size}, and no whole number {unknown[0].name} makes its extent that",
                    rule="an extent is what the parameter's type says of it",
                    fix="check the sizes",
                    loc=param.loc,
                )
            values[unknown[0]] = value
            found = True


def _one_value(param: Buffer, symbol: Var, size: int, values: dict[Var, Any]) -> None:
    known = values.setdefault(symbol, size)
    if known != size:
        raise LaunchError(
            f"symbol {symbol.name} is {known} elsewhere and {size} in `{param.name}`",
            rule="a symbol has one value in a call",
            fix="pass tensors whose shapes agree",
            loc=param.loc,
        )


def _tensor(kernel: Kernel, at: int, param: Buffer, array: Any, bound: Bound, written: bool, solve: Any) -> None:
    shape = tuple(s if isinstance(s, int) else _extent(param, s, bound.values, solve) for s in param.shape)
    allocated = array is None
    if allocated:
        if at not in {o % len(kernel.params) for o in kernel.outputs}:
            raise LaunchError(
                f"tensor `{param.name}` is missing",
                rule="only outputs may be left out",
                fix=f"pass {param.name}",
                loc=kernel.loc,
            )
        array = np.zeros(shape, param.dtype.numpy)
    if array.dtype != param.dtype.numpy:
        raise LaunchError(
            f"`{param.name}` is {array.dtype}",
            rule=f"the parameter is {param.dtype}",
            fix=f"{param.name}.astype(…)",
            loc=param.loc,
        )
    if array.shape != shape:
        raise LaunchError(
            f"`{param.name}` has shape {array.shape}",
            rule=f"the parameter has shape {shape}",
            fix="check the sizes",
            loc=param.loc,
        )
    if written and not array.flags.writeable:
        raise LaunchError(f"`{param.name}` is read-only", rule="the kernel writes it", fix="pass a copy", loc=param.loc)
    bound.arrays[at] = array
    inner = np.ascontiguousarray(array)
    if written and inner is not array:
        bound.returned.append((array, inner))
    slot = Slot(param, 0, inner, shape=shape, narrow=is_narrow(param.dtype), frozen=not written)
    if written:
        slot.unwritten = np.ones(shape, bool)
        slot.undefined = slot.unwritten if allocated else None
    elif allocated:
        slot.unwritten = slot.undefined = np.ones(shape, bool)
    bound.slots[param] = slot


def _extent(param: Buffer, e: Expr, values: Mapping[Var, Any], solve: Any) -> int:
    try:
        return int(solve(e, values))
    except KeyError as missing:
        raise LaunchError(
            f"the shape of `{param.name}` depends on a symbol that no argument gives: {missing}",
            rule="every symbol is an extent or a stride of an input",
            fix="pass the tensor whose shape gives it",
            loc=param.loc,
        ) from None


def _widen(bound: Bound, written: set[Buffer]) -> None:
    """Keeps narrow inputs as float32 when they are small enough and nothing can write to them."""
    targets = [s.array for s in bound.slots.values() if s.buffer in written]
    for slot in bound.slots.values():
        if slot.frozen and any(np.may_share_memory(slot.array, t) for t in targets):
            slot.frozen = False
    narrow = [s for s in bound.slots.values() if s.narrow and s.frozen]
    masks = sum(s.unwritten.nbytes for s in bound.slots.values() if s.unwritten is not None)
    room = 2 * sum(s.array.nbytes for s in bound.slots.values()) + _WIDEN_ROOM - masks
    if sum(s.array.size * 4 for s in narrow) <= room:
        for slot in narrow:
            slot.array, slot.narrow = widen(slot.array, slot.buffer.dtype), False
