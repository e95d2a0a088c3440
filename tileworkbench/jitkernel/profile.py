"""How fast a compiled kernel is, where it can run."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import MissingDependency, OptionError
from ..ir.expr import Var
from ..runtime import benchmark
from . import inputs
from .sizes import cases

if TYPE_CHECKING:
    from .kernel import JITKernel

MODES = ("mean", "median", "min", "max")


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

    def __init__(self, kernel: JITKernel, sizes: Mapping[str, Any] | None = None) -> None:
        self.kernel, self.given = kernel, dict(sizes or {})

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
        made = inputs.make(self.kernel.tile, sizes, "random", 0, self.given)
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
        if return_mode not in MODES:
            raise OptionError(f"return_mode={return_mode!r}", rule=f"one of {', '.join(MODES)}", fix='"mean"')
        samples = on_host(func, warmup, rep) if func is not None else self.measure(warmup, rep, input_tensors).samples
        if quantiles:
            return [float(x) for x in np.quantile(samples, list(quantiles))]
        averages: dict[str, Callable[..., Any]] = {"mean": np.mean, "median": np.median, "min": np.min, "max": np.max}
        return float(averages[return_mode](samples))

    def run_once(self, func: Callable[..., Any] | None = None) -> Any:
        """One call of the kernel (or of `func`) on made inputs."""
        args = self.arguments(cases(self.kernel.tile, self.given)[0])
        return (func or self.kernel)(*args)


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


TORCH_TAKES = frozenset({"bool", "uint8", "int8", "int16", "int32", "int64", "float16", "float32", "float64"})
