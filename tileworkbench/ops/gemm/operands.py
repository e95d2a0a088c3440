"""How matrix instructions call the types of tiles."""

from __future__ import annotations

from ...ir.expr import Buffer

# float32 is multiplied in tf32. Four-bit integers stand one a byte in shared memory and registers, so that they are
# eight-bit ones there; Hopper has no matrix instruction for fewer bits.
_TAKEN_AS = {"float32": "tfloat32", "int4": "int8", "uint4": "uint8"}


def operand_dtype(buffer: Buffer) -> str:
    """The operand type of an instruction that reads this tile."""
    return _TAKEN_AS.get(buffer.dtype.name, buffer.dtype.name)
