"""Runs one kernel everywhere without a card: the tile machine, the thread machine under three schedules, and NVRTC."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tileworkbench.codegen.emit import emit
from tileworkbench.ir.check import check
from tileworkbench.ir.kernel import Kernel
from tileworkbench.pipeline import Step, run_passes
from tileworkbench.simulate import thread, tile
from tileworkbench.target import Target, detect

NVIDIA = ("sm_80", "sm_90a")
ALL = (*NVIDIA, "gfx942")
SCHEDULES = ("eager", "latest", "random")
# With a card of capability 9.0 every kernel runs there too: its own families, and those of sm_80.
CARD_TARGETS = {"sm_90a": "sm_90a", "sm_80": "sm_80/H200"}
HOPPER = any(found.driver and found.arch == "sm_90a" for found in detect())


def lowered(func: Any, target: str) -> Kernel:
    """The thread-level kernel, every step checked."""
    goal = Target.of(target)

    def verify(step: Step) -> None:
        check(step.after, target=goal)

    return run_passes(func.kernel, goal, verify)


def built(kernel: Kernel, target: str) -> Any:
    """The binary of a thread-level kernel, None where NVRTC is not installed or the target is not NVIDIA's."""
    try:
        import cuda.bindings  # noqa: F401
    except ImportError:
        return None
    from tileworkbench.runtime import nvrtc

    goal = Target.of(target)
    return nvrtc.build(emit(kernel, goal)) if goal.dialect == "cuda" else emit(kernel, goal)


def _fresh(outputs: Sequence[np.ndarray], initial: Sequence[np.ndarray] | None) -> list[np.ndarray]:
    return [a.copy() for a in initial] if initial is not None else [np.zeros_like(o) for o in outputs]


def everywhere(
    func: Any,
    inputs: Sequence[np.ndarray],
    truth: np.ndarray | Sequence[np.ndarray],
    targets: Sequence[str] = ALL,
    *,
    initial: Sequence[np.ndarray] | None = None,
    tile_machine: bool = True,
    build: bool = True,
) -> dict[str, Kernel]:
    """Asserts that the kernel's last parameters become exactly `truth`; the lowered kernel of each target.

    `initial`: what those parameters hold before (they are then defined); None: they are undefined outputs."""
    names = [p.dtype.numpy for p in func.kernel.params[len(inputs) :]]
    given = [truth] if isinstance(truth, np.ndarray) else list(truth)
    wanted = [np.asarray(t).astype(d) for t, d in zip(given, names, strict=True)]
    made = [] if initial is not None else list(range(len(inputs), len(inputs) + len(wanted)))
    if tile_machine:
        outs = _fresh(wanted, initial)
        tile.run(func.kernel, [*[a.copy() for a in inputs], *outs])
        _equal(outs, wanted, "the tile machine")
    kernels = {}
    for target in targets:
        kernel = kernels[target] = lowered(func, target)
        for schedule in SCHEDULES:
            outs = _fresh(wanted, initial)
            args = [*[a.copy() for a in inputs], *outs]
            thread.run(kernel, args, schedule=schedule, target=Target.of(target), outputs=made)
            _equal(outs, wanted, f"{target}, schedule {schedule}")
        if build:
            built(kernel, target)
        if build and HOPPER and target in CARD_TARGETS:
            on_card(func, inputs, wanted, initial, target)
    return kernels


def _equal(got: Sequence[np.ndarray], wanted: Sequence[np.ndarray], where: str) -> None:
    for g, w in zip(got, wanted, strict=True):
        np.testing.assert_array_equal(g, w.astype(g.dtype), err_msg=where)


def instructions(kernel: Kernel, *kinds: type) -> list[Any]:
    """The kernel's instructions of these kinds."""
    from tileworkbench.ir.node import walk

    return [n for n in walk(kernel.body) if isinstance(n, kinds)]


def integers(seed: int, shape: tuple[int, ...], dtype: str = "float32", span: int = 50) -> np.ndarray:
    return np.random.default_rng(seed).integers(-span, span + 1, shape).astype(dtype)


def on_card(func: Any, inputs: Sequence[np.ndarray], wanted: Sequence[np.ndarray], initial: Any, target: str) -> None:
    """The kernel on a card, built for the families of `target`; NumPy arrays are copied there and back."""
    from tileworkbench.runtime import nvrtc
    from tileworkbench.runtime.launch import Launcher

    goal = Target.of(CARD_TARGETS[target])
    source = emit(run_passes(func.kernel, goal), goal)
    outs = _fresh(wanted, initial)
    if initial is None:
        for out in outs:
            out.fill({"f": np.nan, "u": 77}.get(out.dtype.kind, -77))
    Launcher([(source, nvrtc.build(source))])(*[a.copy() for a in inputs], *outs)
    _equal(outs, wanted, f"the card, {goal}")
