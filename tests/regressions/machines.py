"""The three machines that a regression runs on. Every tensor lies between guard zones, and outputs start poisoned."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from tests.end_to_end.harness import ALL, CARD_TARGETS, HOPPER, SCHEDULES, built, lowered
from tileworkbench.passes.facts import general
from tileworkbench.simulate import thread, tile
from tileworkbench.target import Target

GUARD = 512  # bytes before and behind every tensor; a multiple of every alignment
CANARY = 0xA5


class Zone:
    """A copy of an array in the middle of a larger allocation, `shift` bytes after a place that suits every access."""

    def __init__(self, array: np.ndarray, shift: int = 0) -> None:
        self.shape, self.dtype, self.before = array.shape, array.dtype, GUARD + shift
        self.bytes = np.full(self.before + GUARD + array.nbytes, CANARY, np.uint8)
        self.array[...] = array

    @property
    def array(self) -> np.ndarray:
        inner = self.bytes[self.before : len(self.bytes) - GUARD]
        return inner.view(self.dtype).reshape(self.shape)

    def intact(self) -> bool:
        return bool((self.bytes[: self.before] == CANARY).all() and (self.bytes[-GUARD:] == CANARY).all())


def poisoned(like: np.ndarray) -> np.ndarray:
    """What an output holds before the launch: NaN, or the canary's bits where there is none."""
    out = np.empty(like.shape, like.dtype)
    out.view(np.uint8)[...] = CANARY
    if like.dtype.kind not in "iub":
        out[...] = np.nan
    return out


Launch = Callable[[list[Any], Sequence[int]], None]


class Loaded:
    """A kernel made ready once for a machine, to be launched many times."""

    def __init__(self, launches: dict[str, Launch]) -> None:
        self.launches = launches

    def check(
        self,
        inputs: Sequence[Any],
        truth: np.ndarray | Sequence[np.ndarray],
        *,
        initial: Sequence[np.ndarray] | None = None,
        bits: bool = False,
        bounds: Sequence[np.ndarray] | None = None,
        shift: int = 0,
        note: object = "",
    ) -> None:
        """Asserts that the parameters behind `inputs` become `truth`, bit by bit with `bits` (NaN as NaN) or within
        absolute `bounds`, that inputs are left alone, and that nothing is written beside any tensor. `initial`: what
        those parameters hold before; tensors start `shift` elements after a multiple of 16 bytes."""
        wanted = [truth] if isinstance(truth, np.ndarray) else list(truth)
        made = range(len(inputs), len(inputs) + len(wanted)) if initial is None else ()
        for where, launch in self.launches.items():
            before = list(initial) if initial is not None else [poisoned(w) for w in wanted]
            every = [*inputs, *before]
            zones = [Zone(a, shift * a.itemsize) if isinstance(a, np.ndarray) else a for a in every]
            launch(zones, made)
            text = f"{where}, {note}" if note != "" else where
            for n, zone in enumerate(z for z in zones if isinstance(z, Zone)):
                assert zone.intact(), f"{text}: bytes beside tensor {n} changed"
            for given, zone in zip(inputs, zones, strict=False):
                if isinstance(given, np.ndarray):
                    assert zone.array.tobytes() == given.tobytes(), f"{text}: an input changed"
            for n, (w, zone) in enumerate(zip(wanted, zones[len(inputs) :], strict=True)):
                if bounds is not None:
                    off = ~(np.abs(zone.array.astype(np.float64) - w) <= bounds[n])
                    assert not off.any(), f"{text}: {off.sum()} of {off.size} elements of output {n} are out of bounds"
                    continue
                assert w.dtype == zone.dtype, f"the truth is {w.dtype}, the tensor {zone.dtype}"
                (same_bits if bits else np.testing.assert_array_equal)(zone.array, w, err_msg=text)


def same_bits(got: np.ndarray, wanted: np.ndarray, err_msg: str = "") -> None:
    """Equal bits, but for the payloads of NaNs."""
    unsigned = np.dtype(f"u{got.dtype.itemsize}")
    off = got.view(unsigned) != np.ascontiguousarray(wanted).view(unsigned)
    if off.any() and got.dtype.kind not in "iub":
        off &= ~(np.isnan(got.astype(np.float64)) & np.isnan(wanted.astype(np.float64)))
    where = np.argwhere(off)[:4]
    found = [(tuple(map(int, at)), got[tuple(at)], wanted[tuple(at)]) for at in where]
    assert not len(where), f"{err_msg}: {int(off.sum())} of {off.size} differ, such as (place, got, wanted) {found}"


class Plain:
    """A kernel whose variant assumes nothing of its arguments, but for where they start if `aligned`."""

    def __init__(self, func: Any, *, aligned: bool) -> None:
        self.kernel = general(func.kernel, aligned=aligned)


class Machine:
    """`thorough` says whether it is quick enough for every case of a large set."""

    name = ""
    thorough = True

    def load(self, func: Any, targets: Sequence[str] = ALL) -> Loaded:
        raise NotImplementedError

    def check(self, func: Any, inputs: Sequence[Any], truth: Any, targets: Sequence[str] = ALL, **how: Any) -> None:
        self.load(func, targets).check(inputs, truth, **how)

    def some(self, cases: Sequence[Any], count: int) -> list[Any]:
        """All cases, or `count` of them, the first and the last among them, on a slow machine."""
        if self.thorough or len(cases) <= count:
            return list(cases)
        return [cases[round(i * (len(cases) - 1) / (count - 1))] for i in range(count)]


class TileMachine(Machine):
    """What the kernel means."""

    name = "tile machine"

    def load(self, func: Any, targets: Sequence[str] = ALL) -> Loaded:
        def launch(zones: list[Any], made: Sequence[int]) -> None:
            tile.run(func.kernel, [z.array if isinstance(z, Zone) else z for z in zones])

        return Loaded({self.name: launch})


class ThreadMachine(Machine):
    """What the lowered kernel does, in three orders, with races, unwritten values and stray accesses as errors. Its
    text is built for NVIDIA's targets too where NVRTC is installed."""

    name = "thread machine"
    thorough = False

    def load(self, func: Any, targets: Sequence[str] = ALL) -> Loaded:
        launches: dict[str, Launch] = {}
        for name in targets:
            kinds = [func, *([Plain(func, aligned=True)] if func.kernel.symbols() else [])]
            variants = [_made(f, name) for f in kinds]
            for schedule in SCHEDULES:
                launches[f"{self.name}, {name}, {schedule}"] = self._launch(func, variants, schedule, name)
        return Loaded(launches)

    @staticmethod
    def _launch(func: Any, variants: list[Any], schedule: str, name: str) -> Launch:
        def launch(zones: list[Any], made: Sequence[int]) -> None:
            args = [z.array if isinstance(z, Zone) else z for z in zones]
            kernel = next((k for k in variants if thread.unmet(k, args) is None), None)
            if kernel is None:
                kernel = _made(Plain(func, aligned=False), name)
                variants.append(kernel)
            thread.run(kernel, args, schedule=schedule, target=Target.of(name), outputs=list(made))

        return launch


def _made(func: Any, name: str) -> Any:
    kernel = lowered(func, name)
    built(kernel, name)
    return kernel


class Card(Machine):
    """A card of capability 9.0: its own instruction families, and those of sm_80."""

    name = "card"

    def load(self, func: Any, targets: Sequence[str] = ALL) -> Loaded:
        if not HOPPER:
            pytest.skip("the card is not of capability 9.0")
        return Loaded({f"the card, {CARD_TARGETS[t]}": self._launch(func, t) for t in targets if t in CARD_TARGETS})

    @staticmethod
    def _launch(func: Any, name: str) -> Launch:
        import torch

        from tileworkbench.codegen.emit import emit
        from tileworkbench.pipeline import run_passes
        from tileworkbench.runtime import nvrtc
        from tileworkbench.runtime.launch import Launcher

        goal = Target.of(CARD_TARGETS[name])

        def variant(kernel: Any) -> Any:
            source = emit(run_passes(kernel, goal), goal)
            return source, nvrtc.build(source)

        launcher = Launcher([variant(func.kernel)], general=lambda kept: variant(general(func.kernel, aligned=kept)))

        def launch(zones: list[Any], made: Sequence[int]) -> None:
            there = [torch.from_numpy(z.bytes).cuda() if isinstance(z, Zone) else z for z in zones]
            launcher(*[_seen(torch, t, z) if isinstance(z, Zone) else z for t, z in zip(there, zones, strict=True)])
            for t, z in zip(there, zones, strict=True):
                if isinstance(z, Zone):
                    z.bytes[...] = t.cpu().numpy()

        return launch


def _seen(torch: Any, flat: Any, zone: Zone) -> Any:
    """The tensor inside a flat one of bytes."""
    if not hasattr(torch, zone.dtype.name):
        pytest.skip(f"this torch has no {zone.dtype.name}")
    inner = flat[zone.before : len(flat) - GUARD]
    return inner.view(getattr(torch, zone.dtype.name)).view(zone.shape)


MACHINES: dict[str, Machine] = {m.name: m for m in (TileMachine(), ThreadMachine(), Card())}
