"""Questions that scripts ask about the machine's card, answered from the target rows."""

from __future__ import annotations

import importlib.util
from typing import Any

from ..errors import OptionError
from ..runtime import driver
from ..target import Target
from ..target.detect import FoundDevice, detect
from .tvmtarget import Target as TvmTarget

UNITS = {"bytes": 1, "kb": 1024, "mb": 1024 * 1024}


def card(device_id: int = 0) -> Target:
    """The target of the card in this machine; without one the CPU target answers."""
    return Target.of("auto")


def get_num_sms(device_id: int = 0) -> int:
    """Processors of the card; on the CPU target the cores that it counts with."""
    return card(device_id).device.sm_count


def get_device_name(device_id: int = 0) -> str:
    """The card's name, as the driver has it where there is a card."""
    found = next((found for found in detect() if found.index == device_id), None)
    return found.name if found is not None else card(device_id).device.marketing


def get_shared_memory_per_block(device_id: int = 0, format: str = "bytes") -> int:
    """Shared memory of a block without asking for more (48 KiB on NVIDIA cards), in bytes, "kb" or "mb"."""
    return card(device_id).arch.static_shared_limit // _unit(format)


def get_max_dynamic_shared_size_bytes(device_id: int = 0, format: str = "bytes") -> int:
    """The most shared memory that a block can ask for."""
    return card(device_id).arch.max_shared_per_block // _unit(format)


def get_registers_per_block(device_id: int = 0) -> int:
    """32-bit registers that one block can have: those of a processor."""
    return card(device_id).arch.registers_per_sm


def get_persisting_l2_cache_max_size(device_id: int = 0) -> int:
    """Bytes of L2 that can be set aside: three quarters on NVIDIA's cards since sm_80."""
    return card(device_id).device.l2_bytes * 3 // 4


class DeviceAttributes:
    """Numbers of attributes that `get_device_attribute` takes."""

    cudaDevAttrMaxThreadsPerBlock = 1
    cudaDevAttrMaxRegistersPerBlock = 12
    cudaDevAttrMaxSharedMemoryPerMultiprocessor = 81
    cudaDevAttrMaxPersistingL2CacheSize = 108


def get_device_attribute(attr: int, device_id: int = 0) -> int:
    """A CUDA device attribute by its number, from the driver."""
    return driver.cuda().attribute(device_id, attr)


def get_cuda_device_properties(device_id: int = 0) -> Any:
    """torch's properties of the card, or None without torch or a card."""
    try:
        import torch
    except ImportError:
        return None
    return torch.cuda.get_device_properties(device_id) if torch.cuda.is_available() else None


def _unit(format: str) -> int:
    if format not in UNITS:
        raise OptionError(f"format={format!r}", rule=f"one of {', '.join(UNITS)}", fix='"bytes"')
    return UNITS[format]


def nvidia() -> FoundDevice | None:
    """The first NVIDIA card, or None."""
    return next((found for found in detect() if found.driver), None)


def get_target_compute_version(target: Any = None) -> str:
    """The compute capability as "major.minor": of a target, else of the card here. ValueError without either."""
    if target is None and nvidia() is None:
        raise ValueError("no NVIDIA card is here: its compute capability is not known")
    capability = Target.of("cuda" if target is None else target).arch.capability
    if capability is None:
        raise ValueError(f"{target} has no compute capability")
    return f"{capability[0]}.{capability[1]}"


def parse_compute_version(compute_version: str) -> tuple[int, int]:
    """(major, minor) of "9.0"."""
    major, _, minor = str(compute_version).partition(".")
    return int(major), int(minor or 0)


def have_fp8(compute_version: str) -> bool:
    """Of a compute capability such as "8.9"."""
    return parse_compute_version(compute_version) >= (8, 9)


def have_bf16(compute_version: str) -> bool:
    """Of a compute capability such as "8.0"."""
    return parse_compute_version(compute_version) >= (8, 0)


def have_tma(target: Any) -> bool:
    """Whether the target has the copy engine."""
    return Target.of(target).has("tma")


def determine_target(target: Any = "auto", return_object: bool = False) -> Any:
    """The target that a name stands for: an object with TVM's attributes, or its name. "auto" is the target of the
    `with` block around, where there is one."""
    around = TvmTarget.current() if isinstance(target, str) and target == "auto" else None
    found = around or TvmTarget(target)
    return found if return_object else str(found.own)


def target_is_cuda(target: Any) -> bool:
    """Whether its kernels are CUDA."""
    return Target.of(target).dialect == "cuda"


def target_is_cdna(target: Any) -> bool:
    """Whether its kernels are HIP for AMD's CDNA."""
    return Target.of(target).dialect == "hip"


def target_is_gfx950(target: Any) -> bool:
    """Whether it is gfx950."""
    return Target.of(target).name == "gfx950"


def check_hip_availability() -> bool:
    """Whether an AMD card is here."""
    return any(found.arch.startswith("gfx") for found in detect())


def check_cutedsl_available() -> None:
    """Passes: every backend's name is taken here, and means the one way in which kernels are built."""


NVRTC_AVAILABLE = importlib.util.find_spec("cuda") is not None


def get_current_device() -> Any:
    """The torch device that tensors are made on."""
    import torch

    return torch.device("cuda", torch.cuda.current_device()) if torch.cuda.is_available() else torch.device("cpu")
