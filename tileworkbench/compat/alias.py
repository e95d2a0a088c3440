"""`import tilelang` answered by this package: a finder for the names below `tilelang` (and `tvm`, where TileLang's code
looks for it), put before Python's own and taken away again."""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import importlib.util
import sys
import types
from collections.abc import Sequence

from .environment import apply_environment, forget_environment
from .namespace import module_for
from .surface import known

ROOTS = ("tilelang", "tvm")


class Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds and makes the modules of the alias. One is in use at most."""

    def __init__(self, roots: Sequence[str]) -> None:
        self.roots = tuple(roots)

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: types.ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if name.partition(".")[0] not in self.roots or not known(name):
            return None
        return importlib.machinery.ModuleSpec(name, self, is_package=True)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> types.ModuleType:
        if spec.name == ROOTS[0]:
            # As late as TileLang itself reads them.
            apply_environment()
        return module_for(spec.name)

    def exec_module(self, module: types.ModuleType) -> None:
        """Names are looked up when they are asked for."""


class Alias:
    """What `alias_tilelang` gives: call it, leave its `with` block, or call `remove_alias`, and Python finds what it
    found before. `modules` are the names that were hidden meanwhile."""

    def __init__(self, roots: Sequence[str]) -> None:
        self.finder: Finder | None = Finder(roots)
        self.hidden = _taken(roots)
        sys.meta_path.insert(0, self.finder)

    def __call__(self) -> None:
        if self.finder is None:
            return
        if self.finder in sys.meta_path:
            sys.meta_path.remove(self.finder)
        _taken(self.finder.roots)
        sys.modules.update(self.hidden)
        forget_environment()
        self.finder = None

    def __enter__(self) -> Alias:
        return self

    def __exit__(self, *_: object) -> None:
        self()


def _taken(roots: Sequence[str]) -> dict[str, types.ModuleType]:
    """The loaded modules below these names, taken out of sys.modules."""
    names = [name for name in sys.modules if name.partition(".")[0] in roots]
    return {name: sys.modules.pop(name) for name in names}


_active: list[Alias] = []


def alias_tilelang() -> Alias:
    """From now on `import tilelang`, `import tilelang.language as T` and every other import path of TileLang give this
    package; so does `import tvm` where no TVM is installed. Usable as a `with` statement; calling the result undoes it.
    A second call gives the alias that is there."""
    if _active and _active[-1].finder is not None:
        return _Nested()
    own_tvm = importlib.util.find_spec("tvm") is not None
    _active[:] = [Alias(ROOTS[:1] if own_tvm else ROOTS)]
    return _active[-1]


class _Nested(Alias):
    """An alias inside another one: leaving it changes nothing."""

    def __init__(self) -> None:
        self.finder, self.hidden = None, {}


def remove_alias() -> None:
    """Undoes `alias_tilelang`; nothing happens when there is no alias."""
    while _active:
        _active.pop()()
