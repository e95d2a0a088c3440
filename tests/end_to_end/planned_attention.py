"""Attention with the overlap of the fastest Hopper kernels, written by hand at the planned level.

In the steady loop trip i issues S = Q·K(i+1)ᵀ and O += P(i)·V(i) together, works out the softmax of S while the second
product still runs, and converts P only after it has been read. The planner will have to find this order by itself; this
kernel shows that the planned level can hold it.
"""

from __future__ import annotations

from typing import Any

from tests import kernels
from tileworkbench.ir.arith import substitute as bind
from tileworkbench.ir.kernel import Kernel
from tileworkbench.ir.node import replace
from tileworkbench.ir.planned import Complete, Issue, Release, Role, Wait
from tileworkbench.ir.stmt import ONE, For, Stmt
from tileworkbench.ops.gemm import Gemm
from tileworkbench.passes.facts import assume
from tileworkbench.passes.layouts import layouts
from tileworkbench.passes.select import select
from tileworkbench.passes.specialise import specialise
from tileworkbench.target import Target


def planned_attention(*args: Any, **options: Any) -> Kernel:
    """The planned kernel; arguments as `tests.kernels.attention`, sm_90a."""
    target = Target.of("sm_90a")
    kernel = kernels.attention(*args, **options).kernel
    for apply in (assume, select, specialise, layouts):
        kernel = apply(kernel, target)
    load, compute = kernel.body
    return kernel.with_(body=(load, _overlapped(compute)), attrs={**kernel.attrs, "no_overlap": True})


def _overlapped(compute: Role) -> Role:
    body: list[Stmt] = []
    for s in compute.body:
        body += _pipelined(s) if isinstance(s, For) else [s]
    return replace(compute, body=tuple(body))


def _pipelined(loop: For) -> list[Stmt]:
    """First scores, then trips that overlap, then the last values."""
    scores, values = _split(loop.body)
    following = tuple(bind(s, {loop.var: loop.var + 1}) for s in scores)
    s_issue, s_rest = _cut(following)
    v_issue, v_rest = _cut(values)
    softmax, convert = _before_weights(s_rest, _weights(values))
    release_k = [s for s in softmax if isinstance(s, Release)]
    softmax = [s for s in softmax if not isinstance(s, Release)]
    s_done, *softmax = softmax
    rescale_acc = [s for s in v_issue if not _is_product(s) and not isinstance(s, Wait)]
    v_start = [s for s in v_issue if s not in rescale_acc]
    steady = (
        *s_issue, *v_start, replace(s_done, pending=1), *release_k, *softmax, *v_rest, *convert, *rescale_acc,
    )  # fmt: skip
    first = tuple(bind(s, {loop.var: loop.start}) for s in scores)
    last_trip = loop.stop - 1
    last = tuple(bind(s, {loop.var: last_trip}) for s in (*v_start, *v_rest))
    start_rescale = [bind(s, {loop.var: loop.start}) for s in rescale_acc]
    inner = For(loop.var, loop.start, last_trip, ONE, steady, "serial", loc=loop.loc)
    return [*first, *start_rescale, inner, *last]


def _is_product(s: Stmt) -> bool:
    return isinstance(s, (Issue, Complete)) and isinstance(s.op, Gemm)


def _split(body: tuple[Stmt, ...]) -> tuple[tuple[Stmt, ...], tuple[Stmt, ...]]:
    """Statements up to the conversion of the weights, and the rescaling and second product after it."""
    products = [i for i, s in enumerate(body) if isinstance(s, Issue) and isinstance(s.op, Gemm)]
    weights = body[products[1]].op.a.buffer  # type: ignore[attr-defined]
    cut = max(i for i, s in enumerate(body[: products[1]]) if isinstance(s, Complete) and _writes(s, weights)) + 1
    return body[:cut], body[cut:]


def _writes(s: Stmt, buffer: Any) -> bool:
    return isinstance(s, (Issue, Complete)) and any(a.buffer is buffer and a.writes for a in s.op.effects())


def _cut(body: tuple[Stmt, ...]) -> tuple[list[Stmt], list[Stmt]]:
    """Up to and with the product's issue; from its completion on."""
    at = next(i for i, s in enumerate(body) if isinstance(s, Issue) and isinstance(s.op, Gemm)) + 1
    return list(body[:at]), list(body[at:])


def _weights(values: tuple[Stmt, ...]) -> Any:
    return next(s.op.a.buffer for s in values if isinstance(s, Issue) and isinstance(s.op, Gemm))


def _before_weights(body: list[Stmt], weights: Any) -> tuple[list[Stmt], list[Stmt]]:
    convert = [s for s in body if _writes(s, weights)]
    return [s for s in body if s not in convert], convert
