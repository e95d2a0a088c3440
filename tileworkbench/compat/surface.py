"""Every import path of TileLang and what answers it: "room.module:name" within this package. A path below one of
`INSIDE` without a page of its own belongs to TileLang's compiler: it imports, and its names refuse to be used."""

from __future__ import annotations

from functools import cache

from .pages import COMPILER, EMITTERS, TVM, Page, at
from .submodules import SUBMODULES

JIT = at("jitkernel", "jit", "compile", "par_compile", JITImpl="JITFunction")
JIT |= at("compat.lowering", "JITKernel")
LOWER = at("compat.lowering", "lower", "CompiledArtifact", "KernelParam")
SIMPLIFY = at("compat.lowering", "apply_simplify", "simplify_prim_func")
HOOKS = {
    name: f"compat.hooks:{name}"
    for kind in ("cuda", "hip", "c", "metal")
    for name in (f"register_{kind}_postproc", f"register_{kind}_postproc_callback")
}
SUPPLY = at("jitkernel.supply", "TensorSupplyType")
CHECKS = at("compat.closeness", "torch_assert_close")
TUNER = at("tune", "autotune", "AutoTuner", "set_autotune_inputs", "get_autotune_inputs")
RESULT = at("tune", "AutotuneResult")
PROFILER = at("jitkernel.profile", "Profiler") | at("jitkernel.bench", "do_bench")
CACHE = at("compat.environment", "enable_cache", "disable_cache", "is_cache_enabled", "clear_cache")
PASSES = at("jitkernel.passconfig", "PassConfigKey")
LAYOUTS = at(
    "compat.layouts",
    *("Layout", "Fragment", "SwizzleMode", "make_swizzled_layout", "make_volta_swizzled_layout"),
    *("make_wgmma_swizzled_layout", "make_full_bank_swizzled_layout", "make_half_bank_swizzled_layout"),
    *("make_quarter_bank_swizzled_layout", "make_linear_layout", "make_gemm_fragment_8x8"),
    *("make_gemm_fragment_8x8_transposed", "make_fully_replicated_layout_fragment"),
)
LAYOUTS |= at("compat.sparse", "make_cutlass_metadata_layout")
LAYOUT_NEEDS = {
    "make_tcgen05mma_swizzled_layout": "Blackwell's tensor memory (sm_100), which is not built yet",
}
MEMORIES = at(
    "compat.memories", *("is_global", "is_shared", "is_shared_dynamic", "is_fragment", "is_local", "is_local_var")
)
DEPRECATED = at("compat.environment", "deprecated", "deprecated_warning")
MATH = at("compat.integers", "next_power_of_2", "cdiv")
TESTING = at(
    "compat.testing",
    *("requires_cuda", "requires_rocm", "requires_metal", "requires_llvm", "requires_package", "requires_cdna"),
    *("requires_cuda_or_cdna", "requires_gfx950", "requires_cuda_compute_version", "requires_cuda_compute_version_ge"),
    *("requires_cuda_compute_version_gt", "requires_cuda_compute_version_le", "requires_cuda_compute_version_lt"),
    *("requires_cuda_compute_version_eq", "main", "set_random_seed", "process_func", "regression"),
) | {**CHECKS, "_check_is_gfx950": "compat.testing:check_is_gfx950"}
ARCHS = at("compat.arch", "CUDA", "CDNA", "RDNA", "METAL", "CPU", "TileDevice")
ARCH = ARCHS | at(
    "compat.arch",
    *("get_arch", "auto_infer_current_arch", "is_cpu_arch", "is_cuda_arch", "is_volta_arch", "is_ampere_arch"),
    *("is_ada_arch", "is_hopper_arch", "is_cdna_arch", "is_rdna_arch", "is_metal_arch", "has_mma_support"),
    *("is_tensorcore_supported_precision", "check_sm_version"),
)
DRIVER = at(
    "compat.device",
    *("get_cuda_device_properties", "get_device_name", "get_shared_memory_per_block", "get_device_attribute"),
    *(
        "get_max_dynamic_shared_size_bytes",
        "get_persisting_l2_cache_max_size",
        "get_num_sms",
        "get_registers_per_block",
    ),
)
TEMPLATES = at("compat.templates", "MatmulTemplate", "FlashAttentionTemplate", "ConvTemplate")
TEMPLATES |= at("compat.traffictemplates", "GEMVTemplate", "ElementwiseTemplate", "GeneralReductionTemplate")
RASTER = at("compat.hint", "Rasterization", "NoRasterization", "Rasterization2DRow", "Rasterization2DColumn")
HINT = at("compat.hint", "Hint", "IntrinInfo")
POLICIES = at("compat.templates", "DefaultPolicy", "TensorCorePolicy")
TIRX = at(
    "compat.tirx", "const", "PrimExpr", "Var", "IntImm", "FloatImm", "StringImm", "Buffer", "BufferLoad", "all", "any"
)
TIRX |= {"PrimFunc": "language.prim:PrimFunc", "IndexMap": "compat.indexmap:IndexMap"}
NVCC = at("compat.device", "get_target_compute_version", "parse_compute_version", "have_fp8", "have_bf16", "have_tma")
CAPABILITIES = at(
    "compat.capabilities",
    *("get_target_arch", "have_fp16", "have_int8", "have_tensorcore", "have_cudagraph", "is_hopper", "have_pdl"),
    *("have_mbarrier", "get_cuda_version", "find_cuda_path"),
)
TOOLS = at("compat.plotting", "plot_layout", "plot_fragment_tv") | at("compat.analyzer", "Analyzer", "AnalysisResult")
INTRINSICS = at("compat.intrinsics", "get_swizzle_layout", "make_mma_swizzle_layout", "get_mma_micro_size")
INTRINSICS |= at("compat.mmalayouts", "get_ldmatrix_offset", "mma_store_index_map", "mma_store_index_map_fp64")
EMITTER = at("compat.emitters", "TensorCoreIntrinEmitter", INT4TensorCoreIntrinEmitter="TensorCoreIntrinEmitter")
EMITTER |= at("compat.sparseemitters", "SparseTensorCoreIntrinEmitter")
EMITTER |= at("compat.warpgroupemitter", "WGMMATensorCoreIntrinEmitter")
WARPGROUPS = at("compat.warpgroupoperand", "WGMMADescriptorParams", "compute_gmma_descriptor")
EMITTER |= WARPGROUPS
EMITTER |= at("compat.warpgroupsparse", "WGSparseTensorCoreIntrinEmitter")
INTRINSIC_PATHS = (
    *("tilelang.cuda.intrinsics", "tilelang.cuda.intrinsics.layout", "tilelang.cuda.intrinsics.layout.mma_layout"),
    *("tilelang.cuda.intrinsics.layout.utils", "tilelang.cuda.language.intrinsics", "tilelang.intrinsics"),
    *("tilelang.intrinsics.mma_layout", "tilelang.intrinsics.utils"),
)
SPARSE = at("compat.sparse", "GROUP_CONFIG", "get_e_factor", "get_e_replicate_factor")
POLICY = at("language", "GemmWarpPolicy")

PAGES: dict[str, Page] = {
    "tilelang": Page(
        {
            **JIT,
            **LOWER,
            **TUNER,
            **CACHE,
            **PASSES,
            **MATH,
            **SUPPLY,
            **HOOKS,
            **at("compat.layouts", "Layout", "Fragment"),
            **at("jitkernel.profile", "Profiler"),
            "DataType": "compat.tirx:DataType",
            "env": "compat.environment:env",
            "dtypes": "language.dtypes",
            "set_log_level": "compat.environment:set_log_level",
            "__version__": "compat.environment:VERSION",
            "logger": "compat.environment:logger",
            "deprecated": "compat.environment:deprecated",
        }
    ),
    "tilelang.language": Page(
        {
            **at("compat.layouts", "Fragment"),
            **at("jitkernel.decorator", JITFunc="JITFunction"),
            **INTRINSICS,
            **EMITTER,
        },
        rest="language",
    ),
    "tilelang.language.fp8": Page(at("compat.tirx", "determine_fp8_type", "determine_torch_fp8_type")),
    "tilelang.language.dtypes": Page(
        {
            "_TORCH_DTYPE_TO_STR": "compat.tirx:TORCH_NAMES",
            "resolve_torch_storage_dtype": "compat.tirx:resolve_torch_storage_dtype",
            "dtype": "language.dtypes:dtype",
            "_all_dtypes": "compat.tirx:ALL_DTYPES",
        },
        rest="language.dtypes",
        foreign=COMPILER,
    ),
    "tilelang.dtypes": Page(rest="language.dtypes"),
    "tilelang.jit": Page(JIT, foreign=COMPILER),
    "tilelang.jit.exceptions": Page(
        at("errors", JITNoBuilderError="LanguageError", EagerJITBuildError="LanguageError"), foreign=COMPILER
    ),
    "tilelang.jit.kernel": Page(at("compat.lowering", "JITKernel")),
    "tilelang.jit.adapter.nvrtc": Page({"is_nvrtc_available": "compat.device:NVRTC_AVAILABLE"}, foreign=COMPILER),
    "tilelang.jit.adapter.cutedsl.checks": Page(at("compat.device", "check_cutedsl_available"), foreign=COMPILER),
    "tilelang.autotuner": Page({**TUNER, **RESULT}, star=tuple(TUNER)),
    "tilelang.autotuner.tuner": Page({**TUNER, **RESULT, **at("tune", AutoTuneImpl="Tuned")}),
    "tilelang.autotuner.capture": Page(TUNER),
    "tilelang.autotuner.param": Page({**RESULT, **at("compat.tuning", "CompileArgs")}, foreign=COMPILER),
    "tilelang.autotuner.grouped_compile": Page(at("compat.tuning", "compile_grouped_unit_tvm_ffi"), foreign=COMPILER),
    "tilelang.profiler": Page({**PROFILER, **SUPPLY, **CHECKS, **at("jitkernel.supply", "get_tensor_supply")}),
    "tilelang.profiler.bench": Page(at("jitkernel.bench", "do_bench"), foreign=COMPILER),
    "tilelang.testing": Page(TESTING, star=tuple(n for n in TESTING if not n.startswith("_"))),
    "tilelang.utils": Page({**SUPPLY, **CHECKS, **MEMORIES, **DEPRECATED}, foreign=COMPILER),
    "tilelang.utils.language": Page(MEMORIES, foreign=COMPILER),
    "tilelang.utils.deprecated": Page(DEPRECATED),
    "tilelang.utils.tensor": Page(
        {
            **SUPPLY,
            **CHECKS,
            **at("jitkernel.supply", "get_tensor_supply"),
            **at("compat.closeness", "is_float8_dtype"),
            **at("compat.closeness", fp8_remove_negative_zeros_="without_negative_zeros"),
        }
    ),
    "tilelang.utils.device": Page(
        at("compat.device", "get_current_device")
        | at("compat.capabilities", "IS_CUDA", "IS_MPS", get_available_cpu_count="cpu_count"),
        foreign=COMPILER,
    ),
    "tilelang.math": Page(MATH),
    "tilelang.layout": Page({**LAYOUTS}, needs=LAYOUT_NEEDS),
    "tilelang.layout.gemm_sp": Page(
        at("compat.sparse", "make_cutlass_metadata_layout"), foreign="CUTLASS's layouts of one architecture alone"
    ),
    "tilelang.layout.layout": Page(at("compat.layouts", "Layout")),
    "tilelang.layout.fragment": Page(at("compat.layouts", "Fragment")),
    "tilelang.layout.swizzle": Page(LAYOUTS, needs=LAYOUT_NEEDS),
    "tilelang.layout.swizzle_mode": Page(at("compat.layouts", "SwizzleMode")),
    "tilelang.layout.cute": Page(
        foreign="TileLang's own form of CuTe layouts (tileworkbench.layout.Layout is the one here)"
    ),
    "tilelang.transform": Page(
        {
            **PASSES,
            **at("compat.lowering", "simplify_prim_func"),
            **at("compat.hostcode", MergeIfStmt="unchanged", IfStmtBinding="unchanged"),
        },
        foreign=COMPILER,
    ),
    "tilelang.transform.pass_config": Page(PASSES),
    "tilelang.transform.simplify": Page(SIMPLIFY, foreign=COMPILER),
    "tilelang.engine": Page({**LOWER, **HOOKS}, foreign=COMPILER),
    "tilelang.engine.lower": Page(LOWER, foreign=COMPILER),
    "tilelang.engine.param": Page(LOWER),
    "tilelang.engine.callback": Page(HOOKS),
    "tilelang.env": Page({**CACHE, "env": "compat.environment:env"}, rest="compat.environment", foreign=COMPILER),
    "tilelang.cache": Page({**CACHE, "cached": "compat.lowering:cached"}, foreign=COMPILER),
    "tilelang.carver": Page({**ARCHS, **TEMPLATES, **HINT, **RASTER, **POLICIES}, foreign=COMPILER),
    "tilelang.carver.matmul_analysis": Page(at("compat.arch", "check_sm_version"), foreign=COMPILER),
    "tilelang.carver.arch": Page(ARCH, star=tuple(n for n in ARCH if n not in ("get_arch", "check_sm_version"))),
    "tilelang.carver.arch.cuda": Page(ARCH),
    "tilelang.carver.arch.cdna": Page(ARCH),
    "tilelang.carver.arch.rdna": Page(ARCH, foreign=COMPILER),
    "tilelang.carver.arch.driver": Page(DRIVER),
    "tilelang.carver.arch.driver.cuda_driver": Page(DRIVER | {"cudaDeviceAttrNames": "compat.device:DeviceAttributes"}),
    "tilelang.carver.template": Page(TEMPLATES),
    "tilelang.carver.roller": Page({**HINT, **RASTER, **POLICIES, **ARCHS}, foreign=COMPILER),
    "tilelang.carver.roller.hint": Page(HINT, foreign=COMPILER),
    "tilelang.carver.roller.policy": Page(POLICIES),
    "tilelang.carver.roller.rasterization": Page(RASTER),
    "tilelang.tileop": Page(POLICY, foreign=COMPILER),
    "tilelang.tileop.base": Page(POLICY),
    "tilelang.tools": Page(TOOLS, star=("plot_layout", "Analyzer", "AnalysisResult"), foreign=COMPILER),
    "tilelang.tools.plot_layout": Page(at("compat.plotting", "plot_layout", "plot_fragment_tv")),
    "tilelang.tools.Analyzer": Page(at("compat.analyzer", "Analyzer", "AnalysisResult")),
    "tilelang.tools.cuda": Page(foreign="TileLang's in-kernel timeline (iket), an external package"),
    "tilelang.tools.cuda.iket": Page(foreign="TileLang's in-kernel timeline (iket), an external package"),
    "tilelang.contrib": Page(foreign=COMPILER),
    "tilelang.contrib.nvcc": Page(
        {**NVCC, **CAPABILITIES}, foreign="nvcc, which is not used here (NVRTC builds the code)"
    ),
    "tilelang.backend.target": Page(at("compat.device", "determine_target"), foreign=COMPILER),
    "tilelang.rocm.target": Page(
        at("compat.device", "target_is_gfx950", "target_is_cdna", "check_hip_availability"), foreign=COMPILER
    ),
    "tilelang.cuda.target": Page(
        at("compat.device", "target_is_cuda")
        | at(
            "compat.capabilities",
            *("target_is_volta", "target_is_turing", "target_is_ampere", "target_is_hopper", "target_is_sm120"),
            *("target_has_async_copy", "target_has_ldmatrix", "target_has_stmatrix", "target_has_bulk_copy"),
            "check_cuda_availability",
        ),
        foreign=COMPILER,
    ),
    "tilelang.cuda.language": Page({**INTRINSICS, **EMITTER}, rest="language"),
    "tilelang.rocm.language": Page(rest="language"),
    "tilelang.cpu.language": Page(rest="language"),
    "tilelang.cuda.intrinsics.sparse_layout": Page(SPARSE),
    **{path: Page({**INTRINSICS, **EMITTER}, rest="compat.mmalayouts", foreign=EMITTERS) for path in INTRINSIC_PATHS},
    "tilelang.cuda.intrinsics.macro": Page(EMITTER, foreign=EMITTERS),
    "tilelang.cuda.intrinsics.macro.mma_macro_generator": Page(EMITTER, foreign=EMITTERS),
    "tilelang.cuda.intrinsics.macro.mma_sp_macro_generator": Page(EMITTER, foreign=EMITTERS),
    "tilelang.intrinsics.mma_macro_generator": Page(EMITTER, foreign=EMITTERS),
    "tilelang.cuda.intrinsics.macro.wgmma_macro_generator": Page(
        WARPGROUPS | at("compat.warpgroupemitter", TensorCoreIntrinEmitter="WGMMATensorCoreIntrinEmitter"),
        foreign=EMITTERS,
    ),
    "tilelang.cuda.intrinsics.macro.wgmma_sp_macro_generator": Page(
        WARPGROUPS | at("compat.warpgroupsparse", "WGSparseTensorCoreIntrinEmitter"), foreign=EMITTERS
    ),
    "tilelang.rocm.intrinsics": Page(foreign=EMITTERS),
    "tilelang.tvm": Page(
        {
            **at("compat.tirx", "DataType"),
            **at("errors", TVMError="TileError"),
            **at("compat.hostcode", "IRModule", "compile", "cpu"),
        },
        foreign=TVM,
    ),
    "tilelang.tvm.ir": Page(at("compat.hostcode", "IRModule"), foreign=TVM),
    "tilelang.tvm.runtime": Page(at("compat.hostcode", "tensor", "empty"), foreign=TVM),
    "tilelang.tvm.target": Page(at("compat.tvmtarget", "Target"), foreign=TVM),
    "tilelang.tvm.error": Page(at("errors", InternalError="TileError", TVMError="TileError"), foreign=TVM),
    "tilelang.tvm.script.ir_builder.base": Page(at("compat.tirx", "IRBuilderFrame"), foreign=TVM),
    "tilelang.tvm.testing": Page(TESTING, foreign=TVM),
    "tilelang.tvm.tirx": Page(TIRX, rest="compat.tirx"),
    "tilelang.tvm.tirx.expr": Page(TIRX, rest="compat.tirx"),
}
PAGES = {**SUBMODULES, **PAGES}
# `from tilelang import tvm` and `import tvm` name one package.
PAGES |= {path.removeprefix("tilelang."): page for path, page in PAGES.items() if path.startswith("tilelang.tvm")}
# TVM's older name of the same module.
PAGES |= {"tvm.tir": PAGES["tvm.tirx"], "tilelang.tvm.tir": PAGES["tvm.tirx"]}

INSIDE = {
    "tvm": TVM,
    "tilelang.tvm": TVM,
    "tilelang.cuda.intrinsics": EMITTERS,
    "tilelang.rocm.intrinsics": EMITTERS,
    "tilelang.intrinsics": EMITTERS,
    **{
        f"tilelang.{name}": COMPILER
        for name in (
            *("analysis", "backend", "cache", "contrib", "cpu", "cuda", "engine", "errors", "instrumentation", "ir"),
            *("jit", "metal", "rocm", "tileop", "transform", "utils", "webgpu", "libinfo", "_ffi_api", "autodd"),
            *("tools.lower_trace", "tools.pass_visualizer", "tools.pass_timing", "language.tir", "language.common"),
            *("language.kernel", "language.eager", "carver", "autotuner", "quantize"),
        )
    },
}


@cache
def page(path: str) -> Page | None:
    """The page of a module, or None when there is no such module."""
    found = PAGES.get(path)
    if found is not None:
        return found
    parts = path.split(".")
    for length in range(len(parts), 0, -1):
        reason = INSIDE.get(".".join(parts[:length]))
        if (reason is not None and length < len(parts)) or (reason is not None and path not in PAGES):
            return Page(foreign=reason)
    return None


def known(path: str) -> bool:
    """Whether the alias has a module of this name. A name below a foreign module that starts with a capital is a class
    there, not a module."""
    return page(path) is not None
