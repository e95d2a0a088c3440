"""How far a result may be from the truth, per element, derived from the kernel's arithmetic.

Copies, integers, and float kernels on whole-number inputs whose sums stay exact must be equal to the bit. Otherwise
|error| ≤ depth · u · M + half an ulp of the output, with u twice the unit roundoff of the accumulator (tensor cores may
truncate) and M the truth computed on the inputs' absolute values, which for sums of products is Σ|a·b|.
"""

from __future__ import annotations

from dataclasses import dataclass

import ml_dtypes
import numpy as np

from ..ir.dtype import DTYPES, DType
from ..jitkernel.work import Work

# Significand bits of the sum, counting none that a narrow accumulator of the matrix unit drops.
UNITS = {"float64": 2.0**-52, "float32": 2.0**-23, "tfloat32": 2.0**-10, "float16": 2.0**-10, "bfloat16": 2.0**-7}
FP8_UNIT = 2.0**-13  # the fp8 matrix unit of sm_90 keeps about this much of an fp32 sum


@dataclass(frozen=True)
class Bound:
    """`limit` per element, in float64; `text` says how it was derived. Exact: `limit` is zero."""

    limit: np.ndarray
    text: str

    @property
    def exact(self) -> bool:
        """Whether nothing but the correctly rounded value passes."""
        return not self.limit.any()


def bound(truth: np.ndarray, magnitude: np.ndarray | None, done: Work, out: DType, *, integers: bool) -> Bound:
    """The bound for an output of type `out`. `magnitude` is the truth on absolute values, None where that is not a
    number; then the largest value of the tensor stands for it."""
    if not out.is_float or (done.depth == 0 and done.elementwise <= 1):
        return Bound(np.zeros(truth.shape), "equal to the bit: nothing is rounded")
    whole = np.isfinite(truth).all() and (truth == np.rint(truth)).all()
    if integers and whole and np.abs(truth).max(initial=0) < exact_below(out) and sums_exact(magnitude, done):
        return Bound(np.zeros(truth.shape), "equal to the bit: whole numbers whose sums are exact")
    unit = FP8_UNIT if any(name.startswith("float8") for name in done.flops) else UNITS[done.accumulator or "float32"]
    if magnitude is None:
        magnitude = np.full(truth.shape, np.abs(truth[np.isfinite(truth)]).max(initial=0.0))
        text = "largest value of the tensor"
    else:
        text = "Σ|terms|"
    terms = done.depth + done.elementwise
    narrow = done.accumulator is None and out.bits < 32
    step = ulp(truth, out)
    limit = terms * unit * np.abs(magnitude) + step / 2
    if narrow:  # element code in the output's own type rounds at every operation
        limit = limit + done.elementwise * ulp(np.maximum(np.abs(magnitude), np.abs(truth)), out) / 2
    return Bound(limit, f"{terms} · {unit:.2g} · {text} + half an ulp of {out}")


def exact_below(out: DType) -> float:
    """Whole numbers below this are exact in a type."""
    return float(2.0 ** (ml_dtypes.finfo(out.numpy).nmant + 1))


def sums_exact(magnitude: np.ndarray | None, done: Work) -> bool:
    """Whether the accumulator holds all partial sums of integers exactly; of unknown magnitude they are taken to be
    small enough."""
    limit = exact_below(DTYPES[done.accumulator]) if done.accumulator else 2.0**11
    return magnitude is None or bool(np.abs(magnitude).max(initial=0) < limit)


def ulp(value: np.ndarray, out: DType) -> np.ndarray:
    """The distance to the next number of a type, at `value`."""
    info = ml_dtypes.finfo(out.numpy)
    safe = np.where(np.isfinite(value), np.abs(value), 0.0)
    exponent = np.floor(np.log2(np.maximum(safe, float(info.smallest_normal))))
    return np.asarray(2.0 ** (exponent - info.nmant))
