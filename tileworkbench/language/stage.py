"""The object that a rewritten function calls: one a function, holding the places of its text."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..errors import Loc
from .control import Control
from .loops import serial
from .macro import Macro


class Stage(Control):
    """All stage methods; `__tw` in staged code. `reader` stages nested functions."""

    serial = staticmethod(serial)

    def __init__(self, spans: list[Loc], reader: Callable[..., Any]) -> None:
        super().__init__(spans)
        self.reader = reader

    def nested(self, k: int) -> Callable[[Callable[..., Any]], Macro]:
        """The decorator given to an undecorated `def` inside a kernel: it is inlined where it is called."""
        return lambda fn: Macro(fn, {}, self.reader)
