"""One spelling before anyone asks an op: every op says what simpler statements it stands for, and thread-level
statements that name an element of a fragment get it where every thread can reach it.

A fragment's element lies in some thread's registers. A statement of all threads that stores one becomes a parallel loop
of one element; one that reads an element first copies the fragment to a shared tile.
"""

from __future__ import annotations

from ..errors import LanguageError
from ..ir.arith import mentions, substitute
from ..ir.expr import Buffer, Expr, Load, Var, const
from ..ir.kernel import Kernel
from ..ir.node import Node, children, copied, map_children, map_items, replace, rewrite, walk
from ..ir.op import ElementStmt, Op
from ..ir.region import root
from ..ir.stmt import Alloc, Assert, Break, Continue, Eval, For, If, Let, Print, Region, Stmt, Store, While, whole
from ..ops.copy import Copy
from ..ops.parallel import Parallel
from ..target import Target

MOST_TRIPS = 8  # of a loop that is written out


def canonicalise(kernel: Kernel, target: Target) -> Kernel:
    """The kernel in one spelling."""
    threads = frozenset(kernel.thread_vars)
    body = map_items(kernel.body, lambda s: _statement(s, threads))  # type: ignore[arg-type]
    used = {root(c) for n in walk(body) if type(n) is not Alloc for c in children(n) if isinstance(c, Buffer)}
    body = map_items(body, lambda s: _declared(s, used))
    return kernel.with_(body=body) if body is not kernel.body else kernel


def _declared(n: Node, used: set[Buffer]) -> Node | None:
    """Without the shared tiles that nothing touches: they would take memory from the others."""
    if isinstance(n, Alloc):
        return n if n.buffer.space != "shared" or root(n.buffer) in used else None
    return map_children(n, lambda c: _declared(c, used)) if isinstance(n, Stmt) else n


def _statement(s: Stmt, threads: frozenset[Var]) -> Stmt | tuple[Stmt, ...]:
    if isinstance(s, Op):
        made = s.canonical()
        if made != (s,):
            return tuple(x for m in made for x in _spliced(_statement(m, threads)))
        if isinstance(s, Parallel):
            return s
        if getattr(s, "body", None) is None:
            return _with_copies(s, tuple(children(s)))
        return map_children(s, lambda c: _statement(c, threads) if isinstance(c, Stmt) else c)
    if isinstance(s, Store):
        return _store(s, threads)
    if isinstance(s, (Let, Eval, Assert, Print, ElementStmt)):
        return _with_copies(s, tuple(children(s)))
    if isinstance(s, For) and (copies := _unrolled(s)) is not None:
        return tuple(x for c in copies for x in _spliced(_statement(c, threads)))
    if isinstance(s, If) and _each_for_itself(s, threads):
        return _with_copies(s, tuple(walk(s)), inside=True)
    if isinstance(s, (If, For)):
        inner = map_children(s, lambda c: _statement(c, threads) if isinstance(c, Stmt) else c)
        heads = (inner.cond,) if isinstance(inner, If) else (inner.start, inner.stop, inner.step)
        return _with_copies(inner, heads)
    if isinstance(s, While):
        if found := _fragments(s.cond):
            raise LanguageError(
                f"a while loop asks for an element of the fragment `{found[0].name}`",
                rule="a fragment's elements lie in different threads",
                fix="copy it to a shared tile inside the loop and ask that",
                loc=s.loc,
            )
        return map_children(s, lambda c: _statement(c, threads) if isinstance(c, Stmt) else c)
    return s


def _unrolled(s: For) -> tuple[Stmt, ...] | None:
    """The trips of a short loop whose index tells which element of a fragment a parallel loop means (registers are
    found by constants), or which part of a shared tile an operation. None for other loops."""
    trips = s.trips if s.kind in ("serial", "unroll") else None
    if trips is None or not 1 <= trips <= MOST_TRIPS or any(isinstance(n, (Break, Continue)) for n in walk(s.body)):
        return None
    inside = (n for op in walk(s.body) if isinstance(op, Parallel) for n in walk(op.body))
    indices = (i for n in inside if isinstance(n, (Load, Store)) and n.buffer.space == "fragment" for i in n.indices)
    if not any(mentions(i, (s.var,)) for i in (*indices, *_parts(s))):
        return None
    values = range(*(int(e.value) for e in (s.start, s.stop, s.step)))  # type: ignore[attr-defined]
    return tuple(x for trip, n in enumerate(values) for x in _trip(s, trip, n))


def _parts(s: For) -> list[Expr]:
    """Where the tile operations of a loop that the user unrolls find their parts of shared tiles: instructions take
    them as constants."""
    if s.kind != "unroll":
        return []
    regions = (c for op in walk(s.body) if isinstance(op, Op) for c in children(op) if isinstance(c, Region))
    return [e for r in regions if r.buffer.space == "shared" for e in r.starts[-2:]]


def _trip(s: For, trip: int, value: int) -> tuple[Stmt, ...]:
    """One trip: its scalars have names of their own, its tiles are declared by the first, and its statements are its
    own even where they do not name the trip, since passes keep what they find by the statement."""
    names = (
        {n.var: Var(f"{n.var.name}_{trip}", n.var.dtype) for n in walk(s.body) if isinstance(n, Let)} if trip else {}
    )
    kept = tuple(n for n in s.body if not (trip and isinstance(n, Alloc)))
    body: tuple[Stmt, ...] = substitute(kept, {s.var: const(value, s.var.dtype)})
    if not trip:
        return body

    def own(n: Node) -> Node:
        return names.get(n, n) if isinstance(n, Var) else copied(n) if isinstance(n, Stmt) else n

    return tuple(rewrite(n, own) for n in body)


def _spliced(made: Stmt | tuple[Stmt, ...]) -> tuple[Stmt, ...]:
    return made if isinstance(made, tuple) else (made,)


def _fragments(*parts: object) -> list[Buffer]:
    found = (n.buffer for p in parts if p is not None for n in walk(p) if isinstance(n, Load))  # type: ignore[arg-type]
    return list(dict.fromkeys(b for b in found if b.space == "fragment"))


def _store(s: Store, threads: frozenset[Var]) -> Stmt | tuple[Stmt, ...]:
    if s.buffer.space != "fragment":
        if (
            s.buffer.space in ("global", "shared")
            and _fragments(s.value)
            and not threads & set(walk((s.value, *s.indices)))
        ):
            return Parallel((Var("one"),), (1,), (s,), loc=s.loc)
        return _with_copies(s, (s.value, *s.indices))
    if not threads.isdisjoint(walk((s.value, *s.indices))):
        raise LanguageError(
            f"an element of the fragment `{s.buffer.name}` is stored by a thread index",
            rule="the compiler decides which thread holds an element of a fragment",
            fix="store it in T.Parallel, or use T.alloc_local for values of each thread",
            loc=s.loc,
        )
    return Parallel((Var("one"),), (1,), (s,), loc=s.loc)


def _each_for_itself(s: If, threads: frozenset[Var]) -> bool:
    """A branch on the thread index in which threads only read fragments: all of them can copy before it, together."""
    inside = tuple(walk((*s.then, *s.orelse)))
    meets = any(isinstance(n, Op) or (isinstance(n, Store) and n.buffer.space == "fragment") for n in inside)
    return not meets and not threads.isdisjoint(walk(s.cond)) and bool(_fragments(*s.then, *s.orelse))


def _with_copies(s: Stmt, parts: tuple[object, ...], inside: bool = False) -> Stmt | tuple[Stmt, ...]:
    """The statement, with fragments that `parts` read taken from shared copies made before it; in the statements
    `inside` it too."""
    found = _fragments(*[p for p in parts if isinstance(p, (Expr, Region))])
    if not found:
        return s
    before: list[Stmt] = []
    tiles: dict[Buffer, Buffer] = {}
    for fragment in found:
        tile = tiles[fragment] = Buffer(f"{fragment.name}_seen", fragment.shape, fragment.dtype, "shared", loc=s.loc)
        before += [Alloc(tile, loc=s.loc), Copy(whole(fragment), whole(tile), loc=s.loc)]

    def swap(n: object) -> object:
        return replace(n, buffer=tiles[n.buffer]) if isinstance(n, Load) and n.buffer in tiles else n

    swapped = (Expr, Region, Stmt) if inside else (Expr, Region)
    made = map_children(s, lambda c: rewrite(c, swap) if isinstance(c, swapped) else c)  # type: ignore[arg-type]
    return (*before, made)
