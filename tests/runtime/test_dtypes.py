from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from tileworkbench.errors import InternalError, LaunchError
from tileworkbench.ir import dtype as ir_dtype
from tileworkbench.runtime import arrays, dtypes


def test_the_table_agrees_with_the_compilers() -> None:
    wanted = {name: row.bits for name, row in ir_dtype.DTYPES.items() if row.kind != "handle"}
    assert {name: row.bits for name, row in dtypes.ELEMENTS.items()} == wanted
    for name in wanted:
        assert arrays.numpy_dtype(name) == ir_dtype.DTYPES[name].numpy


@pytest.mark.parametrize("name", ["float16", "float32", "float64", "bfloat16"])
def test_floats_are_packed_as_numpy_rounds_them(name: str) -> None:
    pack = dtypes.packer(name)
    container = ml_dtypes.bfloat16 if name == "bfloat16" else np.dtype(name)
    rng = np.random.default_rng(3)
    numbers = [0.0, -0.0, 1.0, -2.5, 1e-3, 3.3e38, -7e4, float("inf"), float("-inf"), 1.00390625, 1.01171875]
    for value in [*numbers, *rng.normal(size=500).astype(np.float32).tolist(), 3, np.float32(0.1)]:
        with np.errstate(over="ignore"):
            wanted = int.from_bytes(
                np.array(np.float64(value) if name == "float64" else value, container).tobytes(), "little"
            )
        assert pack(value) == wanted, value
    assert np.isnan(np.frombuffer(pack(float("nan")).to_bytes(8, "little"), container)[0])


def test_integers_are_checked() -> None:
    assert dtypes.packer("int32")(-1) == 0xFFFFFFFF and dtypes.packer("int64")(-2) == 2**64 - 2
    assert dtypes.packer("uint8")(255) == 255 and dtypes.packer("bool")(True) == 1
    assert dtypes.packer("int32")(np.int64(7)) == 7 and dtypes.packer("bool")(np.bool_(True)) == 1
    for name, bad in (("int32", 2**31), ("uint8", -1), ("uint8", 256), ("bool", 2), ("int32", 1.5), ("int32", "3")):
        with pytest.raises(LaunchError):
            dtypes.packer(name)(bad)
    with pytest.raises(LaunchError, match="is no number"):
        dtypes.packer("float32")("x")
    with pytest.raises(InternalError):
        dtypes.packer("float8_e5m2")
    with pytest.raises(InternalError):
        dtypes.element("int3")
