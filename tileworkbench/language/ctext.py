"""What a text of CUDA C++ declares: its kernels and their parameters, as far as plain declarations say them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

_HIDDEN = re.compile(
    r"""//[^\n]*|/\*.*?\*/|R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|(?<![0-9A-Fa-f])'(?:\\.|[^'\\\n])*'""", re.DOTALL
)
_ATTRIBUTE = re.compile(r"\s*(?:__\w+__|alignas|__attribute__)\s*(?=\()")
_WORD = re.compile(r"\s*(\w+|::|[*&])")
_LINKAGE = re.compile(r'extern\s*"C"')
_QUALIFIERS = re.compile(r"\b(?:const|volatile|__restrict__|__restrict|restrict|__grid_constant__|register)\b")
_SIZED = re.compile(r"u?int(8|16|32|64)_t")
_PLAIN = {"float": ("float", 4), "double": ("float", 8), "bool": ("int", 1), "size_t": ("int", 8), "half": ("float", 2),
          "__half": ("float", 2)}  # fmt: skip


@dataclass(frozen=True)
class Parameter:
    """One parameter of a C function: its text, its name where it has one, and whether it is a pointer."""

    text: str
    name: str
    pointer: bool

    @property
    def number(self) -> tuple[str, int] | None:
        """Kind ("int" or "float") and bytes of a number's type; None for a type that this does not know."""
        text = _QUALIFIERS.sub(" ", self.text)
        words = re.findall(r"\w+", text)
        words = words[:-1] if self.name and len(words) > 1 else words
        if len(words) == 1 and words[0] in _PLAIN:
            return _PLAIN[words[0]]
        if len(words) == 1 and (sized := _SIZED.fullmatch(words[0])):
            return "int", int(sized[1]) // 8
        if words and set(words) <= {"unsigned", "signed", "long", "short", "int", "char"}:
            bytes_ = 1 if "char" in words else 2 if "short" in words else 8 if words.count("long") else 4
            return "int", bytes_
        return None


@dataclass(frozen=True)
class Entry:
    """A `__global__` function: its parameters, and whether its name is the one that a launch finds (`extern "C"`)."""

    name: str
    parameters: tuple[Parameter, ...]
    plain_name: bool
    line: int  # counted from 1


def entries(text: str) -> tuple[Entry, ...]:
    """The `__global__` functions of a text, each once, in order."""
    shown = _HIDDEN.sub(_blank, text)
    found: dict[str, Entry] = {}
    for mark in re.finditer(r"\b__global__\b", shown):
        head = _head(shown, mark.end())
        if head is None:
            continue
        name, at = head
        inside = shown[at + 1 : _closing(shown, at)]
        declared = Entry(
            name, tuple(_parameters(inside)), _is_c(shown, mark.start()), shown.count("\n", 0, mark.start()) + 1
        )
        known = found.get(name)
        found[name] = declared if known is None or (declared.plain_name and not known.plain_name) else known
    return tuple(found.values())


def _blank(match: re.Match[str]) -> str:
    """Comments and literals are spaces of the same length; the one literal that is grammar stays."""
    text = match[0]
    return text if text == '"C"' else re.sub(r"[^\n]", " ", text)


def _head(text: str, at: int) -> tuple[str, int] | None:
    """The function's name behind `__global__` and the place of its open parenthesis."""
    name = ""
    while True:
        if found := _ATTRIBUTE.match(text, at):
            at = _closing(text, found.end()) + 1
        elif found := _WORD.match(text, at):
            name, at = found[1], found.end()
        else:
            break
    rest = re.match(r"\s*\(", text[at:])
    return (name, at + rest.end() - 1) if rest and re.fullmatch(r"[A-Za-z_]\w*", name) else None


def _closing(text: str, at: int) -> int:
    """The place of the parenthesis that closes the one at `at`; the text's end where none does."""
    depth = 0
    for i in range(at, len(text)):
        depth += {"(": 1, ")": -1}.get(text[i], 0)
        if depth == 0:
            return i
    return len(text)


def _is_c(text: str, at: int) -> bool:
    """Whether what is declared at `at` has C linkage: by its own declaration, or by a block around it."""
    before = text[:at]
    own = re.split(r"[;{}]", before)[-1]
    if _LINKAGE.search(own):
        return True
    open_: list[int] = []
    for i, c in enumerate(before):
        if c == "{":
            open_.append(i)
        elif c == "}" and open_:
            open_.pop()
    return any(_LINKAGE.search(re.split(r"[;{}]", before[:i])[-1]) for i in open_)


def _parameters(inside: str) -> Iterator[Parameter]:
    for piece in _pieces(inside):
        text = " ".join(piece.split("=")[0].split())
        if not text or text == "void":
            continue
        array = re.search(r"\[[^\]]*\]\s*$", text)
        words = re.findall(r"\w+", text[: array.start()] if array else text)
        named = len(words) > 1 and re.search(r"\w$", text[: array.start()].rstrip() if array else text)
        plain = words[-1] if named and not _QUALIFIERS.fullmatch(words[-1]) else ""
        name = "" if plain in ("int", "long", "short", "char", "float", "double", "unsigned") else plain
        yield Parameter(text, name, "*" in text or array is not None)


def _pieces(inside: str) -> Iterator[str]:
    """The parts between the outer commas."""
    depth, start = 0, 0
    for i, c in enumerate(inside):
        depth += {"(": 1, "[": 1, "{": 1, "<": 1, ")": -1, "]": -1, "}": -1, ">": -1}.get(c, 0)
        if c == "," and depth == 0:
            yield inside[start:i]
            start = i + 1
    yield inside[start:]
