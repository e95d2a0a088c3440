"""The compiler on one page: the passes in order, each with the reason for its place."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from .errors import ResourceError, TileError
from .ir.kernel import Kernel
from .ir.node import walk
from .ir.stmt import For
from .passes.barriers import barriers
from .passes.canonicalise import canonicalise
from .passes.facts import assume
from .passes.groups import groups
from .passes.layouts import layouts
from .passes.lower import lower
from .passes.overlap import overlap
from .passes.place_sync import place_sync
from .passes.raster import raster
from .passes.schedule import schedule
from .passes.select import check_ops, select
from .passes.shared_plan import shared_plan
from .passes.specialise import specialise
from .passes.storage import storage
from .passes.vectorise import vectorise
from .target import Target

Pass = Callable[[Kernel, Target], Kernel]

PASSES: tuple[tuple[str, Pass, str], ...] = (
    ("check", check_ops, "the user's mistakes, before any rewrite blurs the lines"),
    ("canonicalise", canonicalise, "one spelling before anyone asks an op"),
    ("groups", groups, "warpgroups that the kernel selects itself; roles and fragments depend on them"),
    ("assume", assume, "the facts of this variant: everything later may count on them"),
    ("raster", raster, "block order; everything later sees only the renamed block indices"),
    ("select", select, "ranked implementations of every op: roles and layouts depend on them"),
    ("specialise", specialise, "roles and channels; a fragment's layout belongs to a role's threads"),
    ("layouts", layouts, "fragments, shared tiles, conversions; ties every op to one implementation"),
    ("schedule", schedule, "single-role pipelines: what runs ahead of what, now that implementations are known"),
    ("overlap", overlap, "stages of loops with several products, now that order and implementations are known"),
    ("shared_plan", shared_plan, "tiles share bytes; before meetings are placed, since sharing makes hazards"),
    ("place_sync", place_sync, "meetings and fences for what no channel protects; sees the final order"),
    ("lower", lower, "the first thread-level step: ops emit instructions, channels become barriers and cursors"),
    ("storage", storage, "offsets of everything in shared memory, scratch of emitted ops included; the limit"),
    ("vectorise", vectorise, "wide accesses, from alignment facts and final addresses"),
    ("barriers", barriers, "ids and thread counts: the last user of participants"),
)


@dataclass(frozen=True)
class Step:
    """One pass as it ran: the kernel before and after it, and its time."""

    name: str
    reason: str
    before: Kernel
    after: Kernel
    seconds: float


def run_passes(
    kernel: Kernel, target: Target, observe: Callable[[Step], None] | None = None, *, fit_stages: bool = False
) -> Kernel:
    """The thread-level kernel for `target`. `observe` sees every step (dumps, timing, checks and views hang on it).

    With `fit_stages` (builds for another card than the user's) pipelines get fewer stages when their tiles do not fit
    the target's shared memory, and a note says so; otherwise that is the user's ResourceError."""
    limit = most_stages(kernel)
    while True:
        try:
            return _run(kernel, target, observe)
        except ResourceError:
            if not kernel.attrs.get("rows_at_once"):  # gathered tiles of one version may fit
                kernel = kernel.with_(attrs={**kernel.attrs, "rows_at_once": True})
                continue
            limit -= 1
            if not fit_stages or limit < 1:
                raise
            note = f"pipelines have {limit} stages: more do not fit the shared memory of {target.name}"
            kernel = kernel.with_(attrs={**kernel.attrs, "stage_limit": limit}, notes=(note,))


def most_stages(kernel: Kernel) -> int:
    """The greatest num_stages that the kernel asks for."""
    loops = [n for n in walk(kernel.body) if isinstance(n, For) and n.kind == "pipelined"]
    return max((int(loop.attr("num_stages", 1) or 1) for loop in loops), default=1)


def _run(kernel: Kernel, target: Target, observe: Callable[[Step], None] | None) -> Kernel:
    for name, apply, reason in PASSES:
        start = time.perf_counter()
        try:
            after = apply(kernel, target)
        except TileError as error:
            raise error.at(kernel.launch_loc) from None
        if observe is not None:
            observe(Step(name, reason, kernel, after, time.perf_counter() - start))
        kernel = after
    return kernel
