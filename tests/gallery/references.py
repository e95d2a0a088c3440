"""Attention in float64, with the error that each kernel's roundings may add."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from tests.gallery.entry import ROUNDING


@dataclass(frozen=True)
class Attended:
    """out, its bound, the weights, and the logarithm (base 2) of the softmax's denominator."""

    out: np.ndarray
    bound: np.ndarray
    weights: np.ndarray
    lse: np.ndarray
    lse_bound: np.ndarray


def attend(
    q: np.ndarray, k: np.ndarray, v: np.ndarray, scale: float, mask: Any = None, sink: Any = None, dtype: str = "float16"
) -> Attended:
    """softmax(q kᵀ scale) v over the last two axes; `mask`: which keys a row sees; `sink`: a logit without a value.

    The bound: weights are rounded to the type (they are at most 1, so its rounding unit each), the result once more; a
    score is wrong by at most the product's length times 2⁻²³ of its absolute terms, and so is its weight, relatively."""
    q, k, v = (x.astype(np.float64) for x in (q, k, v))
    scores = q @ np.swapaxes(k, -1, -2) * scale
    error = q.shape[-1] * 2.0**-23 * (np.abs(q) @ np.swapaxes(np.abs(k), -1, -2)) * scale
    if mask is not None:
        scores = np.where(mask, scores, -np.inf)
    top = scores.max(-1, keepdims=True) if sink is None else np.maximum(scores.max(-1, keepdims=True), sink)
    top = np.where(np.isfinite(top), top, 0)
    weights = np.exp(scores - top)
    total = weights.sum(-1, keepdims=True) + (0 if sink is None else np.exp(sink - top))
    weights = np.divide(weights, total, out=np.zeros_like(weights), where=total > 0)
    out = weights @ v
    slack = error.max(-1, keepdims=True)  # of the largest score too
    unit = ROUNDING[dtype]
    bound = (unit + 2 * slack) * (weights @ np.abs(v)) * 1.5 + unit * np.abs(out) + 2.0**-24 * np.abs(v).sum(-2, keepdims=True)
    with np.errstate(divide="ignore"):
        lse = (np.log2(total) + top / np.log(2))[..., 0]
    return Attended(out, bound, weights, lse, (3 * slack[..., 0] + 2.0**-21 * (1 + np.abs(lse))))
