"""Statements that every C dialect writes alike."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from ..errors import InternalError
from ..ir.expr import Const, Expr, Load, Var
from ..ir.instr import (
    Addr,
    CallExtern,
    Elect,
    Instr,
    LoadMem,
    Mma,
    MmaSparse,
    Reg,
    StoreMem,
    Sync,
    TmaLoad,
    Wgmma,
)
from ..ir.node import Node, walk
from ..ir.planned import Role
from ..ir.stmt import Alloc, Break, Continue, Eval, For, If, Let, Store, While
from . import c_packed, foreign
from .c_family import Printer
from .dialect import Row
from .names import comment
from .scalar import ctype, is_soft, piece

MOST_TRIPS = 8  # of a loop that the device compiler may unroll although warps meet in it
_SCHEDULED = (Mma, MmaSparse, Wgmma, TmaLoad)


def _let(p: Printer, s: Let) -> None:
    value = p.expr(s.value)
    name = p.bind(s.var, *p.facts.range(s.value))
    p.line(f"const {ctype(s.var.dtype)} {name} = {value};")


def _store(p: Printer, s: Store) -> None:
    if s.buffer.space in ("global", "shared", "barrier"):
        raise InternalError(f"a plain store writes {s.buffer.name!r}, which is {s.buffer.space} memory",
                            rule="at thread level only registers are stored to this way", loc=s.loc)  # fmt: skip
    p.line(f"{p.private(s.buffer, s.indices)} = {p.expr(s.value)};")


def _loop(p: Printer, s: For) -> None:
    start, stop = p.expr(s.start), _fixed(p, s.stop, s.var)
    name = p.bind(s.var, *p.facts.with_loop(s.var, s.start, s.stop, s.step).ranges[s.var])
    kind = ctype(s.var.dtype)
    test = f"{name} {'>' if _falls(s.step) else '<'} {stop}"
    step = f"++{name}" if isinstance(s.step, Const) and s.step.value == 1 else f"{name} += {p.expr(s.step)}"
    if pragma := _pragma(s):
        p.line(pragma)
    with p.writer.block(f"for ({kind} {name} = {start}; {test}; {step})"):
        p.body(s.body)


def _falls(step: Expr) -> bool:
    return isinstance(step, Const) and step.value < 0


def _fixed(p: Printer, stop: Expr, var: Var) -> str:
    """A stop that reads registers is read once, before the loop, as Python's range does."""
    if not any(isinstance(n, Load) for n in walk(stop)):
        return p.expr(stop, 11)
    name = p.namer.fresh(f"{var.name}_stop")
    p.line(f"const {ctype(stop.dtype)} {name} = {p.expr(stop)};")
    return name


def _pragma(s: For) -> str:
    factor = s.attr("unroll")
    if factor is not None and not isinstance(factor, bool):
        return f"#pragma unroll {int(factor)}"
    if s.kind in ("unroll", "vector") or factor is True:
        return "#pragma unroll"
    # Loops of copies, matrix instructions and waits are scheduled by us: unrolling them only costs time to build. Short
    # ones in which warps meet are not: their loads of several trips may be under way together.
    short = s.trips is not None and s.trips <= MOST_TRIPS
    return "#pragma unroll 1" if any(isinstance(n, _SCHEDULED) or _meets(n, short) for n in walk(s.body)) else ""


def _meets(n: Node, within_warps: bool) -> bool:
    """Whether threads meet here, other than those of a warp if `within_warps`."""
    return isinstance(n, Instr) and n.synchronises and not (within_warps and isinstance(n, Sync) and n.who == "warp")


def _while_loop(p: Printer, s: While) -> None:
    with p.writer.block(f"while ({p.expr(s.cond)})"):
        p.body(s.body)


def _branch(p: Printer, s: If) -> None:
    with p.writer.block(f"if ({p.expr(s.cond)})", "}" if not s.orelse else "} else {"):
        p.body(s.then)
    if s.orelse:
        with p.writer.more():
            p.body(s.orelse)


def _evaluate(p: Printer, s: Eval) -> None:
    p.line(f"(void)({p.expr(s.value)});")


def _alloc(p: Printer, s: Alloc) -> None:
    address = s.buffer.attr("address")
    if address is None:
        p.declare((s.buffer,))
        return
    kind = ctype(s.buffer.dtype)
    p.names[s.buffer] = p.namer.fresh(s.buffer.name)
    p.line(f"{kind}* const {p.names[s.buffer]} = ({kind}*){p.expr(address, 14)};")


def _call_extern(p: Printer, s: CallExtern) -> None:
    text = foreign.brought(p.kernel)
    template = foreign.is_template(text, s.function)
    given = [p.expr(a) if isinstance(a, Expr) else _pointer(p, a, text if template else None) for a in s.args]
    call = f"{s.function}({', '.join(given)});"
    p.line(f"{p.reg(s.result)} = {call}" if s.result is not None else call)


def _pointer(p: Printer, a: Addr | Reg, template: str | None) -> str:
    """Addresses of types that are held as bits convert to any pointer that the function wants; a template of the
    text `template` wants to be told a type whose values are the numbers."""
    place = p.regs(a) if isinstance(a, Reg) else p.pointer(a)
    dtype = a.buffer.dtype
    if not is_soft(dtype):
        return place
    if template is None:
        return f"{p.use('tw_any_pointer')}{{(void*)({place})}}"
    kind = foreign.included_class(template, dtype) or p.define(*foreign.value_class(dtype))
    return f"({kind}*)({place})"


def _roles(p: Printer, run: tuple[Role, ...]) -> None:
    """Roles that stand beside one another: one chain on the warp index, which is the same for all lanes of a warp."""
    if len(run) > 1 and not _apart(run):
        for r in run:
            _roles(p, (r,))
        return
    heads = [f"if ({_warps(r)})" for r in run]
    if sum(r.warps for r in run) == (p.role_warps or p.launch_threads // p.warp_size):
        heads[-1] = ""
    if heads[0]:
        p.want("warp")
    p.line(f"{heads[0]} {{".lstrip())
    for i, r in enumerate(run):
        tail = "}" if i + 1 == len(run) else f"}} else {heads[i + 1]}".rstrip() + " {"
        with p.writer.at(r.loc), p.writer.more(tail):
            _role(p, r)


def _apart(run: tuple[Role, ...]) -> bool:
    """No warp belongs to two of them."""
    ends = sorted((r.first_warp, r.first_warp + r.warps) for r in run)
    return all(a[1] <= b[0] for a, b in pairwise(ends))


def _warps(r: Role) -> str:
    end = r.first_warp + r.warps
    if r.warps == 1:
        return f"warp == {r.first_warp}"
    return f"warp < {end}" if r.first_warp == 0 else f"warp >= {r.first_warp} && warp < {end}"


def _role(p: Printer, r: Role) -> None:
    outer = p.role_first_warp, p.role_warps
    p.role_first_warp, p.role_warps = r.first_warp, r.warps
    p.line(f"// role {comment(r.name)}")
    p.role_begins(r.body)
    p.declare_private(r.body)
    p.body(r.body)
    p.role_first_warp, p.role_warps = outer


def _elect(p: Printer, s: Elect) -> None:
    if s.who not in ("warp", "role", "block"):
        raise InternalError(f"no one is elected from {s.who!r}", rule="warp, role or block", loc=s.loc)
    with p.writer.block(f"if ({p.elected(s.who)})"):
        p.body(s.body)


def _load(p: Printer, s: LoadMem) -> None:
    text = c_packed.load(p, s) if c_packed.is_packed(s.src) else _load_text(p, s)
    if s.pred is None or s.fill is None:
        p.guarded(s.pred, text)
        return
    with p.writer.block(f"if ({p.expr(s.pred)})", "} else {"):
        p.line(text)
    with p.writer.more():
        fill(p, s)


def _load_text(p: Printer, s: LoadMem) -> str:
    size = piece(s.dst.count, s.dst.buffer.dtype, p.widest(s.src.buffer))
    if s.dst.count == 1 and not s.cache:
        return f"{p.reg(s.dst)} = {p.element(s.src)};"
    return f"{p.use(p.load_function(s, size))}({p.regs(s.dst)}, {p.pointer(s.src)});"


def fill(p: Printer, s: LoadMem) -> None:
    """The registers of a load that does not happen."""
    value = p.expr(s.fill) if s.fill is not None else "0"
    if s.dst.count == 1:
        p.line(f"{p.reg(s.dst)} = {value};")
        return
    i = p.namer.fresh("i")
    p.line("#pragma unroll")
    p.line(f"for (int {i} = 0; {i} < {s.dst.count}; ++{i}) {_at(p, s.dst, i)} = {value};")


def _at(p: Printer, r: Reg, i: str) -> str:
    start = p.expr(r.start, 12)
    return f"{p.name(r.buffer)}[{i if start == '0' else f'{start} + {i}'}]"


def _store_memory(p: Printer, s: StoreMem) -> None:
    if c_packed.is_packed(s.dst):
        p.guarded(s.pred, c_packed.store(p, s))
        return
    size = piece(s.src.count, s.src.buffer.dtype, p.widest(s.dst.buffer))
    if s.block is not None:
        there = f"{p.shared(s.dst)}, {p.expr(s.block)}"
        p.guarded(s.pred, f"{p.use(f'tw_store{size}_cluster')}({there}, {p.regs(s.src)});")
        return
    if s.src.count == 1 and not s.cache:
        p.guarded(s.pred, f"{p.element(s.dst)} = {p.reg(s.src)};")
        return
    p.guarded(s.pred, f"{p.use(p.store_function(s, size))}({p.pointer(s.dst)}, {p.regs(s.src)});")


def jump(word: str) -> Row:
    return lambda p, s: p.line(f"{word};")


ROWS: dict[Any, Row] = {
    Let: _let, Store: _store, For: _loop, While: _while_loop, If: _branch, Eval: _evaluate, Alloc: _alloc,
    CallExtern: _call_extern, Elect: _elect, LoadMem: _load, StoreMem: _store_memory,
    Break: jump("break"),
    Continue: jump("continue"), Role: _roles,
}  # fmt: skip
