"""How fast a compiled kernel is, where it can run."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import MissingDependency, OptionError, SimulationError
from ..ir.expr import Var
from ..runtime import benchmark
from ..target.detect import detect
from . import inputs
from .sizes import cases

if TYPE_CHECKING:
    from .kernel import JITKernel

MODES = ("mean", "median", "min", "max")
SUPPLIES = ("Integer", "Uniform", "Normal", "Randn", "Zero", "One", "Auto")


@dataclass(frozen=True)
class Timings:
    """`ms` is the median of `runs` calls, `low` and `high` the 20 and 80 percent quantiles, all in milliseconds;
    `where` names the machine, `sizes` the run-time extents by name."""

    ms: float
    low: float
    high: float
    runs: int
    where: str
    sizes: dict[str, int]
    samples: tuple[float, ...] = ()


class Profiler:
    """Times a kernel on inputs made from its signature, or on given ones."""

    def __init__(self, kernel: JITKernel, sizes: Mapping[str, Any] | None = None, supply: str = "Auto") -> None:
        if supply not in SUPPLIES:
            raise OptionError(f"tensor_supply_type={supply!r}", rule=f"one of {', '.join(SUPPLIES)}", fix="Auto")
        self.kernel, self.given, self.supply = kernel, dict(sizes or {}), supply

    def measure(self, warmup: float = 25, rep: float = 100, args: Sequence[Any] | None = None) -> Timings:
        """Runs for about `rep` milliseconds after `warmup`. MissingDependency for a card that is not here."""
        sizes = cases(self.kernel.tile, self.given)[0]
        named = {s.name: n for s, n in sizes.items()}
        ready = list(args) if args is not None else self.arguments(sizes)
        if self.kernel.variant is None:
            samples = on_host(lambda: self.kernel(*ready), warmup, rep)
            where = "CPU target (NumPy, with all checks on)"
        else:
            samples = self._on_card(ready, warmup, rep)
            where = f"{self.kernel.target} card"
        low, middle, high = np.quantile(samples, [0.2, 0.5, 0.8])
        return Timings(float(middle), float(low), float(high), len(samples), where, named, tuple(samples))

    def arguments(self, sizes: Mapping[Var, int]) -> list[Any]:
        """Inputs of small random numbers; arrays on the card where the kernel runs on one."""
        made = inputs.make(self.kernel.tile, sizes, KIND_OF.get(self.supply, "random"), 0, self.given)
        return made if self.kernel.variant is None else [on_card(a) for a in made]

    def _on_card(self, args: Sequence[Any], warmup: float, rep: float) -> list[float]:
        launcher = self.kernel.launcher
        launcher(*args)  # raises here what is wrong with the arguments or the machine
        return list(benchmark.bench(lambda: launcher(*args), warmup=warmup, rep=rep).samples)

    def do_bench(
        self,
        func: Callable[[], Any] | None = None,
        warmup: float = 25,
        rep: float = 100,
        n_warmup: int = 0,
        n_repeat: int = 0,
        input_tensors: Sequence[Any] | None = None,
        backend: str = "event",
        quantiles: Sequence[float] | None = None,
        return_mode: str = "mean",
        **_: Any,
    ) -> Any:
        """Milliseconds a call by `return_mode`, or a list for `quantiles`."""
        samples = (
            samples_of(func, warmup, rep) if func is not None else self.measure(warmup, rep, input_tensors).samples
        )
        return in_mode(samples, return_mode, quantiles)

    def assert_allclose(
        self,
        reference: Callable[..., Any],
        input_tensors: Sequence[Any] | None = None,
        atol: float = 1e-2,
        rtol: float = 1e-2,
        max_mismatched_ratio: float = 0.01,
    ) -> None:
        """Compares with `reference(*inputs)` by given tolerances, as TileLang does. `tileworkbench.check` derives them
        and forgives no element."""
        inputs_, found = self._results(input_tensors)
        for n, (ours, theirs) in enumerate(zip(found, as_list(reference(*inputs_)), strict=True)):
            far = ~np.isclose(as_float(ours), as_float(theirs), rtol=rtol, atol=atol, equal_nan=True)
            if far.mean() > max_mismatched_ratio:
                at = tuple(int(i) for i in np.argwhere(far)[0])
                raise SimulationError(
                    f"output {n} of {self.kernel.name} differs in {far.mean():.2%} of its elements, first at {at}: "
                    f"{as_float(ours)[at]:.6g}, expected {as_float(theirs)[at]:.6g}",
                    rule=f"rtol {rtol}, atol {atol}, at most {max_mismatched_ratio:.2%} beyond them",
                    fix="tileworkbench.check(kernel, reference) shows the worst element and its bound",
                    loc=self.kernel.tile.loc,
                )

    def assert_consistent(self, repeat: int = 10) -> None:
        """The same inputs give the same bits every time."""
        inputs_, first = self._results(None)
        for _ in range(repeat):
            _, again = self._results(inputs_)
            if not all(
                np.array_equal(as_float(a), as_float(b), equal_nan=True) for a, b in zip(first, again, strict=True)
            ):
                raise SimulationError(
                    f"{self.kernel.name} gives different results for the same inputs", rule="results repeat",
                    fix="look for a race or a float atomic", loc=self.kernel.tile.loc,
                )  # fmt: skip

    def _results(self, given: Sequence[Any] | None) -> tuple[list[Any], list[Any]]:
        """The inputs, and the outputs for them: what is returned, else the tensors that the kernel writes."""
        places = inputs.output_places(self.kernel.tile)
        ready = list(given) if given is not None else None
        if ready is None:
            full = self.arguments(cases(self.kernel.tile, self.given)[0])
            ready = [a for i, a in enumerate(full) if i not in places]
        if self.kernel.tile.outputs:
            return ready, as_list(self.kernel(*ready))
        full = self.arguments(cases(self.kernel.tile, self.given)[0])
        rest = iter(ready)
        every = [full[i] if i in places else next(rest) for i in range(len(full))]
        self.kernel(*every)
        return ready, [every[i] for i in places]

    def run_once(self, func: Callable[..., Any] | None = None) -> Any:
        """One call of the kernel (or of `func`) on made inputs."""
        args = self.arguments(cases(self.kernel.tile, self.given)[0])
        return (func or self.kernel)(*args)


def samples_of(run: Callable[[], Any], warmup: float, rep: float) -> list[float]:
    """Milliseconds of each call: on the device where there is an NVIDIA driver with one, else by the host's clock."""
    if not any(found.driver for found in detect()):
        return on_host(run, warmup, rep)
    return list(benchmark.bench(run, warmup=warmup, rep=rep).samples)


def in_mode(samples: Sequence[float], mode: str, quantiles: Sequence[float] | None) -> Any:
    """One figure of many, or a list of quantiles."""
    if mode not in MODES:
        raise OptionError(f"return_mode={mode!r}", rule=f"one of {', '.join(MODES)}", fix='"mean"')
    if quantiles:
        return [float(x) for x in np.quantile(samples, list(quantiles))]
    return float(getattr(np, mode)(samples))


def as_list(result: Any) -> list[Any]:
    return list(result) if isinstance(result, list | tuple) else [result]


def as_float(array: Any) -> np.ndarray:
    """Any library's array as float64 on the host."""
    if hasattr(array, "detach"):
        array = array.detach().cpu().double()
    return np.asarray(array.get() if hasattr(array, "get") else array).astype(np.float64)


def on_host(run: Callable[[], Any], warmup: float, rep: float) -> list[float]:
    """Milliseconds of each call, by the host's clock, for about `rep` milliseconds and at least three calls."""
    end = time.perf_counter() + warmup / 1e3
    run()
    while time.perf_counter() < end:
        run()
    samples: list[float] = []
    end = time.perf_counter() + rep / 1e3
    while len(samples) < 3 or time.perf_counter() < end:
        start = time.perf_counter()
        run()
        samples.append((time.perf_counter() - start) * 1e3)
    return samples


def on_card(value: Any) -> Any:
    """An array on the card: by torch where it has CUDA, else by CuPy."""
    if not isinstance(value, np.ndarray):
        return value
    try:
        import torch

        if torch.cuda.is_available() and value.dtype.name in TORCH_TAKES:
            return torch.from_numpy(value).cuda()
    except ImportError:
        pass
    try:
        import cupy
    except ImportError:
        raise MissingDependency(
            "neither torch with CUDA nor CuPy is there to hold arrays on the card", fix="pip install cupy-cuda13x"
        ) from None
    return cupy.asarray(value)


KIND_OF = {"Integer": "integer", "Normal": "normal", "Randn": "normal", "Zero": "zero", "One": "one"}
TORCH_TAKES = frozenset({"bool", "uint8", "int8", "int16", "int32", "int64", "float16", "float32", "float64"})
