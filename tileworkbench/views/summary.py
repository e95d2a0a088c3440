"""The figures of a compiled kernel. What a missing tool hides is named, with the way to get it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..checks.check import Check
from ..errors import TileError
from ..jitkernel.kernel import JITKernel
from .blocks import Cell, Facts
from .document import Section


def summary_section(kernel: JITKernel, check: Check | None = None) -> Section:
    return Section("summary", "Summary", (Facts(tuple(facts(kernel, check))),))


def facts(kernel: JITKernel, check: Check | None) -> list[tuple[str, Cell]]:
    """Names and values; run-time extents are those of the last case of the check."""
    sizes = dict(check.cases[-1].sizes) if check is not None and check.cases else {}
    found: list[tuple[str, Cell]] = [("target", target_text(kernel))]
    if kernel.variant is not None:
        found += [
            ("registers a thread", known(lambda: kernel.registers)),
            ("spilled bytes", known(lambda: kernel.spills)),
            ("shared memory", f"{kernel.shared_bytes} bytes a block"),
            ("threads a block", kernel.variant.source.threads),
            ("occupancy", known(lambda: str(kernel.occupancy) if kernel.registers is not None else "not known")),
            ("roofline", known(lambda: estimate(kernel, sizes))),
        ]
        if kernel.warnings:
            found.append(("compiler warnings", "; ".join(kernel.warnings)))
    found.append(("time to build", str(kernel.timing)))
    if check is not None:
        found.append(("largest error", check.error))
    return found


def target_text(kernel: JITKernel) -> str:
    """The target, with the card that it is planned for."""
    if kernel.variant is None:
        return "cpu (the tile machine, on NumPy)"
    return f"{kernel.target} (planned for {kernel.target.device.marketing})"


def estimate(kernel: JITKernel, sizes: dict[str, int]) -> str:
    at = ", ".join(f"{name}={n}" for name, n in sizes.items())
    return f"at least {kernel.roofline(**sizes)}" + (f" at {at}" if at else "")


def known(read: Callable[[], Any]) -> Cell:
    """A figure, or the words for why it is not known here."""
    try:
        value = read()
    except TileError as error:
        return f"hidden: {error.found}" + (f" (fix: {error.fix})" if error.fix else "")
    return "not told by the compiler" if value is None else value
