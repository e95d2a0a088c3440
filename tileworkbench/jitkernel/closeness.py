"""Comparison of a result with its reference, elementwise, with a share of elements that may differ."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from ..errors import SimulationError
from .arrays import as_host


class Mismatch(SimulationError, AssertionError):
    """A result is not its reference."""


def assert_close(
    got: Any,
    reference: Any,
    *,
    rtol: float,
    atol: float,
    most: float,
    equal_nan: bool = True,
    names: tuple[str, str] = ("kernel", "reference"),
) -> None:
    """Mismatch when the shapes differ, or more than the share `most` of all elements is further from the
    reference than atol + rtol·|reference|. On a card the comparison is made there."""
    if tuple(got.shape) != tuple(reference.shape):
        raise Mismatch(f"shapes differ: {names[0]} {tuple(got.shape)}, {names[1]} {tuple(reference.shape)}")
    wrong, worst, first, count = (_by_torch if _on_card(got) else _by_numpy)(got, reference, rtol, atol, equal_nan)
    allowed = int(count * most)
    if wrong > allowed:
        raise Mismatch(
            f"{wrong} of {count} elements differ ({100 * wrong / count:.3g}%); greatest difference {worst:.6g}; first "
            f"at {first[0]}: {names[0]} {first[1]!r}, {names[1]} {first[2]!r}",
            rule=f"rtol {rtol}, atol {atol}, at most {allowed} elements beyond them",
        )


def _on_card(value: Any) -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor) and value.is_cuda


def _by_numpy(got: Any, reference: Any, rtol: float, atol: float, equal_nan: bool) -> tuple[int, float, Any, int]:
    a, b = _wide(as_host(got)), _wide(as_host(reference))
    off = ~np.isclose(a, b, rtol=rtol, atol=atol, equal_nan=equal_nan)
    if not off.any():
        return 0, 0.0, None, a.size
    at = tuple(int(i) for i in np.argwhere(off)[0])
    with np.errstate(invalid="ignore"):
        worst = float(np.nanmax(np.abs(a[off] - b[off]), initial=0.0))
    return int(off.sum()), worst, (at, a[at].item(), b[at].item()), a.size


def _wide(array: np.ndarray) -> np.ndarray:
    """float64, or complex; exact for every type with at most 53 significant bits."""
    return array if array.dtype.kind == "c" else array.astype(np.float64)


def _by_torch(got: Any, reference: Any, rtol: float, atol: float, equal_nan: bool) -> tuple[int, float, Any, int]:
    import torch

    a, b = (x.detach().to(got.device, torch.float64) for x in (got, reference))
    off = ~torch.isclose(a, b, rtol=rtol, atol=atol, equal_nan=equal_nan)
    wrong = int(off.sum().item())
    if not wrong:
        return 0, 0.0, None, a.numel()
    at = tuple(int(i) for i in off.nonzero()[0].tolist())
    worst = float((a[off] - b[off]).abs().nan_to_num(0.0).max().item())
    return wrong, worst, (at, a[at].item(), b[at].item()), a.numel()
