"""What the outputs should be: a reference function of the inputs, or the meaning of the kernel's own text."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..errors import LaunchError
from ..ir.expr import Buffer
from ..ir.kernel import Kernel
from ..jitkernel.outputs import workspaces

Reference = Callable[..., Any]
WRONG_LIBRARY = (TypeError, AttributeError, ValueError)


def of_reference(ref: Reference, kernel: Kernel, args: Sequence[Any], outputs: Sequence[int]) -> list[np.ndarray]:
    """The reference's results as float64 (integers as they are). It is called with the inputs in order: NumPy arrays in
    which floats are float64, else torch tensors so, else both in the kernel's own types."""
    made = {*outputs, *workspaces(kernel)}
    inputs = [a for i, a in enumerate(args) if i not in made]
    results = as_list(called(ref, inputs))
    if len(results) != len(outputs):
        names = ", ".join(kernel.params[i].name for i in outputs)
        raise LaunchError(
            f"the reference gave {len(results)} result{'s' * (len(results) != 1)}",
            rule=f"`{kernel.name}` makes {len(outputs)} ({names})",
            fix="return one array an output",
            loc=kernel.loc,
        )
    return [fitting(kernel, place, result, args) for place, result in zip(outputs, results, strict=True)]


def called(ref: Reference, inputs: Sequence[Any]) -> Any:
    """The reference's own result, by the first way of calling it that its library takes."""
    attempts: list[Callable[[], Any]] = [lambda: ref(*[wide(x) for x in inputs])]
    if importlib.util.find_spec("torch") is not None:
        attempts.append(lambda: ref(*[in_torch(wide(x)) for x in inputs]))
    attempts.append(lambda: ref(*[np.copy(x) if isinstance(x, np.ndarray) else x for x in inputs]))
    first: Exception | None = None
    for attempt in attempts:
        try:
            return attempt()
        except WRONG_LIBRARY as error:
            first = first or error
    if first is None:
        raise LaunchError("there is no reference to call")
    raise first


def wide(x: Any) -> Any:
    """A copy, so that a reference cannot change what the kernel gets."""
    if not isinstance(x, np.ndarray):
        return x
    return x.astype(np.float64) if is_float(x) else x.copy()


def is_float(x: np.ndarray) -> bool:
    """Whether the array holds floating-point numbers, those of ml_dtypes included."""
    return x.dtype.kind not in "biu"


def in_torch(x: Any) -> Any:
    """The same memory as a torch tensor."""
    import torch

    return torch.from_numpy(x) if isinstance(x, np.ndarray) else x


def as_list(result: Any) -> list[np.ndarray]:
    """One NumPy array a result, whatever library made it."""
    found = list(result) if isinstance(result, list | tuple) else [result]
    return [np.asarray(x.detach().cpu().double() if hasattr(x, "detach") and x.is_floating_point()
                       else x.detach().cpu() if hasattr(x, "detach") else x) for x in found]  # fmt: skip


def fitting(kernel: Kernel, place: int, result: np.ndarray, args: Sequence[Any]) -> np.ndarray:
    """A result in the output's shape; LaunchError where it has another."""
    param, wanted = kernel.params[place], args[place].shape
    if result.shape != wanted and isinstance(param, Buffer):
        raise LaunchError(
            f"the reference's result for `{param.name}` has shape {result.shape}",
            rule=f"`{param.name}` has shape {wanted}",
            fix="return an array of that shape",
            loc=kernel.loc,
        )
    return plain(result)


def plain(array: np.ndarray) -> np.ndarray:
    """Floats as float64, which holds all of their values; integers as they are."""
    return array.astype(np.float64) if is_float(array) else array
