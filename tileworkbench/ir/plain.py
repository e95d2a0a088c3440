"""Frozen records as plain data: JSON for another process or the disk, and a digest that is the same in every process.

Only this package's own dataclasses, enums and layouts pass, in both directions: reading builds records field by field
and runs no code of theirs. What one object is stays one object. File names stand in a table of their own, so that the
same cell of another session gives the same data.
"""

from __future__ import annotations

import base64
import dataclasses
import functools
import hashlib
import importlib
import json
from collections.abc import Callable, Iterable, Sequence
from enum import Enum
from types import MappingProxyType
from typing import Any

import numpy as np

from ..errors import InternalError, Loc
from ..layout.distribution import Distribution
from ..layout.shared import SharedLayout
from .dtype import DTYPES, DType

PACKAGE = __name__.partition(".")[0]
_ATOMS = (type(None), bool, int, float, str)


class NotPlain(Exception):
    """Something that plain data cannot hold, such as a user's function."""


class Plain:
    """Values as plain data: `text` is JSON, `files` the names of the user's files in the order they were met."""

    def __init__(self, value: Any, files: Iterable[str] = ()) -> None:
        """`files` are known before: their places in the table are kept. NotPlain for what cannot be told."""
        self._records: list[Any] = []
        self._types: dict[str, int] = {}
        self._seen: dict[int, int] = {}
        self._locs: dict[Loc, int] = {}
        self._files = {name: i for i, name in enumerate(files)}
        self._kept: list[Any] = []  # an id counts as long as its object lives
        try:
            root = self._value(value)
            self.text = json.dumps([list(self._types), self._records, root], separators=(",", ":"))
        except RecursionError:
            raise NotPlain("nested too deeply") from None
        self.files = tuple(self._files)

    @property
    def digest(self) -> str:
        """sha256 of the text: of everything but the names of files."""
        return hashlib.sha256(self.text.encode()).hexdigest()

    def _value(self, x: Any) -> Any:
        kind = type(x)
        if kind in _ATOMS:
            return x
        if kind is tuple:
            return ["t", *[self._value(y) for y in x]]
        known = self._seen.get(id(x))
        if known is not None:
            return ["r", known]
        return _WRITERS[kind](self, x) if kind in _WRITERS else self._other(x)

    def _other(self, x: Any) -> Any:
        kind = type(x)
        if isinstance(x, Enum):
            return ["e", _name(kind), x.name]
        if isinstance(x, np.dtype):
            return ["p", x.name]
        if isinstance(x, np.ndarray | np.generic):
            return _array(x)
        if dataclasses.is_dataclass(kind) or isinstance(x, SharedLayout | Distribution):
            names = _fields(kind, x)
            values = [self._value(getattr(x, name)) for name in names]
            return self._record(x, _name(kind), values if dataclasses.is_dataclass(kind) else [["t", *names], *values])
        raise NotPlain(f"a {kind.__name__}")

    def _record(self, x: Any, name: str, values: list[Any]) -> list[Any]:
        place = len(self._records)
        self._records.append([self._types.setdefault(name, len(self._types)), *values])
        self._seen[id(x)] = place
        self._kept.append(x)
        return ["r", place]

    def _loc(self, x: Loc) -> list[Any]:
        place = self._locs.get(x)
        if place is None:
            file = self._files.setdefault(x.file, len(self._files))
            rest = [self._value(v) for v in (x.line, x.col, x.end_line, x.end_col, x.calls)]
            place = self._locs[x] = self._record(x, _name(Loc), [file, *rest])[1]
        return ["r", place]

    def _list(self, x: list[Any]) -> list[Any]:
        return ["l", *[self._value(y) for y in x]]

    def _mapping(self, x: Any) -> list[Any]:
        return ["d", *[[self._value(k), self._value(v)] for k, v in x.items()]]

    def _set(self, x: Any) -> list[Any]:
        if not all(type(y) is str for y in x):
            raise NotPlain("a set of other things than text")  # whose order hangs on addresses
        return ["s" if type(x) is set else "f", *sorted(x)]

    def _dtype(self, x: DType) -> list[Any]:
        return ["y", x.name]

    def _bytes(self, x: bytes) -> list[Any]:
        return ["b", base64.b64encode(x).decode()]


_WRITERS: dict[type, Callable[[Plain, Any], Any]] = {
    Loc: Plain._loc,
    list: Plain._list,
    dict: Plain._mapping,
    MappingProxyType: Plain._mapping,
    set: Plain._set,
    frozenset: Plain._set,
    DType: Plain._dtype,
    bytes: Plain._bytes,
}


def read(text: str, files: Sequence[str]) -> Any:
    """The value behind a `Plain`'s text and files. InternalError for a text that none of ours wrote."""
    try:
        types, records, root = json.loads(text)
        return _Reader(types, records, files).value(root)
    except (ValueError, TypeError, LookupError, AttributeError, ImportError, RecursionError) as problem:
        raise InternalError(f"data of another version: {type(problem).__name__}: {problem}") from None


class _Reader:
    def __init__(self, types: list[str], records: list[Any], files: Sequence[str]) -> None:
        classes = [_class(name) for name in types]
        self._made: list[Any] = []
        for place, *values in records:
            kind = classes[place]
            if kind is Loc:
                values[0] = files[values[0]]
            self._made.append(_built(kind, [self.value(v) for v in values]))

    def value(self, x: Any) -> Any:
        if type(x) is not list:
            return x
        return _READERS[x[0]](self, x)


_READERS: dict[str, Callable[[_Reader, list[Any]], Any]] = {
    "t": lambda r, x: tuple([r.value(y) for y in x[1:]]),
    "r": lambda r, x: r._made[x[1]],
    "l": lambda r, x: [r.value(y) for y in x[1:]],
    "d": lambda r, x: {r.value(k): r.value(v) for k, v in x[1:]},
    "s": lambda r, x: set(x[1:]),
    "f": lambda r, x: frozenset(x[1:]),
    "y": lambda r, x: DTYPES[x[1]],
    "b": lambda r, x: base64.b64decode(x[1]),
    "e": lambda r, x: _member(x),
    "p": lambda r, x: np.dtype(x[1]),
    "a": lambda r, x: _read_array(x),
}


def _built(kind: type, values: list[Any]) -> Any:
    made: Any = object.__new__(kind)
    names = values.pop(0) if not dataclasses.is_dataclass(kind) else _fields(kind, None)
    if len(names) != len(values):
        raise ValueError(f"{kind.__name__} has other fields")
    for name, value in zip(names, values, strict=True):
        object.__setattr__(made, name, value)
    return made


@functools.cache
def _dataclass_fields(kind: type) -> tuple[str, ...]:
    return tuple(f.name for f in dataclasses.fields(kind))


def _fields(kind: type, x: Any) -> tuple[str, ...]:
    """A dataclass's fields; of another class what an object holds, without what it can work out again."""
    if dataclasses.is_dataclass(kind):
        return _dataclass_fields(kind)
    return tuple(n for n in vars(x) if not isinstance(getattr(kind, n, None), functools.cached_property))


def _name(kind: type) -> str:
    module, _, rest = kind.__module__.partition(".")
    if module != PACKAGE or "." in kind.__qualname__:
        raise NotPlain(f"a {kind.__qualname__} of {kind.__module__}")
    return f"{rest}:{kind.__name__}"


@functools.cache
def _class(name: str) -> Any:
    module, _, kind = name.partition(":")
    found = getattr(importlib.import_module(f"{PACKAGE}.{module}"), kind)
    if not isinstance(found, type) or found.__module__ != f"{PACKAGE}.{module}":
        raise TypeError(f"{name} is no class of this package")
    return found


def _member(x: list[Any]) -> Any:
    return _class(x[1])[x[2]]


def _array(x: Any) -> list[Any]:
    held = np.ascontiguousarray(x)
    if held.dtype.hasobject or held.dtype.fields:
        raise NotPlain("an array of objects")
    return ["a", held.dtype.name, list(np.shape(x)), base64.b64encode(held.tobytes()).decode(), type(x) is np.ndarray]


def _read_array(x: list[Any]) -> Any:
    _, name, shape, data, whole = x
    held = np.frombuffer(base64.b64decode(data), np.dtype(name)).reshape(shape)
    return held if whole else held[()]
