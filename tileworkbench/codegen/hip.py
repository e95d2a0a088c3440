"""The HIP dialect: C++ for hiprtc, or for clang alone: no header is needed, everything is a compiler builtin."""

from __future__ import annotations

from typing import ClassVar

from ..ir.instr import (
    BarArrive,
    BarExpect,
    BarInit,
    BarWait,
    BulkLoad,
    BulkStore,
    CopyAsync,
    CopyAsyncArrive,
    ForeignKernel,
    GridDep,
    LdMatrix,
    LoadMem,
    Match,
    MmaSparse,
    SetRegs,
    StMatrix,
    StoreMem,
    TmaLoad,
    TmaStore,
    Wgmma,
    WgmmaFence,
)
from ..ir.kernel import Kernel
from ..target.target import Target
from . import c_report, c_stmt, hip_memory, hip_scalar, hip_wave
from .c_family import Printer
from .frame import parameters
from .functions import Function

_WORDS = {"__global__": "__attribute__((global))", "__device__": "__attribute__((device))",
          "__shared__": "__attribute__((shared))",
          "__forceinline__": "inline __attribute__((always_inline))"}  # fmt: skip
_NO_MATRIX = "8 by 8 matrix moves are NVIDIA's; here lanes load their own elements"
_NO_BARRIER = "there are no barriers in memory; waves meet at the block barrier"
_NO_ENGINE = "there is no copy engine; lanes copy, directly to LDS where they can"
_NO_SPARSE = "smfmac, the sparse matrix instruction, is not built yet"
_NO_GROUP = "there are no warpgroups; mfma is the matrix instruction"

_FUNCTIONS = {
    **hip_scalar.FUNCTIONS, **hip_memory.FUNCTIONS, **hip_wave.FUNCTIONS,
    "tw_printf": Function('extern "C" __device__ int printf(const char*, ...);\n#define tw_printf printf'),
}  # fmt: skip


class HipPrinter(Printer):
    """Writes one kernel as HIP C++."""

    rows: ClassVar = {**c_stmt.ROWS, **c_report.ROWS, **hip_memory.ROWS, **hip_wave.ROWS}
    refused: ClassVar = {
        LdMatrix: _NO_MATRIX, StMatrix: _NO_MATRIX, Wgmma: _NO_GROUP, WgmmaFence: _NO_GROUP, SetRegs: _NO_GROUP,
        CopyAsync: _NO_ENGINE, TmaLoad: _NO_ENGINE, TmaStore: _NO_ENGINE, BulkLoad: _NO_ENGINE, BulkStore: _NO_ENGINE,
        BarInit: _NO_BARRIER, BarArrive: _NO_BARRIER, BarExpect: _NO_BARRIER, BarWait: _NO_BARRIER,
        CopyAsyncArrive: _NO_BARRIER, MmaSparse: _NO_SPARSE,
        Match: "lanes have no instruction that compares values with one another",
        ForeignKernel: "the text of such a kernel is CUDA C++",
        GridDep: "kernels of a stream do not overlap here",
    }  # fmt: skip
    math = hip_scalar.MATH

    def __init__(self, kernel: Kernel, target: Target) -> None:
        self.functions = _FUNCTIONS
        super().__init__(kernel, target)

    def load_function(self, s: LoadMem, size: int) -> str:
        return f"tw_load{size}{'_cs' if s.cache == 'cs' else ''}"

    def store_function(self, s: StoreMem, size: int) -> str:
        return f"tw_store{size}{'_cs' if s.cache == 'cs' else ''}"

    def elected(self, who: str) -> str:
        alone = who == "warp" or (who == "role" and self.role_warps == 1)
        if alone:
            return f"{self.want('lane')} == 0"
        return f"{self.role_thread()} == 0" if who == "role" else f"{self.want('tid')} == 0"

    def printf(self) -> str:
        return self.use("tw_printf")

    def trap_text(self) -> str:
        return "__builtin_trap();"

    def clock(self) -> str:
        return "__builtin_readcyclecounter()"

    def block_index(self, i: int) -> str:
        return f"__builtin_amdgcn_workgroup_id_{'xyz'[i]}()"

    def grid_size(self, axis: str) -> str:
        return f"__builtin_amdgcn_grid_size_{axis}() / __builtin_amdgcn_workgroup_size_{axis}()"

    def thread_index(self) -> str:
        return "__builtin_amdgcn_workitem_id_x()"

    def warp_text(self) -> str:
        # The same for all lanes: held in a scalar register.
        return f"__builtin_amdgcn_readfirstlane({self.want('tid')} / {self.warp_size})"

    def shared_array(self) -> str:
        return "extern __shared__ __attribute__((aligned(1024))) unsigned char smem[];"

    def preamble(self) -> list[str]:
        return [f"#ifndef {word}\n#define {word} {text}\n#endif" for word, text in _WORDS.items()]

    def signature(self) -> str:
        bounds = f"__attribute__((amdgpu_flat_work_group_size({self.launch_threads}, {self.launch_threads})))"
        return f'extern "C" __global__ {bounds} void {self.entry}({", ".join(parameters(self))})'
