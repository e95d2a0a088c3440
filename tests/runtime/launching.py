"""A kernel that adds, its launcher over a driver that is not there, and arrays for it."""

from __future__ import annotations

from typing import Any

from tests.runtime.fakes import FakeDriver, OnDevice
from tileworkbench.codegen.source import KernelArg, Source, TensorParam
from tileworkbench.errors import Loc
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


def add(driver: FakeDriver, source: Source = ADD, **fields: Any) -> Launcher:
    return Launcher([(source, binary())], driver=driver, **fields)


def abc(m: int = 100, n: int = 200, base: int = 1 << 20) -> list[OnDevice]:
    return [OnDevice((m, n), pointer=base), OnDevice((n,), pointer=base + 4096), OnDevice((m, n), pointer=base + 8192)]
