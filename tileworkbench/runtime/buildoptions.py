"""Options of a device compiler as typed fields; no raw option text reaches a compiler."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields

from ..errors import OptionError

_TRUTH = {"1": True, "true": True, "0": False, "false": False}


@dataclass(frozen=True)
class BuildOptions:
    """`std` is the C++ year; `max_registers` a cap per thread (0: none); `debug` is device debug, unoptimised."""

    std: int = 17
    fast_math: bool = False
    line_info: bool = True
    max_registers: int = 0
    debug: bool = False

    def __post_init__(self) -> None:
        if self.std not in (14, 17, 20):
            raise OptionError(f"std is {self.std!r}", rule="std is 14, 17 or 20", fix="std=17")
        if self.max_registers != 0 and not 16 <= self.max_registers <= 255:
            raise OptionError(
                f"max_registers is {self.max_registers}",
                rule="max_registers is 0 or from 16 to 255",
                fix="0 leaves the choice to the compiler",
            )

    @staticmethod
    def parse(pairs: Iterable[tuple[str, str]]) -> BuildOptions:
        """Options from the (name, text) pairs of a `Source`; an unknown name or a bad value raises OptionError."""
        types = {f.name: type(f.default) for f in fields(BuildOptions)}
        values: dict[str, int | bool] = {}
        for name, text in pairs:
            if name not in types:
                raise OptionError(
                    f"unknown build option {name!r}", rule=f"one of {', '.join(types)}", fix="use one of these"
                )
            values[name] = _flag(name, text) if types[name] is bool else _number(name, text)
        return BuildOptions(**values)  # type: ignore[arg-type]

    def pairs(self) -> tuple[tuple[str, str], ...]:
        return tuple((f.name, str(int(getattr(self, f.name)))) for f in fields(self))


def _flag(name: str, text: str) -> bool:
    if str(text).lower() not in _TRUTH:
        raise OptionError(f"build option {name} is {text!r}", rule=f"{name} is 0 or 1", fix=f"{name}=1")
    return _TRUTH[str(text).lower()]


def _number(name: str, text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise OptionError(
            f"build option {name} is {text!r}", rule=f"{name} is a whole number", fix=f"{name}=0"
        ) from None
