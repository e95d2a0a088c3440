"""Merges the memory accesses of a vector loop's lanes into wide ones.

The lanes of a parallel loop are independent, so its loads may come first and its stores last, as far as the statements
of one lane allow it (`lanes.py`). An access becomes wide when its addresses are consecutive over the lanes, its first
address is a multiple of the width, and its predicate is the same for all lanes of one access."""

from __future__ import annotations

from ..ir.arith import Facts, coefficient, mentions, substitute
from ..ir.expr import Binary, Compare, Const, Expr, Load, Select, Var, compare, const, logical, same, select
from ..ir.instr import Addr, AtomicMem, CopyAsync, LoadMem, Reg, StoreMem
from ..ir.kernel import Kernel
from ..ir.node import map_children, replace
from ..ir.planned import Role
from ..ir.region import root
from ..ir.stmt import ONE, ZERO, For, If, Let, Stmt, Store
from ..target import Target
from .alike import alike
from .facts import after_let, inside_loop, kernel_facts
from .in_flight import MARK
from .lanes import Access, Form, forms, may_be_wide, registers

MAX_BYTES = 16
COPY_BYTES = (16, 8, 4)  # of a cp.async


def vectorise(kernel: Kernel, target: Target) -> Kernel:
    """Vector loops become wide accesses around an unrolled computation."""
    body: list[Stmt] = []
    for s in kernel.body:
        warps = s.warps if isinstance(s, Role) else 0
        facts = kernel_facts(kernel, target, warps=warps)
        made = _statement(s, facts, target)
        body += made
    return kernel.with_(body=tuple(body))


def _body(body: tuple[Stmt, ...], facts: Facts, target: Target) -> tuple[Stmt, ...]:
    out: list[Stmt] = []
    for s in body:
        out += _statement(s, facts, target)
        if isinstance(s, Let):
            facts = after_let(facts, s)
    return tuple(out)


def _statement(s: Stmt, facts: Facts, target: Target) -> tuple[Stmt, ...]:
    if isinstance(s, For) and s.kind == "vector":
        return _vector(s, facts, target)
    if isinstance(s, For):
        return (replace(s, body=_body(s.body, inside_loop(facts, s), target)),)
    if isinstance(s, If):
        then, orelse = _body(s.then, facts.assuming(s.cond), target), _body(s.orelse, facts, target)
        return (replace(s, then=then, orelse=orelse),)
    return (map_children(s, lambda c: _statement(c, facts, target) if isinstance(c, Stmt) else c),)


def _vector(loop: For, facts: Facts, target: Target) -> tuple[Stmt, ...]:
    lanes = int(loop.stop.value)  # type: ignore[attr-defined]
    body, guard = loop.body, None
    if len(body) == 1 and isinstance(body[0], If) and not body[0].orelse:
        guard = _uniform(body[0].cond, loop.var, lanes, facts)
        if guard is None:
            return (replace(loop, kind="unroll", body=_body(loop.body, facts, target)),)
        body = body[0].then
    first, body = alike(body, loop.var) if lanes > 1 else ((), body)
    for s in first:
        facts = after_let(facts, s) if isinstance(s, Let) else facts
    inner = facts if guard is None else facts.assuming(guard)
    made = (*first, *_merged(replace(loop, body=body), lanes, inner, target))
    return made if guard is None else (If(substitute(guard, {loop.var: ZERO}), made, loc=loop.loc),)


def _merged(loop: For, lanes: int, facts: Facts, target: Target) -> tuple[Stmt, ...]:
    """The loop's accesses as wide ones where its body is a straight line that lanes may go side by side."""
    body = loop.body
    found: tuple[Form, ...] | None = None
    if lanes > 1 and any(may_be_wide(s) for s in body) and all(may_be_wide(s) or isinstance(s, Store) for s in body):
        found = forms(body, loop.var, inside_loop(facts, loop), ordered=bool(loop.attr("ordered")))
    if found is None:
        return (replace(loop, kind="unroll", body=_body(body, facts, target)),)
    return tuple(s for form in found for s in _wide(form, loop, lanes, facts, target))


def _wide(form: Form, loop: For, lanes: int, facts: Facts, target: Target) -> tuple[Stmt, ...]:
    copies = _copies(form, loop, lanes, inside_loop(facts, loop)) if loop.attr(MARK) else ()
    if copies:
        return copies
    loads = [s for access in form.loads for s in _access(access, loop, lanes, facts, target)]
    stores = [s for access in form.stores for s in _access(access, loop, lanes, facts, target)]
    compute = (replace(loop, kind="unroll", body=tuple(form.middle)),) if form.middle else ()
    return (*loads, *compute, *stores)


def _copies(form: Form, loop: For, lanes: int, facts: Facts) -> tuple[Stmt, ...]:
    """The lanes' elements brought by cp.async; empty where no run of 4 bytes or more is known to be aligned."""
    if not (len(form.loads) == len(form.middle) == len(form.stores) == 1):
        return ()
    load, store = form.loads[0], form.stores[0]
    if not isinstance(store, StoreMem) or store.pred is not None or store.block is not None or not _unchanged(form):
        return ()
    if load.dst.buffer.dtype is not store.src.buffer.dtype:
        return ()
    source, target = facts.simplify(load.src.offset), facts.simplify(store.dst.offset)
    for nbytes in COPY_BYTES:
        width = nbytes // load.src.buffer.dtype.bytes
        if not width or lanes % width or not _fits(target, None, loop.var, width, facts):
            continue
        if not _fits(source, load.pred, loop.var, width, facts) or not facts.starts_at(nbytes, root(load.src.buffer)):
            continue
        part = Var(f"{loop.var.name}v")
        at = {loop.var: part * width}
        pred = None if load.pred is None else _uniform(load.pred, loop.var, width, facts)
        valid = None if pred is None else select(substitute(pred, at), const(nbytes), ZERO)
        to, place = Addr(store.dst.buffer, substitute(target, at)), Addr(load.src.buffer, substitute(source, at))
        copy = CopyAsync(to, place, nbytes, valid, loc=store.loc)
        return (For(part, ZERO, const(lanes // width), ONE, (copy,), "unroll", loc=loop.loc),)
    return ()


def _unchanged(form: Form) -> bool:
    """What is stored is what was loaded, and zero where nothing was."""
    load, value = form.loads[0], form.middle[0].value
    if load.pred is not None and not (isinstance(load.fill, Const) and load.fill.value == 0):
        return False
    if isinstance(value, Select):  # the load happens where this holds
        if not (isinstance(value.b, Const) and value.b.value == 0) or not _part(value.cond, load.pred):
            return False
        value = value.a
    return isinstance(value, Load) and value.buffer is load.dst.buffer


def _part(cond: Expr, pred: Expr | None) -> bool:
    """`pred` holds only where `cond` does."""
    if isinstance(pred, Binary) and pred.op == "land":
        return same(cond, pred) or _part(cond, pred.a) or _part(cond, pred.b)
    return pred is not None and same(cond, pred)


def _most(s: Access, target: Target) -> int:
    """The elements that one access may have at most."""
    dtype = s.src.buffer.dtype if isinstance(s, LoadMem) else s.dst.buffer.dtype
    if not isinstance(s, AtomicMem):
        return MAX_BYTES // dtype.bytes
    if target.dialect != "cuda":
        return 1
    if dtype.name == "float32":
        return 4 if target.has("atomic_vec") and s.dst.buffer.space == "global" else 1
    pairs = dtype.name == "float16" or (dtype.name == "bfloat16" and target.has("atomic_bf16"))
    return 2 if pairs else 1


def _access(s: Access, loop: For, lanes: int, facts: Facts, target: Target) -> tuple[Stmt, ...]:
    """One access per `width` lanes, the widest that is possible."""
    memory, register = s.src if isinstance(s, LoadMem) else s.dst, registers(s)
    facts = inside_loop(facts, loop)
    offset = facts.simplify(memory.offset)
    width = min(lanes, _most(s, target))
    width = 1 << (width.bit_length() - 1) if width else 1
    item = memory.buffer.dtype.bytes
    while width > 1 and not (
        lanes % width == 0
        and _fits(offset, s.pred, loop.var, width, facts)
        and facts.starts_at(width * item, root(memory.buffer))
    ):
        width //= 2
    if register.count != 1:
        width = 1
    part = Var(f"{loop.var.name}v") if width < lanes else None
    start: Expr = part * width if part is not None else ZERO
    at = {loop.var: start}
    run = Reg(register.buffer, substitute(register.start, at), width)
    place = Addr(memory.buffer, substitute(offset, at))
    pred = s.pred
    if pred is not None and width > 1:
        pred = _uniform(pred, loop.var, width, facts)
    pred = substitute(pred, at) if pred is not None else None
    made: Stmt
    if isinstance(s, LoadMem):
        made = replace(s, dst=run, src=place, pred=pred)
    elif isinstance(s, AtomicMem):
        made = replace(s, dst=place, value=run, pred=pred)
    else:
        made = replace(s, dst=place, src=run, pred=pred)
    if part is None:
        return (made,)
    return (For(part, ZERO, const(lanes // width), ONE, (made,), "unroll", loc=loop.loc),)


def _fits(offset: Expr, pred: Expr | None, lane: Var, width: int, facts: Facts) -> bool:
    if coefficient(offset, lane) != 1 or not facts.divides(width, substitute(offset, {lane: ZERO})):
        return False
    return pred is None or _uniform(pred, lane, width, facts) is not None


def _uniform(pred: Expr, lane: Var, width: int, facts: Facts) -> Expr | None:
    """The predicate of a whole access: equal for `width` lanes that start at a multiple of it. None when lanes
    differ."""
    if not mentions(pred, (lane,)):
        return pred
    if isinstance(pred, Binary) and pred.op in ("land", "lor"):
        a, b = _uniform(pred.a, lane, width, facts), _uniform(pred.b, lane, width, facts)
        return None if a is None or b is None else logical(pred.op, a, b)
    if isinstance(pred, Compare) and pred.op in ("lt", "ge") and not mentions(pred.b, (lane,)):
        # x + lane < n decides alike for all lanes of a run when the run's start and n are multiples of its length.
        base = substitute(facts.simplify(pred.a), {lane: ZERO})
        if coefficient(pred.a, lane) == 1 and facts.divides(width, base) and facts.divides(width, pred.b):
            return compare(pred.op, pred.a, pred.b)
    return None
