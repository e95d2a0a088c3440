"""Names of the surface that cannot be built yet, and names that do not exist: both are refused with the reason."""

from __future__ import annotations

from collections.abc import Iterable

from ..errors import LanguageError, TargetError
from .faults import nearest

_NEEDS = {
    "Blackwell tensor memory (sm_100), which no target here has yet": (
        "alloc_tmem tcgen05_gemm tcgen05_mma_arrive tcgen05_before_thread_sync tcgen05_after_thread_sync "
        "tcgen05_cp_warpx4 tcgen05_sf_warp_transpose deallocate_tmem tcgen05_gemm_blockscaled mma_gemm_blockscaled "
        "tcgen05_gemm_sp tma_gather4 tma_scatter4 clc_try_cancel clc_try_cancel_multicast clc_is_canceled"
    ),
    "a device function outside the kernel's own text, which the simulator cannot run": (
        "call_intrin CUDASourceCodeKernel"
    ),
    "raw addresses, which are not built yet (T.access_ptr gives a pointer to an element)": (
        "tvm_access_ptr address_of ldg32 ldg64 ldg128 ldg256 stg32 stg64 stg128 stg256 "
        "lds32 lds64 lds128 sts32 sts64 sts128 __ldg isnullptr make_tensor_from_addr"
    ),
    "descriptors of matrix instructions, which kernels do not write here": (
        "alloc_descriptor alloc_wgmma_desc initialize_wgmma_descriptor warpgroup_fence_operand ptx_wgmma_ss "
        "ptx_wgmma_rs"
    ),
    "an explicit role schedule, which is not built yet": (
        "WSSync WSSyncKind WSID WSScope WSRole WSPipeline WSSchedule annotate_ws_schedule ws_op"
    ),
    "a tile scheduler object, which is not built yet": "PersistentTileScheduler BaseTileScheduler",
    "a cluster's barrier, which is not built yet": "alloc_cluster_barrier copy_cluster",
}


class UnknownName(LanguageError, AttributeError):
    """A `T.` name that does not exist."""


def unknown(name: str, known: Iterable[str]) -> Exception:
    """The error for `T.<name>`."""
    if name.startswith("__") and name.endswith("__"):
        return AttributeError(name)
    for needs, names in _NEEDS.items():
        if name in names.split():
            return TargetError(f"T.{name}", rule=f"it needs {needs}", fix="write it with the operations that exist")
    public = [n for n in known if not n.startswith("_")]
    return UnknownName(
        f"T.{name} does not exist", rule="a name of T is one that dir(T) lists", fix=nearest(name, public, "see dir(T)")
    )
