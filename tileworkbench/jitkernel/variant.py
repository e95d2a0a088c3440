"""One compilation of a kernel under one set of assumptions: from the tile level to text and device code."""

from __future__ import annotations

import functools
from dataclasses import dataclass

from .. import collector
from ..codegen.emit import emit
from ..codegen.source import Source
from ..errors import MissingDependency
from ..ir.kernel import Kernel
from ..pipeline import Step, run_passes
from ..runtime import build as builder
from ..target import Target
from . import away
from .hooks import edited, is_edited
from .kept import Shelf
from .made import Made
from .timing import Timing


@dataclass(frozen=True)
class Lowered:
    """The thread-level kernel, and the passes that led to it."""

    kernel: Kernel
    steps: tuple[Step, ...]


class Variant:
    """What was made of `tile` for `target`. The passes run when somebody asks for their result, where the text was
    found on disk or came from another process: they are a function of the kernel."""

    def __init__(self, tile: Kernel, target: Target, made: Made, lowered: Lowered | None = None) -> None:
        self.tile, self.target, self.made = tile, target, made
        self.source, self.binary, self.missing = made.source, made.binary, made.missing
        self._found = lowered

    @functools.cached_property
    def _lowered(self) -> Lowered:
        return self._found if self._found is not None else lower(self.tile, self.target)

    @property
    def kernel(self) -> Kernel:
        """The thread-level kernel."""
        return self._lowered.kernel

    @property
    def steps(self) -> tuple[Step, ...]:
        """The passes as they ran."""
        return self._lowered.steps


def build(tile: Kernel, target: Target, timing: Timing) -> Variant:
    """Passes, emission and device compiler: here, or in a compiling process where the caller has some."""
    made = None if is_edited(target) else away.build(tile, target, timing)
    return Variant(tile, target, made) if made is not None else build_here(tile, target, timing)


def build_here(tile: Kernel, target: Target, timing: Timing) -> Variant:
    """The same in this process."""
    with collector.held_back():
        source, lowered = _text(tile, target, timing)
    source = edited(source, target)
    binary, missing = None, None
    with timing.stage("build"):
        try:
            binary = builder.build(source)
        except MissingDependency as error:
            missing = error.at(tile.loc)
    timing.cached = binary is not None and binary.seconds == 0.0
    return Variant(tile, target, Made(source, binary, missing), lowered)


def _text(tile: Kernel, target: Target, timing: Timing) -> tuple[Source, Lowered | None]:
    """From the disk, else by passes and emission."""
    with timing.stage("passes"):
        shelf = Shelf(tile, target)
        known = shelf.load()
        if known is not None:
            return known, None
        lowered = lower(tile, target)
    with timing.stage("emit"):
        source = emit(lowered.kernel, target)
        shelf.store(source)
    return source, lowered


def lower(tile: Kernel, target: Target) -> Lowered:
    """The passes, with every step."""
    steps: list[Step] = []
    kernel = run_passes(tile, target, steps.append)
    return Lowered(kernel, tuple(steps))
