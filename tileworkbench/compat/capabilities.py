"""What cards of a compute capability, or a target, can do: TileLang's questions, answered from the target rows."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path
from typing import Any

from ..errors import MissingDependency
from ..runtime import nvrtc
from ..target import Target
from .device import nvidia, parse_compute_version

IS_MPS = False


def cpu_count() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def check_cuda_availability() -> bool:
    """Whether an NVIDIA card is here."""
    return nvidia() is not None


def get_target_arch(compute_version: str | tuple[int, int]) -> str:
    """ "80" of "8.0", "90a" of "9.0"."""
    version = parse_compute_version(compute_version) if isinstance(compute_version, str) else compute_version
    major, minor = version
    return f"{major * 10 + minor}{'a' if major >= 9 else ''}"


def have_fp16(compute_version: str) -> bool:
    """Of a compute capability such as "8.0"."""
    return parse_compute_version(compute_version) >= (5, 3)


def have_int8(compute_version: str) -> bool:
    """Of a compute capability such as "8.0"."""
    return parse_compute_version(compute_version) >= (6, 0)


def have_tensorcore(compute_version: str | None = None, target: Any = None) -> bool:
    """Of a compute capability, else of a target, else of the card here."""
    if compute_version is not None:
        return parse_compute_version(compute_version) >= (7, 0)
    return _capability("cuda" if target is None else target) >= (7, 0)


def have_cudagraph() -> bool:
    """Whether launches can be captured: wherever a card is."""
    return check_cuda_availability()


def is_hopper(target: Any) -> bool:
    """Whether the target is of capability 9.0."""
    return _capability(target) == (9, 0)


def have_pdl(target: Any) -> bool:
    """Whether dependent launches can overlap on the target."""
    return _capability(target) >= (9, 0)


def have_mbarrier(target: Any) -> bool:
    """Whether the target has barriers that count bytes."""
    return _capability(target) >= (9, 0)


def _capability(target: Any) -> tuple[int, int]:
    """(0, 0) of what is not NVIDIA's."""
    return Target.of(target).arch.capability or (0, 0)


def target_is_volta(target: Any) -> bool:
    """Capability 7.0 to 7.2."""
    return (7, 0) <= _capability(target) < (7, 5)


def target_is_turing(target: Any) -> bool:
    """Capability 7.5."""
    return _capability(target) == (7, 5)


def target_is_ampere(target: Any) -> bool:
    """Capability 8.x."""
    return (8, 0) <= _capability(target) < (9, 0)


def target_is_hopper(target: Any) -> bool:
    """Capability 9.x."""
    return (9, 0) <= _capability(target) < (10, 0)


def target_is_sm120(target: Any) -> bool:
    """Capability 12.x."""
    return (12, 0) <= _capability(target) < (13, 0)


def target_has_async_copy(target: Any) -> bool:
    """Whether the target has cp.async."""
    return Target.of(target).has("cp_async")


def target_has_ldmatrix(target: Any) -> bool:
    """From capability 7.5 on."""
    return _capability(target) >= (7, 5)


def target_has_stmatrix(target: Any, is_m16n8: bool = False) -> bool:
    """From capability 9.0 on; its 8-bit form from 10.0 on."""
    return _capability(target) >= ((10, 0) if is_m16n8 else (9, 0))


def target_has_bulk_copy(target: Any) -> bool:
    """Whether the target has the copy engine."""
    return Target.of(target).has("tma")


def get_cuda_version(cuda_path: str | None = None) -> tuple[int, ...]:
    """(13, 0) of the device compiler that builds kernels here."""
    return tuple(int(part) for part in re.findall(r"\d+", nvrtc.version())[:2])


def find_cuda_path() -> str:
    """The folder of a CUDA toolkit, which nothing here needs; MissingDependency without one."""
    told = os.environ.get("CUDA_HOME") or os.environ.get("CUDA_PATH")
    tool = shutil.which("nvcc")
    found = told or (str(Path(tool).parent.parent) if tool else "/usr/local/cuda")
    if not Path(found).is_dir():
        raise MissingDependency(
            "no CUDA toolkit is installed", rule="kernels are built without one", fix="set CUDA_HOME if there is one"
        )
    return found


def __getattr__(name: str) -> Any:
    """IS_CUDA looks for a card when it is asked for."""
    if name == "IS_CUDA":
        return check_cuda_availability()
    raise AttributeError(name)
