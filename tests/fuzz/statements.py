"""Statements of a description: text, and meaning in NumPy for one block. Nothing here knows the compiler's IR."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .terms import EXACT, Env, Get, Invalid, Term, Tile, require_exact

INDENT = "    "
STEPS = 4000  # of tile statements that one block may take


@dataclass(frozen=True)
class Statement:
    """One statement; `bodies` names its fields that hold statements."""

    bodies = ()

    def children(self) -> Iterator[Statement]:
        for name in self.bodies:
            yield from getattr(self, name)


def block_text(body: tuple[Statement, ...], indent: int) -> list[str]:
    if not body:
        return [INDENT * indent + "pass"]
    return [line for s in body for line in s.lines(indent)]


def run_body(body: tuple[Statement, ...], env: Env) -> None:
    """Statements in order; names that they bind end with the body."""
    bound = set(env.names)
    for s in body:
        env.names[""] = env.names.get("", 0) + 1  # steps taken
        if env.names[""] > STEPS:
            raise Invalid("too many steps")
        s.run(env)
    for name in [n for n in env.names if n and n not in bound]:
        del env.names[name]


def scalar(term: Term, env: Env) -> int:
    return int(np.asarray(term.value(env)))


# --- element statements (bodies of parallel loops) -------------------------------------------------------------------
@dataclass(frozen=True)
class Put(Statement):
    """`buffer[index] = value` in every iteration; a store past a global tensor's end is dropped. `add`: `+=`."""

    target: Get
    value: Term
    add: bool = False

    def lines(self, indent: int) -> list[str]:
        return [f"{INDENT * indent}{self.target.text()} {'+=' if self.add else '='} {self.value.text()}"]

    def run(self, env: Env) -> None:
        tile = env.tiles.get(self.target.buffer)
        if tile is None:
            raise Invalid(f"{self.target.buffer} is not in scope")
        value = self.value.value(env)
        if self.add:
            value = value + self.target.value(env)
        value = require_exact(value, self.target.dtype, env)
        store(tile, [i.value(env) for i in self.target.index], value, env)


def store(tile: Tile, index: list[Any], value: Any, env: Env) -> None:
    arrays = np.broadcast_arrays(*index, value, env.live)
    live, value, index = arrays[-1].astype(bool), arrays[-2], arrays[:-2]
    inside = np.logical_and.reduce([(i >= 0) & (i < n) for i, n in zip(index, tile.data.shape, strict=True)])
    if not tile.outside and (live & ~inside).any():
        raise Invalid("a store outside the tile")
    at = tuple(i[live & inside] for i in index)
    if at and len({*zip(*[a.tolist() for a in at], strict=True)}) != len(at[0]):
        raise Invalid("two iterations store to one element")
    tile.note_write(at)
    tile.data[at] = value[live & inside]
    tile.defined[at] = True


@dataclass(frozen=True)
class Atomic(Statement):
    """`T.atomic_add / max / min` on integers: iterations and blocks may meet in one element."""

    kind: str
    target: Get
    value: Term

    def lines(self, indent: int) -> list[str]:
        return [f"{INDENT * indent}T.atomic_{self.kind}({self.target.text()}, {self.value.text()})"]

    def run(self, env: Env) -> None:
        tile = env.tiles.get(self.target.buffer)
        if tile is None:
            raise Invalid(f"{self.target.buffer} is not in scope")
        value = require_exact(self.value.value(env), self.target.dtype, env)
        arrays = np.broadcast_arrays(*[i.value(env) for i in self.target.index], value, env.live)
        live, value, index = arrays[-1].astype(bool), arrays[-2], arrays[:-2]
        inside = np.logical_and.reduce([(i >= 0) & (i < n) for i, n in zip(index, tile.data.shape, strict=True)])
        if not tile.outside and (live & ~inside).any():
            raise Invalid("an atomic outside the tile")
        at = tuple(i[live & inside] for i in index)
        if not tile.defined[at].all():
            raise Invalid("an atomic on an undefined element")
        {"add": np.add, "max": np.maximum, "min": np.minimum}[self.kind].at(tile.data, at, value[live & inside])
        require_exact(tile.data[at], self.target.dtype, Env({}, {}))


@dataclass(frozen=True)
class Let(Statement):
    """`name = value`, at tile level or in a parallel loop."""

    name: str
    value: Term

    def lines(self, indent: int) -> list[str]:
        return [f"{INDENT * indent}{self.name} = {self.value.text()}"]

    def run(self, env: Env) -> None:
        env.names[self.name] = self.value.value(env)


@dataclass(frozen=True)
class Branch(Statement):
    """`if`, in a parallel loop per iteration, at tile level per block."""

    cond: Term
    then: tuple[Statement, ...]
    orelse: tuple[Statement, ...] = ()
    bodies = ("then", "orelse")

    def lines(self, indent: int) -> list[str]:
        out = [f"{INDENT * indent}if {self.cond.text()}:", *block_text(self.then, indent + 1)]
        return out + ([f"{INDENT * indent}else:", *block_text(self.orelse, indent + 1)] if self.orelse else [])

    def run(self, env: Env) -> None:
        cond = np.asarray(self.cond.value(env)) != 0
        for taken, body in ((cond, self.then), (~cond, self.orelse)):
            inner = env.only(taken)
            if np.any(inner.live):
                run_body(body, inner)


# --- tile statements --------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Parallel(Statement):
    names: tuple[str, ...]
    extents: tuple[int, ...]
    body: tuple[Statement, ...]
    bodies = ("body",)

    def lines(self, indent: int) -> list[str]:
        head = f"for {', '.join(self.names)} in T.Parallel({', '.join(map(str, self.extents))}):"
        return [INDENT * indent + head, *block_text(self.body, indent + 1)]

    def run(self, env: Env) -> None:
        axes = np.indices(self.extents, dtype=np.int64)
        names = dict(env.names) | dict(zip(self.names, axes, strict=True))
        stores = stored_at(self.body)
        live = np.ones(self.extents, bool) & np.asarray(env.live)
        run_body(self.body, Env(names, env.tiles, live, stores))


def stored_at(body: tuple[Statement, ...]) -> dict[str, str]:
    """The buffers that iterations store to, each with the text of its one index."""
    stores: dict[str, str] = {}
    for s in everything(body):
        if isinstance(s, Put) and stores.setdefault(s.target.buffer, s.target.at()) != s.target.at():
            raise Invalid("a loop stores to a buffer at two places")
        if isinstance(s, Atomic) and stores.setdefault(s.target.buffer, "atomic") != "atomic":
            raise Invalid("a loop stores to a buffer that it updates atomically")
    return stores


def everything(body: tuple[Statement, ...]) -> Iterator[Statement]:
    """All statements, at any depth."""
    for s in body:
        yield s
        yield from everything(tuple(s.children()))


@dataclass(frozen=True)
class Loop(Statement):
    """`for name in range / T.serial / T.unroll / T.Pipelined`. `stages` is for pipelined loops."""

    kind: str
    name: str
    start: Term
    stop: Term
    step: int
    body: tuple[Statement, ...]
    stages: int = 0
    bodies = ("body",)

    def lines(self, indent: int) -> list[str]:
        bounds = self.stop.text()
        if self.start.text() != "0" or self.step != 1:
            bounds = f"{self.start.text()}, {bounds}"
        if self.step != 1:
            bounds += f", {self.step}"
        call = {"range": "range", "serial": "T.serial", "unroll": "T.unroll", "pipelined": "T.Pipelined"}[self.kind]
        if self.kind == "pipelined":
            bounds += f", num_stages={self.stages}"
        return [f"{INDENT * indent}for {self.name} in {call}({bounds}):", *block_text(self.body, indent + 1)]

    def run(self, env: Env) -> None:
        start, stop = (np.asarray(t.value(env)) for t in (self.start, self.stop))
        if start.ndim or stop.ndim:
            raise Invalid("a loop bound differs between iterations")
        for i in range(int(start), int(stop), self.step):
            inner = Env({**env.names, self.name: np.int64(i)}, env.tiles, env.live, env.stores)
            run_body(self.body, inner)
            for name in env.names:  # alloc_var values and the step count go on
                env.names[name] = inner.names.get(name, env.names[name])


@dataclass(frozen=True)
class Box:
    """A region: one start per dimension with an extent, or whole dimensions (start None)."""

    buffer: str
    starts: tuple[Term | None, ...]
    extents: tuple[int, ...]
    form: str = "slice"  # "whole", "slice" or "corner" (an element, whose extents come from the other side)

    def text(self) -> str:
        if self.form == "whole":
            return self.buffer
        if self.form == "corner":
            return f"{self.buffer}[{', '.join(s.text() for s in self.starts)}]"
        entries = []
        for s, n in zip(self.starts, self.extents, strict=True):
            if s is None:
                entries.append(":")
            elif n == 1:
                entries.append(s.text())
            else:
                entries.append(f"{s.text()} : {s.text()} + {n}")
        return f"{self.buffer}[{', '.join(entries)}]"

    def grid(self, env: Env) -> list[Any]:
        starts = [0 if s is None else scalar(s, env) for s in self.starts]
        axes = np.indices(self.extents, dtype=np.int64)
        return [axis + start for axis, start in zip(axes, starts, strict=True)]

    def read(self, env: Env) -> np.ndarray:
        tile = env.tiles.get(self.buffer)
        if tile is None:
            raise Invalid(f"{self.buffer} is not in scope")
        index = self.grid(env)
        inside = np.logical_and.reduce([(i >= 0) & (i < n) for i, n in zip(index, tile.data.shape, strict=True)])
        if not tile.outside and not inside.all():
            raise Invalid("a region outside the tile")
        if not tile.data.size:
            return np.zeros(self.extents, np.int64)
        clipped = tuple(np.clip(i, 0, n - 1) for i, n in zip(index, tile.data.shape, strict=True))
        if not tile.defined[clipped][inside].all():
            raise Invalid(f"{self.text()} is undefined")
        tile.note_read(tuple(c[inside] for c in clipped))
        return np.where(inside, tile.data[clipped], 0)

    def write(self, env: Env, value: np.ndarray) -> None:
        tile = env.tiles.get(self.buffer)
        if tile is None:
            raise Invalid(f"{self.buffer} is not in scope")
        value = require_exact(np.broadcast_to(value, self.extents), tile.dtype, Env({}, {}))
        store(tile, self.grid(env), value, env)


@dataclass(frozen=True)
class Copy(Statement):
    src: Box
    dst: Box
    hints: str = ""

    def lines(self, indent: int) -> list[str]:
        return [f"{INDENT * indent}T.copy({self.src.text()}, {self.dst.text()}{self.hints})"]

    def run(self, env: Env) -> None:
        self.dst.write(env, self.src.read(env).reshape(self.dst.extents))


@dataclass(frozen=True)
class Fill(Statement):
    dst: Box
    value: Term
    clear: bool = False

    def lines(self, indent: int) -> list[str]:
        call = f"T.clear({self.dst.text()})" if self.clear else f"T.fill({self.dst.text()}, {self.value.text()})"
        return [INDENT * indent + call]

    def run(self, env: Env) -> None:
        self.dst.write(env, np.int64(0) if self.clear else np.asarray(self.value.value(env)))


@dataclass(frozen=True)
class Reduce(Statement):
    kind: str
    src: Box
    dst: Box
    dim: int
    clear: bool = True

    def lines(self, indent: int) -> list[str]:
        tail = "" if self.clear else ", clear=False"
        return [f"{INDENT * indent}T.reduce_{self.kind}({self.src.text()}, {self.dst.text()}, dim={self.dim}{tail})"]

    def run(self, env: Env) -> None:
        value = self.src.read(env)
        if self.kind.startswith("abs"):
            value = np.abs(value)
        fn = {
            "sum": np.add, "abssum": np.add, "max": np.maximum, "absmax": np.maximum, "min": np.minimum,
            "bitand": np.bitwise_and, "bitor": np.bitwise_or, "bitxor": np.bitwise_xor,
        }[self.kind]  # fmt: skip
        out = fn.reduce(value, axis=self.dim).reshape(self.dst.extents)
        require_exact(np.abs(value).sum(self.dim), self._accumulator(env), Env({}, {}))
        self.dst.write(env, out if self.clear else fn(self.dst.read(env), out))

    def _accumulator(self, env: Env) -> str:
        """Partial sums of any order must be exact; narrow floats are summed in float32."""
        dtype = env.tiles[self.src.buffer].dtype
        return "float32" if "float" in dtype else dtype if "sum" in self.kind else "int32"


@dataclass(frozen=True)
class Scan(Statement):
    """`T.cumsum` or `T.cummax`."""

    kind: str
    src: Box
    dst: Box
    dim: int
    reverse: bool

    def lines(self, indent: int) -> list[str]:
        tail = ", reverse=True" if self.reverse else ""
        return [f"{INDENT * indent}T.cum{self.kind}({self.src.text()}, {self.dst.text()}, dim={self.dim}{tail})"]

    def run(self, env: Env) -> None:
        value = self.src.read(env)
        value = np.flip(value, self.dim) if self.reverse else value
        out = (np.add if self.kind == "sum" else np.maximum).accumulate(value, axis=self.dim)
        if self.kind == "sum":
            require_exact(np.abs(value).sum(self.dim), env.tiles[self.src.buffer].dtype, Env({}, {}))
        self.dst.write(env, np.flip(out, self.dim) if self.reverse else out)


@dataclass(frozen=True)
class Gemm(Statement):
    a: Box
    b: Box
    c: Box
    transpose_a: bool
    transpose_b: bool
    clear: bool = False
    policy: str = ""

    def lines(self, indent: int) -> list[str]:
        out = f"T.gemm({self.a.text()}, {self.b.text()}, {self.c.text()}"
        out += ", transpose_A=True" * self.transpose_a + ", transpose_B=True" * self.transpose_b
        out += ", clear_accum=True" * self.clear
        out += f", policy=T.GemmWarpPolicy.{self.policy}" if self.policy else ""
        return [f"{INDENT * indent}{out})"]

    def run(self, env: Env) -> None:
        a, b = self.a.read(env), self.b.read(env)
        a, b = (a.T if self.transpose_a else a), (b.T if self.transpose_b else b)
        dtype = env.tiles[self.c.buffer].dtype
        require_exact(np.abs(a) @ np.abs(b), dtype, Env({}, {}))
        self.c.write(env, a @ b if self.clear else self.c.read(env) + a @ b)


@dataclass(frozen=True)
class SetVar(Statement):
    """Assignment to an alloc_var."""

    name: str
    dtype: str
    value: Term
    add: bool = False

    def lines(self, indent: int) -> list[str]:
        return [f"{INDENT * indent}{self.name} {'+=' if self.add else '='} {self.value.text()}"]

    def run(self, env: Env) -> None:
        value = np.asarray(self.value.value(env)) + (env.names[self.name] if self.add else 0)
        if np.ndim(value):
            raise Invalid("a variable set to different values")
        env.names[self.name] = require_exact(value, self.dtype, env)


__all__ = [
    "EXACT", "Atomic", "Box", "Branch", "Copy", "Fill", "Gemm", "Let", "Loop", "Parallel", "Put", "Reduce", "SetVar",
    "Statement", "block_text", "everything", "replace", "run_body", "scalar", "store", "stored_at",
]  # fmt: skip
