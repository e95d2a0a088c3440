"""TileLang's other public names (helpers, enums, cache switches), so that kernels run with the import changed."""

from __future__ import annotations

import enum

from .jitkernel.profile import SUPPLIES
from .options import options

_SIMPLIFY = (
    "TRANSITIVELY_PROVE_INEQUALITIES",
    "CONVERT_BOOLEAN_TO_AND_OF_ORS",
    "APPLY_CONSTRAINTS_TO_BOOLEAN_BRANCHES",
    "PROPAGATE_KNOWNS_TO_PROVE_CONDITIONAL",
    "PROPAGATE_KNOWNS_TO_SIMPLIFY_EXPRESSIONS",
    "ENABLE_LET_INLINE",
)
_TL = (
    "DISABLE_BUFFER_INIT_CHECK", "DISABLE_DATA_RACE_CHECK", "DISABLE_PRELOWER_SEMANTIC_CHECK",
    "DISABLE_WARP_SPECIALIZED", "ENABLE_FAST_MATH", "PTXAS_REGISTER_USAGE_LEVEL", "DEVICE_COMPILE_FLAGS",
    "EMIT_LINE_DIRECTIVES", "CONFIG_INDEX_BITWIDTH", "ENABLE_REDUCER_PLAN_VERBOSE", "LAYOUT_COST_MODEL",
    "REDUCER_FORCE_BASELINE", "DISABLE_TMA_LOWER", "DISABLE_VECTORIZE_256", "ENABLE_ASYNC_COPY",
    "ENABLE_LOWER_LDGSTG", "ENABLE_LOWER_LDGSTG_PREDICATED", "ENABLE_VECTORIZE_PLANNER_VERBOSE", "DISABLE_WGMMA",
    "DEBUG_MERGE_SHARED_MEMORY_ALLOCATIONS", "ENABLE_AGGRESSIVE_SHARED_MEMORY_MERGE", "DISABLE_SHARED_MEMORY_REUSE",
    "DISABLE_SHUFFLE_ELECT", "DISABLE_LOOP_UNSWITCHING", "LOOP_UNSWITCHING_ALLOW_NON_TRIVIAL_ELSE",
    "IF_STMT_BINDING_INLINE_REPLAYABLE_BINDS", "DISABLE_THREAD_STORAGE_SYNC", "FORCE_LET_INLINE",
    "AST_PRINT_ENABLE", "LAYOUT_VISUALIZATION_ENABLE", "LAYOUT_VISUALIZATION_FORMATS",
    "STORAGE_REWRITE_DETECT_INPLACE", "DISABLE_OUT_OF_BOUND_WARNING", "ENABLE_DUMP_IR", "PASS_PROFILE",
    "PASS_PROFILE_THRESHOLD_MS",
)  # fmt: skip
_OTHER = {
    "TL_SIMPLIFY": "tl.Simplify",
    "TL_DISABLE_SAFE_MEMORY_ACCESS": "tl.disable_safe_memory_legalize",
    "TL_DUMP_IR_DIR": "tl.dump_ir_path",
    "TIR_ENABLE_EQUIV_TERMS_IN_CSE": "tir.enable_equiv_terms_in_cse_tir",
    "TIR_DISABLE_CSE": "tirx.disable_cse_tir",
    "TIR_SIMPLIFY": "tirx.Simplify",
    "TIR_DISABLE_STORAGE_REWRITE": "tirx.disable_storage_rewrite",
    "TIR_DISABLE_VECTORIZE": "tirx.disable_vectorize",
    "TIR_USE_ASYNC_COPY": "tirx.use_async_copy",
    "TIR_ENABLE_DEBUG": "tirx.enable_debug",
    "TIR_MERGE_STATIC_SMEM": "tirx.merge_static_smem",
    "TIR_ADD_LOWER_PASS": "tirx.add_lower_pass",
    "TIR_NOALIAS": "tirx.noalias",
    "CUDA_KERNELS_OUTPUT_DIR": "cuda.kernels_output_dir",
}
_KEYS = {
    **{f"TL_SIMPLIFY_{name}": name.lower() for name in _SIMPLIFY},
    **{f"TL_{name}": f"tl.{name.lower()}" for name in _TL},
    **_OTHER,
}

# The members come from the tables above, which mypy cannot read.
PassConfigKey = enum.Enum("PassConfigKey", _KEYS, type=str)  # type: ignore[misc]
PassConfigKey.__doc__ = "Keys of pass_configs. Those that this compiler has no use for are taken and change nothing."

TensorSupplyType = enum.Enum("TensorSupplyType", {name: n for n, name in enumerate(SUPPLIES, 1)})  # type: ignore[misc]
TensorSupplyType.__doc__ = "How a profiler fills inputs."


def cdiv(a: int, b: int) -> int:
    """⌈a / b⌉."""
    return -(-a // b)


def next_power_of_2(n: int) -> int:
    """The least power of two that is at least n."""
    return 1 << max(n - 1, 0).bit_length()


def enable_cache() -> None:
    """Keeps built kernels on disk, which is the default."""
    options.cache = True


def disable_cache() -> None:
    """Builds without the disk, for the whole process."""
    options.cache = False


def is_cache_enabled() -> bool:
    """Whether built kernels are kept on disk."""
    return bool(options.cache)
