"""One compilation of a kernel under one set of assumptions: from the tile level to text and device code."""

from __future__ import annotations

from dataclasses import dataclass, field

from ..codegen.emit import emit
from ..codegen.source import Source
from ..errors import MissingDependency
from ..ir.kernel import Kernel
from ..passes import facts
from ..pipeline import Step, run_passes
from ..runtime import build as builder
from ..runtime.binary import Binary
from ..target import Target
from .hooks import edited
from .timing import Timing


@dataclass(frozen=True, eq=False)
class Variant:
    """`binary` is None where the device compiler is missing; `missing` then says what it is and how to get it."""

    kernel: Kernel
    source: Source
    binary: Binary | None
    steps: tuple[Step, ...]
    timing: Timing = field(default_factory=Timing)
    missing: MissingDependency | None = None


def build(tile: Kernel, target: Target, timing: Timing, *, general: bool = False) -> Variant:
    """Passes, emission and device compiler. `general` assumes nothing about shapes and addresses."""
    if general:
        tile = facts.general(tile)
    steps: list[Step] = []
    with timing.stage("passes"):
        kernel = run_passes(tile, target, steps.append)
    with timing.stage("emit"):
        source = edited(emit(kernel, target), target)
    binary, missing = None, None
    with timing.stage("build"):
        try:
            binary = builder.build(source)
        except MissingDependency as error:
            missing = error.at(tile.loc)
    timing.cached = binary is not None and binary.seconds == 0.0
    return Variant(kernel, source, binary, tuple(steps), timing, missing)
