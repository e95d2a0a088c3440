"""CUDA: cp.async, tensor and bulk copies, and their groups."""

from __future__ import annotations

from typing import Any

from ..errors import InternalError
from ..ir.dtype import DType
from ..ir.instr import BulkLoad, BulkStore, CommitGroup, CopyAsync, TmaLoad, TmaStore, WaitGroup
from .c_scalar import D
from .cuda_barrier import number
from .cuda_matrix import settle
from .dialect import Row
from .functions import Function

FUNCTIONS: dict[str, Function] = {}
for _size, _cache in ((4, "ca"), (8, "ca"), (16, "cg")):
    _text = f"cp.async.{_cache}.shared.global [%0], [%1], {_size}"
    FUNCTIONS[f"tw_copy_async{_size}"] = Function(
        f"{D} void tw_copy_async{_size}(unsigned d, const void* s) "
        f'{{ asm volatile("{_text};" :: "r"(d), "l"(s) : "memory"); }}',
        (),
        "cp_async",
    )
    FUNCTIONS[f"tw_copy_async{_size}_valid"] = Function(
        f"{D} void tw_copy_async{_size}_valid(unsigned d, const void* s, int valid) "
        f'{{ asm volatile("{_text}, %2;" :: "r"(d), "l"(s), "r"(valid) : "memory"); }}',
        (),
        "cp_async",
    )
# L2 eviction policies as the 64-bit words that createpolicy.fractional makes of them for the whole access.
POLICIES = {"evict_normal": 0x1000000000000000, "evict_first": 0x12F0000000000000, "evict_last": 0x14F0000000000000}
_COMMIT = {"copy": ("cp.async.commit_group", "cp_async"), "bulk": ("cp.async.bulk.commit_group", "bulk_copy"),
           "wgmma": ("wgmma.commit_group.sync.aligned", "wgmma")}  # fmt: skip
_WAIT = {"copy": "cp.async.wait_group", "bulk": "cp.async.bulk.wait_group", "wgmma": "wgmma.wait_group.sync.aligned"}
_REDUCED = {"int32": "s32", "uint32": "u32", "uint64": "u64", "int64": "s64", "float32": "f32", "float64": "f64",
            "float16": "noftz.f16", "bfloat16": "noftz.bf16"}  # fmt: skip


def _copy_async(p: Any, s: CopyAsync) -> None:
    if s.bytes not in (4, 8, 16):
        raise InternalError(f"cp.async of {s.bytes} bytes", rule="4, 8 or 16", loc=s.loc)
    d, source = p.shared(s.dst), p.pointer(s.src)
    if s.valid is None:
        p.line(f"{p.use(f'tw_copy_async{s.bytes}')}({d}, {source});")
    else:
        p.line(f"{p.use(f'tw_copy_async{s.bytes}_valid')}({d}, {source}, {p.expr(s.valid)});")


def _rank(s: TmaLoad | TmaStore) -> int:
    if not 1 <= len(s.coords) <= 5:
        raise InternalError(f"a tensor copy of {len(s.coords)} dimensions", rule="1 to 5", loc=s.loc)
    return len(s.coords)


def _hint(p: Any, s: TmaLoad | TmaStore) -> list[str]:
    if not s.hint:
        return []
    if s.hint not in POLICIES:
        raise InternalError(f"cache hint {s.hint!r}", rule=", ".join(POLICIES), loc=s.loc)
    return [f"{POLICIES[s.hint]:#x}ull"]


def _tma_load(p: Any, s: TmaLoad) -> None:
    rank, hint = _rank(s), _hint(p, s)
    if s.multicast is not None:
        p.need("multicast", "a multicast copy")
    name = f"tw_tma_load_{rank}d{'_multicast' if s.multicast is not None else ''}{'_hint' if hint else ''}"
    p.define(name, _load_text(name, rank, s.multicast is not None, bool(hint), _space(p)))
    args = [p.shared(s.dst), f"&{p.map_name(s.map)}", p.barrier(s.bar), *(p.expr(c) for c in s.coords)]
    args += [p.expr(s.multicast)] if s.multicast is not None else []
    p.line(f"{name}({', '.join([*args, *hint])});")


def _space(p: Any) -> str:
    """Where a copy lands. Without clusters the assembler would guard `shared::cluster` addresses by a slow path."""
    return "shared::cluster" if p.target.has("cluster") else "shared::cta"


def _load_text(name: str, rank: int, multicast: bool, hint: bool, space: str) -> str:
    coords = [f"c{i}" for i in range(rank)]
    args = ["unsigned d", "const void* map", "unsigned bar", *(f"int {c}" for c in coords)]
    operands = ['"r"(d)', '"l"(map)', '"r"(bar)', *(f'"r"({c})' for c in coords)]
    dots, tail = "", ""
    if multicast:
        args.append("unsigned short blocks")
        dots, tail = dots + ".multicast::cluster", f"{tail}, %{len(operands)}"
        operands.append('"h"(blocks)')
    if hint:
        args.append("unsigned long long policy")
        dots, tail = dots + ".L2::cache_hint", f"{tail}, %{len(operands)}"
        operands.append('"l"(policy)')
    at = ", ".join(f"%{i + 3}" for i in range(rank))
    return f"""\
{D} void {name}({", ".join(args)}) {{
  asm volatile("cp.async.bulk.tensor.{rank}d.{space}.global.tile.mbarrier::complete_tx::bytes{dots} "
               "[%0], [%1, {{{at}}}], [%2]{tail};" :: {", ".join(operands)} : "memory");
}}"""


def _tma_store(p: Any, s: TmaStore) -> None:
    rank, hint = _rank(s), _hint(p, s)
    _check_reduce(s)
    name = f"tw_tma_{s.reduce or 'store'}_{rank}d{'_hint' if hint else ''}"
    p.define(name, _store_text(name, rank, s.reduce, bool(hint)))
    args = [f"&{p.map_name(s.map)}", p.shared(s.src), *(p.expr(c) for c in s.coords), *hint]
    p.line(f"{name}({', '.join(args)});")


def _check_reduce(s: TmaStore | BulkStore) -> None:
    if s.reduce not in ("", "add", "min", "max"):
        raise InternalError(f"a reducing copy with {s.reduce!r}", rule="add, min or max", loc=s.loc)


def _store_text(name: str, rank: int, reduce: str, hint: bool) -> str:
    coords = [f"c{i}" for i in range(rank)]
    args = [
        "const void* map",
        "unsigned s",
        *(f"int {c}" for c in coords),
        *(["unsigned long long policy"] if hint else []),
    ]
    operands = ['"l"(map)', '"r"(s)', *(f'"r"({c})' for c in coords), *(['"l"(policy)'] if hint else [])]
    at = ", ".join(f"%{i + 2}" for i in range(rank))
    head = f"cp.reduce.async.bulk.tensor.{rank}d.global.shared::cta.{reduce}" if reduce else (
        f"cp.async.bulk.tensor.{rank}d.global.shared::cta")  # fmt: skip
    dots, tail = (".L2::cache_hint", f", %{rank + 2}") if hint else ("", "")
    return f"""\
{D} void {name}({", ".join(args)}) {{
  asm volatile("{head}.tile.bulk_group{dots} [%0, {{{at}}}], [%1]{tail};" :: {", ".join(operands)} : "memory");
}}"""


def _bulk_load(p: Any, s: BulkLoad) -> None:
    p.define(
        "tw_bulk_load",
        f"""\
{D} void tw_bulk_load(unsigned d, const void* s, unsigned bytes, unsigned bar) {{
  asm volatile("cp.async.bulk.{_space(p)}.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];"
               :: "r"(d), "l"(s), "r"(bytes), "r"(bar) : "memory");
}}""",
    )
    args = (p.shared(s.dst), p.pointer(s.src), number(p, s.bytes), p.barrier(s.bar))
    p.line(f"tw_bulk_load({', '.join(args)});")


def _bulk_store(p: Any, s: BulkStore) -> None:
    _check_reduce(s)
    kind = _reduced(s.src.buffer.dtype, s.reduce, s) if s.reduce else ""
    name = f"tw_bulk_{s.reduce}_{kind.replace('.', '_')}" if s.reduce else "tw_bulk_store"
    head = f"cp.reduce.async.bulk.global.shared::cta.bulk_group.{s.reduce}.{kind}" if s.reduce else (
        "cp.async.bulk.global.shared::cta.bulk_group")  # fmt: skip
    p.define(
        name,
        f"""\
{D} void {name}(void* d, unsigned s, unsigned bytes) {{
  asm volatile("{head} [%0], [%1], %2;" :: "l"(d), "r"(s), "r"(bytes) : "memory");
}}""",
    )
    p.line(f"{name}({p.pointer(s.dst)}, {p.shared(s.src)}, {number(p, s.bytes)});")


def _reduced(dtype: DType, op: str, s: BulkStore) -> str:
    kind = _REDUCED.get(dtype.name)
    # Integer addition wraps, so it has no signed form of its own; of floats only the 16-bit ones have min and max.
    if kind is not None and op == "add":
        return "u64" if kind == "s64" else kind
    if kind is None or kind in ("f32", "f64"):
        raise InternalError(f"a reducing copy: {op} of {dtype}", rule="lowering chooses what the engine has", loc=s.loc)
    return kind.removeprefix("noftz.")


def _commit(p: Any, s: CommitGroup) -> None:
    if s.engine_of not in _COMMIT:
        raise InternalError(f"groups of {s.engine_of!r}", rule="copy, bulk or wgmma", loc=s.loc)
    text, feature = _COMMIT[s.engine_of]
    p.need(feature, f"a group of {s.engine_of}")
    p.line(f'asm volatile("{text};" ::: "memory");')


def _wait(p: Any, s: WaitGroup) -> None:
    if s.engine_of not in _WAIT:
        raise InternalError(f"groups of {s.engine_of!r}", rule="copy, bulk or wgmma", loc=s.loc)
    p.need(_COMMIT[s.engine_of][1], f"a group of {s.engine_of}")
    read = ".read" if s.reads_only and s.engine_of == "bulk" else ""
    p.line(f'asm volatile("{_WAIT[s.engine_of]}{read} {int(s.pending)};" ::: "memory");')
    if s.engine_of == "wgmma":
        settle(p, s)


ROWS: dict[Any, Row] = {
    CopyAsync: _copy_async,
    TmaLoad: _tma_load,
    TmaStore: _tma_store,
    BulkLoad: _bulk_load,
    BulkStore: _bulk_store,
    CommitGroup: _commit,
    WaitGroup: _wait,
}
