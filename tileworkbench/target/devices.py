"""The device rows. Figures are the vendors' data sheets (dense, without sparsity) unless a row's `sources` says so;
"recalled" marks what was written from memory of public tables and not looked up, "derived" what follows from others.
"""

from __future__ import annotations

from .device import Device

MIB = 1024**2
GIB = 1024**3


def _flops(**rates: float) -> tuple[tuple[str, float], ...]:
    return tuple(rates.items())


_HOPPER = _flops(fp16=989.4, bf16=989.4, tf32=494.7, fp8=1978.9, int8=1978.9, fp64=66.9, fp32_simt=66.9, fp64_simt=33.5)

_ROWS = (
    Device(
        "H200", "sm_90a", "NVIDIA H200 SXM", 132, 60 * MIB, 141 * 10**9, 4800, 1980, 700, _HOPPER,
        sustained_mhz=1380, peak_mhz=1830, aliases=("h200sxm", "h200nvl"),
        sources=(
            ("l2_bytes", "measured: what the driver reports on an H200"),
            ("boost_mhz", "recalled: the highest clock; the sheet's 989 TFLOP/s stand for 1830 MHz"),
            ("sustained_mhz", "derived: 685 TFLOP/s measured on large GEMMs, 92 % of 540,672 FLOP a clock"),
        ),
    ),
    Device(
        "H100", "sm_90a", "NVIDIA H100 SXM5 80GB", 132, 50 * MIB, 80 * GIB, 3350, 1980, 700, _HOPPER,
        peak_mhz=1830, aliases=("h100sxm", "h10080gbhbm3", "h10080gb"), sources=(("boost_mhz", "recalled"),),
    ),
    Device(
        "H20", "sm_90a", "NVIDIA H20", 78, 60 * MIB, 96 * GIB, 4000, 1980, 400,
        _flops(fp16=148, bf16=148, tf32=74, fp8=296, int8=296, fp64=1, fp32_simt=44, fp64_simt=1),
        sources=(("*", "recalled"),),
    ),
    Device(
        "A100", "sm_80", "NVIDIA A100 SXM4 80GB", 108, 40 * MIB, 80 * GIB, 2039, 1410, 400,
        _flops(fp16=312, bf16=312, tf32=156, int8=624, fp64=19.5, fp32_simt=19.5, fp64_simt=9.7),
        aliases=("a10080", "a100sxm480gb", "a100sxm"),
    ),
    Device(
        "T4", "sm_75", "NVIDIA Tesla T4", 40, 4 * MIB, 16 * 10**9, 320, 1590, 70,
        _flops(fp16=65, int8=130, fp32_simt=8.1, fp64_simt=0.25), aliases=(),
    ),
    Device(
        "A10", "sm_86", "NVIDIA A10", 72, 6 * MIB, 24 * 10**9, 600, 1695, 150,
        _flops(fp16=125, bf16=125, tf32=62.5, int8=250, fp32_simt=31.2, fp64_simt=0.49), aliases=("a10g",),
    ),
    Device(
        "RTX3090", "sm_86", "NVIDIA GeForce RTX 3090", 82, 6 * MIB, 24 * GIB, 936, 1695, 350,
        _flops(fp16=71, bf16=71, tf32=35.6, int8=284, fp32_simt=35.6, fp64_simt=0.56), aliases=("3090",),
    ),
    Device(
        "L4", "sm_89", "NVIDIA L4", 58, 48 * MIB, 24 * 10**9, 300, 2040, 72,
        _flops(fp16=121, bf16=121, tf32=60, fp8=242.5, int8=242.5, fp32_simt=30.3, fp64_simt=0.49),
    ),
    Device(
        "RTX4090", "sm_89", "NVIDIA GeForce RTX 4090", 128, 72 * MIB, 24 * GIB, 1008, 2520, 450,
        _flops(fp16=165.2, bf16=165.2, tf32=82.6, fp8=330.3, int8=660.6, fp32_simt=82.6, fp64_simt=1.29),
        aliases=("4090",),
    ),
    Device(
        "B200", "sm_100a", "NVIDIA B200", 148, 126 * MIB, 180 * 10**9, 8000, 1965, 1000,
        # Reached by tensor-memory instructions only; mma.sync on this card is far below (see the latency table).
        _flops(fp16=2250, bf16=2250, tf32=1125, fp8=4500, int8=4500, fp64=40, fp32_simt=80, fp64_simt=40),
        peak_mhz=1856,
        sources=(("l2_bytes", "recalled"), ("peak_mhz", "derived: 8192 FLOP a clock"),
                 ("boost_mhz", "recalled"), ("sm_count", "recalled")),
    ),
    Device(
        "RTX5090", "sm_120a", "NVIDIA GeForce RTX 5090", 170, 96 * MIB, 32 * GIB, 1792, 2407, 575,
        _flops(fp16=209.5, bf16=209.5, tf32=104.8, fp8=419, int8=838, fp32_simt=104.8, fp64_simt=1.64),
        aliases=("5090",),
    ),
    Device(
        "MI250X", "gfx90a", "AMD Instinct MI250X (one of two dies)", 110, 8 * MIB, 64 * GIB, 1638, 1700, 280,
        _flops(fp16=191.5, bf16=191.5, int8=191.5, fp64=47.9, fp32_simt=23.9, fp64_simt=23.9),
        aliases=("mi250",), sources=(("power_watts", "derived: half of the card's 560 W"),),
    ),
    Device(
        "MI300X", "gfx942", "AMD Instinct MI300X", 304, 32 * MIB, 192 * GIB, 5300, 2100, 750,
        _flops(fp16=1307.4, bf16=1307.4, tf32=653.7, fp8=2614.9, int8=2614.9, fp64=163.4, fp32_simt=163.4,
               fp64_simt=81.7),
        aliases=("mi300",), sources=(("l2_bytes", "4 MiB on each of 8 dies; the 256 MiB Infinity Cache is beyond it"),),
    ),
    Device(
        "MI355X", "gfx950", "AMD Instinct MI355X", 256, 32 * MIB, 288 * GIB, 8000, 2400, 1400,
        _flops(fp16=2516.6, bf16=2516.6, fp8=5033.2, int8=5033.2, fp64=78.6, fp32_simt=157.3, fp64_simt=78.6),
        aliases=("mi355", "mi350x", "mi350"),
        sources=(("l2_bytes", "4 MiB on each of 8 dies; the 256 MiB Infinity Cache is beyond it"),),
    ),
    Device(
        "cpu", "cpu", "the embedded NumPy machine", 1, 32 * MIB, 8 * GIB, 20, 3000, 65, _flops(fp32_simt=0.1),
        sources=(("*", "nominal: a laptop; nothing is predicted from this row"),),
    ),
)  # fmt: skip

DEVICES: dict[str, Device] = {row.name: row for row in _ROWS}
