"""How many blocks of a kernel a processor holds at once, and what limits them.

Registers are given out per warp in units, each scheduler from its own part of the file, and a block's shared memory
is what it asks for plus the system's reserve, rounded up: the rules of NVIDIA's occupancy calculator."""

from __future__ import annotations

from dataclasses import dataclass

from ..errors import InternalError
from .arch import Arch


@dataclass(frozen=True)
class Occupancy:
    """`blocks` a processor holds; `limits` what each resource alone would allow; `limiter` names the smallest, the
    first of several in the order of `limits`. Zero blocks means that the kernel cannot start."""

    blocks: int
    warps: int
    max_warps: int
    limiter: str
    limits: tuple[tuple[str, int], ...]

    @property
    def fraction(self) -> float:
        """Active warps over the most the processor can hold."""
        return self.warps / self.max_warps

    def __str__(self) -> str:
        warps = f"{self.warps} of {self.max_warps} warps, {self.blocks} block(s)"
        return f"{self.fraction:.0%} ({warps}, limited by {self.limiter})"


def occupancy(arch: Arch, *, threads: int, registers: int = 0, shared_bytes: int = 0) -> Occupancy:
    """The occupancy of blocks of `threads` with `registers` a thread (as the device compiler reports them) and
    `shared_bytes` static plus dynamic shared memory."""
    if threads < 1 or registers < 0 or shared_bytes < 0:
        raise InternalError(f"occupancy of threads={threads}, registers={registers}, shared_bytes={shared_bytes}")
    warps = -(-threads // arch.warp_size)
    limits = {
        "warps": arch.max_warps_per_sm // warps if threads <= arch.max_threads else 0,
        "registers": _by_registers(arch, warps, registers),
        "shared memory": _by_shared(arch, shared_bytes),
        "blocks": arch.max_blocks_per_sm,
    }
    limiter = min(limits, key=lambda name: limits[name])
    blocks = limits[limiter]
    return Occupancy(blocks, blocks * warps, arch.max_warps_per_sm, limiter, tuple(limits.items()))


def _by_registers(arch: Arch, warps: int, registers: int) -> int:
    if registers == 0:
        return arch.max_blocks_per_sm
    if registers > arch.max_registers_per_thread:
        return 0
    per_warp = _round_up(registers * arch.warp_size, arch.register_granularity)
    per_sub_core = arch.registers_per_sm // arch.sub_cores // per_warp
    return per_sub_core * arch.sub_cores // warps


def _by_shared(arch: Arch, shared_bytes: int) -> int:
    if shared_bytes > arch.max_shared_per_block:
        return 0
    taken = _round_up(shared_bytes + arch.reserved_shared_per_block, arch.shared_granularity)
    return arch.shared_per_sm // taken if taken else arch.max_blocks_per_sm


def _round_up(value: int, unit: int) -> int:
    return -(-value // unit) * unit
