"""Calls of a known signature with torch or CuPy arrays: nothing is checked twice, nothing of the call before stays."""

from __future__ import annotations

import gc
import threading
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests.runtime.fakes import FakeCupy, FakeDriver, FakeTensor, Launched, OnDevice
from tests.runtime.launching import ADD, PLACES, add, binary
from tileworkbench.codegen.source import Fact, KernelArg, ScalarParam, TensorMap, TensorParam
from tileworkbench.errors import LaunchError, OptionError
from tileworkbench.runtime import launch as launch_module
from tileworkbench.runtime.launch import Launcher


def test_a_scalar_that_is_a_size_decides_the_launch(driver: FakeDriver, torch: Any) -> None:
    source = replace(
        ADD,
        params=(TensorParam("A", "float32", ("N",)), ScalarParam("steps", "int32")),
        args=(KernelArg("scalar", "steps", "int32"),),
        grid=("steps",),
    )
    kernel, a = add(driver, source), FakeTensor(torch, (8,))
    for steps in (3, np.int64(5), 3):
        kernel(a, steps)
    assert [(d.grid[0], d.args[0]) for d in driver.launches] == [(3, 3), (5, 5), (3, 3)]


def test_torch_calls_of_a_known_signature_check_nothing_twice(
    driver: FakeDriver, torch: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    kernel = add(driver)
    tensors = [FakeTensor(torch, (100, 200)), FakeTensor(torch, (200,)), FakeTensor(torch, (100, 200))]
    kernel(*tensors)
    monkeypatch.setattr(launch_module.Launcher, "_call_checked", None)
    torch.stream = 99
    others = [FakeTensor(torch, (100, 200), pointer=1 << 30), *tensors[1:]]
    kernel(*others)
    kernel(*others)
    assert [d.args[0] for d in driver.launches] == [1 << 20, 1 << 30, 1 << 30]
    assert [d.stream for d in driver.launches] == [77, 99, 99]
    for wrong in (
        FakeTensor(torch, (200,), dtype="float16"), FakeTensor(torch, (201,)), FakeTensor(torch, (200,), strides=(2,)),
        FakeTensor(torch, (200,), device=1), FakeTensor(torch, (200,), device=-1), 3,
    ):  # fmt: skip
        with pytest.raises(TypeError):  # each of them must leave the quick path
            kernel(tensors[0], wrong, tensors[2])


def test_cupy_calls_of_a_known_signature_check_nothing_twice(
    driver: FakeDriver, cupy: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    kernel = add(driver)
    arrays = [FakeCupy((100, 200)), FakeCupy((200,)), FakeCupy((100, 200))]
    kernel(*arrays)
    monkeypatch.setattr(launch_module.Launcher, "_call_checked", None)
    cupy.stream = 66
    others = [FakeCupy((100, 200), pointer=1 << 30), *arrays[1:]]
    kernel(*others)
    kernel(*others)
    assert [d.args[0] for d in driver.launches] == [1 << 20, 1 << 30, 1 << 30]
    assert [d.stream for d in driver.launches] == [55, 66, 66] and driver.launches[1].args[3:] == [100, 200]
    for wrong in (
        FakeCupy((200,), dtype="float16"), FakeCupy((201,)), FakeCupy((200,), strides=(2,)),
        FakeCupy((200,), device=1), OnDevice((200,)), np.ones(200, "f4"), 3,
    ):  # fmt: skip
        with pytest.raises(TypeError):  # each of them must leave the quick path
            kernel(arrays[0], wrong, arrays[2])


def test_cupy_outputs_are_made_in_place_and_on_their_device(driver: FakeDriver, cupy: Any) -> None:
    kernel = add(driver, out_idx=[-1])
    a, b = FakeCupy((100, 200)), FakeCupy((200,))
    first, second = kernel(a, b), kernel(a, b)
    assert [first, second] == cupy.made and first.shape == (100, 200) and not cupy.entered
    assert [d.args[2] for d in driver.launches] == [first.data.ptr, second.data.ptr]
    driver.devices = 2
    kernel = add(driver, out_idx=[-1])
    for _ in range(2):
        made = kernel(FakeCupy((100, 200), device=1), FakeCupy((200,), device=1))
        assert made.data.device_id == 1 and driver.launches[-1].device == 1
    assert cupy.entered == [1, 1] and driver.current == 0


def test_cupy_scalars_and_torch_beside_it(driver: FakeDriver, cupy: Any, torch: Any) -> None:
    source = replace(
        ADD, params=(*ADD.params, ScalarParam("rows", "int32")), args=(*ADD.args, KernelArg("scalar", "rows", "int32")),
        grid=("rows",),
    )  # fmt: skip
    kernel, arrays = add(driver, source), [FakeCupy((8, 4)), FakeCupy((4,)), FakeCupy((8, 4))]
    for rows in (3, 5, 3, 5):
        kernel(*arrays, rows)
    assert [d.grid[0] for d in driver.launches] == [3, 5, 3, 5] == [d.args[-1] for d in driver.launches]
    # Arrays of two libraries never meet a plan of one.
    kernel(FakeTensor(torch, (8, 4)), *arrays[1:], 5)
    kernel(*[FakeTensor(torch, a.shape) for a in arrays], 5)
    assert [d.stream for d in driver.launches[-3:]] == [55, 77, 77]


def test_cupy_addresses_that_break_a_fact_take_the_careful_path(driver: FakeDriver, cupy: Any) -> None:
    fast = replace(ADD, text="fast", facts=(Fact(("eq", ("mod", "A.ptr", 16), 0), "A is aligned to 16 bytes"),))
    kernel = Launcher([(fast, binary()), (ADD, binary(code=b"general"))], driver=driver)
    for pointer in (1 << 20, 1 << 21, (1 << 20) + 4, 1 << 22):
        kernel(FakeCupy((8, 64), pointer=pointer), FakeCupy((64,)), FakeCupy((8, 64)))
    assert [d.function for d in driver.launches] == [2001, 2001, 2002, 2001]


def test_outputs_are_allocated_and_returned(driver: FakeDriver, torch: Any) -> None:
    kernel = add(driver, out_idx=[-1])
    a, b = FakeTensor(torch, (100, 200)), FakeTensor(torch, (200,))
    first, second = kernel(a, b), kernel(a, b)
    assert first.shape == (100, 200) and second is torch.made[1] and first is torch.made[0]
    assert [d.args[2] for d in driver.launches] == [first.data_ptr(), second.data_ptr()]
    given = FakeTensor(torch, (100, 200), pointer=1 << 25)
    assert kernel(a, b, given) is None and driver.launches[-1].args[2] == 1 << 25
    assert kernel(a, b, C=given) is None and len(torch.made) == 2
    two = replace(ADD, params=(replace(ADD.params[0], access="w"), *ADD.params[1:]))
    with pytest.raises(LaunchError, match="the shape of the output A needs M"):
        add(driver, two, out_idx=[0, 2])(b)
    with pytest.raises(OptionError, match="out_idx 3"):
        add(driver, out_idx=[3])


def test_two_outputs_come_as_a_list(driver: FakeDriver, torch: Any) -> None:
    source = replace(
        ADD,
        params=(replace(ADD.params[2], name="X"), ADD.params[0], replace(ADD.params[1], access="w")),
        args=tuple(KernelArg("pointer", n) for n in ("X", "A", "B")),
    )
    kernel = add(driver, source, out_idx=[0, 2])
    for _ in range(2):
        x, b = kernel(FakeTensor(torch, (100, 200)))
        assert x.shape == (100, 200) and b.shape == (200,)
        assert driver.launches[-1].args == [x.data_ptr(), 1 << 20, b.data_ptr()]


MAPPED = replace(
    ADD,
    params=(replace(ADD.params[0], dtype="float16"), *ADD.params[1:]),
    args=(KernelArg("map", "A_map"), KernelArg("pointer", "C"), KernelArg("symbol", "M", "int32")),
    maps=(TensorMap("A_map", "A", "float16", ("N", "M"), (("mul", "N", 2),), (64, 32), 128),),
    cluster=(2, 1, 1),
)


def map_argument(driver: FakeDriver) -> bytes:
    return bytes(driver.launches[-1].args[0].to_bytes(8, "little"))


def test_descriptors_are_passed_by_value_and_follow_the_pointer(driver: FakeDriver, torch: Any) -> None:
    kernel = add(driver, MAPPED)
    first, second = (FakeTensor(torch, (100, 200), "float16", pointer=p) for p in (1 << 20, 1 << 21))
    b, c = FakeTensor(torch, (200,)), FakeTensor(torch, (100, 200), pointer=1 << 22)
    seen = []
    for a in (first, second, first):
        kernel(a, b, c)
        seen.append(map_argument(driver))
    assert seen == [b"\x01" * 8, b"\x02" * 8, b"\x01" * 8] and len(driver.maps) == 2
    assert driver.maps[0] == (6, 1 << 20, (200, 100), (400,), (64, 32), 3, 2, 0)
    assert driver.launches[0].args[1:] == [1 << 22, 100] and driver.launches[0].cluster == (2, 1, 1)
    with pytest.raises(LaunchError, match=r"row pitch is \(402,\)") as caught:
        kernel(FakeTensor(torch, (100, 201), "float16"), FakeTensor(torch, (201,)), FakeTensor(torch, (100, 201)))
    assert caught.value.loc == PLACES["A"]


def test_threads_do_not_mix_their_arguments(driver: FakeDriver, torch: Any) -> None:
    kernel, wrong = add(driver), []

    def check(done: Launched) -> None:
        if len({done.args[0] >> 24, done.args[1] >> 24, done.args[2] >> 24}) != 1:
            wrong.append(done)

    driver.kernel = check

    def work(n: int) -> None:
        for i in range(300):
            base = (n << 24) + 4096 * (i % 5)
            kernel(*(FakeTensor(torch, s, pointer=base) for s in ((8, 64), (64,), (8, 64))))

    threads = [threading.Thread(target=work, args=(n,)) for n in range(1, 7)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong and len(driver.launches) == 1800 and len(driver.loads) == 1


def test_plans_are_bounded_and_keep_no_tensor(driver: FakeDriver, torch: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    import weakref

    monkeypatch.setattr(launch_module, "KEPT", 16)
    kernel = add(driver)
    a = FakeTensor(torch, (7, 7))
    kernel(a, FakeTensor(torch, (7,)), FakeTensor(torch, (7, 7)))
    gone = weakref.ref(a)
    del a
    gc.collect()
    assert gone() is None
    for m in range(1, 40):
        kernel(FakeTensor(torch, (m, 64)), FakeTensor(torch, (64,)), FakeTensor(torch, (m, 64)))
    assert len(kernel._thread.plans) <= 16
    del kernel
    gc.collect()
    assert driver.unloads == [1001]


def test_kernels_whose_blocks_meet(driver: FakeDriver, torch: Any) -> None:
    source = replace(ADD, cooperative=True, args=(*ADD.args, KernelArg("stream", "stream", "uint32")))
    kernel = add(driver, source)
    tensors = [FakeTensor(torch, (100, 200)), FakeTensor(torch, (200,)), FakeTensor(torch, (100, 200))]
    numbers = []
    for torch.stream in (77, 77, 78, 77):
        kernel(*tensors)
        numbers.append(driver.launches[-1].args[-1])
    assert all(done.cooperative for done in driver.launches) and not driver.launches[0].cluster > (1, 1, 1)
    assert numbers[0] == numbers[1] == numbers[3] != numbers[2]  # a word a stream
    with pytest.raises(LaunchError, match=r"all 16 blocks") as caught:
        add(FakeDriver(most_blocks=15), source)(*tensors)
    assert "15 of its blocks" in str(caught.value)
    assert not add(driver)(*tensors) and not driver.launches[-1].cooperative
