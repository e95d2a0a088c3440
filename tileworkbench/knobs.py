"""What a knob of the package is: its name, type, default and sentence, and how text becomes its value."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from .errors import OptionError

PREFIX = "TILEWORKBENCH_"

_UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12, "ki": 2**10, "mi": 2**20, "gi": 2**30, "ti": 2**40}

_YES_NO = {"1": True, "true": True, "on": True, "yes": True, "0": False, "false": False, "off": False, "no": False}


@dataclass(frozen=True)
class Knob:
    """One setting. `kind` is "bool", "int", "bytes", "seconds", "path", "text" or "choice"; `codegen` says that a
    built kernel depends on it, so that it belongs to the cache key. Bounds are inclusive."""

    name: str
    kind: str
    default: object
    text: str
    codegen: bool = False
    choices: tuple[str, ...] = ()
    low: int = 0
    high: int = 2**62

    @property
    def environment(self) -> str:
        """The environment variable that sets it."""
        return PREFIX + self.name.upper()

    def default_value(self) -> object:
        """The default, computed now when it hangs on the machine (the cache folder)."""
        return self.default() if callable(self.default) else self.default

    def read(self, value: object, origin: str = "") -> object:
        """`value`, or text from the environment or a command line, as this knob's type; else OptionError."""
        try:
            return _READERS[self.kind](self, value)
        except (ValueError, TypeError, OverflowError):
            raise OptionError(
                f"option {self.name!r} cannot be {value!r}{f' ({origin})' if origin else ''}",
                rule=f"{self.name} is {self.accepts()}: {self.text}",
                fix=f"for example {self.name}={self.example()!r}",
            ) from None

    def accepts(self) -> str:
        """What the knob takes, in words."""
        if self.kind == "choice":
            return "one of " + ", ".join(repr(choice) for choice in self.choices)
        if self.kind == "bool":
            return "a bool (in the environment 1 or 0)"
        if self.kind == "int":
            return f"a whole number from {self.low}" + (f" to {self.high}" if self.high < 2**62 else "")
        words = {"bytes": 'a number of bytes, or text such as "4GiB"', "seconds": "a number of seconds above 0"}
        return words.get(self.kind, "a folder's path" if self.kind == "path" else "text")

    def example(self) -> object:
        """A value as a user would write it: the default, a folder as text."""
        value = self.default_value()
        return str(value) if isinstance(value, Path) else value


def _bool(knob: Knob, value: object) -> bool:
    if isinstance(value, str):
        value = _YES_NO.get(value.strip().lower(), value)
    if not isinstance(value, bool):
        raise ValueError
    return value


def _int(knob: Knob, value: object) -> int:
    if isinstance(value, str):
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int) or not knob.low <= value <= knob.high:
        raise ValueError
    return value


def _bytes(knob: Knob, value: object) -> int:
    if isinstance(value, str):
        parts = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([kmgt]i?)?b?", value.strip().lower())
        if parts is None:
            raise ValueError
        value = int(float(parts[1]) * _UNITS[parts[2] or ""])
    return _int(knob, value)


def _seconds(knob: Knob, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise ValueError
    seconds = float(value)
    if not 0 < seconds < float("inf"):
        raise ValueError
    return seconds


def _path(knob: Knob, value: object) -> Path:
    if not isinstance(value, str | os.PathLike) or not os.fspath(value) or "\0" in os.fspath(value):
        raise ValueError
    return Path(value).expanduser()


def _text(knob: Knob, value: object) -> object:
    # A target may also be a dict or a Target; only the target room can judge it.
    if value is None or (isinstance(value, str) and not value.strip()):
        raise ValueError
    return value.strip() if isinstance(value, str) else value


def _choice(knob: Knob, value: object) -> str:
    if isinstance(value, bool) and {"on", "off"} <= set(knob.choices):
        value = "on" if value else "off"
    if not isinstance(value, str) or value not in knob.choices:
        raise ValueError
    return value


_READERS: dict[str, Callable[[Knob, object], object]] = {
    "bool": _bool,
    "int": _int,
    "bytes": _bytes,
    "seconds": _seconds,
    "path": _path,
    "text": _text,
    "choice": _choice,
}
