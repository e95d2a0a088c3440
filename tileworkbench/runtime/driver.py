"""The calls a launch makes to the CUDA driver, through ctypes: no CUDA package of Python is needed to run a kernel.

Measured reasons for ctypes: one prepared `cuLaunchKernelEx` takes four ready arguments, and the same process may run
torch, CuPy or neither. All of them share a device's primary context, and so do we.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import threading
from collections.abc import Callable, Iterator
from typing import Any, Protocol

from ..errors import LaunchError, MissingDependency, ResourceError
from ..target import driver as library

_CAPABILITY, _SHARED_OPTIN, _MULTIPROCESSORS = (75, 76), 97, 16  # CUdevice_attribute
_MAX_DYNAMIC_SHARED, _NON_PORTABLE_CLUSTER = 8, 14  # CUfunction_attribute
_COOPERATIVE, _CLUSTER_DIMENSION = 2, 4  # CUlaunchAttributeID
_RELAXED = 2  # CUstreamCaptureMode
INVALID_CONTEXT = 201


class Launch(Protocol):
    """One prepared launch: `call()` gives the driver's status. Not for two threads at once."""

    @property
    def call(self) -> Callable[[], int]: ...

    def set_stream(self, stream: int) -> None: ...


class Driver(Protocol):
    """What the launcher needs; tests give their own."""

    def device_count(self) -> int: ...
    def current_device(self) -> int: ...
    def capability(self, device: int) -> tuple[int, int]: ...
    def make_current(self, device: int) -> None: ...
    def on(self, device: int) -> contextlib.AbstractContextManager[None]: ...
    def load(self, device: int, code: bytes, entry: str, shared: int, cluster: int) -> tuple[int, int]: ...
    def unload(self, device: int, module: int) -> None: ...
    def prepare(
        self, function: int, grid: tuple[int, ...], block: tuple[int, ...], shared: int, cluster: tuple[int, ...],
        table: Any, cooperative: bool = False,
    ) -> Launch: ...  # fmt: skip
    def resident(self, device: int, function: int, threads: int, shared: int) -> int: ...
    def encode_tiled(
        self, target: int, dtype: int, address: int, dims: tuple[int, ...], strides: tuple[int, ...],
        box: tuple[int, ...], swizzle: int, l2: int, fill: int,
    ) -> None: ...  # fmt: skip
    def allocate(self, size: int) -> int: ...
    def free(self, pointer: int) -> None: ...
    def copy_in(self, pointer: int, host: int, size: int, stream: int) -> None: ...
    def copy_out(self, host: int, pointer: int, size: int, stream: int) -> None: ...
    def synchronize(self, stream: int) -> None: ...
    def error_name(self, status: int) -> str: ...


class _Attribute(ctypes.Structure):
    # CUlaunchAttribute: an id, padding to 8 bytes, a union of 64 bytes whose cluster member is three counts.
    _fields_ = (("id", ctypes.c_int), ("pad", ctypes.c_int), ("value", ctypes.c_uint * 16))


class _Config(ctypes.Structure):
    _fields_ = (
        ("grid", ctypes.c_uint * 3),
        ("block", ctypes.c_uint * 3),
        ("shared", ctypes.c_uint),
        ("stream", ctypes.c_void_p),
        ("attributes", ctypes.POINTER(_Attribute)),
        ("count", ctypes.c_uint),
    )


class CudaLaunch:
    """A launch configuration with everything ready but the stream and the argument values."""

    __slots__ = ("_attributes", "_config", "call")

    def __init__(self, cuda: Any, function: int, config: _Config, attributes: Any, table: Any) -> None:
        self._config, self._attributes = config, attributes
        self.call = functools.partial(
            cuda.cuLaunchKernelEx, ctypes.byref(config), ctypes.c_void_p(function), ctypes.byref(table), None
        )

    def set_stream(self, stream: int) -> None:
        self._config.stream = stream


class CudaDriver:
    """The driver of this machine; MissingDependency where there is none."""

    def __init__(self) -> None:
        cuda = library.load()
        if cuda is None:
            raise MissingDependency(
                "there is no NVIDIA driver on this machine",
                rule="running a CUDA kernel needs a GPU and its driver; building one does not",
                fix='run on the CPU with target="cpu"',
            )
        self._cuda: Any = cuda
        self._contexts: dict[int, ctypes.c_void_p] = {}
        self._lock = threading.Lock()
        self._check(cuda.cuInit(0), "cuInit")

    @functools.cache  # noqa: B019 - one driver lives as long as the process
    def device_count(self) -> int:
        count = ctypes.c_int()
        self._check(self._cuda.cuDeviceGetCount(ctypes.byref(count)), "cuDeviceGetCount")
        return count.value

    def current_device(self) -> int:
        """The device of this thread's context; -1 where the thread has none yet."""
        device = ctypes.c_int(-1)
        return device.value if self._cuda.cuCtxGetDevice(ctypes.byref(device)) == 0 else -1

    def capability(self, device: int) -> tuple[int, int]:
        return self.attribute(device, _CAPABILITY[0]), self.attribute(device, _CAPABILITY[1])

    def make_current(self, device: int) -> None:
        self._check(self._cuda.cuCtxSetCurrent(self._context(device)), "cuCtxSetCurrent")

    @contextlib.contextmanager
    def on(self, device: int) -> Iterator[None]:
        self._check(self._cuda.cuCtxPushCurrent_v2(self._context(device)), "cuCtxPushCurrent")
        try:
            yield
        finally:
            self._cuda.cuCtxPopCurrent_v2(ctypes.byref(ctypes.c_void_p()))

    def load(self, device: int, code: bytes, entry: str, shared: int, cluster: int) -> tuple[int, int]:
        """(module, function) on `device`, its shared-memory limit raised to `shared` bytes. Allowed during the capture
        of a graph."""
        most = self.attribute(device, _SHARED_OPTIN)
        if shared > most:
            raise ResourceError(
                f"{entry} needs {shared} bytes of shared memory",
                rule=f"device {device} has {most} a block",
                fix="use smaller tiles or fewer stages (num_stages)",
            )
        module, function = ctypes.c_void_p(), ctypes.c_void_p()
        with self.on(device), self._capture_relaxed():
            self._check(self._cuda.cuModuleLoadData(ctypes.byref(module), code), f"loading {entry}")
            name = entry.encode()
            self._check(self._cuda.cuModuleGetFunction(ctypes.byref(function), module, name), f"finding {entry}")
            if shared:
                self._check(self._cuda.cuFuncSetAttribute(function, _MAX_DYNAMIC_SHARED, shared), "shared memory limit")
            if hasattr(
                self._cuda, "cuFuncLoad"
            ):  # code is loaded lazily by default, and a capture would forbid it later
                self._check(self._cuda.cuFuncLoad(function), f"loading {entry}")
            if cluster > 8:
                self._check(self._cuda.cuFuncSetAttribute(function, _NON_PORTABLE_CLUSTER, 1), "cluster size")
        return int(module.value or 0), int(function.value or 0)

    def unload(self, device: int, module: int) -> None:
        with contextlib.suppress(LaunchError), self.on(device), self._capture_relaxed():
            self._cuda.cuModuleUnload(ctypes.c_void_p(module))

    def prepare(
        self, function: int, grid: tuple[int, ...], block: tuple[int, ...], shared: int, cluster: tuple[int, ...],
        table: Any, cooperative: bool = False,
    ) -> CudaLaunch:  # fmt: skip
        triple = ctypes.c_uint * 3
        config = _Config(triple(*grid), triple(*block), shared, None, None, 0)
        wanted: list[tuple[int, tuple[int, ...]]] = [(_CLUSTER_DIMENSION, cluster)] if cluster != (1, 1, 1) else []
        wanted += [(_COOPERATIVE, (1,))] if cooperative else []
        attributes = (_Attribute * max(len(wanted), 1))()
        for attribute, (number, value) in zip(attributes, wanted, strict=False):
            attribute.id = number
            attribute.value[: len(value)] = value
        if wanted:
            config.attributes, config.count = attributes, len(wanted)
        return CudaLaunch(self._cuda, function, config, attributes, table)

    def resident(self, device: int, function: int, threads: int, shared: int) -> int:
        """How many blocks of a function run on the device at the same time."""
        blocks = ctypes.c_int()
        with self.on(device):
            status = self._cuda.cuOccupancyMaxActiveBlocksPerMultiprocessor(
                ctypes.byref(blocks), ctypes.c_void_p(function), threads, ctypes.c_size_t(shared)
            )
        self._check(status, "asking how many blocks run at once")
        return blocks.value * self.attribute(device, _MULTIPROCESSORS)

    def encode_tiled(
        self, target: int, dtype: int, address: int, dims: tuple[int, ...], strides: tuple[int, ...],
        box: tuple[int, ...], swizzle: int, l2: int, fill: int,
    ) -> None:  # fmt: skip
        rank = len(dims)
        status = self._cuda.cuTensorMapEncodeTiled(
            ctypes.c_void_p(target), ctypes.c_int(dtype), ctypes.c_uint(rank), ctypes.c_void_p(address),
            (ctypes.c_uint64 * rank)(*dims), (ctypes.c_uint64 * max(rank - 1, 1))(*strides),
            (ctypes.c_uint32 * rank)(*box), (ctypes.c_uint32 * rank)(*([1] * rank)),
            ctypes.c_int(0), ctypes.c_int(swizzle), ctypes.c_int(l2), ctypes.c_int(fill),
        )  # fmt: skip
        self._check(status, f"encoding a descriptor of {dims} elements, pitch {strides}, box {box}")

    def allocate(self, size: int) -> int:
        pointer = ctypes.c_uint64()
        self._check(self._cuda.cuMemAlloc_v2(ctypes.byref(pointer), ctypes.c_size_t(size)), f"allocating {size} bytes")
        return pointer.value

    def free(self, pointer: int) -> None:
        self._cuda.cuMemFree_v2(ctypes.c_uint64(pointer))

    def copy_in(self, pointer: int, host: int, size: int, stream: int) -> None:
        status = self._cuda.cuMemcpyHtoDAsync_v2(
            ctypes.c_uint64(pointer), ctypes.c_void_p(host), ctypes.c_size_t(size), ctypes.c_void_p(stream)
        )
        self._check(status, "copying to the device")

    def copy_out(self, host: int, pointer: int, size: int, stream: int) -> None:
        status = self._cuda.cuMemcpyDtoHAsync_v2(
            ctypes.c_void_p(host), ctypes.c_uint64(pointer), ctypes.c_size_t(size), ctypes.c_void_p(stream)
        )
        self._check(status, "copying from the device")

    def synchronize(self, stream: int) -> None:
        self._check(self._cuda.cuStreamSynchronize(ctypes.c_void_p(stream)), "the kernel")

    def call(self, name: str, *arguments: Any) -> None:
        """Any other call of the driver by name, with ctypes' own values; LaunchError when it fails."""
        self._check(getattr(self._cuda, name)(*arguments), name)

    def attribute(self, device: int, number: int) -> int:
        """A CUdevice_attribute by its number."""
        value = ctypes.c_int()
        self._check(self._cuda.cuDeviceGetAttribute(ctypes.byref(value), number, device), f"asking device {device}")
        return value.value

    def error_name(self, status: int) -> str:
        name, text = ctypes.c_char_p(), ctypes.c_char_p()
        self._cuda.cuGetErrorName(status, ctypes.byref(name))
        self._cuda.cuGetErrorString(status, ctypes.byref(text))
        return f"{(name.value or b'?').decode()} ({status}): {(text.value or b'').decode()}"

    def _context(self, device: int) -> ctypes.c_void_p:
        with self._lock:
            if device not in self._contexts:
                context = ctypes.c_void_p()
                status = self._cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), device)
                self._check(status, f"opening device {device}")
                self._contexts[device] = context
            return self._contexts[device]

    @contextlib.contextmanager
    def _capture_relaxed(self) -> Iterator[None]:
        mode = ctypes.c_int(_RELAXED)
        self._cuda.cuThreadExchangeStreamCaptureMode(ctypes.byref(mode))
        try:
            yield
        finally:
            self._cuda.cuThreadExchangeStreamCaptureMode(ctypes.byref(mode))

    def _check(self, status: int, what: str) -> None:
        if status != 0:
            raise LaunchError(f"{what} failed: {self.error_name(status)}")


@functools.cache
def cuda() -> CudaDriver:
    """The one driver of this process."""
    return CudaDriver()
