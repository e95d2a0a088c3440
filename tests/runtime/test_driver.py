"""The real driver calls against a library in C that records what arrived: argument types, structures, order."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from pathlib import Path

import pytest

from tileworkbench.errors import LaunchError, ResourceError
from tileworkbench.runtime import driver as driver_module
from tileworkbench.runtime.driver import CudaDriver

COMPILER = shutil.which("cc") or shutil.which("gcc")
pytestmark = pytest.mark.skipif(COMPILER is None, reason="no C compiler to build the recording library")
CODE = b"\x7fELF\0x"


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    path = tmp_path_factory.mktemp("cuda") / "libfakecuda.so"
    source = Path(__file__).with_name("fake_cuda.c")
    subprocess.run([COMPILER, "-shared", "-fPIC", "-O1", "-o", path, source], check=True)
    return ctypes.CDLL(str(path))


@pytest.fixture
def driver(library: ctypes.CDLL, monkeypatch: pytest.MonkeyPatch) -> CudaDriver:
    monkeypatch.setattr(driver_module.library, "load", lambda: library)
    ctypes.c_int.in_dll(library, "next_status").value = 0
    return CudaDriver()


def seen(library: ctypes.CDLL) -> list[int]:
    return list((ctypes.c_uint64 * 64).in_dll(library, "seen"))


def arguments(*values: int) -> tuple[object, object]:
    slots = (ctypes.c_uint64 * len(values))(*values)
    table = (ctypes.c_void_p * len(values))(*(ctypes.addressof(slots) + 8 * i for i in range(len(values))))
    return slots, table


def test_a_launch_arrives_whole(driver: CudaDriver, library: ctypes.CDLL) -> None:
    _, function = driver.load(1, CODE, "add", 100_000, 16)
    assert seen(library)[50:52] == [100_000, 1] and seen(library)[61] == 2  # loaded in relaxed capture mode
    assert seen(library)[52] == function == 0x2222000022220000
    values = (0xFFFF_FFFF_FFFF_FFF0, 2, 3, 4)
    _slots, table = arguments(*values)
    launch = driver.prepare(function, (2**31 - 1, 65535, 7), (128, 3, 1), 232448, (2, 4, 1), table)
    launch.set_stream(0x7F00_1234_5678_9ABC)
    with driver.on(1):
        assert launch.call() == 0
    got = seen(library)
    assert got[:7] == [2**31 - 1, 65535, 7, 128, 3, 1, 232448] and got[7] == 0x7F00_1234_5678_9ABC
    assert got[8:15] == [1, 0x2222000022220000, 0, 4, 2, 4, 1]
    assert tuple(got[16:20]) == values and got[20] == 1
    plain = driver.prepare(function, (1, 1, 1), (32, 1, 1), 0, (1, 1, 1), table)
    assert plain.call() == 0 and seen(library)[8] == 0 and seen(library)[7] == 0
    met = driver.prepare(function, (4, 1, 1), (32, 1, 1), 0, (1, 1, 1), table, True)
    assert met.call() == 0 and seen(library)[8:13] == [1, 0x2222000022220000, 0, 2, 1]


def test_contexts_are_pushed_and_popped(driver: CudaDriver, library: ctypes.CDLL) -> None:
    driver.make_current(0)
    with driver.on(1):
        assert driver.current_device() == 1
    assert driver.current_device() == 0 and driver.device_count() == 2 and driver.capability(1) == (9, 1)
    module, _ = driver.load(0, CODE, "add", 0, 1)
    driver.unload(1, module)
    assert seen(library)[62:] == [0x1111000011110000, 1] and driver.current_device() == 0


def test_a_descriptor_arrives_whole(driver: CudaDriver) -> None:
    room = ctypes.create_string_buffer(192)
    target = -(-ctypes.addressof(room) // 64) * 64
    driver.encode_tiled(target, 6, 1 << 45, (1 << 32, 100), ((1 << 40) - 16,), (64, 256), 3, 2, 1)
    got = list((ctypes.c_uint64 * 14).from_address(target))
    assert got == [6, 2, 1 << 45, 1 << 32, 100, (1 << 40) - 16, 64, 256, 1, 1, 0, 3, 2, 1]


def test_memory_goes_there_and_back(driver: CudaDriver, library: ctypes.CDLL) -> None:
    pointer = driver.allocate(4096)
    there, back = ctypes.create_string_buffer(b"abc" * 1000, 3000), ctypes.create_string_buffer(3000)
    driver.copy_in(pointer, ctypes.addressof(there), 3000, 1 << 40)
    driver.copy_out(ctypes.addressof(back), pointer, 3000, 1 << 41)
    driver.synchronize(1 << 42)
    driver.free(pointer)
    assert back.raw == there.raw and seen(library)[40:44] == [pointer, 1 << 40, 1 << 41, 1 << 42]


def test_failures_are_named(driver: CudaDriver, library: ctypes.CDLL) -> None:
    with pytest.raises(ResourceError, match="300000 bytes") as caught:
        driver.load(0, CODE, "add", 300_000, 1)
    assert "232448" in caught.value.rule
    with pytest.raises(LaunchError, match=r"loading add failed: CUDA_ERROR \(200\): words"):
        driver.load(0, b"not code", "add", 0, 1)
    with pytest.raises(LaunchError, match="finding sub failed"):
        driver.load(0, CODE, "sub", 0, 1)
    with pytest.raises(LaunchError, match="allocating 1048576 bytes failed"):
        driver.allocate(1 << 20)
    ctypes.c_int.in_dll(library, "next_status").value = 719
    with pytest.raises(LaunchError, match="the kernel failed: CUDA_ERROR_LAUNCH_FAILED"):
        driver.synchronize(0)
