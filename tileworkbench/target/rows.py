"""The architecture rows. NVIDIA figures: CUDA programming guide, table of technical specifications per compute
capability, and the PTX manual's target notes. AMD figures: CDNA 2, 3 and 4 instruction-set manuals and white papers.
"""

from __future__ import annotations

from .arch import Arch

KIB = 1024

_SM75 = frozenset({"ldmatrix", "movmatrix", "mma_sync", "int8_mma", "match", "half2_exp"})
_SM80 = _SM75 | {"cp_async", "bf16_mma", "tf32_mma", "fp64_mma", "sparse_mma", "redux", "cache_hint"}
_SM89 = _SM80 | {"fp8_mma", "fp8_cvt"}
_SM90 = _SM89 | {
    "stmatrix", "tma", "bulk_copy", "mbarrier", "elect", "proxy_fence", "griddep", "cluster",
    "atomic_bf16", "atomic_vec",
}  # fmt: skip
_SM90A = _SM90 | {"wgmma", "setmaxnreg", "multicast"}
_SM100A = _SM90 | {"setmaxnreg", "multicast", "tcgen05", "f32x2"}
# Consumer Blackwell has the copy engine and its barriers, but a cluster is one block wide there.
_SM120A = (_SM90 - {"cluster"}) | {"setmaxnreg", "scaled_mma", "f32x2"}

_GFX90A = frozenset({"mfma", "bf16_mma", "fp64_mma", "int8_mma", "lds_direct", "dpp", "atomic_bf16"})
_GFX942 = _GFX90A | {"fp8_fnuz", "tf32_mma", "sparse_mma", "fp8_cvt", "f32x2"}
_GFX950 = (_GFX942 - {"fp8_fnuz", "tf32_mma"}) | {"fp8_mma", "lds_direct_x4", "ds_read_tr", "scaled_mma"}


def _nvidia(
    name: str,
    family: str,
    device: str,
    *,
    warps: int,
    blocks: int,
    shared: int,
    features: frozenset[str],
    reserved: int = KIB,
    granularity: int = 128,
    max_cluster: int = 1,
) -> Arch:
    digits = name.removeprefix("sm_").rstrip("a")
    return Arch(
        name=name,
        dialect="cuda",
        family=family,
        default_device=device,
        warp_size=32,
        max_threads=1024,
        max_warps_per_sm=warps,
        max_blocks_per_sm=blocks,
        max_shared_per_block=shared - reserved,
        shared_per_sm=shared,
        static_shared_limit=48 * KIB,
        reserved_shared_per_block=reserved,
        shared_granularity=granularity,
        registers_per_sm=65536,
        max_registers_per_thread=255,
        max_private_per_thread=512 * KIB,
        register_granularity=256,
        sub_cores=4,
        named_barriers=16,
        max_cluster=max_cluster,
        capability=(int(digits[:-1]), int(digits[-1])),
        features=features,
    )


def _amd(name: str, family: str, device: str, *, lds: int, lds_granularity: int, features: frozenset[str]) -> Arch:
    """A CDNA compute unit: four SIMDs of 512 vector registers x 64 lanes, eight waves a SIMD."""
    return Arch(
        name=name,
        dialect="hip",
        family=family,
        default_device=device,
        warp_size=64,
        max_threads=1024,
        max_warps_per_sm=32,
        # Sixteen hardware barriers a compute unit bound the blocks of more than one wave.
        max_blocks_per_sm=16,
        max_shared_per_block=lds,
        shared_per_sm=lds,
        static_shared_limit=lds,
        reserved_shared_per_block=0,
        shared_granularity=lds_granularity,
        registers_per_sm=4 * 512 * 64,
        max_registers_per_thread=512,
        max_private_per_thread=(2**13 - 1) * KIB // 64,  # a wave's scratch is counted in KiB by 13 bits
        register_granularity=8 * 64,
        sub_cores=4,
        named_barriers=0,
        max_cluster=1,
        capability=None,
        features=features,
    )


# The embedded target runs kernels on NumPy. Its limits are those of the largest GPU row, so that a kernel which fits
# on no card at all is already refused on a laptop.
_CPU = Arch(
    name="cpu",
    dialect="cpu",
    family="cpu",
    default_device="cpu",
    warp_size=32,
    max_threads=1024,
    max_warps_per_sm=32,
    max_blocks_per_sm=1,
    max_shared_per_block=227 * KIB,
    shared_per_sm=228 * KIB,
    static_shared_limit=227 * KIB,
    reserved_shared_per_block=KIB,
    shared_granularity=128,
    registers_per_sm=65536,
    max_registers_per_thread=255,
    max_private_per_thread=512 * KIB,
    register_granularity=256,
    sub_cores=4,
    named_barriers=16,
    max_cluster=1,
    capability=None,
    features=frozenset(),
)

_ROWS = (
    _nvidia("sm_75", "sm_75", "T4", warps=32, blocks=16, shared=64 * KIB, reserved=0, granularity=256, features=_SM75),
    _nvidia("sm_80", "sm_80", "A100", warps=64, blocks=32, shared=164 * KIB, features=_SM80),
    _nvidia("sm_86", "sm_86", "A10", warps=48, blocks=16, shared=100 * KIB, features=_SM80),
    _nvidia("sm_89", "sm_89", "L4", warps=48, blocks=24, shared=100 * KIB, features=_SM89),
    _nvidia("sm_90", "sm_90", "H200", warps=64, blocks=32, shared=228 * KIB, max_cluster=8, features=_SM90),
    _nvidia("sm_90a", "sm_90", "H200", warps=64, blocks=32, shared=228 * KIB, max_cluster=8, features=_SM90A),
    _nvidia("sm_100a", "sm_100", "B200", warps=64, blocks=32, shared=228 * KIB, max_cluster=8, features=_SM100A),
    _nvidia("sm_120a", "sm_120", "RTX5090", warps=48, blocks=24, shared=100 * KIB, features=_SM120A),
    _amd("gfx90a", "cdna2", "MI250X", lds=64 * KIB, lds_granularity=512, features=_GFX90A),
    _amd("gfx942", "cdna3", "MI300X", lds=64 * KIB, lds_granularity=512, features=_GFX942),
    _amd("gfx950", "cdna4", "MI355X", lds=160 * KIB, lds_granularity=1280, features=_GFX950),
    _CPU,
)

ARCHS: dict[str, Arch] = {row.name: row for row in _ROWS}

# NVIDIA capability of a card → the row built for it. Where an "a" row exists a cubin of it runs on that card only,
# and the card in the machine is exactly that one. Orin (8.7) runs sm_86 code: cubins hold within a major version.
CAPABILITY_ROWS: dict[tuple[int, int], str] = {
    (7, 5): "sm_75",
    (8, 0): "sm_80",
    (8, 6): "sm_86",
    (8, 7): "sm_86",
    (8, 9): "sm_89",
    (9, 0): "sm_90a",
    (10, 0): "sm_100a",
    (12, 0): "sm_120a",
}
