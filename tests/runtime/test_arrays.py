from __future__ import annotations

import sys
import types

import ml_dtypes
import numpy as np
import pytest

from tests.runtime.fakes import OnDevice
from tileworkbench.errors import LaunchError
from tileworkbench.runtime import arrays


def test_numpy_and_dlpack_of_the_host() -> None:
    found = arrays.read(np.zeros((3, 4), ml_dtypes.bfloat16)[:, ::2])
    assert (found.shape, found.dtype, found.device, found.library) == ((3, 2), "bfloat16", arrays.CPU, "numpy")
    assert found.strides == (2, 1)  # as it will be on the device

    class OnlyDLPack:
        def __init__(self, array: np.ndarray) -> None:
            self.__dlpack__, self.__dlpack_device__ = array.__dlpack__, array.__dlpack_device__

    found = arrays.read(OnlyDLPack(np.arange(6.0)))
    assert found.library == "numpy" and found.shape == (6,) and found.dtype == "float64"


def test_the_cuda_array_interface() -> None:
    found = arrays.read(OnDevice((3, 4), "float16", 4096, strides=(8, 2), read_only=True, stream=7))
    assert (found.pointer, found.strides, found.dtype, found.writable, found.stream) == (
        4096,
        (8, 2),
        "float16",
        False,
        7,
    )
    assert arrays.read(OnDevice((2, 3, 4))).strides == (12, 4, 1)
    odd = OnDevice((3,), "float32")
    odd.__cuda_array_interface__["strides"] = (6,)
    with pytest.raises(LaunchError, match="whole elements"):
        arrays.read(odd)
    odd.__cuda_array_interface__.update(strides=None, typestr=">f4")
    with pytest.raises(LaunchError, match="foreign byte order"):
        arrays.read(odd)


@pytest.mark.parametrize("value", [None, 3, "text", [1.0, 2.0], np.float32(1)])
def test_what_is_no_array_is_said(value: object) -> None:
    with pytest.raises(LaunchError, match="is no array"):
        arrays.read(value)


def test_torch_on_the_host_is_read_without_a_copy() -> None:
    torch = pytest.importorskip("torch")
    tensor = torch.zeros(3, 4, dtype=torch.bfloat16).t()
    found = arrays.read(tensor)
    assert (found.shape, found.strides, found.dtype, found.device) == ((4, 3), (1, 4), "bfloat16", arrays.CPU)
    assert found.pointer == tensor.data_ptr() and arrays.read(torch.nn.Parameter(torch.zeros(2))).library == "torch"
    with pytest.raises(LaunchError, match="layout"):
        arrays.read(torch.zeros(3).to_sparse())
    with pytest.raises(LaunchError, match="meta"):
        arrays.read(torch.zeros(3, device="meta"))


def test_strides_of_empty_arrays() -> None:
    assert arrays.contiguous_strides((3, 0, 4)) == torch_strides((3, 0, 4))
    assert arrays.contiguous_strides(()) == ()


def torch_strides(shape: tuple[int, ...]) -> tuple[int, ...]:
    torch = pytest.importorskip("torch")
    return torch.empty(shape).stride()


@pytest.mark.parametrize(("gpu", "library"), [(True, "torch"), (False, "cupy")])
def test_outputs_without_inputs_are_the_library_in_use(
    monkeypatch: pytest.MonkeyPatch, gpu: bool, library: str
) -> None:
    torch = types.SimpleNamespace(cuda=types.SimpleNamespace(is_available=lambda: gpu))
    monkeypatch.setitem(sys.modules, "torch", torch)
    assert arrays.library_in_use() == library
