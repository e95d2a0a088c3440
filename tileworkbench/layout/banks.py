"""Shared-memory bank conflicts of one access of a warp or wave, from the byte address of every lane.

Banks are 4 bytes wide and move one word per wavefront; lanes that ask for the same word share it. An access that needs
more than all banks together hold is split into groups of consecutive lanes: for 32 lanes halves of the warp when each
asks for 8 bytes, quarters for 16.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tileworkbench.errors import InternalError
from tileworkbench.layout.distribution import Distribution
from tileworkbench.layout.shared import SharedLayout

BANKS = 32
WORD = 4


@dataclass(frozen=True)
class BankReport:
    """`wavefronts` the access takes and the `ideal` without conflicts; `ways` is the worst multiplicity of a bank."""

    wavefronts: int
    ideal: int
    ways: int

    @property
    def conflicts(self) -> int:
        """Wavefronts beyond those that the bytes need anyway."""
        return self.wavefronts - self.ideal


def bank_conflicts(addresses: Sequence[int] | np.ndarray[Any, Any], width: int, banks: int = BANKS) -> BankReport:
    """Conflicts of one access: byte `addresses` per lane (negative: idle lane), `width` of 1, 2, 4, 8 or 16 bytes.

    Works for 32 lanes (NVIDIA) and 64 (AMD: 4-byte accesses take two groups of 32 lanes).
    """
    lanes = np.asarray(addresses, dtype=np.int64)
    if width not in (1, 2, 4, 8, 16):
        raise InternalError(f"an access of {width} bytes per lane")
    group = min(banks * WORD // max(width, WORD), lanes.size)
    wavefronts, ideal, worst = 0, 0, 0
    for start in range(0, lanes.size, group):
        active = lanes[start : start + group]
        ways = _ways(active[active >= 0], width, banks)
        wavefronts, ideal, worst = wavefronts + ways, ideal + min(ways, 1), max(worst, ways)
    return BankReport(wavefronts, ideal, worst)


def _ways(addresses: np.ndarray[Any, Any], width: int, banks: int) -> int:
    """Distinct words in the busiest bank."""
    if not addresses.size:
        return 0
    span = np.arange(max(1, width // WORD)) * WORD
    words = np.unique((addresses[:, None] + span) // WORD)
    return int(np.bincount(words % banks).max())


def access_conflicts(
    fragment: Distribution, layout: SharedLayout, itemsize: int, vector: int = 1, warp: int = 32
) -> BankReport:
    """Sum over the register runs of `vector` elements of one warp or wave that reads or writes `layout`."""
    table, valid = fragment.table()[:warp], fragment.valid()[:warp]
    inside = np.where(valid[..., None], table, 0)
    offsets = np.where(valid, layout.table()[tuple(np.moveaxis(inside, -1, 0))] * itemsize, -1)
    reports = [bank_conflicts(offsets[:, r], vector * itemsize) for r in range(0, fragment.registers, vector)]
    total = sum(r.wavefronts for r in reports), sum(r.ideal for r in reports)
    return BankReport(*total, max((r.ways for r in reports), default=0))
