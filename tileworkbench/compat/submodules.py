"""Modules below those of TileLang's surface, for programs that import a name from where it is written: each gives what
the module above it gives."""

from __future__ import annotations

from .pages import COMPILER, TVM, Page, at

# Below tilelang.language, and what holds the names of one target alone.
LANGUAGE = (
    *("allocate", "annotations", "atomic", "builtin", "common", "copy_op", "customize", "eager", "eager.builder"),
    *("experimental", "experimental.gemm_sp_op", "fastmath", "fill_op", "gemm_op", "kernel", "logical", "loop"),
    *("math_intrinsics", "meta", "parser", "parser.entry", "proxy", "reduce_op", "scan_op"),
    *("symbolics", "tile_schedule", "tir", "tir.entry", "tir.ir", "tir.op", "utils", "warpgroup", "cluster", "pdl"),
    "ws_schedule",
)
PRIM = at("language.prim", "PrimFunc", "prim_func")
TEMPLATES = {
    "base": {},
    "conv": at("compat.templates", "ConvTemplate"),
    "elementwise": at("compat.traffictemplates", "ElementwiseTemplate"),
    "flashattention": at("compat.templates", "FlashAttentionTemplate"),
    "gemv": at("compat.traffictemplates", "GEMVTemplate"),
    "general_reduce": at("compat.traffictemplates", "GeneralReductionTemplate"),
    "matmul": at("compat.templates", "MatmulTemplate"),
}  # fmt: skip
HARNESS = at("compat.testing", "regression", "process_func")

SUBMODULES: dict[str, Page] = {
    **{f"tilelang.language.{name}": Page(PRIM, rest="language", foreign=COMPILER) for name in LANGUAGE},
    **{
        f"tilelang.{target}.language.{name}": Page(rest="language", foreign=COMPILER)
        for target in ("cuda", "rocm")
        for name in ("cluster", "pdl", "random", "tir", "warpgroup")
    },
    **{
        f"tilelang.carver.template.{name}": Page(
            {**names, "BaseTemplate": "compat.templates:BaseTemplate"}, foreign=COMPILER
        )
        for name, names in TEMPLATES.items()
    },
    "tilelang.carver.arch.arch_base": Page(at("compat.arch", "TileDevice")),
    "tilelang.carver.arch.cpu": Page(at("compat.arch", "CPU", "is_cpu_arch")),
    "tilelang.carver.roller.policy.default": Page(at("compat.templates", "DefaultPolicy"), foreign=COMPILER),
    "tilelang.carver.roller.policy.tensorcore": Page(at("compat.templates", "TensorCorePolicy"), foreign=COMPILER),
    "tilelang.ir": Page(at("language", "GemmWarpPolicy"), foreign=COMPILER),
    "tilelang.tvm.transform": Page(at("compat.passcontext", "PassContext"), foreign=TVM),
    "tilelang.testing.perf_regression": Page(HARNESS, foreign=COMPILER),
}
