"""The search: every configuration is compiled, checked against the reference and timed; what fails is skipped."""

from __future__ import annotations

import contextlib
import logging
import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any

from ..errors import OptionError
from ..jitkernel import JITKernel
from ..jitkernel.fanout import fan_out
from ..jitkernel.supply import NoValue, TensorSupplyType
from .inputs import get_autotune_inputs

log = logging.getLogger("tileworkbench.tune")
FEW = 10  # runs that tell a hopeless configuration
HOPELESS = 2.0  # times the best latency so far, by the quickest of these runs
Build = Callable[[Mapping[str, Any]], JITKernel]


@dataclass(frozen=True)
class Settings:
    """How configurations are tried. `warmup` and `rep` are numbers of runs, `timeout` seconds for compiling one."""

    warmup: int = 25
    rep: int = 100
    timeout: float = 100.0
    supply_type: TensorSupplyType = TensorSupplyType.Auto
    ref_prog: Callable[..., Any] | None = None
    supply_prog: Callable[..., Any] | None = None
    rtol: float = 1e-2
    atol: float = 1e-2
    max_mismatched_ratio: float = 0.01
    skip_check: bool = False
    manual_check_prog: Callable[..., Any] | None = None
    cache_input_tensors: bool = False
    early_stop: bool = False
    early_stop_factor: float = 2.0
    backend: str = "event"

    def __post_init__(self) -> None:
        if self.early_stop_factor < 1:
            raise OptionError(f"early_stop_factor={self.early_stop_factor}", rule="it is at least 1", fix="2.0")

    @classmethod
    def among(cls, given: Mapping[str, Any]) -> Settings:
        """The settings among a function's arguments by name; those it does not take keep their defaults."""
        return cls(**{f.name: given[f.name] for f in fields(cls) if f.name in given})

    @property
    def repeatable(self) -> bool:
        """Whether a result may be kept on disk: a user's function has no name that lasts."""
        return not (self.ref_prog or self.supply_prog or self.manual_check_prog)


@dataclass(frozen=True)
class Trial:
    """One configuration. `status` is ok, failed (with `error`), wrong (the check's message) or stopped (slower than the
    best by more than the factor after a few runs); `latency` milliseconds a call (of a hopeless one over its first
    runs); `seconds` what the trial took."""

    config: dict[str, Any]
    status: str
    latency: float = math.inf
    seconds: float = 0.0
    error: str = ""
    kernel: JITKernel | None = field(default=None, repr=False, compare=False)


@dataclass(frozen=True)
class Report:
    """All trials in the order of the configurations, and the reference's milliseconds where there is one."""

    trials: tuple[Trial, ...]
    ref_latency: float | None = None

    @property
    def best(self) -> Trial:
        """The fastest correct trial; OptionError, with every reason, when there is none."""
        good = [trial for trial in self.trials if trial.status == "ok"]
        if good:
            return min(good, key=lambda trial: trial.latency)
        reasons = dict.fromkeys(f"{t.status}: {t.error.splitlines()[0]}" for t in self.trials if t.error)
        raise OptionError(
            f"none of {len(self.trials)} configurations works",
            rule="; ".join(list(reasons)[:4]),
            fix="compile one of them alone to see its whole message",
        )


def search(build: Build, configs: Sequence[Mapping[str, Any]], settings: Settings) -> Report:
    """Compiles all configurations in processes of the compiler's own and tries each as soon as it is there, one at a
    time and in their order."""
    if not configs:
        raise OptionError(
            "no configurations to try",
            rule="configs is a list of dicts, or a function that gives one",
            fix="configs=[{...}]",
        )
    bench = Bench(settings)
    with contextlib.closing(fan_out(build, configs, seconds=settings.timeout)) as built:
        return Report(tuple(bench.tried(dict(config), made) for config, made in built), bench.reference)


class Bench:
    """Tries compiled kernels one after another; remembers inputs, the reference's time and the best latency."""

    def __init__(self, settings: Settings) -> None:
        self.settings, self.best = settings, math.inf
        self.reference: float | None = None
        self.kept: list[Any] | None = None

    def tried(self, config: dict[str, Any], made: JITKernel | Exception) -> Trial:
        """One trial; nothing is raised for a configuration that does not work."""
        start = time.perf_counter()
        if isinstance(made, Exception):
            trial = Trial(config, "failed", error=f"{type(made).__name__}: {made}")
        else:
            trial = self._run(config, made)
        if trial.error:
            log.warning("configuration %s %s: %s", config, trial.status, trial.error)
        return replace(trial, seconds=time.perf_counter() - start)

    def _run(self, config: dict[str, Any], kernel: JITKernel) -> Trial:
        s = self.settings
        try:
            profiler = kernel.get_profiler(s.supply_type)
            ready = self._inputs(profiler)
            with profiler.unchanged(ready):  # a kernel that updates its arguments must not change the user's
                if s.ref_prog is not None and not s.skip_check:
                    self._check(profiler, ready)
                if s.early_stop and math.isfinite(self.best):
                    quick = profiler.do_bench(n_warmup=1, n_repeat=3, input_tensors=ready, backend=s.backend)
                    if quick > self.best * s.early_stop_factor:
                        return Trial(config, "stopped", quick, kernel=kernel)
                latency = self._latency(profiler, ready)
            if self.reference is None and s.ref_prog is not None:
                self.reference = self._time(profiler, s.ref_prog, self._inputs(profiler))
        except NoValue:  # of no configuration: the search needs the user's inputs
            raise
        except AssertionError as wrong:
            return Trial(config, "wrong", error=str(wrong))
        except Exception as problem:  # of the kernel, of the reference or of the user's own programs
            return Trial(config, "failed", error=f"{type(problem).__name__}: {problem}")
        self.best = min(self.best, latency)
        return Trial(config, "ok", latency, kernel=kernel)

    def _latency(self, profiler: Any, ready: list[Any]) -> float:
        """The mean of `rep` runs; of the first few alone where each of them took much longer than the best does: what
        is left of the runs could not make it the best."""
        s = self.settings
        few = min(s.rep, FEW)
        samples = list(profiler.samples(None, ready, n_warmup=s.warmup, n_repeat=few, backend=s.backend))
        if few < s.rep and min(samples) <= HOPELESS * self.best:
            samples += profiler.samples(None, ready, warmup=0, n_repeat=s.rep - few, backend=s.backend)
        return math.fsum(samples) / len(samples)

    def _time(self, profiler: Any, program: Any, ready: list[Any]) -> float:
        s = self.settings
        return float(
            profiler.do_bench(program, n_warmup=s.warmup, n_repeat=s.rep, input_tensors=ready, backend=s.backend)
        )

    def _check(self, profiler: Any, ready: list[Any]) -> None:
        s = self.settings
        if s.manual_check_prog is not None:
            profiler.manual_assert_close(s.ref_prog, ready, s.manual_check_prog)
        else:
            profiler.assert_allclose(s.ref_prog, ready, s.atol, s.rtol, s.max_mismatched_ratio)

    def _inputs(self, profiler: Any) -> list[Any]:
        """Those of `set_autotune_inputs`, of the user's function, or made ones."""
        given = get_autotune_inputs()
        if given is not None:
            return list(given)
        if self.kept is not None:
            return self.kept
        supply = self.settings.supply_prog
        made = list(supply(profiler.params())) if supply is not None else profiler.inputs()
        if self.settings.cache_input_tensors:
            self.kept = made
        return made
