"""The option line of %%tilekernel: one table for parsing, help and completion."""

from __future__ import annotations

import difflib
import shlex
from dataclasses import dataclass, field
from typing import Any

from ..errors import OptionError
from ..target.target import target_names
from ..views.kernel import DEFAULT, SECTIONS


@dataclass(frozen=True)
class Option:
    """`value` names what follows the option, "" for nothing; `optional` values may be left out."""

    name: str
    value: str
    text: str
    optional: bool = False


OPTIONS = (
    Option("--target", "NAME", 'what to build for: "cpu", "sm_90a", "H200" …; without it the GPU here, else the CPU'),
    Option("--name", "NAME", "which kernel of the cell to show; a single one is bound as NAME instead of its own name"),
    Option("--check", "REF", "check it: REF is a function of the inputs (NumPy or torch) whose result is the truth; "
           "without REF the meaning of the text is", optional=True),
    Option("--bench", "", "time it where it can run"),
    Option("--show", "LIST", f"what to show, of {','.join(SECTIONS)} (default {','.join(DEFAULT)})"),
    Option("--set", "K=V", "an argument of the factory, a run-time extent or a scalar; may be repeated"),
    Option("--tilelang", "", "`import tilelang` in this cell is answered by this package, as in scripts for TileLang"),
    Option("--help", "", "this text"),
)  # fmt: skip
TABLE = {option.name: option for option in OPTIONS}


@dataclass
class CellOptions:
    """What a %%tilekernel line says. `check` is None, "" (no reference) or the reference's expression."""

    target: str | None = None
    name: str | None = None
    check: str | None = None
    bench: bool = False
    show: tuple[str, ...] = DEFAULT
    set: dict[str, Any] = field(default_factory=dict)
    tilelang: bool = False
    help: bool = False


def parse(line: str) -> CellOptions:
    """The options of a line; OptionError, whose `word` is the culprit, with the nearest name for an unknown one."""
    words = split(line)
    found = CellOptions()
    while words:
        word = words.pop(0)
        try:
            take(found, word, words)
        except OptionError as error:
            error.word = word  # type: ignore[attr-defined]
            raise
    return found


def take(found: CellOptions, word: str, words: list[str]) -> None:
    """One option, with its value from the words that follow."""
    name, equals, value = word.partition("=")
    option = TABLE.get(name)
    if option is None:
        raise unknown(name)
    if equals and not option.value:
        raise OptionError(f"{name} takes no value, and {value!r} was given", rule=option.text, fix=name)
    if option.value and not equals:
        value = taken(option, words)
    store(found, option, value)


def split(line: str) -> list[str]:
    """Words as a shell has them, so that a reference may hold blanks: --check 'lambda a, b: a + b'."""
    try:
        return shlex.split(line)
    except ValueError as error:
        raise OptionError(
            f"the option line cannot be read: {error}", rule="quotes are closed", fix="close the quote"
        ) from None


def taken(option: Option, words: list[str]) -> str:
    """The value of an option, taken from the words after it."""
    if words and not words[0].startswith("--"):
        return words.pop(0)
    if option.optional:
        return ""
    raise OptionError(
        f"{option.name} is given without {option.value}", rule=option.text, fix=f"{option.name} {option.value}"
    )


def store(found: CellOptions, option: Option, value: str) -> None:
    """One option with its value; values are checked here, targets by the target room."""
    key = option.name.removeprefix("--")
    if key == "set":
        name, number = pair(value)
        found.set[name] = number
    elif key == "show":
        found.show = sections(value)
    elif option.value:
        setattr(found, key, value)
    else:
        setattr(found, key, True)


def pair(text: str) -> tuple[str, Any]:
    """NAME=VALUE as a name and a value."""
    name, equals, value = text.partition("=")
    if not equals or not name.isidentifier() or not value:
        raise OptionError(f"--set {text}", rule="--set takes NAME=VALUE", fix="--set M=1024")
    return name, literal(value)


def literal(text: str) -> Any:
    """A number, True, False or None where it reads as one, else the text itself (a dtype's name)."""
    words = {"True": True, "False": False, "None": None}
    if text in words:
        return words[text]
    for kind in (lambda t: int(t, 0), float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text.strip("\"'")


def sections(text: str) -> tuple[str, ...]:
    """The names of a --show list; OptionError with the nearest name."""
    names = tuple(name for name in text.split(",") if name)
    for name in names:
        if name not in SECTIONS:
            near = difflib.get_close_matches(name, SECTIONS, n=1, cutoff=0.4)
            raise OptionError(
                f"--show {name}",
                rule=f"what can be shown: {', '.join(SECTIONS)}",
                fix=f"did you mean {near[0]}?" if near else "--show plan,ir,cuda",
            )
    return names


def unknown(word: str) -> OptionError:
    """The error for a word that is no option."""
    near = difflib.get_close_matches(word, TABLE, n=1, cutoff=0.4)
    rule = f"options: {', '.join(TABLE)}"
    if not word.startswith("-"):
        return OptionError(f"the word {word!r} belongs to no option", rule=rule, fix="the kernel stands in the cell")
    return OptionError(
        f"unknown option {word}", rule=rule, fix=f"did you mean {near[0]}?" if near else "%%tilekernel --help"
    )


def help_text() -> str:
    """All options, one a line."""
    rows = [(f"{o.name} {'[' + o.value + ']' if o.optional else o.value}".strip(), o.text) for o in OPTIONS]
    width = max(len(left) for left, _ in rows)
    lines = ["%%tilekernel [options]", "", "Compiles the kernel of the cell, binds its name, and shows the result.", ""]
    return "\n".join([*lines, *(f"  {left:<{width}}  {text}" for left, text in rows)])


def completions(before: str) -> list[str]:
    """What may follow `before`, the option line up to the cursor."""
    words = before.split()
    fresh = not before or before[-1].isspace()
    part = "" if fresh or not words else words[-1]
    last = words[-1] if fresh and words else words[-2] if len(words) > 1 else ""
    if last == "--target":
        return [name for name in target_names() if name.startswith(part)]
    if last == "--show":
        head, _, tail = part.rpartition(",")
        return [f"{head},{name}" if head else name for name in SECTIONS if name.startswith(tail)]
    return [name for name in TABLE if name.startswith(part)]
