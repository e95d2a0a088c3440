"""Arguments made from a kernel's signature."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ..ir.dtype import DType
from ..ir.effects import reads
from ..ir.expr import Buffer, Var
from ..ir.kernel import Kernel
from ..simulate.tile.machine import written_tensors
from .outputs import workspaces
from .sizes import extent, shape

KINDS = ("integer", "random")
SMALL = 2  # integer-valued inputs are -2 … 2: sums of their products stay exact in every accumulator


def output_places(kernel: Kernel) -> tuple[int, ...]:
    """Parameters that the kernel makes: those it returns, else those it writes."""
    if kernel.outputs:
        return kernel.outputs
    written = written_tensors(kernel)
    hidden = workspaces(kernel)
    return tuple(i for i, p in enumerate(kernel.params) if p in written and i not in hidden)


def make(
    kernel: Kernel, sizes: Mapping[Var, int], kind: str, seed: int, given: Mapping[str, Any] | None = None
) -> list[Any]:
    """One argument a parameter: small whole numbers (kind "integer") or numbers between -1 and 1 ("random"). Tensors
    that are only written start as zeros; scalars take their value from `given`, else their default, else 1."""
    rng = np.random.default_rng(seed)
    made, read = output_places(kernel), reads(kernel.body)
    hidden = workspaces(kernel)
    return [
        scalar(kernel, p, given or {})
        if isinstance(p, Var)
        else tensor(p, sizes, kind if place not in hidden and (place not in made or p in read) else "zero", rng)
        for place, p in enumerate(kernel.params)
    ]


def scalar(kernel: Kernel, param: Var, given: Mapping[str, Any]) -> Any:
    """A scalar's value: given, its default, or 1."""
    if param.name in given:
        return given[param.name]
    default = kernel.defaults.get(param)
    return getattr(default, "value", default) if default is not None else 1


def tensor(param: Buffer, sizes: Mapping[Var, int], kind: str, rng: np.random.Generator) -> np.ndarray:
    """One array of a kind, with the strides that the parameter declares."""
    dims = shape(param, sizes)
    if kind == "zero":
        return np.zeros(dims, param.dtype.numpy)
    values = filled(param.dtype, dims, kind, rng).astype(param.dtype.numpy)
    return values if param.strides is None else strided(param, values, sizes)


def strided(param: Buffer, values: np.ndarray, sizes: Mapping[Var, int]) -> np.ndarray:
    """The same values in memory of the strides that the parameter declares."""
    steps = tuple(extent(s, sizes) * values.itemsize for s in param.strides or ())
    room = np.zeros(
        1 + sum((n - 1) * s // values.itemsize for n, s in zip(values.shape, steps, strict=True)), values.dtype
    )
    view = np.lib.stride_tricks.as_strided(room, values.shape, steps)
    view[...] = values
    return view


def filled(dtype: DType, dims: tuple[int, ...], kind: str, rng: np.random.Generator) -> np.ndarray:
    """Values within a type's reach."""
    if dtype.kind == "bool":
        return rng.integers(0, 2, dims)
    if dtype.kind == "uint":
        return rng.integers(0, 2 * SMALL + 1, dims)
    if dtype.kind == "int" or kind == "integer":
        return rng.integers(-SMALL, SMALL + 1, dims)
    return rng.uniform(-1, 1, dims)
