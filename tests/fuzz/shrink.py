"""Makes a failing description smaller: deletes statements, loops, branches, terms and tensors while it fails alike."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import fields, replace
from typing import Any

from .program import Buffer, Program, Variable, valid
from .statements import Box, Branch, Loop, Put, Statement
from .terms import Choose, Get, Number, Pair, Single, Term, To


def shrink(program: Program, fails: Callable[[Program], bool], limit: int = 400) -> Program:
    """The smallest description found within `limit` trials for which `fails` holds."""
    trials = 0
    improved = True
    while improved and trials < limit:
        improved = False
        for smaller in candidates(program):
            if trials >= limit:
                break
            smaller = tidy(smaller)
            if not valid(smaller):
                continue
            trials += 1
            if fails(smaller):
                program, improved = smaller, True
                break
    return program


def candidates(program: Program) -> Iterator[Program]:
    """Descriptions with something less, the boldest first."""
    for body in _smaller_bodies(program.body):
        yield replace(program, body=body)
    for at, (n, _) in enumerate(program.grid):
        if n > 1:
            yield replace(program, grid=(*program.grid[:at], (1, "1"), *program.grid[at + 1 :]))
    if any(t.symbols for t in program.tensors):
        grid = tuple((n, str(n)) for n, _ in program.grid)
        yield replace(program, tensors=tuple(replace(t, symbols=()) for t in program.tensors), grid=grid)
    for body in _simpler_bodies(program.body):
        yield replace(program, body=body)


def _smaller_bodies(body: tuple[Statement, ...]) -> Iterator[tuple[Statement, ...]]:
    half = len(body) // 2
    if half > 1:
        yield body[half:]
        yield body[:half]
    for i in reversed(range(len(body))):
        yield (*body[:i], *body[i + 1 :])
    for i, s in enumerate(body):
        for new in _inlined(s):
            yield (*body[:i], *new, *body[i + 1 :])
        for name in s.bodies:
            for inner in _smaller_bodies(getattr(s, name)):
                if inner or name == "orelse":
                    yield (*body[:i], replace(s, **{name: inner}), *body[i + 1 :])


def _inlined(s: Statement) -> Iterator[tuple[Statement, ...]]:
    if isinstance(s, Branch):
        yield s.then
        yield s.orelse
    if isinstance(s, Loop) and isinstance(s.start, Number):
        yield tuple(_substituted(inner, s.name, s.start) for inner in s.body)


def _substituted(node: Any, name: str, value: Term) -> Any:
    if getattr(node, "name", None) == name and isinstance(node, Term):
        return value
    if isinstance(node, tuple):
        return tuple(_substituted(n, name, value) for n in node)
    if isinstance(node, (Statement, Term, Box)):
        return replace(node, **{f.name: _substituted(getattr(node, f.name), name, value) for f in fields(node)})
    return node


def _simpler_bodies(body: tuple[Statement, ...]) -> Iterator[tuple[Statement, ...]]:
    for i, s in enumerate(body):
        for new in _simpler(s):
            yield (*body[:i], new, *body[i + 1 :])


def _simpler(s: Statement) -> Iterator[Statement]:
    if isinstance(s, Loop):
        if isinstance(s.stop, Number) and s.stop.value_ > 1:
            yield replace(s, stop=Number(s.stop.value_ - 1))
        if s.stages > 2:
            yield replace(s, stages=2)
        if s.kind == "pipelined":
            yield replace(s, kind="serial")
    for name in s.bodies:
        for inner in _simpler_bodies(getattr(s, name)):
            yield replace(s, **{name: inner})
    for name in ("value", "cond", "stop"):
        term = getattr(s, name, None)
        if isinstance(term, Term):
            for new in simpler_terms(term):
                yield replace(s, **{name: new})
    if isinstance(s, Put) and s.add:
        yield replace(s, add=False)


def simpler_terms(t: Term) -> Iterator[Term]:
    """Terms with a node replaced by one of its parts, or by a number."""
    dtype = t.dtype  # type: ignore[attr-defined]
    for part in t.parts():
        if part.dtype == dtype and not isinstance(t, Get):  # type: ignore[attr-defined]
            yield part
    if not isinstance(t, Number) and dtype != "bool":
        yield Number(1, dtype)
    if isinstance(t, (Pair, Choose, Single, To)) or t.parts():
        for f in fields(t):
            value = getattr(t, f.name)
            if isinstance(value, Term):
                for new in simpler_terms(value):
                    yield replace(t, **{f.name: new})
            elif isinstance(value, tuple) and value and isinstance(value[0], Term):
                for i, v in enumerate(value):
                    for new in simpler_terms(v):
                        yield replace(t, **{f.name: (*value[:i], new, *value[i + 1 :])})


def tidy(program: Program) -> Program:
    """Without the tensors, tiles and scalars that nothing names."""
    text = "\n".join(line for s in program.body for line in s.lines(0))
    words = set(_words(text))
    tensors = tuple(t for t in program.tensors if t.name in words)
    symbols = {n for t in tensors for _, n in t.symbols}
    grid = tuple((n, t if not t.startswith("T.") or "m" in symbols else str(n)) for n, t in program.grid)
    return replace(
        program,
        tensors=tensors,
        tiles=tuple(t for t in program.tiles if isinstance(t, (Buffer, Variable)) and t.name in words),
        scalars=tuple(s for s in program.scalars if s[0] in words),
        grid=grid,
    )


def _words(text: str) -> Iterator[str]:
    word = ""
    for c in text + " ":
        if c.isalnum() or c == "_":
            word += c
        elif word:
            yield word
            word = ""
