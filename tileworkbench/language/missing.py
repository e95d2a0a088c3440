"""Names of the surface that cannot be built yet, and names that do not exist: both are refused with the reason."""

from __future__ import annotations

from collections.abc import Iterable

from ..errors import LanguageError, TargetError
from .faults import nearest

_NEEDS = {
    "Blackwell tensor memory (sm_100), which no target here has yet": (
        "alloc_tmem tcgen05_gemm tcgen05_mma_arrive tcgen05_before_thread_sync tcgen05_after_thread_sync "
        "tcgen05_cp_warpx4 tcgen05_sf_warp_transpose deallocate_tmem tcgen05_gemm_blockscaled mma_gemm_blockscaled "
        "tcgen05_gemm_sp tma_gather4 tma_scatter4 clc_try_cancel clc_try_cancel_multicast clc_is_canceled "
        "alloc_tcgen05_instr_desc alloc_tcgen05_instruction_desc alloc_tcgen05_smem_desc initialize_tcgen05_descriptor "
        "ptx_tcgen05_mma_ss ptx_tcgen05_mma_ts ptx_tcgen05_mma_blockscaled_ss tma_load_2sm tma_gather4_bytes "
        "tcgen05_mma tcgen05_mma_blockscaled clc_get_first_ctaid_x clc_get_first_ctaid_y clc_get_first_ctaid_z "
        "compute_umma_descriptor TCGEN05DescriptorParams TCGEN05TensorCoreIntrinEmitter"
    ),
    "block-scaled products (sm_120), which no target here has yet": (
        "make_blockscaled_gemm_layout ptx_mma_block_scale TensorCoreIntrinEmitterSM120"
    ),
    "the products of sm_70, which no target here has": "ptx_mma_sm70",
    "a function written as TVM's own IR; a kernel here is a T.prim_func or a jit function with T.Kernel": (
        "IntImm Shuffle StringImm TVMBackendAllocWorkspace TVMBackendFreeWorkspace "
        "allocate anylist_getitem anylist_resetitem anylist_setitem_call_cpacked anylist_setitem_call_packed "
        "call_cpacked call_cpacked_lowered call_llvm_intrin call_llvm_pure_intrin call_packed call_packed_lowered "
        "decl_buffer end_profile_intrinsic func_attr get_let_value has_let_value "
        "lookup_param q_multiply_shift q_multiply_shift_per_axis reads ret sblock sblock_alloc_buffer sblock_attr "
        "start_profile_intrinsic target tvm_stack_alloca tvm_stack_make_array tvm_stack_make_shape "
        "tvm_struct_get tvm_struct_set tvm_thread_invariant tvm_throw_last_error tvm_tuple undef "
        "vectorcombine vectorhigh vectorlow vscale writes"
    ),
    "matrix fragments of the older CUDA interface; T.gemm and T.ptx_mma are what there is": (
        "tvm_bmma_sync tvm_fill_fragment tvm_load_matrix_sync tvm_mma_sync tvm_store_matrix_sync"
    ),
    "barriers by number, which nothing here can make ready or wait for; T.alloc_barrier([count, …]) makes several": (
        "create_barriers"
    ),
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
