"""The happens-before edges that the machine knows, and for each what its absence means.

Each row says which accesses it orders, what makes the edge, what to write where it is missing and where that is
specified ("PTX": NVIDIA's PTX ISA manual, "CUDA": its programming guide). The race check names the missing row.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Rule:
    """`orders`: the accesses that it orders; `edge`: what does so; `fix`: what to write where it is missing."""

    name: str
    orders: str
    edge: str
    fix: str
    source: str

    def __str__(self) -> str:
        return f"{self.orders}: {self.edge} [{self.name}]"


_ROWS = (
    Rule(
        "program_order",
        "generic accesses of one thread",
        "program order",
        "",
        "PTX, memory consistency model: program order",
    ),
    Rule(
        "warp_sync",
        "accesses of two lanes of one warp",
        "a warp-wide Sync (or a wider one) between them, since lanes do not run in lockstep",
        "put Sync(warp) between the two statements",
        "PTX bar.warp.sync; CUDA, independent thread scheduling",
    ),
    Rule(
        "block_sync",
        "accesses of two warps",
        "a barrier that both take part in, between them",
        "put a Sync between the two statements",
        "PTX barrier.sync: orders the participants' accesses before it",
    ),
    Rule(
        "named_sync",
        "accesses before an arrive and after a wait",
        "one named barrier: arrivals happen before the waiters go on",
        "give both warps the same barrier id and count",
        "PTX barrier.arrive and barrier.sync",
    ),
    Rule(
        "mbarrier",
        "accesses before an arrival and after a wait on its phase",
        "arrival (release), the completed phase, wait (acquire)",
        "arrive after the one access and wait for that phase before the other",
        "PTX mbarrier.arrive.release, mbarrier.try_wait.acquire",
    ),
    Rule(
        "transfer",
        "a TMA or bulk load and its readers",
        "completion of its bytes on the barrier, waited for by the reader",
        "wait for the barrier's phase in every thread that touches the data",
        "PTX cp.async.bulk: mbarrier complete_tx::bytes",
    ),
    Rule(
        "reuse",
        "reads of a buffer and the transfer that overwrites it",
        "an arrival of the readers that the issuing thread has waited for",
        "arrive after the last read, and wait for that before the load is issued",
        "PTX mbarrier; reads before asynchronous writes need no proxy fence",
    ),
    Rule(
        "proxy_fence",
        "a generic write and an asynchronous access of one place",
        "Fence(proxy_async) by the writing thread, then a barrier to the issuing one",
        "put Fence(proxy_async) after the write and before the barrier",
        "PTX fence.proxy.async",
    ),
    Rule(
        "copy_wait",
        "cp.async and accesses of its destination",
        "WaitGroup(copy) by the issuing thread; for other threads a barrier after it",
        "wait for the group, then synchronise",
        "PTX cp.async.wait_group: completion is visible to the executing thread only",
    ),
    Rule(
        "copy_arrive",
        "cp.async and the waiters of a barrier",
        "CopyAsyncArrive by the issuing thread, waited for by the reader",
        "let the thread that copies arrive after its copies",
        "PTX cp.async.mbarrier.arrive",
    ),
    Rule(
        "store_read",
        "a TMA or bulk store and the overwriting of its source",
        "WaitGroup(bulk) of the issuing thread, then a barrier",
        "wait (reads_only suffices) and synchronise before the buffer is written again",
        "PTX cp.async.bulk.wait_group.read",
    ),
    Rule(
        "store_done",
        "a TMA or bulk store and later accesses of its destination",
        "WaitGroup(bulk) without reads_only by the issuing thread",
        "wait for the store itself, not only for its reads",
        "PTX cp.async.bulk.wait_group",
    ),
    Rule(
        "wgmma_read",
        "a wgmma and the overwriting of its operands",
        "WaitGroup(wgmma) by each warp, then a barrier or an arrival",
        "wait for the group before the stage is released",
        "PTX wgmma.wait_group",
    ),
    Rule(
        "wgmma_fence",
        "register accesses and the wgmma that uses them",
        "WgmmaFence between them",
        "put WgmmaFence before the wgmma",
        "PTX wgmma.fence.sync.aligned",
    ),
    Rule(
        "barrier_init",
        "the initialisation of an mbarrier and its use by another thread",
        "Fence(mbarrier_init) by the initialising thread, then a barrier",
        "fence after BarInit and synchronise the block before the first use",
        "PTX mbarrier.init, fence.mbarrier_init",
    ),
    Rule(
        "between_blocks",
        "accesses of two blocks",
        "nothing but atomics (with a gpu fence or release and acquire), since blocks run in any order",
        "let one block own the element, or use an atomic",
        "CUDA, thread hierarchy: blocks are independent",
    ),
    Rule(
        "atomic",
        "two atomics on one element",
        "atomicity; an atomic and an ordinary access still need another edge",
        "synchronise, or make both atomic",
        "PTX memory consistency model: morally strong operations",
    ),
)
RULES: dict[str, Rule] = {row.name: row for row in _ROWS}
