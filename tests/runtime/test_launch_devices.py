"""Where a call runs: devices, contexts and streams; host arrays are copied there and back."""

from __future__ import annotations

import ctypes
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests.runtime.fakes import FakeDriver, FakeTensor, Launched, OnDevice
from tests.runtime.launching import ADD, abc, add, binary
from tileworkbench.errors import LaunchError, MissingDependency, TargetError
from tileworkbench.runtime import driver as real_driver
from tileworkbench.runtime.launch import Launcher


def test_arrays_of_two_devices_are_refused(driver: FakeDriver) -> None:
    a, b, c = abc()
    b.__dlpack_device__ = lambda: (2, 1)
    with pytest.raises(LaunchError, match="B is on device 1, and A on device 0"):
        add(driver)(a, b, c)


def test_torch_on_the_cpu_and_sparse_are_refused(driver: FakeDriver, torch: Any) -> None:
    tensors = [FakeTensor(torch, (100, 200)), FakeTensor(torch, (200,), device=-1), FakeTensor(torch, (100, 200))]
    with pytest.raises(LaunchError, match="B is on the CPU") as caught:
        add(driver)(*tensors)
    assert 'B.to("cuda")' in caught.value.fix
    tensors[1] = FakeTensor(torch, (200,))
    tensors[1].layout = "torch.sparse_coo"
    with pytest.raises(LaunchError, match="B: a torch tensor with layout"):
        add(driver)(*tensors)


def floats(address: int, count: int) -> Any:
    return np.ctypeslib.as_array((ctypes.c_float * count).from_address(address))


def test_numpy_goes_there_and_back(driver: FakeDriver) -> None:
    def kernel(done: Launched) -> None:
        m, n = done.args[3:]
        floats(done.args[2], m * n)[:] = floats(done.args[0], m * n) + np.tile(floats(done.args[1], n), m)

    driver.kernel = kernel
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(5, 7)).astype("f4"), rng.normal(size=14).astype("f4")[::2]
    c = np.zeros((7, 5), "f4").T  # neither contiguous nor in row-major order
    assert add(driver)(a, b, c) is None
    np.testing.assert_array_equal(c, a + b)
    assert driver.calls == ["in"] * 3 + ["out", "sync 0"] and not driver.memory
    out = add(driver, out_idx=[2])(a, b)
    np.testing.assert_array_equal(out, a + b)
    frozen = np.zeros((5, 7), "f4")
    frozen.flags.writeable = False
    with pytest.raises(LaunchError, match="C is read-only"):
        add(driver)(a, b, frozen)
    driver.statuses = [719]
    with pytest.raises(LaunchError, match="CUDA_ERROR_719"):
        add(driver)(a, b, c)
    assert not driver.memory


def test_numpy_beside_torch_uses_its_stream(driver: FakeDriver, torch: Any) -> None:
    add(driver)(FakeTensor(torch, (5, 7)), np.ones(7, "f4"), FakeTensor(torch, (5, 7)))
    assert driver.launches[0].stream == 77 and driver.calls == ["in", "sync 77"] and not driver.memory


def test_a_producers_stream_is_waited_for(driver: FakeDriver) -> None:
    _a, b, c = abc()
    add(driver)(OnDevice((100, 200), stream=5), b, c)
    assert driver.calls == ["sync 5"]


def test_devices_contexts_and_architectures() -> None:
    driver = FakeDriver(devices=2, capabilities=((9, 0), (8, 0)))
    kernel, arrays = add(driver), abc()
    for array in arrays:
        array.__dlpack_device__ = lambda: (2, 1)
    with pytest.raises(LaunchError, match="built for sm_90a, and device 1 is sm_80"):
        kernel(*arrays)
    driver.capabilities = ((9, 0), (9, 0))
    kernel(*arrays)
    kernel(*abc())
    assert [d.device for d in driver.launches] == [1, 0] and [load[0] for load in driver.loads] == [1, 0]
    assert driver.current == 0


def test_a_thread_without_a_context_gets_one(driver: FakeDriver) -> None:
    driver.statuses = [real_driver.INVALID_CONTEXT]
    kernel = add(driver)
    kernel(*abc())
    assert len(driver.launches) == 2
    driver.statuses = [719]
    with pytest.raises(LaunchError, match="CUDA_ERROR_719"):
        kernel(*abc())


def test_only_cubins_are_launched() -> None:
    with pytest.raises(TargetError, match="gfx942 as asm"):
        Launcher([(ADD, replace(binary(), kind="asm", arch="gfx942"))])


def test_without_a_driver_it_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(real_driver.library, "load", lambda: None)
    real_driver.cuda.cache_clear()
    with pytest.raises(MissingDependency, match="no NVIDIA driver"):
        Launcher([(ADD, binary())])(*abc())


def test_the_launch_structures_have_the_drivers_sizes() -> None:
    # CUlaunchConfig: 7 unsigned, a stream, a pointer, an unsigned; CUlaunchAttribute: 4 + 4 padding + 64.
    assert ctypes.sizeof(real_driver._Config) == 56 and real_driver._Config.stream.offset == 32
    assert ctypes.sizeof(real_driver._Attribute) == 72 and real_driver._Attribute.value.offset == 8
