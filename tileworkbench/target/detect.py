"""Which GPUs this machine has. Never raises, imports no GPU package, keeps no context, and leaves a process that has
not used CUDA as it found it, so that it may still fork."""

from __future__ import annotations

import functools
import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from . import driver
from .rows import ARCHS, CAPABILITY_ROWS

KFD_NODES = Path("/sys/class/kfd/kfd/topology/nodes")
SCRIPT_SECONDS = 20.0  # a hung driver must not hang the notebook


@dataclass(frozen=True)
class FoundDevice:
    """A GPU in this machine. `arch` is the row to build for, or "" when there is none (`note` then says why);
    `driver` is 13000 for CUDA 13.0, 0 for AMD; `memory_bytes` 0 where unknown."""

    index: int
    name: str
    arch: str
    sm_count: int
    memory_bytes: int = 0
    l2_bytes: int = 0
    clock_mhz: int = 0
    bandwidth_gbs: float = 0.0
    driver: int = 0
    note: str = ""


@dataclass(frozen=True)
class Detection:
    """Everything found, and in words why there is nothing if so (`doctor` prints it)."""

    devices: tuple[FoundDevice, ...]
    nvidia: str
    amd: str


def detect(*, isolated: bool | None = None) -> list[FoundDevice]:
    """The GPUs of this machine, NVIDIA first, in the order CUDA numbers them (`CUDA_VISIBLE_DEVICES` obeyed).

    `isolated=True` asks the driver in a process of its own; None does so unless CUDA is in use here already; False is
    for a caller that is about to use CUDA anyway, and saves the extra process."""
    return list(survey(isolated=isolated).devices)


def survey(*, isolated: bool | None = None) -> Detection:
    """`detect` with its reasons."""
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    nvidia, nvidia_words = _nvidia(isolated, visible)
    amd, amd_words = _amd()
    return Detection(nvidia + amd, nvidia_words, amd_words)


@functools.lru_cache(maxsize=8)
def _nvidia(isolated: bool | None, visible: str | None) -> tuple[tuple[FoundDevice, ...], str]:
    """Cached: cards do not come and go while a notebook runs; `visible` is the part of the key that may change."""
    del visible
    try:
        cuda = driver.load()
        if cuda is None:
            return (), "no NVIDIA driver library (libcuda) on this machine"
        if isolated is None:
            isolated = not driver.initialised(cuda)
        answer = _ask_script() if isolated else driver.query(cuda)
    except (OSError, ValueError, RuntimeError, AttributeError, subprocess.SubprocessError) as problem:
        return (), f"the NVIDIA driver could not be asked: {type(problem).__name__}: {problem}"
    return _read(answer)


def _ask_script() -> Mapping[str, object]:
    if not sys.executable:
        raise RuntimeError("no Python executable to ask the driver with")
    done = subprocess.run(
        [sys.executable, "-I", "-S", driver.__file__],
        stdin=subprocess.DEVNULL, capture_output=True, timeout=SCRIPT_SECONDS, check=True,
    )  # fmt: skip
    answer = json.loads(done.stdout)
    if not isinstance(answer, dict):
        raise RuntimeError("unexpected answer")
    return answer


def _read(answer: Mapping[str, object]) -> tuple[tuple[FoundDevice, ...], str]:
    rows = answer.get("devices")
    version = _int(answer.get("driver"))
    if answer.get("error") or not isinstance(rows, list):
        return (), f"the NVIDIA driver answered with error {answer.get('error')} (100: no device)"
    found = tuple(_nvidia_device(row, version) for row in rows)
    return found, f"driver for CUDA {version // 1000}.{version % 1000 // 10}, {len(found)} device(s)"


def _nvidia_device(row: Mapping[str, object], version: int) -> FoundDevice:
    capability = (_int(row.get("major")), _int(row.get("minor")))
    arch = CAPABILITY_ROWS.get(capability, "")
    # Double data rate: two transfers a memory clock on every pin of the bus. Recent drivers answer 0 for the clock.
    bandwidth = 2 * _int(row.get("memory_clock_khz")) * 1e3 * _int(row.get("bus_bits")) / 8 / 1e9
    return FoundDevice(
        index=_int(row.get("index")),
        name=str(row.get("name", "")),
        arch=arch,
        sm_count=_int(row.get("sm_count")),
        memory_bytes=_int(row.get("memory")),
        l2_bytes=_int(row.get("l2_bytes")),
        clock_mhz=_int(row.get("clock_khz")) // 1000,
        bandwidth_gbs=bandwidth,
        driver=version,
        note="" if arch else f"compute capability {capability[0]}.{capability[1]} has no target row",
    )


def _amd() -> tuple[tuple[FoundDevice, ...], str]:
    """From the kernel driver's topology files: no library is loaded, nothing is initialised."""
    try:
        nodes = sorted(KFD_NODES.iterdir(), key=lambda node: int(node.name))
        found = [_amd_device(node) for node in nodes]
    except (OSError, ValueError):
        return (), "no AMD compute driver (kfd) on this machine"
    devices = tuple(device for device in found if device is not None)
    return devices, f"{len(devices)} device(s)"


def _amd_device(node: Path) -> FoundDevice | None:
    pairs = (line.split() for line in (node / "properties").read_text().splitlines())
    facts = {words[0]: int(words[1]) for words in pairs if len(words) == 2}
    version = facts.get("gfx_target_version", 0)
    if not version or not facts.get("simd_count"):
        return None  # a CPU node
    name = f"gfx{version // 10000}{version // 100 % 100:x}{version % 100:x}"
    return FoundDevice(
        index=int(node.name),
        name=name,
        arch=name if name in ARCHS else "",
        sm_count=facts["simd_count"] // max(facts.get("simd_per_cu", 4), 1),
        clock_mhz=facts.get("max_engine_clk_fcompute", 0),
        note="" if name in ARCHS else f"{name} has no target row",
    )


def _int(value: object) -> int:
    return value if isinstance(value, int) else 0
