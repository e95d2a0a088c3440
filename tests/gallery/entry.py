"""What the gallery holds: kernels of the families that TileLang's core example scripts show, each with a reference."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import ml_dtypes
import numpy as np

from tileworkbench.ir.kernel import Kernel

DTYPES = {
    "bfloat16": ml_dtypes.bfloat16,
    "float8_e4m3fn": ml_dtypes.float8_e4m3fn,
    "float8_e5m2": ml_dtypes.float8_e5m2,
    "float4_e2m1fn": ml_dtypes.float4_e2m1fn,
    "tfloat32": np.float32,
    "tf32": np.float32,
}
# Half the distance between neighbours, relative to the value: what one rounding to the type costs at most.
ROUNDING = {"float32": 2.0**-24, "float16": 2.0**-11, "bfloat16": 2.0**-8, "float8_e4m3fn": 2.0**-4}


@dataclass(frozen=True)
class Expected:
    """What a tensor must hold afterwards. `bound`: absolute, per element; 0 asks for the correctly rounded value.
    `initial`: what it holds before; None: nothing that a kernel may rely on. `any_order`: a row holds these values,
    whichever first."""

    truth: np.ndarray
    bound: Any = 0
    initial: np.ndarray | None = None
    any_order: bool = False


@dataclass(frozen=True)
class Data:
    """Arrays and scalars by parameter name."""

    inputs: Mapping[str, Any]
    outputs: Mapping[str, Expected]


@dataclass(frozen=True)
class Entry:
    """`make(**sizes)` gives a PrimFunc, a JITKernel or several that follow one another, `data(**sizes)` the arguments
    and what must come out.

    scripts: TileLang's example scripts whose algorithm it is. small: sizes for the simulators, where each takes a few
    seconds at most; real: sizes for builds. hopper: it uses what only sm_90a has, and other targets refuse it.
    simulated: False where an escape hatch keeps it from the CPU target."""

    name: str
    scripts: tuple[str, ...]
    make: Callable[..., Any]
    data: Callable[..., Data]
    small: Mapping[str, Any]
    real: Mapping[str, Any] = field(default_factory=dict)
    hopper: bool = False
    simulated: bool = True

    def kernels(self, sizes: Mapping[str, Any]) -> tuple[Kernel, ...]:
        """The tile-level kernels for these sizes in launch order, whichever style they are written in."""
        made = self.make(**sizes)
        parts = made if isinstance(made, tuple) else (made,)
        return tuple(kernel for part in parts for kernel in getattr(part, "tiles", None) or part.kernels)


def dtype(name: Any) -> Any:
    """NumPy's type of a dtype's name."""
    return np.dtype(DTYPES.get(str(name), str(name)))


def numbers(seed: int, shape: Any, name: str = "float16", span: int = 4) -> np.ndarray:
    """Integers in a float type, so small that products and sums are exact."""
    return np.random.default_rng(seed).integers(-span, span + 1, shape).astype(dtype(name))


def normal(seed: int, shape: Any, name: str = "float16", scale: float = 1.0) -> np.ndarray:
    """Normally distributed values, rounded to the type."""
    return (np.random.default_rng(seed).standard_normal(shape) * scale).astype(dtype(name))


def poisoned(shape: tuple[int, ...], name: Any) -> np.ndarray:
    """What an output holds before the kernel wrote it."""
    kind = dtype(name)
    wrong = 77 if kind.kind in "iub" else np.nan
    return np.full(shape, wrong, np.float32).astype(kind)


def arguments(kernels: Sequence[Kernel], data: Data) -> dict[str, Any]:
    """Fresh arguments by parameter name; a tensor that `data` does not know is a workspace."""
    args = {}
    for parameter in [p for kernel in kernels for p in kernel.params]:
        name = parameter.name
        if name in data.inputs:
            value = data.inputs[name]
            args[name] = value.copy() if isinstance(value, np.ndarray) else value
        elif name in data.outputs and data.outputs[name].initial is not None:
            args[name] = data.outputs[name].initial.astype(dtype(parameter.dtype.name))
        else:
            shape = data.outputs[name].truth.shape if name in data.outputs else tuple(map(int, parameter.shape))
            args[name] = poisoned(shape, parameter.dtype.name)
    return args


def undefined(kernel: Kernel, data: Data) -> list[int]:
    """Parameters that hold nothing before the first kernel writes them."""
    known = {*data.inputs, *(name for name, wanted in data.outputs.items() if wanted.initial is not None)}
    return [at for at, parameter in enumerate(kernel.params) if parameter.name not in known]


def compare(args: Mapping[str, Any], data: Data, where: str) -> None:
    """Every element of every output within its bound; no share of them may be off, and NaN never passes."""
    for name, wanted in data.outputs.items():
        got = np.sort(args[name], axis=-1) if wanted.any_order else args[name]
        if np.isscalar(wanted.bound) and wanted.bound == 0:
            np.testing.assert_array_equal(got, wanted.truth.astype(got.dtype), err_msg=f"{name}, {where}")
            continue
        exact = wanted.truth.astype(np.float64)
        with np.errstate(invalid="ignore"):
            off = np.abs(got.astype(np.float64) - exact)
        bad = ~((off <= wanted.bound) | (got.astype(np.float64) == exact))
        if bad.any():
            at = tuple(int(i[0]) for i in np.nonzero(bad))
            raise AssertionError(
                f"{name}, {where}: {bad.sum()} of {bad.size} elements off; first at {at}: {got[at]} for {exact[at]}"
            )
