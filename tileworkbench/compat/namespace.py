"""A module of the alias: names looked up in this package when they are asked for, and an error for every other."""

from __future__ import annotations

import difflib
import importlib
import types
from typing import Any

from ..errors import LanguageError, TargetError
from .foreign import Foreign
from .pages import OTHER_HARDWARE, Page
from .surface import INSIDE, PAGES, page


class UnknownName(LanguageError, AttributeError):
    """A name that TileLang's module does not have either."""


class Namespace(types.ModuleType):
    """One importable module. `page` says where its names live."""

    def __init__(self, path: str, page: Page) -> None:
        super().__init__(path, f"{path}, answered by tileworkbench")
        self.__path__: list[str] = []
        self.__dict__["_page"] = page
        if page.star is not None:
            self.__all__ = list(page.star)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and name.endswith("__") and name not in self._page.names:
            if name == "__all__" and self._page.rest:
                found = importlib.import_module(f"tileworkbench.{self._page.rest}")
                return [n for n in dir(found) if not n.startswith("_")]
            raise AttributeError(name)
        found = self._found(name)
        self.__dict__[name] = found
        return found

    def _found(self, name: str) -> Any:
        here: Page = self._page
        if name in here.names:
            return located(here.names[name])
        if name in here.needs:
            raise TargetError(f"{self.__name__}.{name}", rule=f"it needs {here.needs[name]}", fix="leave it out")
        below = f"{self.__name__}.{name}"
        module = below in PAGES or below in INSIDE
        if here.rest:
            try:
                found = getattr(importlib.import_module(f"tileworkbench.{here.rest}"), name)
                if not module or not isinstance(found, types.ModuleType):  # a function goes before its file
                    return found
            except AttributeError:
                if not here.foreign and not module:
                    raise
        if module:
            return importlib.import_module(below)
        if here.foreign:
            return Foreign(below, OTHER_HARDWARE.get(name, here.foreign))
        close = difflib.get_close_matches(name, here.names, n=1, cutoff=0.6)
        raise UnknownName(
            f"{below} does not exist",
            rule=f"{self.__name__} has {', '.join(sorted(here.names))}"[:300],
            fix=f"did you mean `{close[0]}`?" if close else "",
        )

    def __setattr__(self, name: str, value: Any) -> None:
        """Python binds a submodule in its package once it is loaded. TileLang gives some functions the name of the
        submodule that they live in (jit, lower, plot_layout), and there the function stays."""
        if isinstance(value, Namespace) and name in self._page.names:
            return
        super().__setattr__(name, value)

    def __dir__(self) -> list[str]:
        return sorted({*self.__dict__, *self._page.names})


def located(place: str) -> Any:
    """The object at "room.module:name", or the module at "room.module"."""
    module, _, name = place.partition(":")
    found = importlib.import_module(f"tileworkbench.{module}" if module else "tileworkbench")
    return getattr(found, name) if name else found


def module_for(path: str) -> types.ModuleType:
    """A fresh module of the alias."""
    found = page(path)
    return Namespace(path, found if found is not None else Page())
