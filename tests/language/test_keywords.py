"""Arguments by TileLang's names say what they say by place."""

from __future__ import annotations

import pytest

from tileworkbench.errors import TileError

from .cells import body, build

PAIRS = {
    "math": ("A[0, 0] = T.exp(A[1, 1])", "A[0, 0] = T.exp(x=A[1, 1])"),
    "of two": ("A[0, 0] = T.atan2(A[1, 1], 2.0)", "A[0, 0] = T.atan2(x2=2.0, x1=A[1, 1])"),
    "fmod": ("A[0, 0] = T.fmod(A[1, 1], 2.0)", "A[0, 0] = T.fmod(A[1, 1], y=2.0)"),
    "rounded": (
        "A[0, 0] = T.ieee_add(A[1, 1], 2.0, 'rz')",
        "A[0, 0] = T.ieee_add(y=2.0, rounding_mode='rz', x=A[1, 1])",
    ),
    "select": ("A[0, 0] = T.if_then_else(n > 1, 1.0, 2.0)", "A[0, 0] = T.if_then_else(n > 1, t=1.0, f=2.0)"),
    "Select": (
        "A[0, 0] = T.Select(n > 1, 1.0, 2.0)",
        "A[0, 0] = T.Select(condition=n > 1, true_value=1.0, false_value=2.0)",
    ),
    "packed": (
        (
            "v = T.fma2(A[0, T.Ramp(0, 1, 2)], A[1, T.Ramp(0, 1, 2)], A[2, T.Ramp(0, 1, 2)])\n"
            "A[0, 0] = T.extract_lane(v, 0)"
        ),
        (
            "v = T.fma2(x=A[0, T.Ramp(0, 1, 2)], z=A[2, T.Ramp(0, 1, 2)], y=A[1, T.Ramp(0, 1, 2)])\n"
            "A[0, 0] = T.extract_lane(v, 0)"
        ),
    ),
    "lane": ("A[0, 0] = T.shfl_sync(A[1, 1], 3)", "A[0, 0] = T.shfl_sync(A[1, 1], srcLane=3)"),
    "safe value": ("T.annotate_safe_value({A: 1.0})", "T.annotate_safe_value(safe_value_map={A: 1.0})"),
    "fill": ("T.fill(A, 2.0)", "T.fill(A, 2.0, annotations={'mine': 1})"),
    "clear": ("T.clear(A)", "T.clear(A, annotations={'mine': 1})"),
    "transpose": ("T.transpose(A, B)", "T.transpose(A, B, annotations={'mine': 1})"),
    "atomic": ("T.atomic_max(A[0, 0], 2.0)", "T.atomic_max(A[0, 0], 2.0, annotations={'mine': 1})"),
    "bulk": (
        "s = T.alloc_shared((64, 64), 'float32')\nT.atomic_add(A, s, use_tma=True)",
        "s = T.alloc_shared((64, 64), 'float32')\nT.atomic_add(A, s, annotations={'use_tma': 1})",
    ),
    "scan": (
        "f = T.alloc_fragment((64,), 'float32')\nT.cumsum(f)",
        "f = T.alloc_fragment((64,), 'float32')\nT.cumsum(f, annotations={'mine': 1})",
    ),
    "NaN": (
        (
            "f = T.alloc_fragment((64, 32), 'float32')\nr = T.alloc_fragment((64,), 'float32')\n"
            "T.reduce_max(f, r, nan_propagate=True)"
        ),
        (
            "f = T.alloc_fragment((64, 32), 'float32')\nr = T.alloc_fragment((64,), 'float32')\n"
            "T.reduce_max(f, r, annotations={'nan_propagate': True})"
        ),
    ),
    "batch": (
        "f = T.alloc_fragment((64, 8), 'float32')\nr = T.alloc_fragment((64,), 'float32')\nT.reduce_sum(f, r)",
        "f = T.alloc_fragment((64, 8), 'float32')\nr = T.alloc_fragment((64,), 'float32')\nT.reduce_sum(f, r, batch=4)",
    ),
    "parallel": (
        "for i in T.Parallel(64, annotations={'mine': 1}):\n    A[i, 0] = 1.0",
        "for i in T.parallel(64, annotations={'mine': 1}):\n    A[i, 0] = 1.0",
    ),
    "annotations before arguments": (
        "s = T.alloc_shared((64, 64), 'float32')\nT.copy(A, s, coalesced_width=4)",
        "s = T.alloc_shared((64, 64), 'float32')\nT.copy(A, s, coalesced_width=2, annotations={'coalesced_width': 4})",
    ),
}


@pytest.mark.parametrize(("by_place", "by_name"), PAIRS.values(), ids=PAIRS)
def test_names_say_what_places_say(by_place: str, by_name: str) -> None:
    assert body(by_name) == body(by_place)


@pytest.mark.parametrize("batch", [0, -1, 128, 3])
def test_results_are_whole_batches(batch: int) -> None:
    text = "r = T.alloc_reducer(64, 'float32')\nT.clear(r)\nfor i, j in T.Parallel(64, 64):\n    r[i] += A[i, j]\n"
    with pytest.raises(TileError, match="batch"):
        build(text + f"T.finalize_reducer(r, batch={batch})")
