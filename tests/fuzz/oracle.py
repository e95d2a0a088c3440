"""What must agree: the description's reference, the tile machine on the source, and the thread machine on the lowered
kernel, for every target and schedule, with the IR checked after every pass."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tileworkbench.errors import InternalError, ResourceError, ShapeError, TargetError, TileError
from tileworkbench.ir.check import check
from tileworkbench.passes.facts import general
from tileworkbench.pipeline import Step, run_passes
from tileworkbench.simulate import thread, tile
from tileworkbench.target import Target

from .program import Program, with_stages

TARGETS = ("sm_80", "sm_90a", "gfx942")
SCHEDULES = ("eager", "latest", "random")
CONFIGS: tuple[tuple[tuple[str, bool], ...], ...] = (
    (),
    (("tl.disable_tma_lower", True),),
    (("tl.disable_warp_specialized", True),),
    (("tl.disable_wgmma", True),),
    (("tl.disable_shared_memory_reuse", True),),
    (("tl.disable_tma_lower", True), ("tl.enable_async_copy", False)),
)
STARTS = (0, 0, 1, 0, 2, 0, 3)
VARIANTS = 210  # stages times threads times ways to build times places, each as often as the others
REFUSALS = (TargetError, ResourceError, ShapeError)


@dataclass(frozen=True)
class Verdict:
    """How one comparison ended. kind: "right", "refused" (a located error that a target may give), "wrong" (values) or
    "fault" (an error that should not be). `where` names the machine, target and schedule or pass."""

    kind: str
    where: str = ""
    text: str = ""

    @property
    def bad(self) -> bool:
        return self.kind in ("wrong", "fault")

    def signature(self) -> tuple[str, str]:
        """What a smaller description must still show: the kind, and an error's words without names and numbers."""
        words = self.text.split("\n", maxsplit=1)[0]
        plain = "".join("#" if c.isdigit() else c for c in words)
        return self.kind, " ".join(w for w in plain.split() if "`" not in w and "#" not in w)


def differences(got: Sequence[Any], wanted: Sequence[np.ndarray]) -> str:
    """The first element that is not bit-equal, or nothing."""
    for n, (a, b) in enumerate(zip(got, wanted, strict=True)):
        bad = ~(np.asarray(a, dtype=np.float64) == np.asarray(b, dtype=np.float64))
        if bad.any():
            at = tuple(int(i[0]) for i in np.nonzero(bad))
            return f"tensor {n}: {int(bad.sum())} of {bad.size} elements differ, first at {at}: {a[at]} for {b[at]}"
    return ""


def judged(where: str, act: Any) -> Verdict | Any:
    """What `act` gives, or how it failed; a refusal must be located."""
    try:
        return act()
    except InternalError as error:
        return Verdict("fault", where, f"InternalError: {error}")
    except REFUSALS as error:
        kind = "refused" if error.loc is not None else "fault"
        return Verdict(kind, where, f"{type(error).__name__}: {error}")
    except TileError as error:
        return Verdict("fault", where, f"{type(error).__name__}: {error}")
    except Exception as error:
        return Verdict("fault", where, f"{type(error).__name__}: {error}")


def compared(where: str, program: Program, wanted: Sequence[np.ndarray], act: Any) -> Verdict:
    arguments = program.arguments()
    done = judged(where, lambda: act(arguments))
    if isinstance(done, Verdict):
        return done
    off = differences(arguments[: len(wanted)], wanted)
    return Verdict("wrong", where, off) if off else Verdict("right", where)


def on_tile_machine(program: Program, wanted: Sequence[np.ndarray]) -> Verdict:
    kernel = judged("reading", program.kernel)
    if isinstance(kernel, Verdict):
        return Verdict("fault", kernel.where, kernel.text) if kernel.kind == "refused" else kernel
    return compared("tile machine", program, wanted, lambda args: tile.run(kernel, args))


def lowered(program: Program, target: Target, *, checked: bool = True) -> Any:
    """The thread-level kernel, or the verdict that there is none."""
    at = ["reading"]

    def verify(step: Step) -> None:
        at[0] = f"{target.name}, after {step.name}"
        if checked:
            check(step.after, target=target)

    made = judged(f"{target.name}", lambda: run_passes(program.kernel(), target, verify))
    for aligned in (True, False):  # as a launch tries them
        if isinstance(made, Verdict) or thread.unmet(made, program.arguments()) is None:
            break
        kernel = general(program.kernel(), aligned=aligned)
        made = judged(f"{target.name}, general", lambda kernel=kernel: run_passes(kernel, target, verify))
    return replace(made, where=at[0]) if isinstance(made, Verdict) else made


def on_thread_machine(
    program: Program,
    wanted: Sequence[np.ndarray],
    targets: Sequence[str] = TARGETS,
    schedules: Sequence[str] = SCHEDULES,
) -> list[Verdict]:
    out: list[Verdict] = []
    for name in targets:
        target = Target.of(name)
        if 0 < program.piece < target.arch.warp_size:
            continue  # a branch inside this target's warp, which the language refuses
        kernel = lowered(program, target)
        if isinstance(kernel, Verdict):
            out.append(kernel)
            continue
        for schedule in schedules:
            where = f"{name}, {schedule}"

            def act(args: list[Any], kernel: Any = kernel, schedule: str = schedule, target: Target = target) -> Any:
                return thread.run(kernel, args, schedule=schedule, seed=program.seed, target=target)

            out.append(compared(where, program, wanted, act))
            if out[-1].bad:
                break
    return out


def variants(program: Program, at: int) -> Program:
    """The same meaning with other stages, threads, ways to build it and places of its tensors: nothing may change in
    the result."""
    threads = max((64, 128, 256)[at % 3], program.least_threads)
    body, configs, start = with_stages(program.body, at % 5), CONFIGS[at % 6], STARTS[at % 7]
    return replace(program, threads=threads, body=body, configs=configs, start=start)


def judge(
    program: Program, targets: Sequence[str] = TARGETS, schedules: Sequence[str] = SCHEDULES, *, vary: int | None = None
) -> list[Verdict]:
    """Every comparison of one description; with `vary` also of one variant of it."""
    wanted = program.expected()
    out = [on_tile_machine(program, wanted)]
    if out[0].bad:
        return out
    out += on_thread_machine(program, wanted, targets, schedules)
    if vary is not None and not any(v.bad for v in out):
        more = on_thread_machine(variants(program, vary), wanted, targets, schedules[-1:])
        out += [replace(v, where=f"variant {vary}, {v.where}") for v in more]
    return out
