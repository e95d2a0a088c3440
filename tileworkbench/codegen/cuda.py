"""The CUDA dialect: C++ for NVRTC with inline PTX in small functions of our own, and no header at all: a text without
includes builds in half the time of one with CUDA's half and bfloat16 headers."""

from __future__ import annotations

from typing import ClassVar

from ..ir.expr import Buffer
from ..ir.instr import ForeignKernel, LdsDirect, LoadMem, SchedHint, StoreMem, Wgmma
from ..ir.kernel import Kernel
from ..ir.node import walk
from ..ir.stmt import Stmt
from ..target.target import Target
from . import (
    c_report,
    c_stmt,
    cuda_atomic,
    cuda_barrier,
    cuda_copy,
    cuda_lanes,
    cuda_matrix,
    cuda_memory,
    cuda_scalar,
)
from .c_family import Printer
from .frame import parameters

_MAP = "struct alignas(128) tw_map { unsigned long long words[16]; };"


def _sched_hint(p: Printer, s: SchedHint) -> None:
    """The assembler schedules by itself: nothing to say."""


def _foreign_kernel(p: Printer, s: ForeignKernel) -> None:
    p.whole, p.entry = s, s.entry


class CudaPrinter(Printer):
    """Writes one kernel as CUDA C++."""

    rows: ClassVar = {**c_stmt.ROWS, **cuda_memory.ROWS, **cuda_atomic.ROWS, **cuda_lanes.ROWS, **cuda_matrix.ROWS,
            **cuda_copy.ROWS, **cuda_barrier.ROWS, **c_report.ROWS, SchedHint: _sched_hint,
            ForeignKernel: _foreign_kernel}  # fmt: skip
    refused: ClassVar = {LdsDirect: "direct copies to shared memory are AMD's; here cp.async is used"}
    math = cuda_scalar.MATH
    native = cuda_scalar.NATIVE

    def __init__(self, kernel: Kernel, target: Target) -> None:
        self.accumulators: dict[Buffer, None] = {}  # registers that wgmmas of this role write, in order of appearance
        self.functions = {**cuda_scalar.functions(target), **cuda_memory.FUNCTIONS, **cuda_lanes.FUNCTIONS,
                          **cuda_matrix.FUNCTIONS, **cuda_copy.FUNCTIONS, **cuda_barrier.FUNCTIONS}  # fmt: skip
        super().__init__(kernel, target)
        self.role_begins(kernel.body)

    def role_begins(self, body: tuple[Stmt, ...]) -> None:
        # A wait may stand before the wgmma that it waits for, in the loop's text.
        if not self.target.has("wgmma"):
            return
        self.accumulators = dict.fromkeys(s.d.buffer for s in walk(body) if isinstance(s, Wgmma))

    def widest(self, buffer: Buffer) -> int:
        wide = buffer.space == "global" and (self.target.arch.capability or (0, 0)) >= (10, 0)
        return 32 if wide else 16

    def load_function(self, s: LoadMem, size: int) -> str:
        return f"tw_load{size}{'_' + s.cache if s.cache and s.src.buffer.space == 'global' else ''}"

    def store_function(self, s: StoreMem, size: int) -> str:
        return f"tw_store{size}{'_' + s.cache if s.cache and s.dst.buffer.space == 'global' else ''}"

    def elected(self, who: str) -> str:
        alone = who == "warp" or (who == "role" and self.role_warps == 1)
        if alone:
            return f"{self.use('tw_elect')}()" if self.target.has("elect") else f"{self.want('lane')} == 0"
        return f"{self.role_thread()} == 0" if who == "role" else f"{self.want('tid')} == 0"

    def cluster_rank(self) -> str:
        return f"{self.use('tw_cluster_rank')}()"

    def printf(self) -> str:
        return "printf"

    def trap_text(self) -> str:
        return 'asm volatile("trap;");'

    def block_index(self, i: int) -> str:
        return f"blockIdx.{'xyz'[i]}"

    def grid_size(self, axis: str) -> str:
        return f"gridDim.{axis}"

    def clock(self) -> str:
        return "clock64()"

    def warp_text(self) -> str:
        # Said by lane 0, so that the compiler knows it is the same for the whole warp.
        return f"(int){self.use('tw_shuffle_idx')}({self.want('tid')} / 32, 0, 0x1f)"

    def preamble(self) -> list[str]:
        return [_MAP] if self.kernel.maps else []

    def thread_index(self) -> str:
        return "threadIdx.x"

    def shared_array(self) -> str:
        return "extern __shared__ __align__(1024) unsigned char smem[];"

    def shared_address(self) -> str:
        return "(unsigned)__cvta_generic_to_shared(smem)"

    def signature(self) -> str:
        bounds = f"__launch_bounds__({self.launch_threads}, {int(self.kernel.attrs.get('min_blocks', 1))})"
        cluster = self.kernel.cluster
        spread = f" __cluster_dims__({', '.join(map(str, cluster))})" if any(n > 1 for n in cluster) else ""
        return f'extern "C" __global__ void {bounds}{spread} {self.entry}({", ".join(parameters(self))})'

    def map_parameter(self, name: str) -> str:
        return f"const __grid_constant__ tw_map {name}"
