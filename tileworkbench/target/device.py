"""A device row: what differs between cards of one architecture. The planner, the clock, the roofline and the tuner
read these figures; none of them enters generated code.
"""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Device:
    """One card. `tflops` are dense peaks with fp32 (int32) accumulation at `boost_mhz`, keyed by operand dtype, with
    "fp32_simt" and "fp64_simt" for the ordinary units;
    bytes, MHz, GB/s (10^9) and watts elsewhere.

    `peak_mhz` is the clock those peaks are quoted at where that is not `boost_mhz`.
    `sustained_mhz` is the clock under a long matrix load where that is known, else None. Every figure comes from the
    vendor's data sheet unless `sources` names the field."""

    name: str
    arch: str
    marketing: str
    sm_count: int
    l2_bytes: int
    memory_bytes: int
    bandwidth_gbs: float
    boost_mhz: int
    power_watts: int
    tflops: tuple[tuple[str, float], ...]
    sustained_mhz: int | None = None
    peak_mhz: int | None = None
    aliases: tuple[str, ...] = ()
    sources: tuple[tuple[str, str], ...] = field(default=())

    def __str__(self) -> str:
        return self.name

    def source(self, figure: str) -> str:
        """Where a field's figure comes from: "datasheet", or what `sources` says ("*" speaks for every field)."""
        said = dict(self.sources)
        return said.get(figure, said.get("*", "datasheet"))

    def peak(self, dtype: str) -> float | None:
        """Dense TFLOP/s for matrix operands of `dtype` (IR or short spelling), or None when the card has no unit."""
        return dict(self.tflops).get(_SHORT.get(dtype, dtype))

    def flops_per_clock(self, dtype: str) -> float | None:
        """Dense matrix FLOP a clock of one processor; None when the card has no unit for `dtype`."""
        peak = self.peak(dtype)
        return None if peak is None else peak * 1e6 / (self.sm_count * (self.peak_mhz or self.boost_mhz))

    @property
    def planning_mhz(self) -> int:
        """The clock to turn cycles into time with: sustained where known, else boost."""
        return self.sustained_mhz or self.boost_mhz


_SHORT = {
    "float16": "fp16",
    "bfloat16": "bf16",
    "tfloat32": "tf32",
    "float32": "fp32_simt",
    "float64": "fp64",
    "float8_e4m3fn": "fp8",
    "float8_e4m3": "fp8",
    "float8_e5m2": "fp8",
    "float8_e4m3fnuz": "fp8",
    "float8_e5m2fnuz": "fp8",
    "uint8": "int8",
}
