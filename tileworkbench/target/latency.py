"""The one table of latencies and rates, in clocks of the processor, by architecture family. The planner, the
simulator's clock and the tuner read it. Every figure says where it comes from:

"datasheet" (a vendor's manual or white paper), "derived" (arithmetic from such figures), "measured" (a micro-benchmark
on the card) or "recalled" (from memory of published micro-benchmarks, unchecked; good to perhaps a fifth).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from ..errors import InternalError

# name → (unit, meaning). A closed list: asking for anything else is an internal error.
FIGURES: dict[str, tuple[str, str]] = {
    "global_load": ("clocks", "a load that misses L2, until its register can be read"),
    "l2_load": ("clocks", "a load that hits L2"),
    "l1_load": ("clocks", "a load that hits L1"),
    "shared_load": ("clocks", "a conflict-free shared-memory load"),
    "shared_bytes": ("bytes a clock", "shared-memory bandwidth of one processor"),
    "l2_bytes": ("bytes a clock", "what one processor can take from L2"),
    "ldmatrix": ("clocks", "latency of an x4 matrix load"),
    "alu": ("clocks", "latency of a dependent integer or fp32 instruction"),
    "fma_lanes": ("lanes a clock", "fp32 multiply-adds of one processor"),
    "alu_lanes": ("lanes a clock", "int32 adds of one processor"),
    "mufu_lanes": ("lanes a clock", "exp2, rcp, rsqrt, sin … of one processor"),
    "convert_lanes": ("lanes a clock", "fp32 to 16-bit conversions of one processor"),
    "mufu": ("clocks", "latency of one of those"),
    "shuffle": ("clocks", "latency of a warp shuffle"),
    "shuffle_lanes": ("lanes a clock", "shuffled lanes of one processor"),
    "issue": ("warp instructions a clock", "all schedulers of one processor together"),
    "barrier": ("clocks", "a block barrier when every warp is there"),
    "warp_sync": ("clocks", "a warp barrier"),
    "mbarrier_arrive": ("clocks", "an arrive, until the phase can be seen"),
    "mbarrier_wait": ("clocks", "a try_wait on a phase that is over"),
    "copy_async_issue": ("clocks", "issue of one warp-wide 16-byte asynchronous copy"),
    "copy_async": ("clocks", "asynchronous copy that hits L2, issue to readable data"),
    "tma_issue": ("clocks", "issue of one tensor copy by its thread"),
    "tma": ("clocks", "tensor copy that hits L2, issue to the barrier's phase, first byte"),
    "tma_store": ("clocks", "tensor store, issue until its source may be reused"),
    "cluster_barrier": ("clocks", "a cluster barrier when every block is there"),
    "mma": ("clocks", "latency of one warp-level matrix instruction, result to accumulator"),
    "mma_rate": ("fraction", "what warp-level instructions reach of the device's matrix peak"),
    "wgmma": ("clocks", "latency beyond its issue clocks, of one warpgroup instruction"),
    "atomic_global": ("clocks", "a global atomic that returns its value"),
    "atomic_shared": ("clocks", "a shared atomic without contention"),
    "launch_us": ("microseconds", "host time of one bare kernel launch"),
    "fill_us": ("microseconds", "start and end of a kernel on the device"),
}
SOURCES = ("datasheet", "derived", "measured", "recalled")


@dataclass(frozen=True)
class Figure:
    """A number and where it comes from."""

    value: float
    source: str


@dataclass(frozen=True)
class LatencyTable:
    """The figures of one family. `table["shared_load"]` is the number; what the hardware lacks is not in the table,
    and asking for it is an internal error."""

    family: str
    figures: Mapping[str, Figure] = field(hash=False)

    def __post_init__(self) -> None:
        for name, figure in self.figures.items():
            if name not in FIGURES or figure.source not in SOURCES or not figure.value > 0:
                raise InternalError(f"latency table {self.family}: bad figure {name} = {figure}")

    def __contains__(self, name: object) -> bool:
        return name in self.figures

    def __getitem__(self, name: str) -> float:
        return self._figure(name).value

    def source(self, name: str) -> str:
        """One of `SOURCES`."""
        return self._figure(name).source

    def calibrated(self, **measured: float) -> LatencyTable:
        """This table with figures that a micro-benchmark gave on the card itself."""
        return replace(self, figures={**self.figures, **{k: Figure(v, "measured") for k, v in measured.items()}})

    def _figure(self, name: str) -> Figure:
        found = self.figures.get(name)
        if found is None:
            raise InternalError(f"the latency table of {self.family} has no figure {name!r}")
        return found


def _table(
    family: str,
    *,
    recalled: Mapping[str, float],
    derived: Mapping[str, float] = MappingProxyType({}),
    datasheet: Mapping[str, float] = MappingProxyType({}),
    measured: Mapping[str, float] = MappingProxyType({}),
) -> LatencyTable:
    """Later groups are trusted more than earlier ones."""
    groups = (("recalled", recalled), ("derived", derived), ("datasheet", datasheet), ("measured", measured))
    figures = {name: Figure(value, source) for source, group in groups for name, value in group.items()}
    return LatencyTable(family, MappingProxyType(figures))


# CUDA programming guide, "Throughput of Native Arithmetic Instructions".
_SHEET_80 = {"fma_lanes": 64, "alu_lanes": 64, "mufu_lanes": 16, "shuffle_lanes": 32, "issue": 4}
_SHEET_86 = _SHEET_80 | {"fma_lanes": 128}
_SHEET_90 = _SHEET_80 | {"fma_lanes": 128}

_RECALLED_80 = {
    "global_load": 470, "l2_load": 200, "l1_load": 33, "shared_load": 23, "shared_bytes": 128, "l2_bytes": 64,
    "ldmatrix": 33, "alu": 4, "mufu": 18, "shuffle": 23, "barrier": 20, "warp_sync": 2, "copy_async_issue": 8,
    "copy_async": 260, "mma": 33, "mma_rate": 1.0, "atomic_global": 500, "atomic_shared": 60, "launch_us": 2.5,
    "fill_us": 3.0, "convert_lanes": 16,
}  # fmt: skip
_RECALLED_90 = _RECALLED_80 | {
    "global_load": 560, "l2_load": 260, "l1_load": 38, "shared_load": 29, "barrier": 25, "mbarrier_arrive": 20,
    "mbarrier_wait": 20, "tma_issue": 4, "tma": 650, "tma_store": 500, "cluster_barrier": 190, "mma": 33,
    "copy_async": 330, "convert_lanes": 64,
}  # fmt: skip
_RECALLED_CDNA = {
    "global_load": 735, "l2_load": 250, "l1_load": 120, "shared_load": 64, "shared_bytes": 128, "l2_bytes": 64,
    "alu": 4, "fma_lanes": 64, "alu_lanes": 64, "mufu_lanes": 16, "convert_lanes": 64, "mufu": 8, "shuffle": 64,
    "shuffle_lanes": 32, "issue": 4, "barrier": 40, "warp_sync": 1, "copy_async_issue": 4, "copy_async": 700,
    "mma": 32, "mma_rate": 1.0, "atomic_global": 800, "atomic_shared": 128, "launch_us": 5.0, "fill_us": 5.0,
}  # fmt: skip

_TABLES = (
    _table("sm_75", datasheet=_SHEET_80, recalled={
        name: value for name, value in (_RECALLED_80 | {"global_load": 434, "l2_load": 188, "l1_load": 32,
        "shared_load": 22, "mma": 20}).items() if not name.startswith("copy_async")}),
    _table("sm_80", datasheet=_SHEET_80, recalled=_RECALLED_80),
    _table("sm_86", datasheet=_SHEET_86, recalled=_RECALLED_80),
    _table("sm_89", datasheet=_SHEET_86, recalled=_RECALLED_80 | {"global_load": 540, "l2_load": 270}),
    _table(
        "sm_90",
        datasheet=_SHEET_90,
        # wgmma m64n64k16 reads 4 KiB of shared memory in its 32 clocks at full rate: the port gives 128 bytes a clock.
        derived={"shared_bytes": 128},
        # Bare cuLaunchKernel through cuda-bindings on an H200 machine.
        measured={"launch_us": 5.8},
        # Published micro-benchmarks see mma.sync at some 62 % of the warpgroup instructions' rate.
        recalled=_RECALLED_90 | {"mma_rate": 0.62, "wgmma": 32},
    ),
    # mma.sync is a compatibility path here; its rate is a guess until it is measured.
    _table("sm_100", datasheet=_SHEET_90, recalled=_RECALLED_90 | {"mma_rate": 0.25, "l2_load": 280}),
    _table("sm_120", datasheet=_SHEET_86 | {"alu_lanes": 128}, recalled=_RECALLED_90 | {"l2_load": 280}),
    _table("cdna2", recalled=_RECALLED_CDNA | {"global_load": 650}),
    _table("cdna3", recalled=_RECALLED_CDNA),
    _table("cdna4", recalled=_RECALLED_CDNA),
    # Nothing is timed on the embedded target; a Hopper-like table lets the planner and the clock views run there.
    _table("cpu", datasheet=_SHEET_90, recalled=_RECALLED_90 | {"wgmma": 32}),
)  # fmt: skip

LATENCIES: dict[str, LatencyTable] = {table.family: table for table in _TABLES}
