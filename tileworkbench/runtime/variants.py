"""Builds of one kernel under different assumptions: the first whose facts hold is chosen, and loaded once a device."""

from __future__ import annotations

import re
import threading
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence

from ..codegen.source import Host, Source
from ..errors import AssumptionError, InternalError, LaunchError, TargetError
from . import hostexpr
from .binary import Binary
from .driver import Driver

General = Callable[[bool], tuple[Source, Binary]]
LOW_BITS = 255  # allocators align to 256 bytes or more, and no fact asks for more
_POINTER, _STRIDE = re.compile(r"^\w+\.ptr$"), re.compile(r"^\w+\.stride\d+$")


class Variant:
    """One build, and its functions on the devices where it was loaded."""

    def __init__(self, source: Source, binary: Binary) -> None:
        if binary.kind != "cubin":
            raise TargetError(
                f"{source.entry} was built for {binary.arch} as {binary.kind}", rule="only cubins are launched here"
            )
        self.source, self.binary = source, binary
        self.maps_strides = any(param.strides is not None for param in source.params if hasattr(param, "strides"))
        facts = sorted(source.facts, key=lambda fact: not fact.required)
        self._tests = [(hostexpr.compiled(fact.condition), fact) for fact in facts]
        self._functions: dict[int, int] = {}
        self._lock = threading.Lock()

    def refused(self, values: Mapping[str, int]) -> str | None:
        """The text of the first fact that does not hold; None when all do. AssumptionError for one that every call
        must keep."""
        try:
            fact = next((fact for test, fact in self._tests if not test(values)), None)
        except KeyError as error:
            raise InternalError(f"a fact of {self.source.entry} speaks of {error}, which no argument defines") from None
        if fact is not None and fact.required:
            raise AssumptionError.of(fact.text)
        return fact.text if fact is not None else None

    def well_placed(self, values: Mapping[str, int]) -> bool:
        """Whether every fact about addresses alone holds."""
        return all(test(values) for test, fact in self._tests if _of_addresses(fact.condition))

    def function(self, driver: Driver, device: int) -> int:
        """The driver's handle on `device`; loads it at the first call."""
        with self._lock:
            if device not in self._functions:
                self._functions[device] = self._load(driver, device)
            return self._functions[device]

    def _load(self, driver: Driver, device: int) -> int:
        check_capability(self.binary.arch, driver.capability(device), device)
        source = self.source
        cluster = 1
        for extent in source.cluster:
            cluster *= extent
        module, function = driver.load(device, self.binary.code, source.entry, source.shared_bytes, cluster)
        weakref.finalize(self, driver.unload, device, module).atexit = False
        return function


class Variants:
    """The builds of a kernel in order of preference. `general` makes those that assume less when they are first needed:
    given True one for tensors that start where the first build wants them, given False the last resort."""

    def __init__(self, built: Sequence[tuple[Source, Binary]], general: General | None) -> None:
        self._first = [Variant(source, binary) for source, binary in built]
        self._general, self._lock = general, threading.Lock()
        self._later: dict[bool, Variant] = {}

    @property
    def list(self) -> list[Variant]:
        """The builds that there are by now."""
        return [*self._first, *(self._later[kind] for kind in (True, False) if kind in self._later)]

    @property
    def reads_strides(self) -> bool:
        """Whether a launch depends on strides beyond whether an array is contiguous."""
        return any(v.maps_strides or _speaks_of(v.source, _STRIDE) for v in self.list)

    @property
    def reads_pointers(self) -> bool:
        return any(_speaks_of(v.source, _POINTER) for v in self.list)

    @property
    def reads_all_of_pointers(self) -> bool:
        """Whether some fact needs more of an address than its low bits, so that it must be evaluated at every call."""
        return any(not _low_bits_only(fact.condition) for v in self.list for fact in v.source.facts)

    def choose(self, values: Callable[[Source], Mapping[str, int]]) -> tuple[Variant, Mapping[str, int]]:
        """The first variant whose facts hold, and the values they were evaluated with. LaunchError when there is none
        and no general one can be built."""
        reasons = []
        for variant in self._candidates(values):
            found = values(variant.source)
            refusal = variant.refused(found)
            if refusal is None:
                return variant, found
            reasons.append(refusal)
        raise LaunchError(
            f"{self._first[0].source.entry} was built for other arguments: {'; '.join(reasons)}",
            rule="these must hold at the call",
            fix="call it with such arguments, or compile it without the assumption",
        )

    def _candidates(self, values: Callable[[Source], Mapping[str, int]]) -> Iterator[Variant]:
        """What may take a call, in order of preference, built when its turn comes."""
        yield from self._first
        if self._general is not None:
            first = self._first[0]
            if first.well_placed(values(first.source)):
                yield self._built(self._general, True)
            yield self._built(self._general, False)

    def _built(self, general: General, aligned: bool) -> Variant:
        with self._lock:
            if aligned not in self._later:
                self._later[aligned] = Variant(*general(aligned))
            return self._later[aligned]


def check_capability(arch: str, found: tuple[int, int], device: int) -> None:
    """Raises LaunchError when a cubin for `arch` cannot run on a device of capability `found`."""
    match = re.fullmatch(r"sm_(\d+)(\d)([af]?)", arch)
    if match is None:
        raise InternalError(f"{arch!r} is not an NVIDIA architecture")
    major, minor, suffix = int(match[1]), int(match[2]), match[3]
    # A plain cubin also runs on later minor revisions of its major; one of features ("a") only on its own.
    fits = found == (major, minor) if suffix == "a" else found[0] == major and found[1] >= minor
    if not fits:
        here = f"sm_{found[0]}{found[1]}"
        raise LaunchError(
            f"the kernel was built for {arch}, and device {device} is {here}",
            rule="device code runs on the architecture it was built for",
            fix="leave the target out, or name the device's own",
        )


def _speaks_of(source: Source, pattern: re.Pattern[str]) -> bool:
    return any(pattern.match(name) for fact in source.facts for name in hostexpr.symbols(fact.condition))


def _of_addresses(condition: Host) -> bool:
    named = set(hostexpr.symbols(condition))
    return bool(named) and all(_POINTER.match(name) for name in named)


def _low_bits_only(expr: Host) -> bool:
    if isinstance(expr, str):
        return not _POINTER.match(expr)
    if isinstance(expr, tuple):
        if expr[0] == "mod" and isinstance(expr[2], int) and (LOW_BITS + 1) % max(expr[2], 1) == 0:
            return all(isinstance(e, str) or _low_bits_only(e) for e in _sum_of(expr[1]))
        return all(_low_bits_only(e) for e in expr[1:])
    return True


def _sum_of(expr: Host) -> Iterator[Host]:
    """The terms of a sum: their low bits give the sum's."""
    if isinstance(expr, tuple) and expr[0] == "add":
        for operand in expr[1:]:
            yield from _sum_of(operand)
    else:
        yield expr
