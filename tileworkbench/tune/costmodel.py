"""A small cost model: how long a tiling takes on a card, from shapes, types and the target's rows alone. It ranks
configurations; it does not predict times to better than a factor."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import ceil, inf, log2

from ..target import Target
from ..target.occupancy import occupancy

# L2 answers a few times faster than device memory on every row; one figure is enough to rank by.
L2_FACTOR = 3.0
# Registers of a thread besides accumulators and operands: addresses, loop counters, predicates.
OTHER_REGISTERS = 40
STEP_US = 0.06  # one barrier round of a block, with one version in flight
BUSY_WARPS = 8  # warps that keep a processor's matrix units busy


@dataclass(frozen=True)
class Product:
    """C (m, n) = A (m, k) · B (k, n), `batch` times; bytes of an operand's and bits of an accumulator's element."""

    m: int
    n: int
    k: int
    dtype: str
    itemsize: int
    acc_bits: int = 32
    out_itemsize: int = 2
    batch: int = 1


@dataclass(frozen=True)
class Tiling:
    """A block's tile, how many warps share it in each direction, and how many versions of its operands are kept."""

    block_m: int
    block_n: int
    block_k: int
    warps_m: int
    warps_n: int
    stages: int

    @property
    def warps(self) -> int:
        """Warps of a block."""
        return self.warps_m * self.warps_n

    @property
    def warp_tile(self) -> tuple[int, int]:
        """(rows, columns) of the tile that one warp makes."""
        return self.block_m // self.warps_m, self.block_n // self.warps_n


def tilings(product: Product, target: Target) -> Iterator[Tiling]:
    """Every tiling worth a look: power-of-two tiles of at least a matrix instruction, square-like warp shares."""
    k_bytes = [32, 64, 128]
    for block_m in (16, 32, 64, 128, 256):
        for block_n in (16, 32, 64, 128, 256):
            for warps in (1, 2, 4, 8):
                share = _share(block_m, block_n, warps)
                if share is None:
                    continue
                for size in k_bytes:
                    block_k = max(16, size // product.itemsize)
                    if block_k > max(16, 2 ** ceil(log2(max(product.k, 1)))):
                        continue
                    for stages in (1, 2, 3, 4):
                        yield Tiling(block_m, block_n, block_k, *share, stages)


def _share(block_m: int, block_n: int, warps: int) -> tuple[int, int] | None:
    """The split of a tile among warps whose parts are nearest to square and at least 16 × 16."""
    splits = [(m, warps // m) for m in (1, 2, 4, 8) if warps % m == 0]
    fit = [s for s in splits if block_m // s[0] >= 16 and block_n // s[1] >= 16]
    return min(fit, key=lambda s: abs(log2(block_m / s[0]) - log2(block_n / s[1])), default=None)


def product_us(product: Product, tiling: Tiling, target: Target) -> float:
    """Microseconds of a product under a tiling; infinite when a block does not fit the processor."""
    arch, device = target.arch, target.device
    threads = tiling.warps * arch.warp_size
    shared = tiling.stages * tiling.block_k * (tiling.block_m + tiling.block_n) * product.itemsize
    wm, wn = tiling.warp_tile
    registers = OTHER_REGISTERS + (wm * wn * product.acc_bits + 16 * (wm + wn) * 8 * product.itemsize) // (
        32 * arch.warp_size
    )
    if target.has("wgmma") and tiling.warps % 4 == 0:
        registers = OTHER_REGISTERS + wm * wn * product.acc_bits // (32 * arch.warp_size)
    if registers > arch.max_registers_per_thread or shared > arch.max_shared_per_block:
        return inf
    resident = occupancy(arch, threads=threads, registers=registers, shared_bytes=shared).blocks
    if resident == 0:
        return inf
    blocks = ceil(product.m / tiling.block_m) * ceil(product.n / tiling.block_n) * product.batch
    waves = ceil(blocks / (device.sm_count * resident))
    peak = (device.peak(product.dtype) or device.peak("fp32_simt") or 0.1) * 1e6 / device.sm_count
    busy = min(1.0, resident * tiling.warps / BUSY_WARPS) * _reuse(tiling) * _overlap(tiling, target)
    flops = 2.0 * tiling.block_m * tiling.block_n * product.k
    compute = waves * resident * flops / (peak * busy)
    traffic = blocks * (tiling.block_m + tiling.block_n) * product.k * product.itemsize
    least = product.batch * (
        (product.m + product.n) * product.k * product.itemsize + product.m * product.n * product.out_itemsize
    )
    bandwidth = device.bandwidth_gbs * 1e3
    meetings = waves * ceil(product.k / tiling.block_k) * STEP_US / min(tiling.stages, 3)
    # The slowest part decides, and the others still cost a little.
    parts = (compute, traffic / (bandwidth * L2_FACTOR), least / bandwidth)
    return float(sum(part**4 for part in parts) ** 0.25 + meetings)


def _reuse(tiling: Tiling) -> float:
    """Small warp tiles load more operands from shared memory than they multiply."""
    wm, wn = tiling.warp_tile
    intensity = wm * wn / (wm + wn)
    return float(min(1.0, intensity / 32.0) ** 0.5)


def _overlap(tiling: Tiling, target: Target) -> float:
    """Loads hide behind products when several versions are in flight."""
    if tiling.stages == 1:
        return 0.6
    return 1.0 if tiling.stages > 2 or not target.has("cp_async") else 0.9


def ranked(product: Product, target: Target, most: int) -> list[tuple[float, Tiling]]:
    """The `most` fastest tilings with their microseconds; of equal ones the smaller shared memory first."""
    found = [(product_us(product, t, target), t) for t in tilings(product, target)]
    good = [pair for pair in found if pair[0] < inf]
    good.sort(key=lambda pair: (pair[0], pair[1].stages * pair[1].block_k, pair[1].warps))
    return good[:most]
