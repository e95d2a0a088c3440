"""The NumPy meaning of every row of the instruction table."""

from __future__ import annotations

from ...ir import instr as i
from . import bulk, copies, groups, lanes, loadstore, matrices, sparse, tensor, tma, waits, wgmma
from .flow import FLOW, PLAIN, POINT
from .program import Maker

ROWS: dict[type, tuple[int, Maker]] = {
    i.LoadMem: (POINT, loadstore.load),
    i.StoreMem: (POINT, loadstore.store),
    i.AtomicMem: (POINT, loadstore.atomic),
    i.LdMatrix: (POINT, matrices.ldmatrix),
    i.StMatrix: (POINT, matrices.stmatrix),
    i.Shuffle: (PLAIN, lanes.shuffle),
    i.Vote: (PLAIN, lanes.vote),
    i.Match: (PLAIN, lanes.match),
    i.Mma: (PLAIN, tensor.mma),
    i.MmaSparse: (PLAIN, sparse.mma_sparse),
    i.Wgmma: (FLOW, wgmma.wgmma),
    i.WgmmaFence: (PLAIN, wgmma.wgmma_fence),
    i.TmaLoad: (POINT, tma.tma_load),
    i.TmaStore: (POINT, tma.tma_store),
    i.BulkLoad: (POINT, bulk.bulk_load),
    i.BulkStore: (POINT, bulk.bulk_store),
    i.CopyAsync: (POINT, copies.copy_async),
    i.CopyAsyncArrive: (POINT, copies.copy_async_arrive),
    i.LdsDirect: (POINT, copies.lds_direct),
    i.CommitGroup: (PLAIN, groups.commit),
    i.WaitGroup: (POINT, groups.wait),
    i.BarInit: (POINT, waits.bar_init),
    i.BarArrive: (POINT, waits.bar_arrive),
    i.BarExpect: (POINT, waits.bar_expect),
    i.BarWait: (FLOW, waits.bar_wait),
    i.Sync: (FLOW, waits.sync),
    i.Fence: (POINT, waits.fence),
    i.SetRegs: (FLOW, waits.set_regs),
    i.Prefetch: (PLAIN, waits.nothing),
    i.SchedHint: (PLAIN, waits.nothing),
    i.GridDep: (PLAIN, waits.nothing),
    i.Stamp: (PLAIN, waits.nothing),
    i.Trap: (PLAIN, waits.trap),
    i.ForeignKernel: (PLAIN, waits.raw_source),
    i.CallExtern: (PLAIN, waits.raw_source),
}
