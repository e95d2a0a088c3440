from __future__ import annotations

from dataclasses import replace

import pytest

from tests.runtime.fakes import FakeDriver
from tileworkbench.codegen.source import TensorMap
from tileworkbench.errors import LaunchError, Loc
from tileworkbench.runtime import tensormap

PLACE = Loc("<cell 1>", 3)
RECIPE = TensorMap("A_map", "A", "float16", ("K", "M"), (("mul", "K", 2),), (64, 128), 128, "zero", 256)


def geometry(recipe: TensorMap = RECIPE, **values: int) -> tensormap.Geometry:
    return tensormap.geometry(recipe, {"M": 100, "K": 256, **values}, PLACE)


def test_the_recipe_becomes_the_drivers_numbers() -> None:
    driver = FakeDriver()
    made = tensormap.encode(driver, geometry(), 0x1000)
    # dtype FLOAT16 is 6, swizzle 128B is 3, promotion 256B is 3, zero fill is 0
    assert driver.maps == [(6, 0x1000, (256, 100), (512,), (64, 128), 3, 3, 0)]
    assert bytes(made) == b"\x01" * 128 and made.address % 64 == 0


def test_descriptors_are_kept_by_address_and_sizes(monkeypatch: pytest.MonkeyPatch) -> None:
    driver = FakeDriver()
    maps = tensormap.TensorMaps(driver)
    first = maps.get(geometry(), 0x1000)
    assert maps.get(geometry(), 0x1000) is first
    assert maps.get(geometry(), 0x2000) is not first and maps.get(geometry(M=101), 0x1000) is not first
    other, wider = replace(RECIPE, name="B_map"), replace(RECIPE, strides=(1024,))
    assert maps.get(geometry(other), 0x1000) is not first and maps.get(geometry(wider), 0x1000) is not first
    assert len(driver.maps) == 5
    monkeypatch.setattr(tensormap, "KEPT", 4)
    for i in range(20):
        maps.get(geometry(), 0x10000 + 16 * i)
    assert len(maps._kept) <= 4


@pytest.mark.parametrize("values, fields, address, message", [
    ({"K": 252}, {}, 0x1000, "row pitch is \\(504,\\)"),
    ({}, {}, 0x1008, "address 0x1008"),
    ({}, {}, 0, "address 0x0"),
    ({}, {"offset": 8}, 0x1000, "address 0x1008"),
    ({}, {"box": (72, 128)}, 0x1000, "144 bytes wide inside under swizzle 128"),
    ({}, {"box": (4, 128)}, 0x1000, "8 bytes wide"),
    ({}, {"box": (64, 257)}, 0x1000, "box is \\(64, 257\\)"),
    ({}, {"box": (64,)}, 0x1000, "box of 1 dimensions"),
    ({"M": 0}, {}, 0x1000, "extents are"),
    ({}, {"swizzle": 48}, 0x1000, "swizzle 48"),
    ({}, {"l2": 32}, 0x1000, "promotion 32"),
    ({}, {"fill": "one"}, 0x1000, "fill 'one'"),
    ({}, {"dtype": "int8", "fill": "nan", "dims": ("K", "M"), "box": (128, 8)}, 0x1000, "fill 'nan' of int8"),
    ({"K": 1 << 40}, {}, 0x1000, "extents are"),
    ({}, {"strides": (1 << 40,)}, 0x1000, "2\\*\\*40"),
    ({}, {"dims": ("K",) * 6, "strides": (512,) * 5, "box": (64,) + (1,) * 5}, 0x1000, "6 dimensions"),
    ({}, {"strides": ()}, 0x1000, "0 strides"),
])  # fmt: skip
def test_every_rule_has_its_error(values: dict, fields: dict, address: int, message: str) -> None:
    driver, shape = FakeDriver(), geometry(replace(RECIPE, **fields), **values)
    with pytest.raises(LaunchError, match="A cannot be copied by TMA") as caught:
        tensormap.TensorMaps(driver).get(shape, address)
    import re

    assert re.search(message, str(caught.value)) and caught.value.loc == PLACE and not driver.maps


def test_nan_fill_and_plain_boxes_are_allowed() -> None:
    driver = FakeDriver()
    plain = replace(RECIPE, dtype="float32", swizzle=0, box=(256, 8), strides=(("mul", "K", 4),), fill="nan", l2=0)
    tensormap.encode(driver, geometry(plain), 0x1000)
    assert driver.maps == [(7, 0x1000, (256, 100), (1024,), (256, 8), 0, 0, 1)]
