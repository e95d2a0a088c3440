"""An architecture row: the limits and instruction families a compiler must know, without any particular card.

Everything that differs between two cards of one architecture (processor count, clocks, bandwidth) is in `device.py`.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..errors import InternalError

LARGEST_GRID = (2**31 - 1, 65535, 65535)  # blocks in x, y and z, of all vendors

# What `Arch.has` may be asked. A closed list, so that a misspelt feature is an error and not a silent "no".
FEATURES: dict[str, str] = {
    "ldmatrix": "8x8 matrix loads from shared memory, one row address a lane",
    "stmatrix": "8x8 matrix stores to shared memory",
    "movmatrix": "8x8 transpose across a warp's registers",
    "mma_sync": "warp-level matrix multiply on registers (fp16)",
    "bf16_mma": "warp-level bf16 operands",
    "tf32_mma": "warp-level tf32 (or xf32) operands",
    "fp64_mma": "warp-level fp64 operands",
    "int8_mma": "warp-level int8 operands",
    "fp8_mma": "warp-level fp8 operands, OCP encodings (e4m3fn, e5m2)",
    "fp8_fnuz": "fp8 operands in the FNUZ encodings (e4m3fnuz, e5m2fnuz)",
    "sparse_mma": "warp-level 2:4 sparse first operand",
    "scaled_mma": "warp-level block-scaled fp8/fp6/fp4 operands",
    "wgmma": "warpgroup matrix multiply from shared memory, asynchronous",
    "tcgen05": "tensor-memory matrix multiply",
    "mfma": "wave-level matrix multiply (AMD)",
    "cp_async": "16-byte asynchronous copies from global to shared memory, counted by groups",
    "bulk_copy": "1-D bulk copies, completed on a transaction barrier",
    "tma": "tensor copies by a descriptor (tensor map)",
    "multicast": "tensor copies into several blocks of a cluster",
    # sm_80 has arrive and test_wait only; a channel needs try_wait and byte counts, so the row says no there.
    "mbarrier": "shared-memory barriers with phases, byte counts and try_wait",
    "setmaxnreg": "registers moved between warpgroups at run time",
    "cluster": "thread-block clusters and distributed shared memory",
    "elect": "elect.sync: one leader lane of a warp",
    "proxy_fence": "fence between the generic and the asynchronous proxy",
    "griddep": "programmatic dependent launch",
    "redux": "warp-wide integer reduction in one instruction",
    "match": "warp-wide equality match",
    "cache_hint": "L2 eviction policy per access",
    "fp8_cvt": "fp8 conversions in hardware",
    "half2_exp": "exp2 and tanh on fp16 pairs",
    "f32x2": "packed fp32 pairs in one instruction",
    "atomic_bf16": "bf16 pair atomics on global memory",
    "atomic_vec": "fp32 vector atomics (2 or 4 lanes) on global memory",
    "lds_direct": "global memory copied to LDS past the registers, 4 bytes a lane",
    "lds_direct_x4": "the same, 16 bytes a lane",
    "ds_read_tr": "transposing LDS reads",
    "dpp": "cross-lane operands within a wave",
}


@dataclass(frozen=True)
class Arch:
    """Limits of one architecture; sizes in bytes, registers are 32 bits wide, `max_registers_per_thread` counts
    vector and accumulation registers together on AMD. A named barrier count of 0 means block barriers only."""

    name: str
    dialect: str  # "cuda", "hip" or "cpu"
    family: str  # key of the latency table and of the instruction files
    default_device: str
    warp_size: int
    max_threads: int
    max_warps_per_sm: int
    max_blocks_per_sm: int
    max_shared_per_block: int
    shared_per_sm: int
    static_shared_limit: int
    reserved_shared_per_block: int
    shared_granularity: int
    registers_per_sm: int
    max_registers_per_thread: int
    max_private_per_thread: int  # bytes of registers that lie in memory
    register_granularity: int  # registers a warp's allocation is rounded up to
    sub_cores: int  # schedulers (SIMDs) of a processor; each has a quarter of the registers and a matrix unit
    named_barriers: int
    max_cluster: int
    capability: tuple[int, int] | None  # NVIDIA compute capability
    features: frozenset[str]

    def __post_init__(self) -> None:
        unknown = sorted(self.features - FEATURES.keys())
        if unknown:
            raise InternalError(f"architecture {self.name} declares unknown features: {', '.join(unknown)}")

    def __str__(self) -> str:
        return self.name

    @property
    def vendor(self) -> str:
        """ "nvidia", "amd", or "none" for the CPU."""
        return {"cuda": "nvidia", "hip": "amd"}.get(self.dialect, "none")

    def has(self, feature: str) -> bool:
        """Whether the architecture has `feature`; a name outside `FEATURES` is an internal error."""
        if feature not in FEATURES:
            raise InternalError(f"no architecture feature is called {feature!r}")
        return feature in self.features
