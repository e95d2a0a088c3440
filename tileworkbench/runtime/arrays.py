"""Reads what a launch needs of an array: pointer, shape, strides, dtype and device, whatever library made it."""

from __future__ import annotations

import functools
import sys
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np

from ..errors import LaunchError, MissingDependency
from .dtypes import CONTAINERS, is_packed, stored_shape

CPU = -1


@dataclass(frozen=True, slots=True)
class Array:
    """An array argument. `strides` in elements, `device` a CUDA ordinal or CPU (-1), `owner` the object that keeps the
    memory, `stream` a producer's stream to wait for (0: none)."""

    library: str  # "torch", "cupy", "numpy", "interface" or "address"
    pointer: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: str
    device: int
    owner: Any
    writable: bool = True
    stream: int = 0

    @property
    def signature(self) -> tuple[object, ...]:
        """All that a launch depends on besides the pointer."""
        return self.library, self.shape, self.strides, self.dtype, self.device


def read(value: Any) -> Array:
    """The array behind `value`: torch, CuPy, NumPy, `__cuda_array_interface__` or DLPack. LaunchError for anything
    else. Only the library that made the object is touched."""
    library = type(value).__module__.partition(".")[0]
    if library == "torch" or _is_torch(value):
        return _torch(value)
    if library == "cupy":
        return _cupy(value)
    if isinstance(value, np.ndarray):
        return _numpy(value)
    if hasattr(value, "__cuda_array_interface__"):
        return _interface(value)
    if hasattr(value, "__dlpack__"):
        return _dlpack(value)
    raise LaunchError(
        f"an object of type {type(value).__name__} is no array",
        rule="arrays are torch, CuPy or NumPy arrays, or objects with __dlpack__ or __cuda_array_interface__",
        fix="pass an array",
    )


def contiguous_strides(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Row-major strides in elements."""
    strides = [1] * len(shape)
    for i in range(len(shape) - 2, -1, -1):
        strides[i] = strides[i + 1] * max(shape[i + 1], 1)
    return tuple(strides)


def empty(library: str, device: int, shape: tuple[int, ...], dtype: str) -> Any:
    """A new uninitialised array of a library, on a device; of packed elements by bytes where the library has none."""
    if is_packed(dtype) and library != "numpy":
        shape, dtype = stored_shape(shape, dtype), CONTAINERS[dtype][0 if library == "torch" else 1]
    if library == "torch":
        torch = sys.modules["torch"]
        place = "cpu" if device == CPU else f"cuda:{device}"
        return torch.empty(shape, dtype=getattr(torch, torch_name(dtype)), device=place)
    if library == "numpy":
        return np.empty(shape, numpy_dtype(dtype))
    return _cupy_empty(device, shape, dtype)


def library_in_use() -> str:
    """Whose arrays outputs are where no input says it: torch's once the session works with torch on the GPU."""
    torch = sys.modules.get("torch")
    return "torch" if torch is not None and torch.cuda.is_available() else "cupy"


def torch_name(dtype: str) -> str:
    return "float32" if dtype == "tfloat32" else dtype


@functools.cache
def numpy_dtype(name: str) -> Any:
    """NumPy's dtype of an element type; ml_dtypes holds the ones that NumPy lacks."""
    name = torch_name(name)
    return np.dtype(getattr(ml_dtypes, name)) if hasattr(ml_dtypes, name) else np.dtype(name)


def _is_torch(value: Any) -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, getattr(torch, "Tensor", ()))


def _torch(value: Any) -> Array:
    if str(value.layout) != "torch.strided":
        raise LaunchError(
            f"a torch tensor with layout {value.layout}",
            rule="kernels read dense (strided) tensors",
            fix="x.to_dense()",
        )
    device = value.get_device() if value.is_cuda else CPU
    if not value.is_cuda and value.device.type != "cpu":
        raise LaunchError(f"a torch tensor on {value.device}", rule="kernels run on CUDA devices", fix='x.to("cuda")')
    name = str(value.dtype).removeprefix("torch.")
    return Array("torch", value.data_ptr(), tuple(value.shape), value.stride(), name, device, value)


def _cupy(value: Any) -> Array:
    strides = _elements(value.strides, value.dtype.itemsize)
    return Array("cupy", value.data.ptr, value.shape, strides, value.dtype.name, value.data.device_id, value)


def _numpy(value: Any) -> Array:
    # It is copied to the device anyway, so it arrives there row-major whatever its strides are here.
    strides = contiguous_strides(value.shape)
    return Array("numpy", 0, value.shape, strides, value.dtype.name, CPU, value, bool(value.flags.writeable))


def _interface(value: Any) -> Array:
    found = value.__cuda_array_interface__
    dtype, shape = np.dtype(found["typestr"]), tuple(found["shape"])
    if not dtype.isnative:
        raise LaunchError(
            f"an array of {dtype} in foreign byte order",
            rule="arrays are in native byte order",
            fix="x.astype(x.dtype.newbyteorder('='))",
        )
    strides = found.get("strides")
    pointer, read_only = found["data"]
    steps = contiguous_strides(shape) if strides is None else _elements(strides, dtype.itemsize)
    stream = found.get("stream") or 0
    return Array(
        "interface", int(pointer or 0), shape, steps, dtype.name, _device_of(value), value, not read_only, stream
    )


def _dlpack(value: Any) -> Array:
    kind, _ = value.__dlpack_device__()
    if int(kind) == 1:
        return _numpy(np.from_dlpack(value))
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_available():
        return _torch(torch.from_dlpack(value))
    try:
        import cupy
    except ImportError:
        raise MissingDependency(
            "a DLPack array of another library needs torch or CuPy to be read", fix="pip install cupy-cuda13x"
        ) from None
    return _cupy(cupy.from_dlpack(value))


def _device_of(value: Any) -> int:
    """The interface names no device; objects that offer DLPack too say it, the others are on the current one: 0."""
    asked = getattr(value, "__dlpack_device__", None)
    return int(asked()[1]) if asked is not None else 0


def _elements(strides: tuple[int, ...], size: int) -> tuple[int, ...]:
    if any(stride % size for stride in strides):
        raise LaunchError(
            f"strides of {strides} bytes with elements of {size}", rule="strides are whole elements", fix="pass a copy"
        )
    return tuple(stride // size for stride in strides)


def _cupy_empty(device: int, shape: tuple[int, ...], dtype: str) -> Any:
    try:
        import cupy
    except ImportError:
        raise MissingDependency(
            "outputs of this array's library are CuPy arrays", fix="pip install cupy-cuda13x"
        ) from None
    kind = "uint8" if dtype.startswith("float8") else numpy_dtype(dtype)
    if cupy.cuda.runtime.getDevice() == device:  # entering a device costs as much as the rest of a call
        return cupy.empty(shape, kind)
    with cupy.cuda.Device(device):
        return cupy.empty(shape, kind)
