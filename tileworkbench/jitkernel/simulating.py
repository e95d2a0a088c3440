"""tileworkbench.simulate: a kernel on NumPy, at the level of tiles or of threads."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..errors import OptionError
from ..ir.expr import Buffer
from ..ir.kernel import Kernel
from ..options import options
from ..passes.facts import general
from ..pipeline import run_passes
from ..simulate import thread, tile
from ..target import Target
from . import host
from .compiling import as_kernel
from .kernel import JITKernel
from .sequence import filled as complete

LEVELS = ("tile", "thread")


def simulate(
    kernel: Any,
    *args: Any,
    level: str = "tile",
    schedule: str | None = None,
    seed: int | None = None,
    target: Any = None,
    collect: bool = False,
    blocks: Any = None,
) -> Any:
    """Runs a kernel in the simulator and gives its `Run` (level "tile": what the program means) or `ThreadRun` (level
    "thread": what each warp, copy and barrier does when asynchronous work lands by `schedule`: eager, latest, random).

    `args` are NumPy arrays and numbers in parameter order, outputs optional; written arrays change in place. The
    thread level needs a card's target: `target`, else the one that the kernel was compiled for, else sm_90a."""
    if level not in LEVELS:
        raise OptionError(f"level={level!r}", rule="levels are tile and thread", fix='level="tile"')
    tile_kernel = as_kernel(kernel)
    ready = arguments(tile_kernel, args)
    if level == "tile":
        return tile.run(tile_kernel, ready, collect=collect)
    lowered, place = thread_kernel(kernel, tile_kernel, target)
    full = filled(lowered, ready)
    return thread.run(
        fitting(lowered, tile_kernel, place, full),
        full,
        schedule or options.schedule,
        options.seed if seed is None else seed,
        place,
        blocks,
        collect,
    )


def fitting(lowered: Kernel, tile_kernel: Kernel, target: Target, args: Sequence[Any]) -> Kernel:
    """The thread-level kernel if it was built for such arguments, else the first of those that assume less."""
    for aligned in (True, False):
        if thread.unmet(lowered, args) is None:
            break
        lowered = run_passes(general(tile_kernel, aligned=aligned), target)
    return lowered


def thread_kernel(kernel: Any, tile_kernel: Kernel, target: Any) -> tuple[Kernel, Target]:
    """The thread-level kernel and its target."""
    if isinstance(kernel, JITKernel) and kernel.variant is not None and target is None:
        return kernel.variant.kernel, kernel.target
    place = Target.of("sm_90a" if target is None else target)
    if place.name == "cpu":
        raise OptionError("the thread level for target cpu", rule="threads are a card's", fix='target="sm_90a"')
    return run_passes(tile_kernel, place), place


def arguments(kernel: Kernel, args: Any) -> list[Any]:
    """Arguments in parameter order, None for outputs that were left out."""
    values = host.by_name(kernel, args, {})
    ready = []
    for param in kernel.params:
        value = values.get(param.name)
        ready.append(host.as_numpy(param, value)[0] if isinstance(param, Buffer) and value is not None else value)
    return ready


def filled(kernel: Kernel, args: list[Any]) -> list[Any]:
    """Arguments with arrays for what was left out."""
    given = {p.name: v for p, v in zip(kernel.params, args, strict=True) if v is not None}
    return complete(kernel, given)
