"""What a device compiler gave back: code, and everything it said about it."""

from __future__ import annotations

from dataclasses import dataclass, field

# ptxas notes that wgmma was serialised: right answers, the speed gone, so they count as faults of a schedule.
SERIALISED_CODES = frozenset({"C7504", "C7508", *(f"C75{n:02d}" for n in range(9, 16))})


@dataclass(frozen=True)
class Binary:
    """Device code of one kernel. `registers` per thread; `spills` is bytes stored plus bytes loaded; `stack`, `shared`
    (static) in bytes; a figure is None where no tool told it. `seconds` is the compiler's time, 0.0 from the cache."""

    code: bytes
    kind: str  # "cubin", "hsaco" or "asm"
    arch: str
    entry: str
    log: str = ""
    warnings: tuple[str, ...] = ()
    registers: int | None = None
    spills: int | None = None
    stack: int | None = None
    shared: int | None = None
    barriers: int | None = None
    ptx: str | None = None
    key: str = ""
    seconds: float = field(default=0.0, compare=False)
    compiler: str = ""

    @property
    def serialised(self) -> tuple[str, ...]:
        """The warnings that say ptxas serialised a wgmma pipeline; empty is what a good schedule gives."""
        return tuple(w for w in self.warnings if any(code in w for code in SERIALISED_CODES))
