from __future__ import annotations

import ctypes
import gc
import struct
import sys
import threading
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests.runtime.fakes import FakeCupy, FakeDriver, FakeTensor, Launched, OnDevice, fake_cupy, fake_torch
from tileworkbench.codegen.source import Fact, KernelArg, ScalarParam, Source, TensorMap, TensorParam
from tileworkbench.errors import InternalError, LaunchError, Loc, MissingDependency, OptionError, TargetError
from tileworkbench.runtime import driver as real_driver
from tileworkbench.runtime import launch as launch_module
from tileworkbench.runtime.binary import Binary
from tileworkbench.runtime.launch import Launcher

PLACES = {name: Loc("<cell 1>", 2, 4 + i) for i, name in enumerate("ABC")}
MM = ("M", "N")


def binary(arch: str = "sm_90a", code: bytes = b"cubin") -> Binary:
    return Binary(code=code, kind="cubin", arch=arch, entry="add")


ADD = Source(
    text="", entry="add", dialect="cuda", arch="sm_90a",
    params=(
        TensorParam("A", "float32", MM, loc=PLACES["A"]),
        TensorParam("B", "float32", ("N",), loc=PLACES["B"]),
        TensorParam("C", "float32", MM, access="w", loc=PLACES["C"]),
    ),
    args=(KernelArg("pointer", "A"), KernelArg("pointer", "B"), KernelArg("pointer", "C"),
          KernelArg("symbol", "M", "int32"), KernelArg("symbol", "N", "int64")),
    grid=(("ceildiv", "N", 64), ("ceildiv", "M", 32)), threads=128, shared_bytes=4096,
)  # fmt: skip


@pytest.fixture
def driver() -> FakeDriver:
    return FakeDriver()


@pytest.fixture
def torch(monkeypatch: pytest.MonkeyPatch) -> Any:
    module = fake_torch()
    monkeypatch.setitem(sys.modules, "torch", module)
    return module


@pytest.fixture
def cupy(monkeypatch: pytest.MonkeyPatch) -> Any:
    module = fake_cupy()
    monkeypatch.setitem(sys.modules, "cupy", module)
    return module


def add(driver: FakeDriver, source: Source = ADD, **fields: Any) -> Launcher:
    return Launcher([(source, binary())], driver=driver, **fields)


def abc(m: int = 100, n: int = 200, base: int = 1 << 20) -> list[OnDevice]:
    return [OnDevice((m, n), pointer=base), OnDevice((n,), pointer=base + 4096), OnDevice((m, n), pointer=base + 8192)]


def test_arguments_grid_and_function_reach_the_driver(driver: FakeDriver) -> None:
    kernel = add(driver)
    assert kernel(*abc()) is None
    (done,) = driver.launches
    assert done.args == [1 << 20, (1 << 20) + 4096, (1 << 20) + 8192, 100, 200]
    assert (done.grid, done.threads, done.shared, done.cluster) == ((4, 4, 1), 128, 4096, (1, 1, 1))
    assert driver.loads == [(0, b"cubin", "add", 4096, 1)] and done.function == 2001 and done.stream == 0
    kernel(*abc(31, 65, 1 << 24))
    assert driver.launches[1].grid == (2, 1, 1) and driver.launches[1].args[3:] == [31, 65]
    assert len(driver.loads) == 1


def test_names_defaults_and_scalars(driver: FakeDriver) -> None:
    source = replace(
        ADD,
        params=(*ADD.params, ScalarParam("scale", "float32", 0.5), ScalarParam("flag", "bool", True)),
        args=(*ADD.args, KernelArg("scalar", "scale", "float32"), KernelArg("scalar", "flag", "bool")),
    )
    kernel, (a, b, c) = add(driver, source), abc()
    kernel(a, b, c)
    kernel(a, C=c, B=b, scale=2)
    kernel(a, b, c, -1.5, False)
    got = [(struct.unpack("<f", struct.pack("<I", d.args[5]))[0], d.args[6]) for d in driver.launches]
    assert got == [(0.5, 1), (2.0, 1), (-1.5, 0)]
    assert all(d.args[:3] == [x.__cuda_array_interface__["data"][0] for x in (a, b, c)] for d in driver.launches)
    with pytest.raises(LaunchError, match="flag: 7 does not fit bool"):
        kernel(a, b, c, 1.0, 7)
    with pytest.raises(LaunchError, match="scale: 'x' of type str is no number"):
        kernel(a, b, c, "x")


@pytest.mark.parametrize("call, message", [
    (lambda k, a, b, c: k(a, b), "C is missing: 2 arguments"),
    (lambda k, a, b, c: k(a, b, c, c), "4 arguments were given"),
    (lambda k, a, b, c: k(a, b, c, A=a), "'A' was given twice"),
    (lambda k, a, b, c: k(a, b, c, D=a), "no parameter 'D'"),
    (lambda k, a, b, c: k(a, b, 7), "C: an object of type int is no array"),
    (lambda k, a, b, c: k(a, b, OnDevice((100, 200), "float16")), "C has dtype float16, expected float32"),
    (lambda k, a, b, c: k(a, a, c), r"B has 2 dimensions \(100, 200\), expected 1"),
    (lambda k, a, b, c: k(a, OnDevice((199,)), c),
     r"B.shape\[0\] is 199, expected 200 \(N = 200 from A.shape\[1\]\)"),
    (lambda k, a, b, c: k(a, b, OnDevice((100, 200), read_only=True)), "C is read-only"),
    (lambda k, a, b, c: k(a, b, OnDevice((100, 200), strides=(256, 1))),
     r"C has strides \(256, 1\), expected \(200, 1\)"),
])  # fmt: skip
def test_wrong_arguments_are_named_with_both_sides(driver: FakeDriver, call: Any, message: str) -> None:
    import re

    with pytest.raises(LaunchError) as caught:
        call(add(driver), *abc())
    assert re.search(message, caught.value.found), caught.value.found
    assert not driver.launches
    first = caught.value.found[0]
    if caught.value.found[1] in ":. " and first in PLACES and "missing" not in message:
        assert caught.value.loc == PLACES[first]


def test_arrays_of_two_devices_are_refused(driver: FakeDriver) -> None:
    a, b, c = abc()
    b.__dlpack_device__ = lambda: (2, 1)
    with pytest.raises(LaunchError, match="B is on device 1, and A on device 0"):
        add(driver)(a, b, c)


def test_a_fixed_shape_is_checked(driver: FakeDriver) -> None:
    source = replace(ADD, params=(replace(ADD.params[0], shape=("M", 256)), *ADD.params[1:]))
    with pytest.raises(LaunchError, match=r"A.shape\[1\] is 200, expected 256"):
        add(driver, source)(*abc())


def test_strides_of_extents_of_one_say_nothing(driver: FakeDriver) -> None:
    _a, b, c = abc(1, 200)
    add(driver)(OnDevice((1, 200), strides=(7, 1)), b, c)
    assert driver.launches


def test_symbols_from_strides_and_linear_forms(driver: FakeDriver) -> None:
    source = replace(
        ADD,
        params=(
            TensorParam("A", "float32", (("mul", "M", 2), "N"), ("lda", 1)),
            TensorParam("B", "float32", (("add", "N", "P"),)),
            TensorParam("C", "float32", ("M", "N"), access="w"),
        ),
        args=tuple(KernelArg("symbol", name, "int32") for name in ("M", "N", "P", "lda")),
    )
    kernel = add(driver, source)
    c = OnDevice((50, 200))
    kernel(OnDevice((100, 200), strides=(256, 1)), OnDevice((203,)), c)
    assert driver.launches[0].args == [50, 200, 3, 256]
    with pytest.raises(LaunchError, match=r"A.shape\[0\] is 102, expected 100 = M \* 2 \(M = 50 from C.shape\[0\]\)"):
        kernel(OnDevice((102, 200), strides=(256, 1)), OnDevice((203,)), c)
    with pytest.raises(LaunchError, match=r"A.stride\[1\] is 2, expected 1"):
        kernel(OnDevice((100, 200), strides=(256, 2)), OnDevice((203,)), c)


def test_odd_and_unsolvable_extents_are_told(driver: FakeDriver) -> None:
    odd = replace(ADD, params=(TensorParam("A", "float32", (("mul", "M", 2),)),), args=(), grid=("M",))
    with pytest.raises(LaunchError, match=r"A.shape\[0\] is 7, and no whole number M makes M \* 2 that"):
        add(driver, odd)(OnDevice((7,)))
    unclear = replace(odd, params=(TensorParam("A", "float32", (("floordiv", "M", 2),)),))
    with pytest.raises(LaunchError, match="M cannot be told from"):
        add(driver, unclear)(OnDevice((7,)))


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


def test_limits_of_grid_and_int32(driver: FakeDriver) -> None:
    with pytest.raises(LaunchError, match=r"65536 blocks in y \(ceildiv\(M, 32\)\)"):
        add(driver)(*abc(65535 * 32 + 1, 1))
    small = replace(ADD, grid=(1,))
    with pytest.raises(LaunchError, match="M: 2147483648 does not fit int32"):
        add(driver, small)(*abc(2**31, 1))


def test_a_grid_is_whole_clusters(driver: FakeDriver) -> None:
    with pytest.raises(LaunchError, match="3 blocks in x, in clusters of 2"):
        add(driver, replace(ADD, cluster=(2, 1, 1)))(*abc(100, 192))


def test_an_empty_grid_is_refused(driver: FakeDriver) -> None:
    with pytest.raises(LaunchError, match="the grid has 0 blocks in y"):
        add(driver)(*abc(0, 200))
    assert not driver.launches


def test_none_stands_for_a_tensor_that_is_not_touched(driver: FakeDriver) -> None:
    unused = replace(ADD.params[1], access="")
    kernel = add(driver, replace(ADD, params=(ADD.params[0], unused, ADD.params[2])))
    a, b, c = abc()
    kernel(a, None, c)
    kernel(a, None, c)
    kernel(a, b, c)
    addresses = [done.args[1] for done in driver.launches]
    assert addresses[:2] == [0, 0] and addresses[2] != 0
    with pytest.raises(LaunchError, match="A: an object of type NoneType is no array"):
        kernel(None, b, c)


def test_a_size_that_no_tensor_tells_is_zero(driver: FakeDriver) -> None:
    source = replace(
        ADD,
        params=(TensorParam("A", "float32", ("M",), access=""), TensorParam("C", "float32", ("N",), access="w")),
        args=(KernelArg("pointer", "A"), KernelArg("pointer", "C"), KernelArg("symbol", "M", "int32")),
        grid=("N",),
    )
    add(driver, source)(None, OnDevice((3,)))
    assert driver.launches[0].args[0::2] == [0, 0] and driver.launches[0].grid[0] == 3


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


def test_torch_on_the_cpu_and_sparse_are_refused(driver: FakeDriver, torch: Any) -> None:
    tensors = [FakeTensor(torch, (100, 200)), FakeTensor(torch, (200,), device=-1), FakeTensor(torch, (100, 200))]
    with pytest.raises(LaunchError, match="B is on the CPU") as caught:
        add(driver)(*tensors)
    assert 'B.to("cuda")' in caught.value.fix
    tensors[1] = FakeTensor(torch, (200,))
    tensors[1].layout = "torch.sparse_coo"
    with pytest.raises(LaunchError, match="B: a torch tensor with layout"):
        add(driver)(*tensors)


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


DIVIDES = Fact(("eq", ("mod", "N", 4), 0), "N % 4 == 0")
STARTS = Fact(("eq", ("mod", "A.ptr", 16), 0), "A starts at 16 bytes")
FAST = replace(ADD, facts=(DIVIDES, STARTS))


def test_variants_are_chosen_by_their_facts(driver: FakeDriver, torch: Any) -> None:
    built = []

    def general() -> tuple[Source, Binary]:
        built.append(1)
        return ADD, binary(code=b"general")

    kernel = Launcher([(FAST, binary(code=b"fast"))], driver=driver, general=general)

    def call(n: int, pointer: int = 1 << 20) -> bytes:
        kernel(FakeTensor(torch, (8, n), pointer=pointer), FakeTensor(torch, (n,)), FakeTensor(torch, (8, n)))
        return driver.loads[driver.launches[-1].function - 2001][1]

    assert [call(64), call(64)] == [b"fast"] * 2 and not built
    assert [call(63), call(63), call(64)] == [b"general", b"general", b"fast"] and built == [1]
    assert [call(64, (1 << 20) + 4), call(64), call(64, (1 << 20) + 16)] == [b"general", b"fast", b"fast"]
    assert [call(64, (1 << 20) + 20), call(64, 1 << 21)] == [b"general", b"fast"]
    assert len(kernel.variants) == 2 and len(driver.loads) == 2


def test_a_failed_general_build_is_tried_again(driver: FakeDriver) -> None:
    attempts = []

    def general() -> tuple[Source, Binary]:
        attempts.append(1)
        if len(attempts) == 1:
            raise MissingDependency("no compiler")
        return ADD, binary()

    kernel = Launcher([(FAST, binary())], driver=driver, general=general)
    with pytest.raises(MissingDependency):
        kernel(*abc(8, 63))
    kernel(*abc(8, 63))
    assert len(attempts) == 2 and len(driver.launches) == 1


def test_a_fact_beyond_the_low_bits_is_asked_at_every_call(driver: FakeDriver, torch: Any) -> None:
    page = replace(ADD, facts=(Fact(("eq", ("mod", ("add", "A.ptr", 0), 4096), 0), "A starts a page"),))
    kernel = Launcher([(page, binary(code=b"page")), (ADD, binary(code=b"any"))], driver=driver)
    used = []
    for pointer in (1 << 20, (1 << 20) + 256, 1 << 20):
        kernel(FakeTensor(torch, (8, 64), pointer=pointer), FakeTensor(torch, (64,)), FakeTensor(torch, (8, 64)))
        used.append(driver.loads[driver.launches[-1].function - 2001][1])
    assert used == [b"page", b"any", b"page"]


def test_without_a_general_variant_the_fact_is_told(driver: FakeDriver) -> None:
    kernel = add(driver, FAST)
    with pytest.raises(LaunchError, match=r"N % 4 == 0"):
        kernel(*abc(8, 63))
    with pytest.raises(LaunchError, match="A starts at 16 bytes"):
        kernel(*abc(8, 64, (1 << 20) + 4))
    wrong = replace(ADD, facts=(Fact(("eq", "Q", 1), "Q"),))
    with pytest.raises(InternalError, match="a fact of add speaks of 'Q'"):
        add(driver, wrong)(*abc())


def test_facts_on_strides_and_whole_addresses(driver: FakeDriver, torch: Any) -> None:
    strided = replace(ADD, params=(replace(ADD.params[0], strides=("s", 1)), *ADD.params[1:]))
    fast = replace(strided, facts=(Fact(("eq", "A.stride0", "N"), "A is dense"), Fact(("lt", "A.ptr", 1 << 40), "low")))
    kernel = Launcher([(fast, binary(code=b"fast")), (strided, binary(code=b"slow"))], driver=driver)

    def call(**fields: Any) -> bytes:
        kernel(FakeTensor(torch, (8, 64), **fields), FakeTensor(torch, (64,)), FakeTensor(torch, (8, 64)))
        return driver.loads[driver.launches[-1].function - 2001][1]

    assert [call(), call(strides=(72, 1)), call(), call(pointer=1 << 41), call()] == [
        b"fast", b"slow", b"fast", b"slow", b"fast"]  # fmt: skip


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


def test_a_bare_address_stands_for_a_tensor_whose_size_is_given(driver: FakeDriver, torch: Any) -> None:
    source = replace(
        ADD,
        params=(
            TensorParam("A", "float32", ("m", ("mul", "m", 2)), address=True),
            TensorParam("B", "float32", (4,)),
            ScalarParam("m", "int32"),
        ),
        args=(KernelArg("pointer", "A"), KernelArg("scalar", "m", "int32")),
        grid=("m",),
    )
    kernel = add(driver, source)
    kernel(1 << 21, FakeTensor(torch, (4,)), 3)
    assert driver.launches[0].args == [1 << 21, 3] and driver.launches[0].grid[0] == 3
    with pytest.raises(LaunchError, match="no array"):
        kernel(FakeTensor(torch, (3, 6)), 1 << 21, 3)
    unsized = replace(source, params=(TensorParam("A", "float32", ("n",), address=True), *source.params[1:]))
    with pytest.raises(LaunchError, match="unknown extent n"):
        add(driver, unsized)(1 << 21, FakeTensor(torch, (4,)), 3)
