"""The text around a kernel's body: functions, signature, built-in values, pointers into shared memory."""

from __future__ import annotations

from collections.abc import Iterable
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from ..errors import Loc
from ..ir.expr import Buffer, Var
from ..ir.node import walk
from . import foreign
from .c_family import Printer
from .scalar import ctype
from .source import KernelArg

_AXES = ("x", "y", "z")


@dataclass(frozen=True)
class Composed:
    """The whole text, the user's place of each line, and the first and last line of each text that the user brought."""

    text: str
    line_map: tuple[Loc | None, ...]
    brought: tuple[tuple[int, int], ...] = ()
    headers: tuple[tuple[str, str], ...] = ()


def compose(p: Printer) -> Composed:
    """The whole text."""
    kernel, w = p.kernel, p.writer
    w.loc = kernel.loc
    with w.more("}"):
        p.declare_common(kernel.body)
        p.body(kernel.body)
    if p.whole is not None:
        own, places, before = foreign.kernel_text(kernel, p.whole)
        return Composed("\n".join(own) + "\n", places, ((before + 1, len(own)),), foreign.headers(p.whole.source))
    body, body_locs = w.lines, w.locs
    head = ["  " + line for line in _prologue(p)]
    top = [line for text in (*p.preamble(), *p.functions_text()) for line in text.split("\n")]
    macros = foreign.macros(kernel) if foreign.brought(kernel) else ()
    top += [*macros, *foreign.type_names(foreign.brought(kernel))]
    locs: list[Loc | None] = [None] * len(top)
    spans = []
    for brought, places in foreign.brought_lines(kernel):
        spans.append((len(top) + 1, len(top) + len(brought)))
        top += brought
        locs += places
    # What follows is not the user's: a name of its own may be that of a macro.
    behind = [f"#undef {line.split()[1].partition('(')[0]}" for line in macros]
    top += behind
    locs += [None] * len(behind)
    lines = [*top, f"{p.signature()} {{", *head, *body]
    locs += [*[kernel.loc] * (1 + len(head)), *body_locs]
    return Composed("\n".join(lines) + "\n", tuple(locs), tuple(spans), foreign.headers(foreign.brought(kernel)))


def _prologue(p: Printer) -> Iterable[str]:
    """Written after the body, which says what it mentions."""
    kernel = p.kernel
    lines = []
    pointed = [b for b in kernel.offsets if b in p.pointed]
    if "smem_at" in p.wanted or pointed:
        lines.append(p.shared_array())
    if "smem_at" in p.wanted:
        lines.append(f"const unsigned smem_at = {p.shared_address()};")
    lines += [_pointer(p, b) for b in pointed]
    mentioned = set(walk(kernel.body)) | p.mentioned
    for i, var in enumerate(kernel.block_vars):
        if var in mentioned:
            lines.append(f"const {ctype(var.dtype)} {p.names[var]} = {p.block_index(i)};")
    lines += _thread_lines(p, mentioned)
    return lines


def _pointer(p: Printer, b: Buffer) -> str:
    kind = ctype(b.dtype)
    return f"{p.shared_pointer(kind)} const {p.names[b]} = ({p.shared_pointer(kind)})(smem + {p.kernel.offsets[b]});"


def _thread_lines(p: Printer, mentioned: AbstractSet[object]) -> list[str]:
    kernel = p.kernel
    used = [i for i, v in enumerate(kernel.thread_vars) if v in mentioned]
    if "warp" in p.wanted:
        warp = p.warp_text()
    lines = []
    if used or p.wanted & {"tid", "lane", "warp"}:
        lines.append(f"const int tid = {p.thread_index()};")
    if "lane" in p.wanted:
        lines.append(f"const int lane = tid & {p.warp_size - 1};")
    if "warp" in p.wanted:
        lines.append(f"const int warp = {warp};")
    step = 1
    for i, var in enumerate(kernel.thread_vars):
        extent = kernel.thread_shape[i] if i < len(kernel.thread_shape) else 1
        if i in used:
            lines.append(f"const {ctype(var.dtype)} {p.names[var]} = {_thread_axis(step, extent, kernel.threads)};")
        step *= extent
    return lines


def _thread_axis(step: int, extent: int, threads: int) -> str:
    text = "tid" if step == 1 else f"tid / {step}"
    return text if step * extent >= threads else f"{text} % {extent}"


def parameters(p: Printer) -> list[str]:
    """The C parameters, in the order of `arguments`."""
    restrict = " __restrict__" if p.kernel.attrs.get("restrict", True) else ""
    pointers = [
        f"{'const ' if 'w' not in p.access[t] else ''}{ctype(t.dtype)}*{restrict} {p.names[t]}"
        for t in p.kernel.tensors
    ]
    scalars = [f"const {ctype(v.dtype)} {p.names[v]}" for v in (*p.kernel.symbols(), *p.kernel.scalars)]
    stream = [f"const unsigned {p.stream_parameter}"] if p.cooperative else []
    return [*pointers, *scalars, *(p.map_parameter(name) for name in p.map_names.values()), *stream]


def arguments(p: Printer) -> tuple[KernelArg, ...]:
    """The same order for the launcher, under the names that the records carry."""
    kernel = p.kernel
    if p.whole is not None:
        return tuple(_own_argument(p, a) for a in p.whole.args)
    return (
        *(KernelArg("pointer", p.shown[t], t.dtype.name) for t in kernel.tensors),
        *(KernelArg("symbol", p.shown[v], v.dtype.name) for v in kernel.symbols()),
        *(KernelArg("scalar", p.shown[v], v.dtype.name) for v in kernel.scalars),
        *(KernelArg("map", m.name) for m in kernel.maps),
        *((KernelArg("stream", p.stream_parameter, "uint32"),) if p.cooperative else ()),
    )


def _own_argument(p: Printer, a: Buffer | Var) -> KernelArg:
    if isinstance(a, Buffer):
        return KernelArg("pointer", p.shown[a], a.dtype.name)
    return KernelArg("scalar" if any(a is s for s in p.kernel.scalars) else "symbol", p.shown[a], a.dtype.name)
