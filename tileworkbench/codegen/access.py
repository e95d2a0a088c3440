"""How a kernel touches its tensors: read, written or both."""

from __future__ import annotations

from ..errors import InternalError
from ..ir.expr import Buffer
from ..ir.instr import (
    AtomicMem,
    BulkLoad,
    BulkStore,
    CallExtern,
    CopyAsync,
    ForeignKernel,
    LdsDirect,
    LoadMem,
    Stamp,
    StoreMem,
    TmaLoad,
    TmaStore,
)
from ..ir.kernel import Kernel
from ..ir.node import Node, walk
from ..ir.region import root


def tensor_access(kernel: Kernel) -> dict[Buffer, str]:
    """Tensor parameter → "r", "w", "rw", or "" for one that is never touched."""
    maps = {m.name: m.tensor for m in kernel.maps}
    found: dict[Buffer, set[str]] = {t: set() for t in kernel.tensors}
    for n in walk(kernel.body):
        for buffer, mode in _touched(n, maps, kernel):
            if root(buffer) in found:
                found[root(buffer)] |= set(mode)
    return {t: "".join(m for m in "rw" if m in modes) for t, modes in found.items()}


def _touched(n: Node, maps: dict[str, Buffer], kernel: Kernel) -> list[tuple[Buffer, str]]:
    if isinstance(n, LoadMem | CopyAsync | LdsDirect | BulkLoad):
        return [(n.src.buffer, "r")]
    if isinstance(n, StoreMem):
        return [(n.dst.buffer, "w")]
    if isinstance(n, BulkStore):
        return [(n.dst.buffer, "rw" if n.reduce else "w")]
    if isinstance(n, AtomicMem):
        return [(n.dst.buffer, {"load": "r", "store": "w"}.get(n.op, "rw"))]
    if isinstance(n, TmaLoad | TmaStore):
        if n.map not in maps:
            raise InternalError(f"the kernel has no tensor map {n.map!r}", rule="lowering is complete", loc=n.loc)
        return [(maps[n.map], "r" if isinstance(n, TmaLoad) else "rw" if n.reduce else "w")]
    if isinstance(n, ForeignKernel):
        return [(a, "rw") for a in n.args if isinstance(a, Buffer)]
    if isinstance(n, CallExtern):
        return [*((b, "r") for b in n.reads), *((b, "w") for b in n.writes)]
    if isinstance(n, Stamp) and isinstance(kernel.attrs.get("stamps"), Buffer):
        return [(kernel.attrs["stamps"], "w")]
    return []
