"""A matrix instruction's shape and operand types, read from the mnemonic that names its row."""

from __future__ import annotations

import re
from dataclasses import dataclass

from ..errors import InternalError

BITS = {"f16": 16, "bf16": 16, "tf32": 32, "f32": 32, "f64": 64, "s8": 8, "u8": 8, "s32": 32, "e4m3": 8, "e5m2": 8}
_KIND = "|".join(sorted(BITS, key=len, reverse=True))
_MMA = re.compile(rf"mma\.sync\.aligned\.m(\d+)n(\d+)k(\d+)\.row\.col\.({_KIND})\.({_KIND})\.({_KIND})\.({_KIND})")
_MMA_SP = re.compile(_MMA.pattern.replace("mma\\.sync", "mma\\.sp::ordered_metadata\\.sync"))
_WGMMA = re.compile(rf"wgmma\.mma_async(\.sp)?\.sync\.aligned\.m(\d+)n(\d+)k(\d+)\.({_KIND})\.({_KIND})\.({_KIND})")


@dataclass(frozen=True)
class Parts:
    """m × n × k and the PTX types of d (and c), a and b; `lanes` threads hold the operands together. `sparse`: of a's
    elements half are held."""

    mnemonic: str
    m: int
    n: int
    k: int
    d: str
    a: str
    b: str
    lanes: int
    sparse: bool = False

    @property
    def word(self) -> str:
        """A piece of an identifier that no other row has."""
        return f"{'sp_' if self.sparse else ''}m{self.m}n{self.n}k{self.k}_{self.d}_{self.a}_{self.b}"

    def registers(self, operand: str) -> int:
        """32-bit registers of one thread (64-bit ones for f64)."""
        held_k = self.k // 2 if self.sparse else self.k
        extent = {"a": self.m * held_k, "b": self.n * self.k, "d": self.m * self.n}[operand]
        bits = BITS[getattr(self, operand)]
        return extent * bits // self.lanes // max(32, bits)


def mma_parts(atom: str) -> Parts:
    """The parts of an mma.sync or mma.sp row; InternalError for any other text."""
    sparse = _MMA_SP.fullmatch(atom)
    found = sparse or _MMA.fullmatch(atom)
    if found is None or found[4] != found[7]:
        raise InternalError(f"{atom!r} names no mma.sync or mma.sp row")
    shape = (int(found[1]), int(found[2]), int(found[3]))
    return Parts(atom, *shape, found[4], found[5], found[6], 32, sparse is not None)


def wgmma_parts(atom: str) -> Parts:
    """The parts of a wgmma row; InternalError for any other text."""
    found = _WGMMA.fullmatch(atom)
    if found is None or int(found[2]) != 64 or not 8 <= int(found[3]) <= 256 or int(found[3]) % 8:
        raise InternalError(f"{atom!r} names no wgmma row")
    return Parts(atom, 64, int(found[3]), int(found[4]), found[5], found[6], found[7], 128, found[1] is not None)
