"""How the warps (or warpgroups) of a block share a product tile."""

from __future__ import annotations


def partition(m: int, n: int, units: int, inst_m: int, inst_n: int, policy: str) -> tuple[int, int] | None:
    """(units along M, units along N), or None when the tile cannot be cut into whole instructions.

    full_row puts all units along M, full_col along N (as far as the extent allows); square minimises M/um + N/un, the
    operand traffic of a unit, and prefers rows on a tie."""
    found = [
        (um, units // um)
        for um in range(1, units + 1)
        if units % um == 0 and m % (um * inst_m) == 0 and n % (units // um * inst_n) == 0
    ]
    if not found:
        return None
    if policy == "full_row":
        return max(found)
    if policy == "full_col":
        return min(found)
    return min(found, key=lambda p: (m / p[0] + n / p[1], -p[0]))
