"""How fast a compiled kernel is, where it can run."""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import MissingDependency
from ..ir.expr import Var
from ..runtime import benchmark
from ..simulate.tile.machine import written_tensors
from . import bench, inputs, supply
from .arrays import as_host
from .closeness import Mismatch, assert_close
from .outputs import workspaces
from .sizes import cases

if TYPE_CHECKING:
    from .kernel import JITKernel


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

    def __init__(self, kernel: JITKernel, sizes: Mapping[str, Any] | None = None, supply_type: Any = None) -> None:
        self.kernel, self.given = kernel, dict(sizes or {})
        self.supply_type = supply.kind_of(supply_type)

    def measure(self, warmup: float = 25, rep: float = 100, args: Sequence[Any] | None = None) -> Timings:
        """Runs for about `rep` milliseconds after `warmup`. MissingDependency for a card that is not here."""
        sizes = cases(self.kernel.tile, self.given)[0]
        named = {s.name: n for s, n in sizes.items()}
        ready = list(args) if args is not None else self.arguments(sizes)
        if self.kernel.variant is None:
            samples = bench.on_host(lambda: self.kernel(*ready), warmup, rep)
            where = "CPU target (NumPy, with all checks on)"
        else:
            samples = self._on_card(ready, warmup, rep)
            where = f"{self.kernel.target} card"
        low, middle, high = np.quantile(samples, [0.2, 0.5, 0.8])
        return Timings(float(middle), float(low), float(high), len(samples), where, named, tuple(samples))

    def arguments(self, sizes: Mapping[Var, int]) -> list[Any]:
        """Inputs of small random numbers; arrays on the card where the kernel runs on one."""
        hidden = workspaces(self.kernel.tile)
        made = inputs.make(self.kernel.tile, sizes, "random", 0, self.given)
        shown = [a for i, a in enumerate(made) if i not in hidden]
        return shown if self.kernel.variant is None else [on_card(a) for a in shown]

    def _on_card(self, args: Sequence[Any], warmup: float, rep: float) -> list[float]:
        launcher = self.kernel.launcher if len(self.kernel.parts) == 1 else self.kernel
        launcher(*args)  # raises here what is wrong with the arguments or the machine
        return list(benchmark.bench(lambda: launcher(*args), warmup=warmup, rep=rep).samples)

    def do_bench(
        self,
        func: Callable[..., Any] | None = None,
        warmup: float = 25,
        rep: float = 100,
        n_warmup: int = 0,
        n_repeat: int = 0,
        input_tensors: Sequence[Any] | None = None,
        backend: str = "event",
        quantiles: Sequence[float] | None = None,
        return_mode: str = "mean",
        dynamic_symbolic_constraints: Mapping[str, int] | None = None,
        device: Any = None,
        early_stop_baseline: float | None = None,
    ) -> Any:
        """Milliseconds a call of the kernel, or of `func` on the same inputs, as `do_bench` of the module gives them.
        `dynamic_symbolic_constraints` are run-time extents by name."""
        bench.check(return_mode, backend)
        ready = self.inputs(dynamic_symbolic_constraints) if input_tensors is None else list(input_tensors)
        samples = self.samples(func, ready, warmup, rep, n_warmup, n_repeat, backend, device)
        return bench.reduced(samples, quantiles, return_mode)

    def samples(
        self,
        func: Callable[..., Any] | None,
        ready: Sequence[Any],
        warmup: float = 25,
        rep: float = 100,
        n_warmup: int = 0,
        n_repeat: int = 0,
        backend: str = "event",
        device: Any = None,
    ) -> Sequence[float]:
        """Milliseconds of each run that `do_bench` counts."""
        call = self.kernel if func is None else func
        if self.kernel.variant is None:
            return bench.on_host(lambda: call(*ready), warmup, rep, n_warmup, n_repeat)
        call(*ready)  # raises here what is wrong with the arguments or the machine
        return bench.on_card(lambda: call(*ready), warmup, rep, n_warmup, n_repeat, backend, device)

    def inputs(self, sizes: Mapping[str, int] | None = None) -> list[Any]:
        """One argument for every parameter but the outputs, of the profiler's supply type."""
        given = {**self.given, **(sizes or {})}
        return supply.inputs(self.kernel.tile, self.supply_type, given, card=self.kernel.variant is not None)

    def params(self) -> list[Any]:
        """The parameters that a call takes: all but the outputs."""
        made = {*self.kernel.tile.outputs, *workspaces(self.kernel.tile)}
        return [p for place, p in enumerate(self.kernel.params) if place not in made]

    @contextlib.contextmanager
    def unchanged(self, ready: Sequence[Any]) -> Iterator[None]:
        """Arguments that the kernel writes have their values back after the block."""
        written = written_tensors(self.kernel.tile)
        kept = [(x, copied(x)) for p, x in zip(self.params(), ready, strict=False) if p in written]
        try:
            yield
        finally:
            for value, before in kept:
                if hasattr(value, "copy_"):
                    value.detach().copy_(before.detach())
                else:
                    value[...] = before

    def run_once(self, func: Callable[..., Any] | None = None) -> Any:
        """One call of the kernel (or of `func`) on made inputs."""
        return (func or self.kernel)(*self.inputs())

    def assert_allclose(
        self,
        reference_program: Callable[..., Any],
        input_tensors: Sequence[Any] | None = None,
        atol: float = 1e-2,
        rtol: float = 1e-2,
        max_mismatched_ratio: float = 0.01,
    ) -> None:
        """Mismatch unless the kernel's outputs are the reference's, up to atol + rtol·|reference| for all but the
        given share of elements."""
        got, wanted = self._both(reference_program, input_tensors)
        for a, b in zip(got, wanted, strict=True):
            if a is not None and b is not None:
                assert_close(a, b, rtol=rtol, atol=atol, most=max_mismatched_ratio)

    def manual_assert_close(
        self,
        reference_program: Callable[..., Any],
        input_tensors: Sequence[Any] | None = None,
        manual_check_prog: Callable[[list[Any], list[Any]], Any] | None = None,
    ) -> None:
        """Hands the kernel's outputs and the reference's, as lists, to `manual_check_prog`, which raises."""
        got, wanted = self._both(reference_program, input_tensors)
        if manual_check_prog is not None:
            manual_check_prog(got, wanted)

    def assert_consistent(self, repeat: int = 10) -> None:
        """Mismatch unless `repeat` more runs on the same inputs give exactly the same bits."""
        ready = self.inputs()
        first = [as_host(x) for x in self._outputs(ready)]
        for turn in range(repeat):
            for place, (a, b) in enumerate(zip(first, self._outputs(ready), strict=True)):
                if a.tobytes() != as_host(b).tobytes():
                    raise Mismatch(
                        f"run {turn + 2} of {self.kernel.name} gave another output {place} than run 1",
                        rule="the same inputs give the same bits",
                        fix="look for a race or a float atomic",
                        loc=self.kernel.tile.loc,
                    )

    def _both(self, reference: Callable[..., Any], given: Sequence[Any] | None) -> tuple[list[Any], list[Any]]:
        """The outputs of the kernel and of the reference on the same inputs. Of a kernel that returns nothing these are
        the tensors that it writes; its reference returns them, or writes them too."""
        ready = self.inputs() if given is None else list(given)
        seen = [copied(x) for x in ready]
        wanted = as_list(reference(*self._taken(reference, seen)))
        if not wanted and not self.kernel.tile.outputs:
            wanted = [seen[place] for place in inputs.output_places(self.kernel.tile)]
        got = self._outputs(ready)
        if len(got) != len(wanted):
            raise Mismatch(
                f"{self.kernel.name} gives {len(got)} outputs, its reference {len(wanted)}",
                rule="both give the same tensors in the same order",
                loc=self.kernel.tile.loc,
            )
        return got, wanted

    def _outputs(self, ready: Sequence[Any]) -> list[Any]:
        """What the kernel returns, or the tensors that it writes, in copies."""
        if self.kernel.tile.outputs:
            return as_list(self.kernel(*ready))
        own = [copied(x) for x in ready]
        self.kernel(*own)
        return [own[place] for place in inputs.output_places(self.kernel.tile)]

    def _taken(self, reference: Callable[..., Any], ready: list[Any]) -> list[Any]:
        """All arguments, or the inputs alone for a reference that takes only these."""
        try:
            inspect.signature(reference).bind(*ready)
        except TypeError:
            if not self.kernel.tile.outputs:
                written = inputs.output_places(self.kernel.tile)
                return [x for place, x in enumerate(ready) if place not in written]
        except ValueError:
            pass  # a built-in function without a signature
        return ready

    @property
    def func(self) -> JITKernel:
        """The kernel that is profiled."""
        return self.kernel

    def __call__(self, *args: Any, **named: Any) -> Any:
        return self.kernel(*args, **named)


def as_list(outputs: Any) -> list[Any]:
    """What a program gave, as a list of tensors."""
    if outputs is None:
        return []
    return list(outputs) if isinstance(outputs, list | tuple) else [outputs]


def copied(value: Any) -> Any:
    """An array of its own with the same values; a scalar as it is."""
    copy = getattr(value, "clone", None) or getattr(value, "copy", None)
    return copy() if copy is not None else value


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
