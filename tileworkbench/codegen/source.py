"""What codegen hands to the runtime: text and plain data, never IR."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from ..errors import Loc

GRID_WORDS = 256  # words of a grid's barrier, one a stream
# A number the host computes at launch: an int, a symbol's name, or (operator, operand, ...) with the operators
# add sub mul floordiv mod ceildiv min max and the comparisons eq ne lt le gt ge (1 or 0).
Host = int | str | tuple[Any, ...]


@dataclass(frozen=True)
class TensorParam:
    """A tensor argument. `shape` and `strides` (in elements) are solved against the actual array: a bare symbol is
    bound by its first use, everything else is checked. `strides` is None for a contiguous row-major tensor. `address`:
    the argument may be the number of an address (a raw pointer in the kernel's text)."""

    name: str
    dtype: str
    shape: tuple[Host, ...]
    strides: tuple[Host, ...] | None = None
    access: str = "r"  # "r", "w", "rw", or "": never touched
    loc: Loc | None = None
    address: bool = False


@dataclass(frozen=True)
class ScalarParam:
    """A scalar argument. A whole-number one may stand in host expressions by its name."""

    name: str
    dtype: str
    default: int | float | bool | None = None
    loc: Loc | None = None


@dataclass(frozen=True)
class TensorMap:
    """Recipe of one TMA descriptor, passed by value as a `__grid_constant__` parameter called `name`.

    `dims` and `strides` are innermost first; strides in bytes without the innermost. `box` in elements, `swizzle` in
    bytes (0, 32, 64, 128), `fill` is "zero" or "nan", `l2` the promotion in bytes (0, 64, 128, 256)."""

    name: str
    tensor: str
    dtype: str
    dims: tuple[Host, ...]
    strides: tuple[Host, ...]
    box: tuple[int, ...]
    swizzle: int = 0
    fill: str = "zero"
    l2: int = 128
    offset: Host = 0  # bytes from the tensor's base


@dataclass(frozen=True)
class KernelArg:
    """One parameter of the C signature, in order: a tensor's pointer, a scalar, a symbol (int32 or int64), a map, or a
    number of the stream that the launch is on (launches on one stream never run at the same time)."""

    kind: str  # "pointer", "scalar", "symbol", "map", "stream"
    name: str
    dtype: str = ""


@dataclass(frozen=True)
class Fact:
    """An assumption the text was built under: `condition` must be nonzero at launch. A condition may use the
    symbols `<tensor>.ptr` (address) and `<tensor>.stride<i>` (elements). `text` is what the user is shown.
    An address may be asked for its remainder by a power of two up to 256 at no cost per call; anything else about it is
    evaluated at every call. `required`: the user states it of every call; no variant is for others."""

    condition: Host
    text: str
    required: bool = False


@dataclass(frozen=True)
class Source:
    """Generated text of one kernel with everything needed to build and launch it."""

    text: str
    entry: str
    dialect: str  # "cuda" or "hip"
    arch: str  # "sm_90a", "gfx942", ...
    params: tuple[TensorParam | ScalarParam, ...]
    args: tuple[KernelArg, ...]
    grid: tuple[Host, ...]
    threads: int
    shared_bytes: int = 0
    cluster: tuple[int, ...] = (1, 1, 1)
    cooperative: bool = False  # the blocks meet: all of them must be resident at once
    maps: tuple[TensorMap, ...] = ()
    facts: tuple[Fact, ...] = ()
    # line_map[i] is the user's place that generated line i + 1 of `text` came from.
    line_map: tuple[Loc | None, ...] = ()
    headers: tuple[tuple[str, str], ...] = ()  # (include name, text) of our own headers
    brought: tuple[tuple[int, int], ...] = ()  # first and last line of each text that the user brought
    block: tuple[int, ...] = ()  # shape of a block, where it is not (threads,)
    options: tuple[tuple[str, str], ...] = field(default=())  # typed build options, e.g. ("fast_math", "1")
