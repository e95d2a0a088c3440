"""What stands before a kernel's statements: its signature, and at the lower levels what the compiler has decided."""

from __future__ import annotations

from typing import Any

from ..expr import Buffer, Expr, Var
from ..kernel import Kernel, TmaMap
from ..planned import Channel
from .expression import ExprText
from .statement import Writer

WIDTH = 100


def signature(w: Writer, k: Kernel) -> None:
    """The `def` line, on several lines when it is long."""
    params = [_param(w.show, p, k) for p in k.params]
    line = f"def {k.name}({', '.join(params)}):"
    for symbol in k.symbols():
        kind = "" if symbol.dtype.name == "int32" else f', "{symbol.dtype.name}"'
        w.line(f'{w.show.names(symbol)} = T.dynamic("{symbol.name}"{kind})', None, symbol.loc)
    w.line("@T.prim_func", None, k.loc)
    if len(line) <= WIDTH:
        w.line(line, None, k.loc)
        return
    w.line(f"def {k.name}(", None, k.loc)
    w.depth += 1
    for param, text in zip(k.params, params, strict=True):
        w.line(f"{text},", None, param.loc)
    w.depth -= 1
    w.line("):", None, k.loc)


def launch(w: Writer, k: Kernel) -> None:
    """The line that opens the grid."""
    names = ", ".join(w.show.names(v) for v in k.block_vars)
    bound = f" as ({names})" if len(k.block_vars) > 1 else f" as {names}" if names else ""
    threads = w.show.shape(k.thread_shape) if len(k.thread_shape) > 1 else str(k.threads)
    w.line(f"with T.Kernel({''.join(f'{w.show(g)}, ' for g in k.grid)}threads={threads}){bound}:", None, k.loc)


def facts(w: Writer, k: Kernel) -> None:
    """Outputs, attributes, assumptions and notes as comments."""
    if k.outputs:
        names = [w.show.names(k.params[i]) for i in k.outputs if i < len(k.params)]
        w.line(f"# returns {', '.join(names)}")
    if k.level != "tile":
        extra = f", launches {k.launch_threads}" if k.launch_threads not in (0, k.threads) else ""
        cluster = f", cluster {k.cluster}" if any(c != 1 for c in k.cluster) else ""
        w.line(f"# {k.level} level: {k.threads} compute threads{extra}{cluster}")
    for key, value in k.attrs.items():
        if is_plain(value):
            w.line(f"# {key}: {w.show(value)}")
    for fact in k.assumed:
        w.line(f"# assumes {fact.text}", None, fact.cond.loc)
    for note in k.notes:
        w.line(f"# note: {note}")


def plan(w: Writer, k: Kernel) -> None:
    """Layouts, channels and decisions of the planned level as comments."""
    if k.level == "planned":
        for buffer, layout in k.layouts.items():
            depth = k.versions.get(buffer)
            times = f", {depth} versions" if depth else ""
            shape = w.show.shape(buffer.shape)
            w.line(f"# {w.show.names(buffer)}: {shape} {buffer.dtype}{times}, {describe(layout)}", None, buffer.loc)
    for channel in k.channels:
        w.line(f"# {_channel(w.show, channel, k.level)}", channel)
    for d in k.decisions if k.level == "planned" else ():
        refused = "".join(f"; not {name}: {why}" for name, why in d.refused)
        reason = f" ({d.reason})" if d.reason else ""
        w.line(f"# {d.op}: {d.chosen}{reason}{refused}", None, d.loc)


def storage(w: Writer, k: Kernel) -> None:
    """Buffers with their places, and tensor maps, of the thread level."""
    if k.shared_bytes:
        w.line(f"# shared memory: {k.shared_bytes} bytes")
    for b in k.buffers:
        where = f"  # at {k.offsets[b]}" if b in k.offsets else ""
        shape = w.show.items(b.shape)
        w.line(f'{w.show.names(b)} = {b.space}({shape}, "{b.dtype.name}"){where}', b)
    for m in k.maps:
        w.line(_map(w.show, m))


def describe(layout: Any) -> str:
    """A layout in one line: by its own `describe()` when it has one."""
    own = getattr(layout, "describe", None)
    text = own() if callable(own) else str(layout)
    text = " ".join(str(text).split())
    return text if len(text) <= WIDTH else text[: WIDTH - 1] + "…"


def is_plain(value: Any) -> bool:
    """Attributes that say something in a line; tables that passes keep for one another do not."""
    if isinstance(value, tuple):
        return len(value) <= 8 and all(map(is_plain, value))
    return isinstance(value, (bool, int, float, str, Expr, Buffer))


def _param(show: ExprText, p: Buffer | Var, k: Kernel) -> str:
    if isinstance(p, Var):
        default = f" = {show(k.defaults[p])}" if p in k.defaults else ""
        return f"{show.names(p)}: T.{p.dtype.name}{default}"
    shape, of = show.shape(p.shape), f'"{p.dtype.name}"'
    if p.strides is None:
        return f"{show.names(p)}: T.Tensor({shape}, {of})"
    return f"{show.names(p)}: T.StridedTensor({shape}, {show.shape(p.strides)}, {of})"


def _channel(show: ExprText, c: Channel, level: str) -> str:
    # At thread level the ring's tiles are gone; storage of the same names has taken their place.
    buffers = ", ".join(b.name if level == "thread" else show.names(b) for b in c.buffers)
    size = f" ({c.bytes} a use)" if c.bytes else ""
    to = ", ".join(c.consumers)
    return f"{show.names(c)}: {buffers} x {c.depth}, {c.producer} -> {to}, completes by {c.completion}{size}"


def _map(show: ExprText, m: TmaMap) -> str:
    swizzle = f", swizzle={m.swizzle}" if m.swizzle else ""
    fill = f", fill={show(m.fill)}" if m.fill != "zero" else ""
    fill += f", l2={m.l2}" if m.l2 != 128 else ""
    return (
        f"{m.name} = tensor_map({show.names(m.tensor)}, dims={show.shape(m.dims)}, strides={show.shape(m.strides)}, "
        f"box={show.shape(m.box)}{swizzle}{fill})"
    )
