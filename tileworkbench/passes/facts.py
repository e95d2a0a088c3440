"""What is known about a kernel's variables before any statement is looked at."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from ..ir.arith import Facts
from ..ir.expr import Binary, Buffer, Compare, Const, Expr, Var, compare
from ..ir.kernel import Assumed, Kernel, TmaMap
from ..ir.node import walk
from ..ir.stmt import For, Let
from ..ops.source_kernel import SourceKernel
from ..target import Target

POINTER_ALIGNMENT = 16  # bytes
INT32_SPAN = 2**31


def kernel_facts(kernel: Kernel, target: Target, *, warps: int = 0) -> Facts:
    """Ranges of block and thread indices and symbols, and the divisors that this variant assumes."""
    facts = Facts()
    for var, extent in zip(kernel.block_vars, kernel.grid, strict=False):
        facts.ranges[var] = (0, _upper(extent))
    for var, size in zip(kernel.thread_vars, kernel.thread_shape, strict=False):
        facts.ranges[var] = (0, size - 1)
    facts.ranges |= kernel.attrs.get("ranges", {})
    for symbol in kernel.symbols():
        facts.ranges[symbol] = (0, math.inf)
    lanes = target.arch.warp_size
    threads = warps * lanes or kernel.threads
    facts.ranges |= {"role_thread": (0, threads - 1), "lane": (0, lanes - 1), "warp": (0, max(1, threads // lanes) - 1)}
    facts.ranges["thread"] = (0, max(kernel.launch_threads, kernel.threads) - 1)
    if kernel.attrs.get("variant") == "general":
        facts.divisors |= {tensor: tensor.dtype.bytes for tensor in kernel.tensors}
    for assumed in kernel.assumed:
        found = _divisor(assumed.cond)
        if found:
            facts.divisors[found[0]] = math.lcm(facts.divisors.get(found[0], 1), found[1])
    return facts


def _upper(extent: Any) -> float:
    value = extent.value if isinstance(extent, Const) else extent
    return value - 1 if isinstance(value, int) else math.inf


def _divisor(cond: Expr) -> tuple[Var, int] | None:
    """(symbol, n) of an assumption `symbol % n == 0`."""
    left = cond.a if isinstance(cond, Compare) and cond.op == "eq" else None
    if not isinstance(left, Binary) or left.op != "floormod":
        return None
    return (left.a, int(left.b.value)) if isinstance(left.a, Var) and isinstance(left.b, Const) else None


def general(kernel: Kernel, *, aligned: bool = False) -> Kernel:
    """The tile-level kernel that will be built without assumptions on shapes, and on addresses unless `aligned`."""
    return kernel.with_(attrs={**kernel.attrs, "variant": "aligned" if aligned else "general"})


def assume(kernel: Kernel, target: Target) -> Kernel:
    """The fast variant's assumptions: tensors start at a multiple of 16 bytes, and every run-time extent or stride that
    makes a row pitch keeps rows at such multiples. The launcher checks them and falls back to the general variant.
    The aligned variant assumes the former alone. A kernel that is the user's own text assumes nothing."""
    variant = kernel.attrs.get("variant", "fast")
    if variant == "general" or any(isinstance(s, SourceKernel) for s in kernel.body):
        return kernel
    found: dict[tuple[Any, int], Assumed] = {}
    for tensor in kernel.tensors:
        pointer = Var(f"{tensor.name}.ptr")
        found[(pointer.name, POINTER_ALIGNMENT)] = Assumed(
            compare("eq", pointer % POINTER_ALIGNMENT, 0),
            f"`{tensor.name}` starts at a multiple of {POINTER_ALIGNMENT} bytes",
        )
        if variant != "fast":
            continue
        run = max(1, POINTER_ALIGNMENT // tensor.dtype.bytes)
        for pitch in _pitches(tensor, run):
            for symbol in [n for n in walk(pitch) if isinstance(n, Var)] if isinstance(pitch, Expr) else []:
                if run > 1:
                    text = (
                        f"{symbol.name} is a multiple of {run} (rows of `{tensor.name}` start at multiples of 16 bytes)"
                    )
                    found.setdefault((symbol, run), Assumed(compare("eq", symbol % run, 0), text))
        span = _span(tensor)
        if not isinstance(span, int):
            fits = compare("lt", span, INT32_SPAN)
            found[(tensor.name, 0)] = Assumed(fits, f"`{tensor.name}` has fewer than 2^31 elements")
    return kernel.with_(assumed=(*kernel.assumed, *found.values()))


def not_empty(maps: Iterable[TmaMap]) -> tuple[Assumed, ...]:
    """What descriptors ask of the tensors they describe: no extent is 0."""
    found: dict[tuple[Buffer, Expr], Assumed] = {}
    for tensor, extent in ((m.tensor, e) for m in maps for e in m.tensor.shape if isinstance(e, Expr)):
        if not isinstance(extent, Const):
            found[tensor, extent] = Assumed(compare("gt", extent, 0), f"`{tensor.name}` is not empty")
    return tuple(found.values())


def _pitches(tensor: Buffer, run: int) -> list[Any]:
    """Strides, or the extents that make them, that do not keep rows at multiples of `run` elements by themselves."""
    if tensor.strides:
        return list(tensor.strides[:-1])
    found: dict[Any, None] = {}
    for at in range(1, len(tensor.shape)):
        factors = tensor.shape[at:]
        if math.prod(n for n in factors if isinstance(n, int)) % run:
            found |= dict.fromkeys(factors)
    return list(found)


def wide_tensors(kernel: Kernel) -> frozenset[Buffer]:
    """Tensors whose element offsets need 64 bits: large ones, and in the general variant all of run-time size."""
    general = kernel.attrs.get("variant", "fast") != "fast"
    spans = {t: _span(t) for t in kernel.tensors}
    return frozenset(t for t, n in spans.items() if (n >= INT32_SPAN if isinstance(n, int) else general))


def _span(tensor: Buffer) -> Any:
    """Elements from the first to the last of a tensor, both counted."""
    if tensor.strides is None:
        return math.prod(tensor.shape)
    return sum((extent - 1) * stride for extent, stride in zip(tensor.shape, tensor.strides, strict=True)) + 1


def inside_loop(facts: Facts, loop: For) -> Facts:
    """The facts that hold in a loop's body."""
    return facts.with_loop(loop.var, loop.start, loop.stop, loop.step)


def after_let(facts: Facts, let: Let) -> Facts:
    """The facts that hold once `let` is bound."""
    if not let.value.dtype.is_int:
        return facts
    low, high = facts.range(let.value)
    known = facts.ranges.get(let.var, (low, high))  # block order knows more than its arithmetic shows
    more = Facts(facts.ranges, facts.divisors)
    more.ranges[let.var] = (max(low, known[0]), min(high, known[1]))
    more.divisors[let.var] = facts.divisor(let.value) or 1
    return more
