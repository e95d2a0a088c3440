"""What a function's meaning hangs on outside its text: the globals and closure values that it names, and those of the
functions among them. A compiled kernel is kept only as long as they stay as they were."""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import Any

PLAIN = (int, float, complex, str, bytes, bool, type(None), type, types.ModuleType)


class Surroundings:
    """`state()` is a hashable value that differs when something that the function names has changed."""

    def __init__(self, fn: Callable[..., Any]) -> None:
        self.fn = fn
        self.names = names_of(fn.__code__)

    def state(self) -> tuple[Any, ...]:
        return state_of(self.fn, self.names, {id(self.fn)})


def state_of(fn: Any, names: tuple[str, ...], seen: set[int]) -> tuple[Any, ...]:
    """The state of one function; `seen` stops recursion."""
    found: list[Any] = [fn.__code__, plain(fn.__defaults__, seen), plain(fn.__kwdefaults__, seen)]
    space = fn.__globals__
    for name in names:
        if name in space:
            found.append(plain(space[name], seen))
    for cell in fn.__closure__ or ():
        try:
            found.append(plain(cell.cell_contents, seen))
        except ValueError:  # not assigned yet
            found.append("empty")
    return tuple(found)


def plain(value: Any, seen: set[int]) -> Any:
    """A value by its type and itself, a function by what it hangs on in turn, anything else by identity."""
    if isinstance(value, PLAIN):
        return type(value), value
    if isinstance(value, tuple):
        return tuple(plain(v, seen) for v in value)
    inner = getattr(value, "fn", value)  # macros, prim_funcs and jit functions keep their Python function
    if isinstance(inner, types.FunctionType):
        if id(inner) in seen:
            return "again"
        seen.add(id(inner))
        return state_of(inner, names_of(inner.__code__), seen)
    if isinstance(value, list | dict | set):
        return type(value), repr(value)
    return Same(value)


class Same:
    """Equal only to the same object, which it keeps alive so that its identity is not given to another."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Same) and other.value is self.value

    def __hash__(self) -> int:
        return id(self.value)


_NAMES: dict[types.CodeType, tuple[str, ...]] = {}


def names_of(code: types.CodeType) -> tuple[str, ...]:
    """The global names that a code object and those nested in it may read."""
    known = _NAMES.get(code)
    if known is None:
        found = dict.fromkeys(code.co_names)
        for inner in code.co_consts:
            if isinstance(inner, types.CodeType):
                found |= dict.fromkeys(names_of(inner))
        known = _NAMES[code] = tuple(found)
    return known
