"""What a call of one signature comes to: the chosen variant, the numbers, and arguments ready but for the pointers."""

from __future__ import annotations

import ctypes
import math
import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..codegen.source import Source
from ..errors import InternalError, LaunchError
from ..target import LARGEST_GRID
from . import dtypes, hostexpr
from .bind import Binding, tensor_params
from .driver import Driver, Launch
from .tensormap import EncodedMap, Geometry, TensorMaps, geometry

_INT32 = (-(2**31), 2**31 - 1)


@dataclass(frozen=True)
class Output:
    """An array to allocate at each call; `place` counts among the tensors."""

    place: int
    shape: tuple[int, ...]
    dtype: str


_streams: dict[int, int] = {}


def stream_number(stream: int) -> int:
    """A small number for a stream, the same for all kernels."""
    return _streams.setdefault(stream, len(_streams))


def require_resident(source: Source, grid: tuple[int, ...], most: int) -> None:
    """LaunchError when the blocks of a grid that meets cannot all run at the same time."""
    blocks = math.prod(grid)
    if blocks > most:
        raise LaunchError(
            f"{source.entry} meets with all {blocks} blocks of its grid (T.sync_grid)",
            rule=f"{most} of its blocks run on this device at the same time",
            fix="launch at most that many blocks, and let each walk over several tiles",
        )


class _Nothing:
    """What a plan launches before it is prepared."""

    def call(self) -> int:
        return 0

    def set_stream(self, stream: int) -> None:
        """No launch, no stream."""


class Plan:
    """A prepared launch. It belongs to one thread, since its argument slots are written at each call.

    The slots hold the tensors' addresses first, then scalars and symbols; the table holds where each argument is."""

    __slots__ = (
        "_held",
        "_map_slots",
        "_maps",
        "_pack",
        "_scalar_slots",
        "_slots",
        "_stream",
        "_stream_slot",
        "_table",
        "device",
        "launch",
        "library",
        "outputs",
        "pointers",
    )

    def __init__(self, source: Source, values: Mapping[str, int], maps: TensorMaps, device: int) -> None:
        tensors = len(tensor_params(source.params))
        self._slots = (ctypes.c_uint64 * (tensors + len(source.args) + 1))()
        self._table = (ctypes.c_void_p * max(len(source.args), 1))()
        self._pack = struct.Struct(f"={tensors}Q").pack_into
        self._maps, self._stream, self.device = maps, 0, device
        self._stream_slot: int | None = None
        self._held: list[EncodedMap | None] = []
        self._scalar_slots: list[tuple[int, str]] = []
        self._map_slots: list[tuple[int, int, Geometry]] = []  # (argument, place among the tensors, numbers)
        self.pointers: tuple[int, ...] = ()
        self.launch: Launch = _Nothing()
        self.outputs: tuple[Output, ...] = ()
        self.library = ""
        self._lay_out(source, values)

    def set_scalars(self, values: Mapping[str, int]) -> None:
        """Writes scalar arguments, given as bits by name."""
        for slot, name in self._scalar_slots:
            self._slots[slot] = values[name]

    def set_pointers(self, pointers: tuple[int, ...]) -> None:
        """Writes the tensors' addresses and the descriptors that follow from them."""
        self._pack(self._slots, 0, *pointers)
        if self._map_slots:
            for i, (argument, place, shape) in enumerate(self._map_slots):
                found = self._maps.get(shape, pointers[place])
                self._held[i] = found  # the launch reads it by address
                self._table[argument] = found.address
        self.pointers = pointers

    def set_stream(self, stream: int) -> None:
        if stream != self._stream:
            self.launch.set_stream(stream)
            self._stream = stream
            if self._stream_slot is not None:
                self._slots[self._stream_slot] = stream_number(stream)

    def prepare(self, driver: Driver, source: Source, function: int, grid: tuple[int, ...]) -> None:
        cluster = (*source.cluster, 1, 1)[:3]
        if source.cooperative:
            require_resident(source, grid, driver.resident(self.device, function, source.threads, source.shared_bytes))
        self.launch = driver.prepare(
            function, grid, block_of(source), source.shared_bytes, cluster, self._table, source.cooperative
        )

    def _lay_out(self, source: Source, values: Mapping[str, int]) -> None:
        tensors = tensor_params(source.params)
        places = {param.name: i for i, param in enumerate(tensors)}
        recipes = {recipe.name: recipe for recipe in source.maps}
        base = ctypes.addressof(self._slots)
        for i, arg in enumerate(source.args):
            slot = places[arg.name] if arg.kind == "pointer" else len(tensors) + i
            self._table[i] = base + 8 * slot
            if arg.kind == "scalar":
                self._scalar_slots.append((slot, arg.name))
            elif arg.kind == "symbol":
                self._slots[slot] = symbol_bits(arg.name, arg.dtype, values)
            elif arg.kind == "map":
                place = places[recipes[arg.name].tensor]
                self._map_slots.append((i, place, geometry(recipes[arg.name], values, tensors[place].loc)))
                self._held.append(None)
            elif arg.kind == "stream":
                self._stream_slot, self._slots[slot] = slot, stream_number(0)
            elif arg.kind != "pointer":
                raise InternalError(f"an argument of kind {arg.kind!r} is unknown to the launcher")


def symbol_bits(name: str, dtype: str, values: Mapping[str, int]) -> int:
    """A symbol as bits of its declared integer type."""
    try:
        return dtypes.packer(dtype or "int32")(values[name])
    except KeyError:
        raise InternalError(f"the kernel takes {name!r}, which no tensor's shape or stride defines") from None
    except LaunchError as error:
        raise LaunchError(f"{name}: {error.found}", rule=error.rule, fix="use a smaller extent") from None


def block_of(source: Source) -> tuple[int, int, int]:
    """Threads of a block in x, y and z."""
    x, y, z = (*(source.block or (source.threads,)), 1, 1)[:3]
    return x, y, z


def grid_of(source: Source, values: Mapping[str, int]) -> tuple[int, int, int]:
    """Blocks in x, y and z; LaunchError beyond the hardware's limits."""
    numbers = [hostexpr.evaluate(expr, values) for expr in source.grid]
    x, y, z = (*numbers, 1, 1, 1)[:3]
    for axis, number, most in zip("xyz", (x, y, z), LARGEST_GRID, strict=True):
        if not 1 <= number <= most:
            formula = hostexpr.text(source.grid["xyz".index(axis)])
            raise LaunchError(
                f"the grid has {number} blocks in {axis} ({formula})",
                rule=f"a grid has 1 to {most} there",
                fix="use larger tiles, or another dimension of the grid"
                if number > 0
                else "call it when there is work",
            )
    for axis, number, extent in zip("xyz", (x, y, z), (*source.cluster, 1, 1), strict=False):
        if number % extent:
            raise LaunchError(
                f"the grid has {number} blocks in {axis}, in clusters of {extent}",
                rule="a grid is whole clusters",
                fix="use sizes that make whole clusters, or no cluster",
            )
    return x, y, z


def output_specs(source: Source, missing: Sequence[int], binding: Binding) -> tuple[Output, ...]:
    """Shapes of the tensors to allocate; `missing` are places among the parameters."""
    tensors = tensor_params(source.params)
    outputs = []
    for place in missing:
        param = source.params[place]
        unknown = {n for e in param.shape for n in hostexpr.symbols(e)} - binding.values.keys()  # type: ignore[union-attr]
        if unknown:
            raise LaunchError(
                f"the shape of the output {param.name} needs {', '.join(sorted(unknown))}, which no input has",
                rule="an output is allocated by the sizes of the inputs",
                fix=f"pass {param.name} yourself",
                loc=param.loc,
            )
        shape = tuple(hostexpr.evaluate(e, binding.values) for e in param.shape)  # type: ignore[union-attr]
        outputs.append(Output(tensors.index(param), shape, param.dtype))  # type: ignore[arg-type]
    return tuple(outputs)


def packers(source: Source) -> dict[str, Callable[[Any], int]]:
    """How each scalar argument becomes bits."""
    return {arg.name: dtypes.packer(arg.dtype) for arg in source.args if arg.kind == "scalar"}
