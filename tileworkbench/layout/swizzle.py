"""XOR swizzles on offsets, and their composition with a layout."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tileworkbench.errors import LayoutError
from tileworkbench.layout.layout import Layout


@dataclass(frozen=True)
class Swizzle:
    """XORs `bits` bits from position base + shift into position base (a negative shift: upwards). Its own inverse.

    On byte offsets TMA's 128, 64 and 32-byte modes are Swizzle(3, 4, 3), (2, 4, 3) and (1, 4, 3).
    """

    bits: int
    base: int
    shift: int

    def __post_init__(self) -> None:
        if self.bits < 0 or self.base < 0 or abs(self.shift) < self.bits:
            raise LayoutError(f"{self}", rule="bits and base are at least 0 and |shift| at least bits")

    def __call__(self, offset: Any) -> Any:
        """Polymorphic over ints, arrays and symbolic expressions."""
        mask = (1 << self.bits) - 1
        if mask == 0:
            return offset
        if self.shift >= 0:
            return offset ^ ((offset >> self.shift) & (mask << self.base))
        return offset ^ ((offset & (mask << self.base)) << -self.shift)

    def recast(self, old_bits: int, new_bits: int) -> Swizzle:
        """The same swizzle on offsets counted in units of `new_bits` instead of `old_bits`; both powers of two."""
        moved = self.base + (old_bits.bit_length() - new_bits.bit_length())
        if moved < 0:
            raise LayoutError(f"{self} on units of {new_bits} bits", rule="the XORed bits lie above one unit")
        return Swizzle(self.bits, moved, self.shift)


@dataclass(frozen=True)
class ComposedLayout:
    """index -> swizzle(offset + layout(index))."""

    swizzle: Swizzle
    offset: int
    layout: Layout

    @property
    def size(self) -> int:
        return self.layout.size

    def __call__(self, *coord: Any) -> Any:
        return self.swizzle(self.layout(*coord) + self.offset)

    def __str__(self) -> str:
        return f"Swizzle<{self.swizzle.bits},{self.swizzle.base},{self.swizzle.shift}> o {self.offset} o {self.layout}"
