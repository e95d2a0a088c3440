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
    q: np.ndarray,
    k: np.ndarray,
    v: np.ndarray,
    scale: float,
    mask: Any = None,
    sink: Any = None,
    dtype: str = "float16",
) -> Attended:
    """softmax(q kᵀ scale) v over the last two axes; `mask`: which keys a row sees; `sink`: a logit without a value.

    The bound: weights are rounded to the type (they are at most 1, so its rounding unit each), the result once more; a
    score is wrong by at most the product's length times 2⁻²³ of its absolute terms, and so is its weight."""
    q, k, v = (x.astype(np.float64) for x in (q, k, v))
    scores = q @ flip(k) * scale
    error = q.shape[-1] * 2.0**-23 * (np.abs(q) @ flip(np.abs(k))) * scale
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
    bound = (
        (unit + 2 * slack) * (weights @ np.abs(v)) * 1.5
        + unit * np.abs(out)
        + 2.0**-24 * np.abs(v).sum(-2, keepdims=True)
    )
    with np.errstate(divide="ignore"):
        lse = (np.log2(total) + top / np.log(2))[..., 0]
    return Attended(out, bound, weights, lse, (3 * slack[..., 0] + 2.0**-21 * (1 + np.abs(lse))))


@dataclass(frozen=True)
class Gradients:
    """What a backward pass is given (lse, delta), and what it must find, each with its bound."""

    lse: np.ndarray
    delta: np.ndarray
    dq: tuple[np.ndarray, np.ndarray]
    dk: tuple[np.ndarray, np.ndarray]
    dv: tuple[np.ndarray, np.ndarray]


def backward(
    q: np.ndarray,
    k: np.ndarray,
    v: np.ndarray,
    g: np.ndarray,
    scale: float,
    mask: Any = None,
    sink: Any = None,
    dtype: str = "float16",
) -> Gradients:
    """The gradients of `attend` for the gradient `g` of its result.

    The bounds: weights and score gradients are rounded to the type before a product takes them; before that a weight is
    wrong relatively by the error of its score and of lse, a score gradient by that and by its own product's error."""
    found = attend(q, k, v, scale, mask, sink, dtype)
    q, k, v, g = (x.astype(np.float64) for x in (q, k, v, g))
    p = found.weights
    length, unit = q.shape[-2], ROUNDING[dtype]
    relative = q.shape[-1] * 2.0**-23 * (np.abs(q) @ flip(np.abs(k))) * scale + 2.0**-20
    products, products_error = g @ flip(v), v.shape[-1] * 2.0**-23 * (np.abs(g) @ flip(np.abs(v)))
    delta = (g * found.out).sum(-1)
    ds = p * (products - delta[..., None]) * scale
    terms = p * (np.abs(products) + np.abs(delta[..., None])) * scale
    ds_error = p * products_error * scale + terms * (relative + 2.0**-21) + unit * np.abs(ds) + 2.0**-25
    p_error = p * (relative + unit) + 2.0**-25
    sums = length * 2.0**-23
    return Gradients(
        found.lse,
        delta,
        (ds @ k, (ds_error + sums * np.abs(ds)) @ np.abs(k)),
        (flip(ds) @ q, flip(ds_error + sums * np.abs(ds)) @ np.abs(q)),
        (flip(p) @ g, flip(p_error + sums * p) @ np.abs(g)),
    )


def flip(x: np.ndarray) -> np.ndarray:
    """The last two axes exchanged."""
    return np.swapaxes(x, -1, -2)
