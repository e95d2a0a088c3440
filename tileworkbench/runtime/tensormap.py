"""TMA descriptors: every rule of the hardware checked here first, then encoded by the driver and kept."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from typing import Any

from ..codegen.source import TensorMap
from ..errors import LaunchError, Loc
from . import dtypes, hostexpr
from .driver import Driver

KEPT = 4096  # descriptors per kernel, 192 bytes each
SWIZZLES = {0: 0, 32: 1, 64: 2, 128: 3}  # bytes to CUtensorMapSwizzle
PROMOTIONS = {0: 0, 64: 1, 128: 2, 256: 3}  # bytes to CUtensorMapL2promotion
FILLS = {"zero": 0, "nan": 1}


@dataclass(frozen=True)
class Geometry:
    """A recipe with its numbers: `dims` innermost first, `strides` in bytes without the innermost; `offset` too."""

    recipe: TensorMap
    dims: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int
    loc: Loc | None = None


class EncodedMap:
    """128 bytes at a 64-byte boundary, which is what the driver demands of a descriptor."""

    __slots__ = ("_memory", "address")

    def __init__(self) -> None:
        self._memory = ctypes.create_string_buffer(192)
        self.address = -(-ctypes.addressof(self._memory) // 64) * 64

    def __bytes__(self) -> bytes:
        return ctypes.string_at(self.address, 128)


class TensorMaps:
    """The descriptors of one kernel by (recipe, address, sizes, strides); the oldest go first."""

    def __init__(self, driver: Driver) -> None:
        self._driver = driver
        self._kept: dict[tuple[Any, ...], EncodedMap] = {}

    def get(self, geometry: Geometry, base: int) -> EncodedMap:
        """The descriptor of a tensor at address `base`; LaunchError when a rule of TMA does not hold."""
        recipe, address = geometry.recipe, base + geometry.offset
        key = (recipe.name, address, geometry.dims, geometry.strides)
        found = self._kept.get(key)
        if found is None:
            found = encode(self._driver, geometry, address)
            while len(self._kept) >= KEPT:  # another thread may empty it meanwhile
                self._kept.pop(next(iter(self._kept), key), None)
            self._kept[key] = found
        return found


def encode(driver: Driver, geometry: Geometry, address: int) -> EncodedMap:
    """Checks the rules and has the driver encode; LaunchError names the tensor, the number and the rule."""
    check(geometry, address)
    recipe, made = geometry.recipe, EncodedMap()
    driver.encode_tiled(
        made.address,
        dtypes.element(recipe.dtype).tma,
        address,
        geometry.dims,
        geometry.strides,
        recipe.box,
        SWIZZLES[recipe.swizzle],
        PROMOTIONS[recipe.l2],
        FILLS[recipe.fill],
    )
    return made


def geometry(recipe: TensorMap, values: hostexpr.Values, loc: Loc | None) -> Geometry:
    """The numbers of a recipe for one set of symbol values."""

    def numbers(exprs: tuple[Any, ...]) -> tuple[int, ...]:
        return tuple(hostexpr.evaluate(e, values) for e in exprs)

    return Geometry(recipe, numbers(recipe.dims), numbers(recipe.strides), numbers((recipe.offset,))[0], loc)


def check(geometry: Geometry, address: int) -> None:
    """Raises LaunchError for the first rule of tiled TMA that does not hold."""
    for holds, found, rule in _rules(geometry, address):
        if not holds:
            tensor = geometry.recipe.tensor
            raise LaunchError(
                f"{tensor} cannot be copied by TMA: {found}",
                rule=rule,
                fix=f"pad or copy {tensor}, or keep this copy from TMA",
                loc=geometry.loc,
            )


def _rules(geometry: Geometry, address: int) -> list[tuple[bool, str, str]]:
    recipe, dims, strides = geometry.recipe, geometry.dims, geometry.strides
    element, rank, box = dtypes.element(recipe.dtype), len(dims), recipe.box
    inner = box[0] * element.bytes if box else 0
    swizzle, fill = recipe.swizzle, recipe.fill
    return [
        (1 <= rank <= 5, f"it has {rank} dimensions", "a descriptor has 1 to 5 dimensions"),
        (len(strides) == rank - 1, f"{len(strides)} strides for {rank} dimensions", "one stride less than dimensions"),
        (len(box) == rank, f"a box of {len(box)} dimensions for {rank}", "the box has the tensor's rank"),
        (all(1 <= b <= 256 for b in box), f"the box is {box}", "a box is 1 to 256 elements wide in each dimension"),
        (inner % 16 == 0, f"the box is {inner} bytes wide inside", "a box's inner width is a multiple of 16 bytes"),
        (swizzle in SWIZZLES, f"swizzle {swizzle}", "a swizzle is 0, 32, 64 or 128 bytes"),
        (swizzle == 0 or inner <= swizzle, f"a box {inner} bytes wide inside under swizzle {swizzle}",
         "a swizzled box's inner width is at most the swizzle's span"),
        (recipe.l2 in PROMOTIONS, f"L2 promotion {recipe.l2}", "L2 promotion is 0, 64, 128 or 256 bytes"),
        (fill in FILLS and (fill == "zero" or element.kind == "float"), f"fill {fill!r} of {recipe.dtype}",
         "elements outside are zero, or NaN for floating point"),
        (all(1 <= d <= 1 << 32 for d in dims), f"its extents are {dims}", "extents are 1 to 2**32"),
        (all(s % 16 == 0 for s in strides), f"its row pitch is {strides} bytes", "a pitch is a multiple of 16 bytes"),
        (all(0 <= s < 1 << 40 for s in strides), f"its row pitch is {strides} bytes", "a pitch is below 2**40 bytes"),
        (address % 16 == 0 and address > 0, f"it starts at address {address:#x}", "the address is a multiple of 16"),
    ]  # fmt: skip
