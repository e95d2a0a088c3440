"""A function that launches several kernels, or that needs workspaces: what a call does not bring is made first, then
the launches follow one another on the same arrays."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import Any

from ..errors import LaunchError
from ..ir.evaluate import evaluate
from ..ir.expr import Buffer, Var
from ..ir.kernel import Kernel
from ..runtime import arrays
from ..runtime.disassemble import SassLine
from ..target import Target
from ..target.roofline import Roofline
from . import host
from .kernel import JITKernel, Plan
from .timing import Timing
from .trace import Trace


class LaunchSequence(JITKernel):
    """`parts` are the launches in order, each a kernel that takes every tensor. Figures are the largest or the sum over
    the parts; `tile` holds all their statements, for what is asked of the text."""

    def __init__(self, tiles: Sequence[Kernel], target: Target, timing: Timing, prim_func: Any = None) -> None:
        self._tiles = tuple(tiles)
        self._parts = tuple(JITKernel(taking_all(tile), target, timing) for tile in tiles)
        self.tile = tiles[0].with_(body=tuple(s for tile in tiles for s in tile.body))
        self.target, self.timing, self.name = target, timing, tiles[0].name
        self.prim_func = prim_func if prim_func is not None else self.tile
        self.out_idx = list(self.tile.outputs) or None
        self.variant = self._parts[0].variant
        self._call = self._in_order

    @property
    def parts(self) -> tuple[JITKernel, ...]:
        """The kernels in the order of their launches."""
        return self._parts

    @property
    def tiles(self) -> tuple[Kernel, ...]:
        """The tile-level kernels in the same order."""
        return self._tiles

    def _in_order(self, *args: Any, **named: Any) -> Any:
        values = host.by_name(self.tile, args, named)
        every = filled(self.tile, values)
        for part in self._parts:
            part(*every)
        made = [every[i] for i in self.tile.outputs if self.tile.params[i].name not in values]
        return None if not made else made[0] if len(made) == 1 else made

    @property
    def source(self) -> str:
        """The generated texts one after the other."""
        return "\n".join(part.source for part in self._parts)

    @property
    def ptx(self) -> str:
        """The PTX of all parts."""
        return "\n".join(part.ptx for part in self._parts)

    @functools.cached_property
    def sass_lines(self) -> tuple[SassLine, ...]:
        """The disassembly of all parts."""
        return tuple(line for part in self._parts for line in part.sass_lines)

    @property
    def registers(self) -> int | None:
        """Of a thread of the part that needs most; None where it is not known."""
        return max((part.registers or 0 for part in self._parts), default=None) or None

    @property
    def spills(self) -> int | None:
        """Bytes spilled by all parts."""
        return sum(part.spills or 0 for part in self._parts)

    @property
    def warnings(self) -> tuple[str, ...]:
        """The device compiler's warnings of all parts."""
        return tuple(warning for part in self._parts for warning in part.warnings)

    @property
    def shared_bytes(self) -> int:
        """Shared memory of a block of the part that needs most."""
        return max(part.shared_bytes for part in self._parts)

    def roofline(self, **sizes: int) -> Roofline:
        """The sum of the parts: each reads and writes device memory."""
        each = [part.roofline(**sizes) for part in self._parts]
        compute, memory = sum(r.compute_us for r in each), sum(r.memory_us for r in each)
        largest = max(each, key=lambda r: r.us)
        return Roofline(compute, memory, largest.bound, largest.intensity, largest.ridge, largest.note)

    @functools.cached_property
    def plan(self) -> Plan:
        """The plans of all parts as one."""
        plans = [part.plan for part in self._parts]
        return Plan(
            tuple(d for plan in plans for d in plan.decisions),
            tuple(r for plan in plans for r in plan.roles),
            tuple(c for plan in plans for c in plan.channels),
            tuple(dict.fromkeys(text for plan in plans for text in plan.assumed)),
            tuple(dict.fromkeys(text for plan in plans for text in plan.notes)),
        )

    @functools.cached_property
    def trace(self) -> Trace:
        """The steps of the first part, then of the next."""
        return Trace.joined(part.trace for part in self._parts)


def taking_all(tile: Kernel) -> Kernel:
    """The kernel as one launch sees it: every tensor is passed."""
    return tile.with_(outputs=(), attrs={k: v for k, v in tile.attrs.items() if k != "workspaces"})


def filled(kernel: Kernel, values: Mapping[str, Any]) -> list[Any]:
    """Arguments in order, with new arrays, of the library and on the device of those given, for what is missing."""
    library, device = "numpy", arrays.CPU
    symbols: dict[Var, Any] = {v: values[v.name] for v in kernel.scalars}
    for tensor in kernel.tensors:
        if tensor.name in values:
            found = host.read(tensor, values[tensor.name])
            library, device = found.library, found.device
            symbols |= {e: n for e, n in zip(tensor.shape, found.shape, strict=False) if isinstance(e, Var)}
    return [
        values[p.name] if p.name in values else empty(p, symbols, library, device) if isinstance(p, Buffer) else None
        for p in kernel.params
    ]


def empty(param: Buffer, symbols: Mapping[Var, Any], library: str, device: int) -> Any:
    """A new array in the shape of a parameter."""
    try:
        shape = tuple(s if isinstance(s, int) else int(evaluate(s, symbols)) for s in param.shape)
    except KeyError as missing:
        raise LaunchError(
            f"the shape of `{param.name}` depends on {missing}, which no argument gives",
            rule="symbols are extents of inputs",
            fix=f"pass {param.name}",
            loc=param.loc,
        ) from None
    return arrays.empty(library, device, shape, param.dtype.name)
