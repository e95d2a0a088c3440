"""The kernel language, imported as `T`: names, argument order and meaning of TileLang's public surface."""

# The names are here to be used from outside.
# ruff: noqa: F401
# mypy: implicit-reexport

from __future__ import annotations

from typing import Any

from ..ir.expr import Expr as PrimExpr
from .alloc import (
    alloc_barrier,
    alloc_buffer,
    alloc_cluster_barrier,
    alloc_fragment,
    alloc_global,
    alloc_local,
    alloc_shared,
    alloc_var,
)
from .annotate import (
    annotate_compile_flags,
    annotate_consumer_reg_alloc,
    annotate_l2_hit_ratio,
    annotate_layout,
    annotate_min_blocks_per_sm,
    annotate_pass_configs,
    annotate_producer_reg_dealloc,
    annotate_restrict_buffers,
    annotate_safe_value,
    assume,
    disable_warp_group_reg_alloc,
    import_source,
    no_set_max_nreg,
    use_swizzle,
)
from .arithmetic import (
    Cast,
    Select,
    abs,
    align_up,
    bitwise_and,
    bitwise_not,
    bitwise_or,
    bitwise_xor,
    cast,
    cdiv,
    ceildiv,
    clamp,
    floordiv,
    floormod,
    if_then_else,
    infinity,
    likely,
    max,
    max_value,
    min,
    min_value,
    pow,
    shift_left,
    shift_right,
    truncdiv,
    truncmod,
)
from .atomic import atomic_add, atomic_load, atomic_max, atomic_min, atomic_or, atomic_store
from .barrier import (
    WarpSpecialize,
    WarpSpecializeFrame,
    barrier_arrive,
    barrier_wait,
    cluster_arrive,
    cluster_arrive_relaxed,
    cluster_sync,
    cluster_wait,
    cp_async_barrier_noinc,
    dec_max_nreg,
    fence_proxy_async,
    inc_max_nreg,
    mbarrier_arrive,
    mbarrier_arrive_expect_tx,
    mbarrier_expect_tx,
    mbarrier_wait_parity,
    named_barrier_arrive,
    pdl_sync,
    pdl_trigger,
    ptx_arrive_cluster_barrier,
    ptx_commit_group,
    ptx_wait_group,
    set_max_nreg,
    sync_grid,
    sync_threads,
    sync_warp,
    syncthreads_and,
    syncthreads_count,
    syncthreads_or,
    tma_store_arrive,
    tma_store_wait,
    tvm_storage_sync,
    wait_wgmma,
    warpgroup_arrive,
    warpgroup_commit_batch,
    warpgroup_fence_operand,
    warpgroup_wait,
    ws,
)
from .boundloops import launch_thread, thread_binding
from .choices import Else, If, Then
from .clusters import copy_cluster
from .debug import device_assert, evaluate, let, print
from .descriptors import create_tma_descriptor
from .dtypes import NAMES as _DTYPES
from .dtypes import UNBUILT as _UNBUILT
from .dtypes import dtype
from .dtypes import vector_dtype as _vector_dtype
from .elements import all_of, any_of, atomic_addx2, atomic_addx4, index_to_coordinates, transpose
from .extern import call_extern, call_pure_extern
from .images import c2d_im2col, im2col
from .lanes import Broadcast, Ramp, abs2, add2, extract_lane, fma2, max2, min2, mul2, sub2
from .launch import (
    ClusterKernel,
    Kernel,
    get_block_binding,
    get_block_bindings,
    get_block_extent,
    get_block_extents,
    get_thread_binding,
    get_thread_bindings,
    get_thread_extent,
    get_thread_extents,
)
from .launchframe import KernelLaunchFrame
from .layouts import Fragment, Layout
from .leaving import loop_break, thread_return
from .loops import Parallel, Serial, Unroll, Vectorized, grid, parallel, serial, unroll, vectorized
from .macro import Ref
from .mathfns import (
    Number,
    __cos,
    __exp,
    __exp10,
    __ffs,
    __log,
    __log2,
    __log10,
    __sin,
    __tan,
    acos,
    acosh,
    asin,
    asinh,
    atan,
    atan2,
    atanh,
    ceil,
    clz,
    copysign,
    cos,
    cosh,
    erf,
    exp,
    exp2,
    exp10,
    fast_rcp,
    floor,
    fmod,
    hypot,
    ieee_add,
    ieee_fdiv,
    ieee_fmaf,
    ieee_frcp,
    ieee_frsqrt,
    ieee_fsqrt,
    ieee_mul,
    ieee_sub,
    isfinite,
    isinf,
    isnan,
    ldexp,
    log,
    log1p,
    log2,
    log10,
    nearbyint,
    nextafter,
    popcount,
    round,
    rsqrt,
    sigmoid,
    sin,
    sinh,
    sqrt,
    tan,
    tanh,
    trunc,
)
from .matrixarrays import mma_fill, mma_store
from .matrixdescriptors import (
    alloc_descriptor,
    alloc_wgmma_desc,
    increase_descriptor_offset,
    initialize_wgmma_descriptor,
)
from .matrixinstr import ptx_ldmatrix, ptx_mma, ptx_mma_sp
from .missing import unknown as _unknown
from .persistent import Persistent
from .pipelined import Pipelined
from .pointed import make_tensor, make_tensor_from_addr, match_buffer
from .pointers import access_ptr, address_of, ptx_cp_async, tvm_access_ptr, type_annotation
from .prim import PrimFunc, prim_func, read, read_all
from .products import GemmWarpPolicy, gemm, gemm_sp, wgmma_gemm, wgmma_gemm_sp, wgmma_mma
from .random import rng_init, rng_rand, rng_rand_float
from .rawaccess import (
    __ldg,
    isnullptr,
    ldg32,
    ldg64,
    ldg128,
    ldg256,
    lds32,
    lds64,
    lds128,
    stg32,
    stg64,
    stg128,
    stg256,
    sts32,
    sts64,
    sts128,
)
from .rawbarriers import (
    call_intrin,
    ptx_arrive_barrier,
    ptx_arrive_barrier_expect_tx,
    ptx_cp_async_barrier,
    ptx_fence_barrier_init,
    ptx_init_barrier_thread_count,
    ptx_wait_barrier,
    sync_global,
)
from .reducers import alloc_reducer, finalize_reducer, reducer_init, reducer_update
from .remarks import WSID
from .roleschedule.entry import annotate_ws_schedule, ws_op
from .roleschedule.schedule import (
    WSInstr,
    WSOpRef,
    WSPipeline,
    WSRole,
    WSSchedule,
    WSScope,
    WSSync,
    WSSyncKind,
)
from .sourcekernel import CUDASourceCodeKernel
from .surface import Var, inline, macro, meta_class
from .tensor import Buffer_ as Buffer
from .tensor import (
    FragmentBuffer,
    LocalBuffer,
    SharedBuffer,
    StridedTensor,
    Tensor,
    const,
    dynamic,
    empty,
    handle,
    ptr,
    symbolic,
)
from .tensorloads import tma_load
from .threadreduce import attr, comm_reducer, dp4a, tvm_thread_allreduce
from .tileops import (
    async_copy,
    clear,
    copy,
    cummax,
    cumsum,
    fill,
    reduce,
    reduce_absmax,
    reduce_abssum,
    reduce_bitand,
    reduce_bitor,
    reduce_bitxor,
    reduce_max,
    reduce_min,
    reduce_sum,
    tma_copy,
)
from .tileschedule import BaseTileScheduler, PersistentTileScheduler
from .transfers import ptx_cp_async_bulk
from .views import reshape, view
from .warp import (
    __fns,
    activemask,
    all_sync,
    any_sync,
    ballot,
    ballot_sync,
    block_rank_in_cluster,
    get_lane_idx,
    get_warp_group_idx,
    get_warp_idx,
    get_warp_idx_sync,
    match_all_sync,
    match_any_sync,
    shfl_down,
    shfl_sync,
    shfl_up,
    shfl_xor,
    shuffle_elect,
    tvm_warp_activemask,
    tvm_warp_shuffle,
    tvm_warp_shuffle_down,
    tvm_warp_shuffle_up,
    warp_reduce_bitand,
    warp_reduce_bitor,
    warp_reduce_max,
    warp_reduce_min,
    warp_reduce_sum,
)
from .warpgroupinstr import ptx_wgmma_rs, ptx_wgmma_sp_rs, ptx_wgmma_sp_ss, ptx_wgmma_ss
from .whiles import While
from .words import reinterpret

globals().update(_DTYPES)
globals().update(_UNBUILT)


def __getattr__(name: str) -> Any:
    vector = _vector_dtype(name)
    if vector is not None:
        return vector
    raise _unknown(name, globals())
