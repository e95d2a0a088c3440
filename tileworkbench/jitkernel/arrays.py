"""Host arrays brought to where kernels run, and read back."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from ..errors import MissingDependency
from .bench import has_card
from .host import from_numpy, torch_view


def on_device(array: np.ndarray) -> Any:
    """The array on the card: a torch tensor where the program uses torch, else of CuPy; in the host's memory where
    there is no card."""
    made = host_like(array)
    if not has_card():
        return made
    return made.cuda() if hasattr(made, "cuda") else _by_cupy(array)


def host_like(array: np.ndarray) -> Any:
    """A torch tensor in the host's memory where the program uses torch, as its references then do; else NumPy."""
    torch = sys.modules.get("torch")
    if torch is None:
        return array
    made = from_numpy(np.ascontiguousarray(array), "torch")
    if array.flags.c_contiguous:
        return made
    steps = [step // array.itemsize for step in array.strides]
    return torch.empty_strided(array.shape, steps, dtype=made.dtype).copy_(made)


def _by_cupy(array: np.ndarray) -> Any:
    try:
        import cupy
    except ImportError:
        raise MissingDependency(
            "neither torch with CUDA nor CuPy is there to hold arrays on the card", fix="pip install cupy-cuda13x"
        ) from None
    return cupy.asarray(array)


def as_host(value: Any) -> np.ndarray:
    """Any array's values as NumPy."""
    if type(value).__module__.split(".")[0] == "torch":
        return torch_view(value.cpu())
    if hasattr(value, "get") and not isinstance(value, np.ndarray):  # CuPy
        return np.asarray(value.get())
    return np.asarray(value)
