from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from tileworkbench.errors import LaunchError
from tileworkbench.runtime import arrays, packing
from tileworkbench.runtime.dtypes import stored_shape


@pytest.mark.parametrize("name", ["int4", "uint4", "float4_e2m1fn"])
def test_pairs_share_a_byte_the_first_below(name: str) -> None:
    codes = np.arange(16, dtype=np.uint8).reshape(2, 8)
    values = codes.view(getattr(ml_dtypes, name)) if name != "int4" else ((codes + 8) % 16 - 8.0).astype(ml_dtypes.int4)
    stored = packing.pack(values)
    assert stored.tolist() == [[0x10, 0x32, 0x54, 0x76], [0x98, 0xBA, 0xDC, 0xFE]]
    assert np.array_equal(packing.unpack(stored, name).astype(np.float32), values.astype(np.float32))


def test_an_array_of_pairs_is_seen_by_elements() -> None:
    found = packing.logical(arrays.read(np.zeros((3, 4), np.int8)), "int4")
    assert (found.shape, found.strides, found.dtype) == ((3, 8), (8, 1), "int4")
    single = arrays.read(np.zeros((3, 4), ml_dtypes.int4))
    assert packing.logical(single, "int4") is single
    other = arrays.read(np.zeros((3, 4), np.int8))
    assert packing.logical(other, "int8") is other


def test_outputs_are_made_of_pairs() -> None:
    torch = pytest.importorskip("torch")
    made = arrays.empty("torch", arrays.CPU, (4, 6), "float4_e2m1fn")
    assert made.dtype is torch.float4_e2m1fn_x2 and tuple(made.shape) == (4, 3)
    assert arrays.empty("torch", arrays.CPU, (4, 6), "int4").dtype is torch.int8
    assert arrays.empty("numpy", arrays.CPU, (4, 6), "int4").shape == (4, 6)
    with pytest.raises(LaunchError, match=r"\(4, 5\)"):
        arrays.empty("torch", arrays.CPU, (4, 5), "int4")
    assert stored_shape((4, 6), "int4") == (4, 3)
