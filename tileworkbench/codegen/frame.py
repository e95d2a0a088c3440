"""The text around a kernel's body: functions, signature, built-in values, pointers into shared memory."""

from __future__ import annotations

from collections.abc import Iterable
from collections.abc import Set as AbstractSet

from ..errors import Loc
from ..ir.expr import Buffer
from ..ir.node import walk
from . import foreign
from .c_family import Printer
from .scalar import ctype
from .source import KernelArg

_AXES = ("x", "y", "z")


def compose(p: Printer) -> tuple[str, tuple[Loc | None, ...]]:
    """The whole text and the user's place of each line."""
    kernel, w = p.kernel, p.writer
    w.loc = kernel.loc
    with w.more("}"):
        p.declare_common(kernel.body)
        p.body(kernel.body)
    body, body_locs = w.lines, w.locs
    head = ["  " + line for line in _prologue(p)]
    top = [line for text in (*p.preamble(), *p.functions_text()) for line in text.split("\n")]
    if text := foreign.brought(kernel):
        top += [*foreign.type_names(text), *text.split("\n")]
    signature = f"{p.signature()} {{"
    lines = [*top, signature, *head, *body]
    locs = [*[None] * len(top), *[kernel.loc] * (1 + len(head)), *body_locs]
    return "\n".join(lines) + "\n", tuple(locs)


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
    return (
        *(KernelArg("pointer", p.shown[t], t.dtype.name) for t in kernel.tensors),
        *(KernelArg("symbol", p.shown[v], v.dtype.name) for v in kernel.symbols()),
        *(KernelArg("scalar", p.shown[v], v.dtype.name) for v in kernel.scalars),
        *(KernelArg("map", m.name) for m in kernel.maps),
        *((KernelArg("stream", p.stream_parameter, "uint32"),) if p.cooperative else ()),
    )
