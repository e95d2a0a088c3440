"""Refusals that name both numbers, before a device compiler or a driver gives an opaque one."""

from __future__ import annotations

from collections.abc import Sequence

from ..errors import Loc, ResourceError
from .arch import Arch

GRID_LIMITS = {
    "cuda": (2**31 - 1, 65535, 65535),
    "hip": (2**31 - 1, 65535, 65535),
    "cpu": (2**31 - 1, 2**31 - 1, 2**31 - 1),
}
# setmaxnreg takes multiples of 8 in this range, a warpgroup at a time.
REGISTER_STEP, REGISTER_LOW, REGISTER_HIGH = 8, 24, 256


def check_threads(arch: Arch, threads: int, *, extra: int = 0, loc: Loc | None = None) -> None:
    """`threads` compute threads of a block plus `extra` that the compiler adds for copies."""
    if threads < 1:
        raise ResourceError(
            f"a block of {threads} threads", rule="a block has at least 1 thread", fix="threads=128", loc=loc
        )
    if threads + extra > arch.max_threads:
        added = f" and {extra} more for its copies" if extra else ""
        raise ResourceError(
            f"a block of {threads} threads{added}",
            rule=f"{arch.name} allows {arch.max_threads} threads a block",
            fix=f"at most threads={arch.max_threads - extra}",
            loc=loc,
        )


def check_shared(arch: Arch, nbytes: int, *, detail: str = "", loc: Loc | None = None) -> None:
    """`nbytes` of shared memory of one block; `detail` says what they are made of."""
    if nbytes > arch.max_shared_per_block:
        raise ResourceError(
            f"{nbytes:,} bytes ({nbytes / 1024:.1f} KiB) of shared memory in one block"
            + (f": {detail}" if detail else ""),
            rule=f"{arch.name} has {arch.max_shared_per_block:,} ({arch.max_shared_per_block // 1024} KiB) a block",
            fix="use smaller tiles or fewer pipeline stages",
            loc=loc,
        )


def check_role_registers(arch: Arch, roles: Sequence[tuple[str, int, int]], *, loc: Loc | None = None) -> None:
    """Registers that (role, threads, registers a thread) ask for at run time: each a legal count, together no more
    than the processor has. A kernel that breaks this hangs instead of failing."""
    for name, _, registers in roles:
        if registers % REGISTER_STEP or not REGISTER_LOW <= registers <= REGISTER_HIGH:
            raise ResourceError(
                f"role {name!r} asks for {registers} registers a thread",
                rule=f"a multiple of {REGISTER_STEP} from {REGISTER_LOW} to {REGISTER_HIGH}",
                fix=f"{min(max(registers // REGISTER_STEP * REGISTER_STEP, REGISTER_LOW), REGISTER_HIGH)}",
                loc=loc,
            )
    total = sum(threads * registers for _, threads, registers in roles)
    if total > arch.registers_per_sm:
        terms = " + ".join(f"{threads} x {registers}" for _, threads, registers in roles)
        raise ResourceError(
            f"the roles ask for {total:,} registers ({terms})",
            rule=f"{arch.name} has {arch.registers_per_sm:,} a processor",
            fix="give the roles fewer registers or threads",
            loc=loc,
        )


def check_cluster(arch: Arch, blocks: int, *, loc: Loc | None = None) -> None:
    """A cluster of `blocks` blocks."""
    if blocks != 1 and not arch.has("cluster"):
        raise ResourceError(
            f"a cluster of {blocks} blocks", rule=f"{arch.name} has no clusters", fix="cluster of 1", loc=loc
        )
    if not 1 <= blocks <= arch.max_cluster:
        raise ResourceError(
            f"a cluster of {blocks} blocks",
            rule=f"{arch.name} allows 1 to {arch.max_cluster}",
            fix=f"{arch.max_cluster}",
            loc=loc,
        )


def check_grid(arch: Arch, grid: Sequence[int], *, loc: Loc | None = None) -> None:
    """The number of blocks by dimension, as they are about to be launched; 0 is an empty launch and fine."""
    limits = GRID_LIMITS[arch.dialect]
    if len(grid) > len(limits):
        raise ResourceError(
            f"a grid of {len(grid)} dimensions", rule="at most 3", fix="fold dimensions together", loc=loc
        )
    for axis, (extent, limit) in enumerate(zip(grid, limits, strict=False)):
        if not 0 <= extent <= limit:
            raise ResourceError(
                f"{extent:,} blocks in grid dimension {axis}",
                rule=f"{arch.name} allows 0 to {limit:,} there",
                fix="make the long dimension the first one, or give each block more work",
                loc=loc,
            )
