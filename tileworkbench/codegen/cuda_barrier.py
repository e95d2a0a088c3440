"""CUDA: mbarriers, block and named barriers, clusters, fences, register moves, elected lanes, dependent launches."""

from __future__ import annotations

from typing import Any

from ..errors import InternalError
from ..ir.expr import Expr, const
from ..ir.instr import BarArrive, BarExpect, BarInit, BarWait, CopyAsyncArrive, Fence, GridDep, SetRegs, Sync
from .c_scalar import D
from .dialect import Row
from .functions import Function
from .source import GRID_WORDS


def _void(name: str, args: str, text: str, operands: str = "", feature: str | None = None) -> tuple[str, Function]:
    return name, Function(f'{D} void {name}({args}) {{ asm volatile("{text}" ::{operands} : "memory"); }}', (), feature)


_MBAR, _CTA = "mbarrier", "mbarrier.{}.shared::cta.b64"
FUNCTIONS: dict[str, Function] = dict((
    _void("tw_bar_init", "unsigned bar, unsigned count", _CTA.format("init") + " [%0], %1;",
          ' "r"(bar), "r"(count)', _MBAR),
    _void("tw_bar_arrive", "unsigned bar", _CTA.format("arrive") + " _, [%0];", ' "r"(bar)', _MBAR),
    _void("tw_bar_arrive_expect", "unsigned bar, unsigned bytes", _CTA.format("arrive.expect_tx") + " _, [%0], %1;",
          ' "r"(bar), "r"(bytes)', _MBAR),
    _void("tw_bar_expect", "unsigned bar, unsigned bytes", "mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%0], %1;",
          ' "r"(bar), "r"(bytes)', _MBAR),
    # The remote barrier has the same offset in the other block of the cluster.
    _void("tw_bar_arrive_remote", "unsigned bar, unsigned rank",
          "{ .reg .b32 at; mapa.shared::cluster.u32 at, %0, %1; "
          "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [at]; }", ' "r"(bar), "r"(rank)', "cluster"),
    _void("tw_bar_arrive_expect_remote", "unsigned bar, unsigned rank, unsigned bytes",
          "{ .reg .b32 at; mapa.shared::cluster.u32 at, %0, %1; "
          "mbarrier.arrive.expect_tx.release.cluster.shared::cluster.b64 _, [at], %2; }",
          ' "r"(bar), "r"(rank), "r"(bytes)', "cluster"),
    _void("tw_bar_wait", "unsigned bar, unsigned parity",
          "{ .reg .pred done; again: mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1, 0x989680; "
          "@!done bra again; }", ' "r"(bar), "r"(parity)', _MBAR),
    # What blocks of the cluster did before their arrivals is seen after the wait.
    _void("tw_bar_wait_cluster", "unsigned bar, unsigned parity",
          "{ .reg .pred done; again: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 done, [%0], %1, "
          "0x989680; @!done bra again; }", ' "r"(bar), "r"(parity)', "cluster"),
    _void("tw_copy_async_arrive", "unsigned bar", "cp.async.mbarrier.arrive.shared.b64 [%0];", ' "r"(bar)', _MBAR),
    _void("tw_copy_async_arrive_noinc", "unsigned bar", "cp.async.mbarrier.arrive.noinc.shared.b64 [%0];",
          ' "r"(bar)', _MBAR),
    _void("tw_sync_warp", "", "bar.warp.sync 0xffffffff;"),
    _void("tw_sync_block", "", "bar.sync 0;"),
    _void("tw_cluster_arrive", "", "barrier.cluster.arrive.aligned;", "", "cluster"),
    _void("tw_cluster_wait", "", "barrier.cluster.wait.aligned;", "", "cluster"),
    _void("tw_fence_proxy_async", "", "fence.proxy.async.shared::cta;", "", "proxy_fence"),
    _void("tw_fence_proxy_async_global", "", "fence.proxy.async.global;", "", "proxy_fence"),
    _void("tw_fence_proxy_async_all", "", "fence.proxy.async;", "", "proxy_fence"),
    _void("tw_fence_mbarrier_init", "", "fence.mbarrier_init.release.cluster;", "", _MBAR),
    _void("tw_fence_tensormap", "", "fence.proxy.tensormap::generic.release.gpu;", "", "tma"),
    _void("tw_fence_cta", "", "fence.acq_rel.cta;"),
    _void("tw_fence_gpu", "", "fence.acq_rel.gpu;"),
    _void("tw_fence_sys", "", "fence.acq_rel.sys;"),
    _void("tw_griddep_wait", "", "griddepcontrol.wait;", "", "griddep"),
    _void("tw_griddep_launch", "", "griddepcontrol.launch_dependents;", "", "griddep"),
))  # fmt: skip
FUNCTIONS["tw_elect"] = Function(
    f"""\
{D} bool tw_elect() {{
  unsigned r;
  asm volatile("{{ .reg .pred p; elect.sync _|p, 0xffffffff; selp.u32 %0, 1, 0, p; }}" : "=r"(r));
  return r != 0;
}}""",
    needs_feature="elect",
)
FUNCTIONS["tw_cluster_rank"] = Function(
    f'{D} int tw_cluster_rank() {{ int r; asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(r)); return r; }}',
    needs_feature="cluster",
)
# One word counts arrivals; its top bit turns over when all blocks have come. It is ready for the next use by itself.
# Launches on other streams may run at the same time: each stream has its word.
FUNCTIONS["tw_sync_grid"] = Function(f"""\
static __device__ unsigned tw_grid_words[{GRID_WORDS}];
{D} void tw_sync_grid(int tid, unsigned stream) {{
  unsigned* const word = tw_grid_words + stream % {GRID_WORDS}u;
  __syncthreads();
  if (tid == 0) {{
    const unsigned blocks = gridDim.x * gridDim.y * gridDim.z;
    const bool first = (blockIdx.x | blockIdx.y | blockIdx.z) == 0;
    const unsigned step = first ? 0x80000000u - (blocks - 1u) : 1u;
    unsigned old, now;
    asm volatile("fence.acq_rel.gpu; atom.add.acq_rel.gpu.global.u32 %0, [%1], %2;"
                 : "=r"(old) : "l"(word), "r"(step) : "memory");
    do asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(now) : "l"(word) : "memory");
    while (((old ^ now) & 0x80000000u) == 0u);
  }}
  __syncthreads();
}}""")


def _bar_init(p: Any, s: BarInit) -> None:
    p.line(f"{p.use('tw_bar_init')}({p.barrier(s.bar)}, {s.count});")


def _bar_arrive(p: Any, s: BarArrive) -> None:
    args = [p.barrier(s.bar)]
    args += [p.expr(s.remote)] if s.remote is not None else []
    args += [number(p, s.bytes)] if s.bytes is not None else []
    name = f"tw_bar_arrive{'_expect' if s.bytes is not None else ''}{'_remote' if s.remote is not None else ''}"
    p.line(f"{p.use(name)}({', '.join(args)});", s.reason)


def _bar_expect(p: Any, s: BarExpect) -> None:
    p.line(f"{p.use('tw_bar_expect')}({p.barrier(s.bar)}, {number(p, s.bytes)});", s.reason)


def _bar_wait(p: Any, s: BarWait) -> None:
    wait = "tw_bar_wait_cluster" if s.bar.buffer.attr("cluster") and p.target.has("cluster") else "tw_bar_wait"
    p.line(f"{p.use(wait)}({p.barrier(s.bar)}, {p.expr(s.parity)});", s.reason)


def _copy_async_arrive(p: Any, s: CopyAsyncArrive) -> None:
    p.line(f"{p.use('tw_copy_async_arrive' + ('_noinc' if s.noinc else ''))}({p.barrier(s.bar)});")


def number(p: Any, value: int | Expr) -> str:
    return str(p.expr(value if isinstance(value, Expr) else const(value)))


def _sync(p: Any, s: Sync) -> None:
    writer = {"warp": _warp, "block": _block, "role": _block, "named": _block, "cluster": _cluster, "grid": _grid}.get(
        s.who
    )
    if writer is None or s.mode not in ("both", "arrive", "wait"):
        raise InternalError(
            f"a sync of {s.who!r}, mode {s.mode!r}", rule="warp, role, block, named, cluster or grid", loc=s.loc
        )
    writer(p, s)


def _warp(p: Any, s: Sync) -> None:
    if s.mode != "arrive":  # a warp's lanes only ever meet
        p.line(f"{p.use('tw_sync_warp')}();", s.reason)


def _block(p: Any, s: Sync) -> None:
    if s.id is None and s.who == "role" and (p.role_warps == 1 or s.threads == p.warp_size):
        _warp(p, s)
        return
    everyone = p.kernel.launch_threads or p.kernel.threads
    if (
        s.mode == "both"
        and s.id in (None, 0)
        and (s.who == "block" or p.role_warps is None)
        and s.threads in (None, everyone)
    ):
        p.line("__syncthreads();", s.reason)
        return
    if s.id is None or s.threads is None:
        raise InternalError(
            f"a sync of {s.who} has no barrier id", rule="barrier ids are given before emission", loc=s.loc
        )
    if not 0 <= s.id < p.target.arch.named_barriers:
        raise InternalError(f"barrier id {s.id}", rule=f"ids are below {p.target.arch.named_barriers}", loc=s.loc)
    # The id is a constant in the text: held in a register, the assembler would reserve all sixteen.
    word = "arrive" if s.mode == "arrive" else "sync"
    p.line(f'asm volatile("bar.{word} {int(s.id)}, {int(s.threads)};" ::: "memory");', s.reason)


def _cluster(p: Any, s: Sync) -> None:
    for mode in ("arrive", "wait"):
        if s.mode in ("both", mode):
            p.line(f"{p.use(f'tw_cluster_{mode}')}();", s.reason)


def _grid(p: Any, s: Sync) -> None:
    if s.mode != "both":
        raise InternalError("a grid-wide sync in two halves", rule="a grid-wide sync is whole", loc=s.loc)
    p.line(f"{p.use('tw_sync_grid')}({p.want('tid')}, {p.stream_parameter});", s.reason)


def _fence(p: Any, s: Fence) -> None:
    p.line(f"{p.use(f'tw_fence_{s.kind}')}();", s.reason)


def _set_regs(p: Any, s: SetRegs) -> None:
    if s.direction not in ("inc", "dec") or s.count % 8 or not 24 <= s.count <= 256:
        raise InternalError(
            f"setmaxnreg {s.direction} {s.count}", rule="inc or dec to a multiple of 8 from 24 to 256", loc=s.loc
        )
    p.line(f'asm volatile("setmaxnreg.{s.direction}.sync.aligned.u32 {int(s.count)};");')


def _grid_dep(p: Any, s: GridDep) -> None:
    p.line(f"{p.use(f'tw_griddep_{s.action}')}();")


ROWS: dict[Any, Row] = {
    BarInit: _bar_init,
    BarArrive: _bar_arrive,
    BarExpect: _bar_expect,
    BarWait: _bar_wait,
    CopyAsyncArrive: _copy_async_arrive,
    Sync: _sync,
    Fence: _fence,
    SetRegs: _set_regs,
    GridDep: _grid_dep,
}
