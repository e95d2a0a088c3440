"""A benchmark as bars: the measured time beside the least time that the card allows."""

from __future__ import annotations

from ..errors import TileError
from ..jitkernel.kernel import JITKernel
from ..jitkernel.profile import Timings
from .blocks import Bar, Bars, Block, Facts
from .document import Section


def bench_section(kernel: JITKernel, timings: Timings) -> Section:
    """The median with its spread, and on a card the roofline's bound."""
    bars = [Bar(kernel.name, timings.ms, f"{timings.ms:.4g} ms")]
    if kernel.variant is not None:
        try:
            least = kernel.roofline(**timings.sizes).us / 1e3
            bars.append(Bar(f"least on {kernel.target.device.name}", least, f"{least:.4g} ms"))
        except TileError:
            pass  # an op whose work cannot be counted has no bound to show
    facts: list[tuple[str, str | float | int | None]] = [
        ("where", timings.where),
        ("runs", timings.runs),
        ("spread (20–80 %)", f"{timings.low:.4g} – {timings.high:.4g} ms"),
    ]
    facts += [("sizes", ", ".join(f"{k}={v}" for k, v in timings.sizes.items()))] if timings.sizes else []
    blocks: list[Block] = [Bars(tuple(bars), "ms", "Time a call"), Facts(tuple(facts))]
    return Section("bench", "Speed", tuple(blocks))
