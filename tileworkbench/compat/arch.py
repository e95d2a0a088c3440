"""The tuner's view of a card: carver's architecture classes, filled from the target and device rows."""

from __future__ import annotations

import re
from typing import Any

from ..errors import TargetError
from ..target import Target
from ..target.atoms import matrix_atoms


class TileDevice:
    """One card. Capacities in bytes (registers: a block's 32-bit registers), `bandwidth` in MB/s: device memory and L2;
    `transaction_size` in bytes: device memory, shared memory."""

    dialect = ""
    platform = "unknown"
    sm_version = -1

    def __init__(self, target: Any = None) -> None:
        self.target = Target.of(self.dialect if target is None else target)
        arch, device = self.target.arch, self.target.device
        if arch.dialect != self.dialect:
            raise TargetError(
                f"{type(self).__name__} for {self.target}", rule=f"{self.target} runs {arch.dialect} code",
                fix="get_arch(target) chooses the class",
            )  # fmt: skip
        self.name = device.marketing
        self.reg_cap = arch.registers_per_sm
        self.smem_cap = arch.max_shared_per_block
        self.max_smem_usage = arch.max_shared_per_block
        self.compute_max_core = device.sm_count
        self.warp_size = arch.warp_size
        self.sm_partition = arch.sub_cores
        self.l2_cache_size_bytes = device.l2_bytes
        self.compute_capability = "".join(map(str, arch.capability or ())) or arch.name
        self.bandwidth = [int(device.bandwidth_gbs * 1000), int(device.bandwidth_gbs * 1000 * L2_FACTOR)]
        self.transaction_size = [32, 128]

    def get_avaliable_tensorintrin_shapes(self) -> list[list[int]]:
        """[M, N] of the matrix instructions, as TileLang spells the method."""
        return [[16, 16]] if self.target.has("mma_sync") or self.target.has("mfma") else []

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.target})"


# L2 answers about this many times faster than device memory on the cards of the rows; only the ratio is used.
L2_FACTOR = 3


class CUDA(TileDevice):
    """An NVIDIA card."""

    dialect, platform = "cuda", "CUDA"

    def __init__(self, target: Any = None) -> None:
        super().__init__(target)
        self.sm_version = check_sm_version(self.target.name)


class CDNA(TileDevice):
    """An AMD Instinct card."""

    dialect, platform = "hip", "CDNA"

    def __init__(self, target: Any = None) -> None:
        super().__init__(target)
        self.transaction_size = [64, 128]


class CPU(TileDevice):
    """The host, through the CPU target."""

    dialect, platform = "cpu", "CPU"


class RDNA(TileDevice):
    """AMD's graphics cards have no target row."""

    def __init__(self, target: Any = None) -> None:
        raise TargetError("RDNA", rule="it needs gfx11 or gfx12, which no target here has yet", fix="CDNA")


class METAL(TileDevice):
    """Apple's cards have no target row."""

    def __init__(self, target: Any = None) -> None:
        raise TargetError("METAL", rule="it needs a Metal target, which there is not", fix="CUDA, CDNA or CPU")


def get_arch(target: Any = "cuda") -> TileDevice:
    """The class for a target."""
    found = Target.of(target)
    made: dict[str, type[TileDevice]] = {"cuda": CUDA, "hip": CDNA, "cpu": CPU}
    return made[found.dialect](found)


def auto_infer_current_arch() -> TileDevice:
    """The card in this machine, else the CPU."""
    return get_arch("auto")


def check_sm_version(arch: str) -> int:
    """90 for "sm_90" and "sm_90a"; -1 for anything else."""
    found = re.fullmatch(r"(?:sm_)?(\d+)[a-zA-Z]*", arch)
    return int(found[1]) if found else -1


def is_cuda_arch(arch: Any) -> bool:
    """Whether it is a card of NVIDIA's."""
    return isinstance(arch, CUDA)


def is_cdna_arch(arch: Any) -> bool:
    """Whether it is a card of AMD's CDNA family."""
    return isinstance(arch, CDNA)


def is_rdna_arch(arch: Any) -> bool:
    """Whether it is a card of AMD's RDNA family."""
    return isinstance(arch, RDNA)


def is_metal_arch(arch: Any) -> bool:
    """Whether it is Apple's."""
    return isinstance(arch, METAL)


def is_cpu_arch(arch: Any) -> bool:
    """Whether it is the CPU."""
    return isinstance(arch, CPU)


def is_volta_arch(arch: Any) -> bool:
    """sm_70 to sm_75."""
    return is_cuda_arch(arch) and 70 <= arch.sm_version < 80


def is_ampere_arch(arch: Any) -> bool:
    """sm_80 to sm_87."""
    return is_cuda_arch(arch) and 80 <= arch.sm_version < 89


def is_ada_arch(arch: Any) -> bool:
    """sm_89."""
    return is_cuda_arch(arch) and arch.sm_version == 89


def is_hopper_arch(arch: Any) -> bool:
    """sm_90."""
    return is_cuda_arch(arch) and arch.sm_version == 90


def has_mma_support(arch: Any) -> bool:
    """Whether mma.sync of Ampere and later is there."""
    return is_cuda_arch(arch) and arch.sm_version >= 80


def is_tensorcore_supported_precision(in_dtype: str, accum_dtype: str, arch: Any) -> bool:
    """Whether a matrix instruction of the card takes these operand and accumulator types."""
    pair = ATOM_NAMES.get(str(in_dtype)), ATOM_NAMES.get(str(accum_dtype))
    return any((atom.a, atom.acc) == pair for atom in matrix_atoms(arch.target.arch))


# Types as the table of matrix instructions spells them.
ATOM_NAMES = {
    "float16": "f16",
    "bfloat16": "bf16",
    "float32": "f32",
    "tfloat32": "tf32",
    "float64": "f64",
    "int8": "s8",
    "uint8": "u8",
    "int32": "s32",
    "float8_e4m3": "e4m3",
    "float8_e4m3fn": "e4m3",
    "float8_e5m2": "e5m2",
}
