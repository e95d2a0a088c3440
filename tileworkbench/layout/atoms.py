"""Rows of matrix instructions. A row is data that asserts its own consistency: D (M, N) = A (M, K) · B (N, K)ᵀ + C.

Operand fragments always speak of B as (N, K), whichever way it is stored; `permute_dims(b, (1, 0))` reads it as (K, N).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from tileworkbench.errors import InternalError
from tileworkbench.layout.fragment import Fragment

Family = Literal["mma", "mma.sp", "wgmma", "wgmma.sp", "mfma"]

BITS = {
    "float64": 64,
    "float32": 32,
    "tfloat32": 32,
    "int32": 32,
    "float16": 16,
    "bfloat16": 16,
    "int8": 8,
    "uint8": 8,
    "float8_e4m3fn": 8,
    "float8_e5m2": 8,
    "float8_e4m3fnuz": 8,
    "float8_e5m2fnuz": 8,
}
FIELD_BITS = 4  # of sparse metadata: the places of one group's held elements


@dataclass(frozen=True)
class Atom:
    """One matrix instruction: extents, dtypes, fragments over `threads` threads (None: from shared memory only).

    `instruction` is the PTX mnemonic or the compiler builtin. It exists from `min_sm` (compute capability × 10) on, or
    exactly on `archs` where those are named. A sparse instruction holds the half of A's elements that count: its `a` is
    (M, K / 2), and `metadata` says where the 4-bit fields that place them are, (M, fields of a row).
    """

    instruction: str
    family: Family
    m: int
    n: int
    k: int
    a_dtype: str
    b_dtype: str
    c_dtype: str
    threads: int
    a: Fragment | None
    b: Fragment | None
    c: Fragment
    min_sm: int = 0
    archs: tuple[str, ...] = ()
    metadata: Fragment | None = None

    def __post_init__(self) -> None:
        expected = {"a": (self.m, self.stored_k), "b": (self.n, self.k), "c": (self.m, self.n)}
        for operand, shape in expected.items():
            fragment: Fragment | None = getattr(self, operand)
            if fragment is None and operand != "c":
                continue
            if fragment is None or fragment.shape != shape or fragment.threads != self.threads or fragment.guarded:
                raise InternalError(
                    f"{self.instruction}: operand {operand} does not fit {shape} on {self.threads} threads"
                )
            if fragment.replication != 1:
                raise InternalError(f"{self.instruction}: operand {operand} is replicated")
            if fragment.registers * BITS[getattr(self, f"{operand}_dtype")] % 32:
                raise InternalError(f"{self.instruction}: operand {operand} does not fill whole registers")
        if bool(self.min_sm) == bool(self.archs):
            raise InternalError(f"{self.instruction}: give min_sm or archs")
        if self.metadata is not None and self.metadata.registers * FIELD_BITS != 32:
            raise InternalError(f"{self.instruction}: the metadata does not fill one register")

    @property
    def stored_k(self) -> int:
        """Elements of a row of A that are held."""
        return self.k if self.metadata is None else self.k // 2

    @property
    def shape(self) -> tuple[int, int, int]:
        """(m, n, k) of one instruction."""
        return (self.m, self.n, self.k)

    def fragments(self) -> tuple[Fragment, Fragment, Fragment]:
        """A, B and C in registers. InternalError for an instruction that reads A or B from shared memory."""
        if self.a is None or self.b is None:
            raise InternalError(f"{self.instruction} reads an operand from shared memory alone")
        return self.a, self.b, self.c

    def registers32(self, operand: Literal["a", "b", "c"]) -> int:
        """32-bit registers per thread of one operand; 0 when it comes from shared memory."""
        fragment: Fragment | None = getattr(self, operand)
        bits = BITS[getattr(self, f"{operand}_dtype")]
        return fragment.registers * bits // 32 if fragment is not None else 0

    def supports(self, arch: str) -> bool:
        """Whether the instruction exists on `arch`, such as "sm_90a" or "gfx942"."""
        if self.archs:
            return arch in self.archs
        number = re.fullmatch(r"sm_(\d+)[af]?", arch)
        return number is not None and int(number.group(1)) >= self.min_sm
