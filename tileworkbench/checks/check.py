"""Runs a kernel on inputs made from its signature and compares every element with the truth."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..errors import InternalError, NotSimulated, SimulationError, TileError
from ..ir.effects import reads
from ..ir.expr import Var
from ..ir.kernel import Kernel
from ..jitkernel import inputs
from ..jitkernel.kernel import JITKernel
from ..jitkernel.sizes import cases
from ..jitkernel.work import Work, together, work
from ..simulate import tile
from . import truth
from .bounds import Bound, bound
from .machines import Machine, Outcome, machine_of


@dataclass(frozen=True)
class Case:
    """One call: `sizes` by name, the `kind` of inputs and their `seed`; the largest error and how much of its bound
    it takes, the bound in words; where the worst element is, what it is and what it should be."""

    sizes: dict[str, int]
    kind: str
    seed: int
    ok: bool
    error: float
    share: float
    bound: str
    output: str = ""
    index: tuple[int, ...] = ()
    found: Any = None
    expected: Any = None
    trouble: TileError | None = None


@dataclass(frozen=True)
class Check:
    """`proven` is "reference" (equal to the function given), "meaning" (what the machine did is what the text means) or
    "runs" (no undefined value, no index out of range; values were not compared). `machine` says where it ran."""

    cases: tuple[Case, ...]
    proven: str
    machine: str

    @property
    def ok(self) -> bool:
        """Whether every case is within its bounds."""
        return all(case.ok for case in self.cases)

    @property
    def worst(self) -> Case:
        """The case that fails, else the one that used most of its bound."""
        return max(self.cases, key=lambda c: (not c.ok, c.share, c.error))

    @property
    def error(self) -> float:
        """The largest error of all cases."""
        return max(case.error for case in self.cases)

    def __bool__(self) -> bool:
        return self.ok

    def __str__(self) -> str:
        where = f"on {len(self.cases)} input{'s' * (len(self.cases) != 1)} ({self.machine})"
        if not self.ok:
            return f"wrong {where}: {fault_text(self.worst)}"
        words = {
            "reference": "equal to the reference",
            "meaning": "the machine code does what the text means",
            "runs": "runs without undefined values or indices out of range; no reference to compare with",
        }
        return f"{words[self.proven]} {where}, largest error {self.error:.3g}"


def fault_text(case: Case) -> str:
    """The worst element of a failed case in words."""
    sizes = ", ".join(f"{name}={n}" for name, n in case.sizes.items())
    at = f" with {sizes}" if sizes else ""
    if case.trouble is not None:
        return f"{case.trouble.found}{at}"
    place = ", ".join(map(str, case.index))
    given = f"{case.kind} inputs, seed {case.seed}"
    return f"{case.output}[{place}] is {case.found!s}, expected {case.expected!s}{at} ({given})"


def check(
    kernel: JITKernel,
    ref: Callable[..., Any] | None = None,
    set: Mapping[str, Any] | None = None,
    seeds: Sequence[int] = (0,),
) -> Check:
    """Checks a compiled kernel where it can run: on its card, by the thread machine for a card that is not here, or on
    the CPU target. With `ref`, a function of the inputs on NumPy or torch, its result is the truth; without it the
    tile machine's meaning of the text is. `set` gives run-time extents and scalars."""
    given = dict(set or {})
    machine = machine_of(kernel)
    proven = "reference" if ref is not None else "runs" if machine.means else "meaning"
    found = []
    for sizes in cases(kernel.tile, given):
        done = together([work(part.tile, sizes) for part in kernel.parts])
        for kind in inputs.KINDS:
            for seed in seeds:
                found.append(one(kernel, machine, ref, sizes, kind, seed, given, done))
    return Check(tuple(found), proven, machine.text)


def one(
    compiled: JITKernel, machine: Machine, ref: Any, sizes: Mapping[Var, int], kind: str, seed: int,
    given: Mapping[str, Any], done: Work,
) -> Case:  # fmt: skip
    """One call on made inputs, held against its truth; a mistake that the machine reports is a failed case."""
    kernel = compiled.tile
    args = inputs.make(kernel, sizes, kind, seed, given)
    outputs = inputs.output_places(kernel)
    named = {s.name: n for s, n in sizes.items()}
    expected, magnitudes = expectation(compiled, ref, args, outputs, machine)
    try:
        ran = machine.run(args, outputs, kind)
    except (InternalError, NotSimulated):
        raise  # a fault of ours, or text that runs on cards alone, says nothing about the kernel
    except TileError as trouble:
        return Case(named, kind, seed, False, np.inf, np.inf, "it runs to its end", trouble=trouble)
    if ref is not None and (hole := never_written(kernel, outputs, ran)) is not None:
        return Case(named, kind, seed, False, np.inf, np.inf, "every element is written", trouble=hole)
    worst: Case | None = None
    for n, place in enumerate(outputs):
        out, found = kernel.params[place], ran.outputs[n]
        wanted = truth.plain(found) if expected is None else expected[n]
        magnitude = None if magnitudes is None else magnitudes[n]
        limit = bound(np.asarray(wanted), magnitude, done, out.dtype, integers=kind == "integer")
        case = compared(named, kind, seed, out.name, found, wanted, limit, ran.computed[n])
        worst = case if worst is None or (not case.ok, case.share) > (not worst.ok, worst.share) else worst
    return worst or Case(named, kind, seed, True, 0.0, 0.0, "it makes nothing")


def never_written(kernel: Kernel, outputs: Sequence[int], ran: Outcome) -> TileError | None:
    """An element of an output that no block stored to, unless the tensor is an input as well."""
    read = reads(kernel.body)
    for place, mask in zip(outputs, ran.unwritten, strict=True):
        param = kernel.params[place]
        if mask is not None and param not in read:
            at = ", ".join(str(int(i)) for i in np.argwhere(mask)[0])
            return SimulationError(
                f"{param.name}[{at}] is never written",
                rule="the reference has a value for every element",
                fix="look at the grid and the tiles' edges",
                loc=param.loc,
            )
    return None


def expectation(
    compiled: JITKernel, ref: Any, args: list[Any], outputs: Sequence[int], machine: Machine
) -> tuple[list[np.ndarray] | None, list[np.ndarray] | None]:
    """The truth, and the truth on absolute values where that makes sense."""
    if ref is not None:
        values = truth.of_reference(ref, compiled.tile, args, outputs)
        try:
            sizes = truth.of_reference(ref, compiled.tile, [absolute(a) for a in args], outputs)
        except Exception:
            sizes = None
        return values, checked_magnitude(values, sizes)
    if machine.means:
        return None, None
    values = meaning(compiled, args, outputs)
    return values, checked_magnitude(values, meaning(compiled, [absolute(a) for a in args], outputs))


def meaning(kernel: JITKernel, args: list[Any], outputs: Sequence[int]) -> list[np.ndarray]:
    """What the kernel's text means: the tile machine's outputs on copies of the arguments."""
    copies = [np.copy(a) if isinstance(a, np.ndarray) else a for a in args]
    for part in kernel.parts:
        tile.run(part.tile, copies)
    return [truth.plain(copies[i]) for i in outputs]


def absolute(a: Any) -> Any:
    """Magnitudes of numbers; booleans, unsigned integers and anything but an array as they are."""
    return np.abs(a) if isinstance(a, np.ndarray) and a.dtype.kind not in "bu" else a


def checked_magnitude(values: list[np.ndarray], sizes: list[np.ndarray] | None) -> list[np.ndarray] | None:
    """It stands for the sizes of the terms only where it is nowhere below the result itself."""
    if sizes is None:
        return None
    for value, size in zip(values, sizes, strict=True):
        if not np.isfinite(size).all() or (np.abs(value) > np.abs(size) * (1 + 2.0**-9) + 1e-30).any():
            return None
    return sizes


def compared(
    sizes: dict[str, int], kind: str, seed: int, name: str, found: np.ndarray, wanted: np.ndarray, limit: Bound,
    defined: np.ndarray | None,
) -> Case:  # fmt: skip
    """NaN and infinity must match in place; every other element is held to its own bound."""
    same = (found == wanted) | (np.isnan(as_float(found)) & np.isnan(as_float(wanted)))
    with np.errstate(invalid="ignore", over="ignore"):
        error = np.where(same, 0.0, np.abs(as_float(found) - as_float(wanted)))
    error = np.where(np.isfinite(error), error, np.inf)
    if defined is not None:
        error = np.where(defined, error, 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        share = np.where(error == 0, 0.0, error / np.where(limit.limit > 0, limit.limit, 0.0))
    if not error.size:
        return Case(sizes, kind, seed, True, 0.0, 0.0, limit.text, name)
    at = np.unravel_index(int(np.argmax(share)), share.shape)
    ok = bool((share <= 1).all())
    place = tuple(int(i) for i in at)
    return Case(
        sizes, kind, seed, ok, float(error.max()), float(share.max()), limit.text, name, place, found[at], wanted[at]
    )


def as_float(array: np.ndarray) -> np.ndarray:
    """The values as float64."""
    return np.asarray(array).astype(np.float64)
