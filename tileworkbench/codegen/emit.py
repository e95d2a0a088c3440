"""A thread-level kernel becomes a `Source`: text in the target's dialect and everything a launcher must know."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..errors import InternalError
from ..ir.expr import Buffer, Expr, Var
from ..ir.kernel import Kernel, TmaMap
from ..ir.node import walk
from ..target.target import Target
from .c_family import Printer
from .cuda import CudaPrinter
from .frame import arguments, compose
from .hip import HipPrinter
from .host import host
from .source import Fact, Host, ScalarParam, Source, TensorMap, TensorParam

PRINTERS: dict[str, type[Printer]] = {"cuda": CudaPrinter, "hip": HipPrinter}


def emit(kernel: Kernel, target: Target, options: Mapping[str, Any] | None = None) -> Source:
    """The text of a kernel for a target. `options` are build options by name (fast_math, line_info, max_registers …).
    InternalError when the kernel is not at thread level or holds what the target has not."""
    if kernel.level != "thread":
        raise InternalError(
            f"codegen was given a {kernel.level}-level kernel", rule="codegen sees thread-level kernels"
        )
    if target.dialect not in PRINTERS:
        raise InternalError(f"{target.name} has no text", rule=f"dialects: {', '.join(PRINTERS)}")
    p = PRINTERS[target.dialect](kernel, target)
    made = compose(p)
    shown = p.shown
    chosen = {**kernel.attrs.get("build", {}), **(options or {})}
    return Source(
        text=made.text, entry=p.entry, dialect=target.dialect, arch=target.build_arch, params=_params(p),
        args=arguments(p), grid=tuple(host(g, shown) for g in kernel.grid),
        threads=p.launch_threads if p.whole is None else kernel.threads,
        shared_bytes=kernel.shared_bytes, cluster=_cluster(kernel), maps=tuple(_map(m, shown) for m in kernel.maps),
        facts=tuple(Fact(host(a.cond, shown), a.text, a.required) for a in kernel.assumed),
        line_map=made.line_map, brought=made.brought, block=kernel.thread_shape if p.whole is not None else (),
        headers=made.headers,
        cooperative=p.cooperative,
        options=tuple((name, _option(chosen[name])) for name in sorted(chosen)),
    )  # fmt: skip


def _params(p: Printer) -> tuple[TensorParam | ScalarParam, ...]:
    return tuple(
        _tensor(q, p.access[q], p.shown) if isinstance(q, Buffer) else _scalar(p.kernel, q, p.shown)
        for q in p.kernel.params
    )


def _tensor(t: Buffer, access: str, shown: Mapping[Any, str]) -> TensorParam:
    shape = tuple(host(s, shown) for s in t.shape)
    strides: tuple[Host, ...] | None = None if t.strides is None else tuple(host(s, shown) for s in t.strides)
    return TensorParam(shown[t], t.dtype.name, shape, strides, access, t.loc, t.attr("pointer") is not None)


def _scalar(kernel: Kernel, v: Var, shown: Mapping[Any, str]) -> ScalarParam:
    default = kernel.defaults.get(v)
    return ScalarParam(shown[v], v.dtype.name, getattr(default, "value", default), v.loc)


def _map(m: TmaMap, shown: Mapping[Any, str]) -> TensorMap:
    known = [
        m.tensor,
        *(n for x in (*m.dims, *m.strides) if isinstance(x, Expr) for n in walk(x) if isinstance(n, Var)),
    ]
    if any(n not in shown for n in known):
        raise InternalError(f"tensor map {m.name!r} uses what is no parameter", rule="maps are made by the host")
    return TensorMap(m.name, shown[m.tensor], m.tensor.dtype.name, tuple(host(x, shown) for x in m.dims),
                     tuple(host(x, shown) for x in m.strides), m.box, m.swizzle, m.fill, m.l2)  # fmt: skip


def _cluster(kernel: Kernel) -> tuple[int, ...]:
    return (*kernel.cluster, 1, 1, 1)[:3]


def _option(value: Any) -> str:
    return str(int(value)) if isinstance(value, bool | int) else str(value)
