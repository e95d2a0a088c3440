"""Carver's templates of kernels whose time is their traffic: element by element, sums along axes, GEMV."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, prod
from typing import Any

from ..errors import OptionError
from ..ir.dtype import dtype as to_dtype
from . import equivalents
from .arch import TileDevice
from .hint import Hint
from .templates import BYTES, BaseTemplate

WARP = 32


@dataclass
class Traffic(BaseTemplate):
    """Blocks of whole accesses, enough of them for every processor."""

    def _blocks(self, elements: int, itemsize: int, topk: int, arch: TileDevice) -> list[tuple[int, int, float]]:
        """(elements of a block, threads, microseconds), best first."""
        lanes = BYTES // itemsize
        bandwidth = arch.target.device.bandwidth_gbs * 1e3
        found = []
        for threads in (128, 256, 512, 64, 1024):
            for each in (1, 2, 4):
                block = threads * lanes * each
                count = ceil(elements / block)
                # A card whose processors are not all busy does not reach its bandwidth.
                busy = min(1.0, count * threads / (arch.compute_max_core * 1024))
                wasted = count * block / elements
                found.append((block, threads, elements * itemsize * wasted / (bandwidth * max(busy, 1e-3))))
        return sorted(found, key=lambda f: f[2])[:topk]


@dataclass
class ElementwiseTemplate(Traffic):
    """One output element from the inputs' elements at the same place."""

    shape: Sequence[int] | None = None
    dtype: Any = "float16"

    def get_hardware_aware_configs(self, arch: TileDevice | None = None, topk: int = 10) -> list[Hint]:
        on, extents = arch or self.arch, _extents(self.shape)
        size = to_dtype(self.dtype).bytes
        made = []
        for block, threads, us in self._blocks(prod(extents), size, topk, on):
            tile = _fold(block, extents)
            thread = _fold(threads, tile)
            made.append(Hint(block=tile, thread=thread, vectorize={"x": BYTES // size}, arch=on, estimate_us=us))
        return made

    def equivalent_function(self) -> Any:
        return equivalents.elementwise(prod(_extents(self.shape)), str(self.dtype))


@dataclass
class GeneralReductionTemplate(Traffic):
    """A sum over the axes that `structure` marks R, of a tensor whose other axes are marked S."""

    structure: str = "SR"
    shape: Sequence[int] | None = None
    dtype: Any = "float16"

    def get_hardware_aware_configs(self, arch: TileDevice | None = None, topk: int = 10) -> list[Hint]:
        on, extents = arch or self.arch, _extents(self.shape)
        self._check(extents)
        kept = [e for e, kind in zip(extents, self.structure, strict=True) if kind == "S"] or [1]
        summed = [e for e, kind in zip(extents, self.structure, strict=True) if kind == "R"]
        size = to_dtype(self.dtype).bytes
        made = []
        for block, threads, us in self._blocks(prod(extents), size, topk, on):
            steps = _fold(min(block, prod(summed)), summed) if summed else []
            rows = _fold(max(1, block // max(1, prod(steps))), kept)
            across = _fold(max(1, threads // max(1, prod(rows))), steps) if steps else []
            made.append(
                Hint(
                    block=rows, thread=_fold(min(threads, prod(rows)), rows), rstep=steps, reduce_thread=across,
                    vectorize={"x": BYTES // size}, arch=on, estimate_us=us,
                )
            )  # fmt: skip
        return made

    def _check(self, extents: Sequence[int]) -> None:
        if len(self.structure) != len(extents) or set(self.structure) - {"S", "R"}:
            raise OptionError(
                f"structure={self.structure!r} for {len(extents)} axes", rule="one S or R for every axis", fix='"SR"'
            )

    def equivalent_function(self) -> Any:
        extents = _extents(self.shape)
        self._check(extents)
        rows = prod(e for e, kind in zip(extents, self.structure, strict=True) if kind == "S")
        return equivalents.row_sum(rows, prod(extents) // rows, str(self.dtype))


@dataclass
class GEMVTemplate(Traffic):
    """y (1, N) = x (1, K) · W; W is stored (N, K) with `trans_B`."""

    N: int = 1
    K: int = 1
    trans_B: bool = True
    in_dtype: Any = "float16"
    out_dtype: Any = "float16"
    accum_dtype: Any = "float16"
    with_bias: bool = False

    def get_hardware_aware_configs(self, arch: TileDevice | None = None, topk: int = 10) -> list[Hint]:
        on, size = arch or self.arch, to_dtype(self.in_dtype).bytes
        lanes = BYTES // size
        made = []
        for block, threads, us in self._blocks(self.N * self.K, size, topk, on):
            across = min(WARP, max(1, self.K // lanes))
            rows = max(1, min(self.N, threads // across))
            made.append(
                Hint(
                    block=[1, rows], thread=[1, rows], rstep=[min(self.K, max(across * lanes, block // rows))],
                    reduce_thread=[across], vectorize={"A": lanes, "B": lanes}, arch=on, estimate_us=us,
                )
            )  # fmt: skip
        return made

    def equivalent_function(self) -> Any:
        return equivalents.matmul(
            1, self.N, self.K, False, self.trans_B, str(self.in_dtype), str(self.out_dtype), str(self.accum_dtype)
        )


def _extents(shape: Sequence[int] | None) -> list[int]:
    if not shape:
        raise OptionError(f"shape={shape!r}", rule="extents of the tensor", fix="shape=[1024, 1024]")
    return [int(e) for e in shape]


def _fold(count: int, extents: Sequence[int]) -> list[int]:
    """A tile of about `count` elements: whole trailing dimensions first."""
    tile: list[int] = []
    for extent in reversed(extents):
        taken = max(1, min(extent, count))
        tile.insert(0, taken)
        count //= taken
    return tile
