"""Single faults of thread kernels, enumerated uniformly: what a lowering might get wrong at one place.

Every statement and operand is a site; nothing here knows a kernel or a pass. A mutant that no schedule tells from the
right kernel is either a gap of the machine or equivalent to it; `stricter` marks those that only wait for more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...errors import Loc, TileError
from ...ir.expr import Binary, Cast, Const, Expr, Load, const, logical_not
from ...ir.instr import (
    Addr,
    AtomicMem,
    BarArrive,
    BarInit,
    BarWait,
    CommitGroup,
    CopyAsync,
    CopyAsyncArrive,
    Elect,
    Fence,
    LoadMem,
    SetRegs,
    StoreMem,
    Sync,
    TmaLoad,
    TmaStore,
    WaitGroup,
    Wgmma,
    WgmmaFence,
)
from ...ir.kernel import Kernel
from ...ir.node import Node, replace, walk
from ...ir.stmt import For, If, Stmt, Store
from .launch import run

Path = tuple[Any, ...]
SCHEDULES = ("eager", "latest", "random")
DROPPED = (Sync, Fence, CommitGroup, WaitGroup, BarArrive, BarWait, CopyAsyncArrive, WgmmaFence, BarInit, SetRegs)


@dataclass(frozen=True, slots=True)
class Mutant:
    """A kernel with one fault. `kind` groups faults ("drop Sync", "offset", …); `stricter`: it can only be slower."""

    kind: str
    description: str
    loc: Loc | None
    kernel: Kernel
    stricter: bool = False


def mutants(kernel: Kernel, kinds: Sequence[str] = ()) -> Iterator[Mutant]:
    """All single faults of the kernel in program order; `kinds` limits them to those that start with one of these."""
    for path, node, stmt in sites(kernel.body):
        for kind, text, new, stricter in _faults(node):
            if kinds and not kind.startswith(tuple(kinds)):
                continue
            body = _put(kernel.body, path, new)
            where = f" at {stmt.loc}" if stmt.loc is not None else ""
            yield Mutant(kind, f"{text}{where}", stmt.loc, kernel.with_(body=body), stricter)


def caught(
    kernel: Kernel,
    arguments: Callable[[], Sequence[Any]],
    truth: Sequence[np.ndarray],
    schedules: Sequence[str] = SCHEDULES,
    seed: int = 0,
) -> str | None:
    """How the machine tells `kernel` from a right one: the first report, or "wrong values"; None when it does not.
    `arguments()` makes fresh arguments, `truth` are the right outputs (exact)."""
    for schedule in schedules:
        try:
            done = run(kernel, arguments(), schedule=schedule, seed=seed)
        except TileError as error:
            return f"{schedule}: {error.found}"
        for got, wanted in zip(done.outputs, truth, strict=True):
            if not np.array_equal(
                np.asarray(got, dtype=np.float64), np.asarray(wanted, dtype=np.float64), equal_nan=True
            ):
                return f"{schedule}: wrong values"
        if not all(mask.all() for mask in done.defined.values()):
            return f"{schedule}: outputs not written"
    return None


# --- places -----------------------------------------------------------------------------------------------------------
def sites(body: tuple[Any, ...]) -> Iterator[tuple[Path, Node, Stmt]]:
    """Every node below `body` with its path and the statement it belongs to, in program order. A node that stands at
    two places is two sites."""
    for i, s in enumerate(body):
        yield from _below((i,), s, s)


def _below(path: Path, node: Node, stmt: Stmt) -> Iterator[tuple[Path, Node, Stmt]]:
    yield path, node, stmt
    for name in node._fields:
        value = getattr(node, name)
        items = enumerate(value) if type(value) is tuple else ((None, value),)
        for i, item in items:
            if isinstance(item, Node):
                step = (name,) if i is None else (name, i)
                yield from _below((*path, *step), item, item if isinstance(item, Stmt) else stmt)


def _put(holder: Any, path: Path, new: Any) -> Any:
    """`holder` (a node or a body) with what stands at `path` replaced; None drops it, a tuple is spliced."""
    first, rest = path[0], path[1:]
    if isinstance(holder, tuple):
        made = new if not rest else _put(holder[first], rest, new)
        spliced = made if isinstance(made, tuple) else () if made is None else (made,)
        return (*holder[:first], *spliced, *holder[first + 1 :])
    return replace(holder, **{first: _put(getattr(holder, first), rest, new) if rest else new})


# --- faults -----------------------------------------------------------------------------------------------------------
Faults = Iterator[tuple[str, str, Any, bool]]


def _faults(n: Node) -> Faults:
    name = type(n).__name__
    if isinstance(n, DROPPED):
        detail = getattr(n, "kind", None) or getattr(n, "who", None) or getattr(n, "engine_of", None) or ""
        yield f"drop {name}", f"{name} {detail} dropped".replace("  ", " "), None, False
    maker = _MAKERS.get(type(n))
    if maker is not None:
        yield from maker(n)


def _sync(n: Sync) -> Faults:
    if n.who in ("block", "role") and n.mode == "both":
        yield "narrow Sync", f"Sync {n.who} narrowed to a warp", replace(n, who="warp", id=None, threads=None), False
        yield "arrive Sync", f"Sync {n.who} arrives without waiting", replace(n, mode="arrive"), False
    if n.threads is not None:
        for delta in (32, -32):
            yield "threads", f"Sync counts {delta:+d} threads", replace(n, threads=n.threads + delta), False


def _wait(n: WaitGroup) -> Faults:
    yield "pending", f"WaitGroup {n.engine_of} pending + 1", replace(n, pending=n.pending + 1), False
    if n.pending:
        yield "pending", f"WaitGroup {n.engine_of} pending - 1", replace(n, pending=n.pending - 1), True
    if n.engine_of == "bulk" and not n.reads_only:
        yield "reads only", "WaitGroup bulk waits for reads only", replace(n, reads_only=True), False


def _init(n: BarInit) -> Faults:
    for delta in (1, -1):
        yield "count", f"BarInit count {delta:+d}", replace(n, count=n.count + delta), False


def _arrive(n: BarArrive) -> Faults:
    if n.bytes is not None:
        for delta in (16, -16):
            yield "bytes", f"expected bytes {delta:+d}", replace(n, bytes=n.bytes + delta), False
        yield "bytes", "expected bytes forgotten", replace(n, bytes=None), False


def _parity(n: BarWait) -> Faults:
    # The absolute number would give the fault away at once; the hardware does not have it.
    yield "parity", "parity flipped", replace(n, parity=_flip(n.parity), count=None), False


def _flip(parity: Expr) -> Expr:
    return const(1 - parity.value) if isinstance(parity, Const) else const(1) - (parity & 1)


def _predicate(n: Any) -> Faults:
    if n.pred is not None:
        name = type(n).__name__
        yield "predicate dropped", f"predicate of {name} dropped", replace(n, pred=None), False
        yield "predicate negated", f"predicate of {name} negated", replace(n, pred=logical_not(n.pred)), False
    if getattr(n, "fill", None) is not None:
        yield "fill dropped", "fill of LoadMem dropped", replace(n, fill=None), False


def _valid(n: CopyAsync) -> Faults:
    if n.valid is not None:
        yield "predicate dropped", "valid bytes of CopyAsync forgotten", replace(n, valid=None), False


def _branch(n: If) -> Faults:
    yield "predicate dropped", "condition of a branch dropped", n.then, False
    yield "predicate negated", "condition of a branch negated", replace(n, cond=logical_not(n.cond)), False


def _offset(n: Addr) -> Faults:
    for delta in (1, -1):
        yield "offset", f"offset into {n.buffer.name} {delta:+d}", replace(n, offset=n.offset + delta), False


def _coordinates(n: TmaLoad | TmaStore) -> Faults:
    for i, c in enumerate(n.coords):
        for delta in (1, -1):
            moved = (*n.coords[:i], c + delta, *n.coords[i + 1 :])
            yield "offset", f"coordinate {i} of {n.map} {delta:+d}", replace(n, coords=moved), False


def _term(n: Binary) -> Faults:
    """A forgotten addend of an index."""
    if n.op == "add" and n.dtype.is_int:
        yield "term", "a term of a sum forgotten", n.a, False
        yield "term", "a term of a sum forgotten", n.b, False


def _cast(n: Cast) -> Faults:
    if n.a.dtype.is_float and n.dtype.is_float:
        yield "cast", f"cast from {n.a.dtype} to {n.dtype} removed", n.a, False


def _step(n: Store) -> Faults:
    if n.buffer.dtype.is_int and any(isinstance(x, Load) and x.buffer is n.buffer for x in walk(n.value)):
        yield "cursor", f"step of {n.buffer.name} dropped", None, False


def _trips(n: For) -> Faults:
    for delta in (1, -1):
        yield "trips", f"loop runs to {delta:+d}", replace(n, stop=n.stop + delta), False


def _zero(n: Wgmma) -> Faults:
    yield "zero flag", "zero flag of a wgmma negated", replace(n, zero=logical_not(n.zero)), False


def _elect(n: Elect) -> Faults:
    yield "election", "all lanes do what one should", n.body, False


_MAKERS: dict[type, Callable[[Any], Faults]] = {
    Sync: _sync,
    WaitGroup: _wait,
    BarInit: _init,
    BarArrive: _arrive,
    BarWait: _parity,
    LoadMem: _predicate,
    StoreMem: _predicate,
    AtomicMem: _predicate,
    CopyAsync: _valid,
    If: _branch,
    Addr: _offset,
    TmaLoad: _coordinates,
    TmaStore: _coordinates,
    Binary: _term,
    Cast: _cast,
    Store: _step,
    For: _trips,
    Wgmma: _zero,
    Elect: _elect,
}
