"""A driver and array libraries that exist without a GPU: memory is the host's, launches are recorded."""

from __future__ import annotations

import contextlib
import ctypes
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import numpy as np


@dataclass
class Launched:
    """One launch as the device would see it: `args` are the 64-bit slots, a descriptor is its 128 bytes."""

    function: int
    grid: tuple[int, ...]
    threads: int
    shared: int
    cluster: tuple[int, ...]
    stream: int
    args: list[int]
    device: int
    cooperative: bool = False
    block: tuple[int, ...] = ()


@dataclass
class FakeDriver:
    devices: int = 1
    capabilities: tuple[tuple[int, int], ...] = ((9, 0),)
    shared_most: int = 227 << 10
    current: int = 0
    most_blocks: int = 132
    statuses: list[int] = field(default_factory=list)  # to return from the next launches
    kernel: Callable[[Launched], None] | None = None
    launches: list[Launched] = field(default_factory=list)
    loads: list[tuple[int, bytes, str, int, int]] = field(default_factory=list)
    unloads: list[int] = field(default_factory=list)
    maps: list[tuple[Any, ...]] = field(default_factory=list)
    memory: dict[int, Any] = field(default_factory=dict)
    calls: list[str] = field(default_factory=list)

    def device_count(self) -> int:
        return self.devices

    def current_device(self) -> int:
        return self.current

    def capability(self, device: int) -> tuple[int, int]:
        return self.capabilities[device % len(self.capabilities)]

    def make_current(self, device: int) -> None:
        self.current = device

    @contextlib.contextmanager
    def on(self, device: int) -> Iterator[None]:
        before, self.current = self.current, device
        yield
        self.current = before

    def load(self, device: int, code: bytes, entry: str, shared: int, cluster: int) -> tuple[int, int]:
        self.loads.append((device, code, entry, shared, cluster))
        return 1000 + len(self.loads), 2000 + len(self.loads)

    def unload(self, device: int, module: int) -> None:
        self.unloads.append(module)

    def prepare(
        self, function: int, grid: Any, block: Any, shared: int, cluster: Any, table: Any, cooperative: bool = False
    ) -> FakeLaunch:
        what = Launched(function, tuple(grid), math.prod(block), shared, tuple(cluster), 0, [], -1, cooperative, block)
        return FakeLaunch(self, what, table)

    def resident(self, device: int, function: int, threads: int, shared: int) -> int:
        return self.most_blocks

    def encode_tiled(self, target: int, *numbers: Any) -> None:
        self.maps.append(numbers)
        assert target % 64 == 0
        ctypes.memset(target, len(self.maps), 128)

    def allocate(self, size: int) -> int:
        buffer = ctypes.create_string_buffer(b"\xee" * size, size + 256)
        pointer = -(-ctypes.addressof(buffer) // 256) * 256
        self.memory[pointer] = buffer
        ctypes.memset(pointer, 0xEE, min(size, size))
        return pointer

    def free(self, pointer: int) -> None:
        del self.memory[pointer]

    def copy_in(self, pointer: int, host: int, size: int, stream: int) -> None:
        self.calls.append("in")
        ctypes.memmove(pointer, host, size)

    def copy_out(self, host: int, pointer: int, size: int, stream: int) -> None:
        self.calls.append("out")
        ctypes.memmove(host, pointer, size)

    def synchronize(self, stream: int) -> None:
        self.calls.append(f"sync {stream}")

    def error_name(self, status: int) -> str:
        return f"CUDA_ERROR_{status}"


class FakeLaunch:
    def __init__(self, driver: FakeDriver, what: Launched, table: Any) -> None:
        self._driver, self._what, self._table, self._stream = driver, what, table, 0

    def set_stream(self, stream: int) -> None:
        self._stream = stream

    def call(self) -> int:
        driver, w = self._driver, self._what
        args = [ctypes.c_uint64.from_address(slot).value for slot in self._table]
        done = Launched(
            w.function,
            w.grid,
            w.threads,
            w.shared,
            w.cluster,
            self._stream,
            args,
            driver.current,
            w.cooperative,
            w.block,
        )
        driver.launches.append(done)
        status = driver.statuses.pop(0) if driver.statuses else 0
        if status == 0 and driver.kernel is not None:
            driver.kernel(done)
        return status


class OnDevice:
    """An array with __cuda_array_interface__ alone."""

    def __init__(
        self, shape: tuple[int, ...], dtype: str = "float32", pointer: int = 1 << 20, strides: Any = None,
        read_only: bool = False, stream: int | None = None,
    ) -> None:  # fmt: skip
        size = np.dtype(dtype).itemsize
        self.__cuda_array_interface__ = {
            "shape": shape, "typestr": np.dtype(dtype).str, "data": (pointer, read_only), "version": 3,
            "strides": None if strides is None else tuple(s * size for s in strides), "stream": stream,
        }  # fmt: skip


class _Name:
    def __init__(self, text: str) -> None:
        self._text = text

    def __str__(self) -> str:
        return self._text


class FakeTensor:
    """As much of torch.Tensor as a launch reads."""

    layout = "torch.strided"

    def __init__(
        self, torch: Any, shape: tuple[int, ...], dtype: str = "float32", pointer: int = 1 << 20,
        strides: tuple[int, ...] | None = None, device: int = 0,
    ) -> None:  # fmt: skip
        self.shape, self.dtype, self._pointer, self._device = tuple(shape), getattr(torch, dtype), pointer, device
        row_major = tuple(int(np.prod(shape[i + 1 :])) for i in range(len(shape)))
        self._strides = row_major if strides is None else strides
        self._contiguous = self._strides == row_major
        self.is_cuda = device >= 0
        self.device = SimpleNamespace(type="cuda" if device >= 0 else "cpu")

    def data_ptr(self) -> int:
        return self._pointer

    def stride(self) -> tuple[int, ...]:
        return self._strides

    def get_device(self) -> int:
        return self._device

    def is_contiguous(self) -> bool:
        return self._contiguous


FakeTensor.__module__ = "torch"


def fake_torch() -> Any:
    """A stand-in for the module: dtypes, empty() and the raw-stream getter."""
    names = ("float32", "float16", "bfloat16", "int32", "float8_e4m3fn")
    torch = SimpleNamespace(Tensor=FakeTensor, **{name: _Name("torch." + name) for name in names})
    torch.stream, torch.made = 77, []
    torch._C = SimpleNamespace(_cuda_getCurrentRawStream=lambda device: torch.stream + device)

    def empty(shape: tuple[int, ...], dtype: Any, device: str) -> FakeTensor:
        torch.made.append(
            FakeTensor(torch, shape, str(dtype)[6:], (900 + len(torch.made)) << 12, device=int(device.split(":")[1]))
        )
        return torch.made[-1]

    torch.empty = empty
    return torch


class FakeCupy:
    """As much of cupy.ndarray as a launch reads. Its ways through other protocols are closed: they cost too much."""

    def __init__(
        self, shape: tuple[int, ...], dtype: str = "float32", pointer: int = 1 << 20,
        strides: tuple[int, ...] | None = None, device: int = 0,
    ) -> None:  # fmt: skip
        self.shape, self.dtype = tuple(shape), np.dtype(dtype)
        row_major = tuple(int(np.prod(shape[i + 1 :])) for i in range(len(shape)))
        self.strides = tuple(s * self.dtype.itemsize for s in (row_major if strides is None else strides))
        self.data = SimpleNamespace(ptr=pointer, device_id=device)

    @property
    def __cuda_array_interface__(self) -> Any:
        raise AssertionError("the interface was asked")

    def __dlpack__(self, **_: Any) -> Any:
        raise AssertionError("DLPack was asked")


FakeCupy.__module__ = "cupy"


def fake_cupy() -> Any:
    """A stand-in for the module: empty(), the current stream and the current device."""
    cupy = SimpleNamespace(ndarray=FakeCupy, stream=55, made=[], entered=[])

    def empty(shape: tuple[int, ...], dtype: Any) -> FakeCupy:
        cupy.made.append(FakeCupy(shape, dtype, (700 + len(cupy.made)) << 12, device=(cupy.entered or [0])[-1]))
        return cupy.made[-1]

    @contextlib.contextmanager
    def device(number: int) -> Iterator[None]:
        cupy.entered.append(number)
        yield

    cupy.empty = empty
    cupy.cuda = SimpleNamespace(
        get_current_stream=lambda: SimpleNamespace(ptr=cupy.stream),
        runtime=SimpleNamespace(getDevice=lambda: 0),
        Device=device,
    )
    return cupy
