"""A whole description: tensors, tiles, grid, body; its kernel text, its arguments and its NumPy reference."""

from __future__ import annotations

import itertools
import linecache
from dataclasses import dataclass, replace
from typing import Any

import ml_dtypes
import numpy as np

import tileworkbench.language as T
from tileworkbench.jitkernel.settings import with_settings

from .statements import INDENT, Statement, block_text, everything, run_body
from .terms import Env, Invalid, Tile
from .thread_statements import THREADS, EachThread, Warps

CONTAINER = {
    "float16": np.float16, "bfloat16": ml_dtypes.bfloat16, "float32": np.float32, "int8": np.int8, "int16": np.int16,
    "int32": np.int32, "uint8": np.uint8, "bool": np.bool_,
}  # fmt: skip
_NUMBER = itertools.count()


@dataclass(frozen=True)
class Tensor:
    """A global tensor; `symbols` maps a dimension to the name of its run-time extent. Values lie in [low, high]."""

    name: str
    shape: tuple[int, ...]
    dtype: str
    low: int
    high: int
    symbols: tuple[tuple[int, str], ...] = ()

    def text(self) -> str:
        names = dict(self.symbols)
        dims = [names.get(d, str(n)) for d, n in enumerate(self.shape)]
        return f'{self.name}: T.Tensor(({", ".join(dims)}{"," * (len(dims) == 1)}), "{self.dtype}")'


@dataclass(frozen=True)
class Buffer:
    """A tile: shared or fragment."""

    name: str
    space: str
    shape: tuple[int, ...]
    dtype: str

    def text(self) -> str:
        shape = f"({', '.join(map(str, self.shape))}{',' * (len(self.shape) == 1)})"
        return f'{self.name} = T.alloc_{self.space}({shape}, "{self.dtype}")'


@dataclass(frozen=True)
class Variable:
    """An alloc_var with its first value."""

    name: str
    dtype: str
    init: int

    def text(self) -> str:
        return f'{self.name} = T.alloc_var("{self.dtype}", init={self.init})'


@dataclass(frozen=True)
class Program:
    """`grid`: for each axis its extent and its text; `scalars`: run-time int32 parameters with their values."""

    tensors: tuple[Tensor, ...]
    grid: tuple[tuple[int, str], ...]
    threads: int
    tiles: tuple[Buffer | Variable, ...]
    body: tuple[Statement, ...]
    scalars: tuple[tuple[str, int], ...] = ()
    seed: int = 0
    configs: tuple[tuple[str, bool], ...] = ()  # pass_configs, none of which may change a result
    piece: int = 0  # threads of the smallest part of a block that a branch gives tile operations to
    start: int = 0  # elements from a multiple of 16 bytes to where every tensor starts

    @property
    def least_threads(self) -> int:
        """Fewer would leave one side of a branch without threads, or drop threads that store."""
        by_thread = any(isinstance(s, (EachThread, Warps)) for s in everything(self.body))
        return max(THREADS if by_thread else 1, 2 * self.piece)

    @property
    def blocks(self) -> tuple[str, ...]:
        return ("bx", "by", "bz")[: len(self.grid)]

    def symbols(self) -> dict[str, int]:
        return {name: t.shape[d] for t in self.tensors for d, name in t.symbols}

    def text(self) -> str:
        """The kernel as a user would write it."""
        lines = [f'{name} = T.dynamic("{name}")' for name in self.symbols()]
        params = [t.text() for t in self.tensors] + [f"{n}: T.int32" for n, _ in self.scalars]
        lines += ["", "", "@T.prim_func", f"def kernel({', '.join(params)}):"]
        target = f"({', '.join(self.blocks)})" if len(self.grid) > 1 else "bx"
        lines.append(
            f"{INDENT}with T.Kernel({', '.join(t for _, t in self.grid)}, threads={self.threads}) as {target}:"
        )
        if any(isinstance(s, (EachThread, Warps)) for s in everything(self.body)):
            lines.append(f"{INDENT * 2}tx = T.get_thread_binding()")
        lines += [INDENT * 2 + tile.text() for tile in self.tiles]
        lines += block_text(self.body, 2)
        return "\n".join(lines).lstrip("\n") + "\n"

    def kernel(self) -> Any:
        """The text read by the language, through a registered source as a notebook registers its cells."""
        text, file = self.text(), f"<fuzz {self.seed} {next(_NUMBER)}>"
        linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
        space: dict[str, Any] = {"T": T}
        try:
            exec(compile(text, file, "exec"), space)
        finally:
            if len(linecache.cache) > 400:
                for old in [f for f in linecache.cache if f.startswith("<fuzz ") and f != file]:
                    del linecache.cache[old]
        kernel = space["kernel"].kernel
        return with_settings(kernel, dict(self.configs), None) if self.configs else kernel

    def arguments(self) -> list[Any]:
        """Fresh arguments: the same for every call."""
        rng = np.random.default_rng(self.seed)
        arrays = [rng.integers(t.low, t.high + 1, t.shape).astype(CONTAINER[t.dtype]) for t in self.tensors]
        arrays = [placed(a, self.start * a.itemsize) for a in arrays] if self.start else arrays
        return [*arrays, *[value for _, value in self.scalars]]

    def expected(self) -> list[np.ndarray]:
        """All tensors after the call; Invalid when the description means nothing."""
        arrays = self.arguments()[: len(self.tensors)]
        tiles = {
            t.name: Tile(
                a.astype(np.int64), np.ones(t.shape, bool), t.dtype, True, np.full(t.shape, -1), np.full(t.shape, -1)
            )
            for t, a in zip(self.tensors, arrays, strict=True)
        }
        shared = dict(self.symbols()) | dict(self.scalars)
        extents = [n for n, _ in self.grid]
        for number, index in enumerate(np.ndindex(*extents)):
            names: dict[str, Any] = {k: np.int64(v) for k, v in shared.items()}
            names |= {b: np.int64(i) for b, i in zip(self.blocks, index, strict=True)}
            local = dict(tiles)
            for made in self.tiles:
                if isinstance(made, Variable):
                    names[made.name] = np.int64(made.init)
                else:
                    local[made.name] = Tile(np.zeros(made.shape, np.int64), np.zeros(made.shape, bool), made.dtype)
            for tile in tiles.values():
                tile.block = number
            run_body(self.body, Env(names, local))
        if any(tile.blocks_meet() for tile in tiles.values()):
            raise Invalid("a block reads what another one writes")
        return [tiles[t.name].data.astype(CONTAINER[t.dtype]) for t in self.tensors]


def placed(array: np.ndarray, after: int) -> np.ndarray:
    """A copy that starts `after` bytes behind a multiple of 16."""
    room = np.empty(array.nbytes + after + 16, np.uint8)
    first = -room.ctypes.data % 16 + after
    out = room[first : first + array.nbytes].view(array.dtype).reshape(array.shape)
    out[...] = array
    return out


def valid(program: Program) -> bool:
    try:
        program.expected()
    except (Invalid, ValueError, IndexError, KeyError):
        return False
    return True


def with_stages(body: tuple[Statement, ...], stages: int) -> tuple[Statement, ...]:
    """The body with another number of stages in every pipelined loop."""
    out = []
    for s in body:
        changes: dict[str, Any] = {name: with_stages(getattr(s, name), stages) for name in s.bodies}
        if getattr(s, "kind", "") == "pipelined":
            changes["stages"] = stages
        out.append(replace(s, **changes) if changes else s)
    return tuple(out)
