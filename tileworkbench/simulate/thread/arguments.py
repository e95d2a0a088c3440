"""Arguments of a thread kernel's run: checked, bound to parameters, and put into flat storage."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import LaunchError, ResourceError
from ...ir.expr import Buffer, Var
from ...ir.instr import AtomicMem, BulkStore, StoreMem, TmaStore
from ...ir.kernel import Kernel
from ...ir.node import walk
from ...ir.region import root
from ...options import options
from . import scalars
from .memory import ALIGNMENT, Space, tensor_space

if TYPE_CHECKING:
    from .launch import Launch


@dataclass(slots=True)
class Argument:
    """A tensor's array; `view`: its elements inside the flat storage, a copy of the array or the array itself."""

    array: np.ndarray
    view: np.ndarray
    copied: bool

    def mask(self, space: Space) -> Any:
        """Which elements have been written."""
        strides = self.view.strides if self.copied else None
        if strides is None:
            return space.defined.reshape(self.array.shape)
        steps = tuple(s // self.array.itemsize for s in strides)
        return np.lib.stride_tricks.as_strided(space.defined, self.array.shape, steps).copy()


def bind_values(launch: Launch, kernel: Kernel, args: Sequence[Any]) -> None:
    """Scalars, and the extents and strides of tensors."""
    if len(args) != len(kernel.params):
        raise LaunchError(
            f"{len(args)} arguments for {kernel.name}, which has {len(kernel.params)} parameters",
            rule="arguments come in order of the parameters",
            fix="pass one argument a parameter",
        )
    starts = {}
    for param, arg in zip(kernel.params, args, strict=True):
        if isinstance(param, Var):
            launch.values[param] = scalars.constant(arg, param.dtype)
        else:
            _bind_symbols(launch, param, arg)
            starts[f"{param.name}.ptr"] = skew(param, arg)
    for var in (n for fact in kernel.assumed for n in walk(fact.cond) if isinstance(n, Var)):
        if var.name in starts:
            launch.values[var] = starts[var.name]


def skew(buffer: Buffer, array: np.ndarray) -> int:
    """Bytes from a multiple of ALIGNMENT to the array's start; arrays that are copied to be dense start at one."""
    dense = buffer.strides is None and not array.flags.c_contiguous
    return 0 if dense or not array.size else array.ctypes.data % ALIGNMENT


def bind(launch: Launch, kernel: Kernel, args: Sequence[Any], made: tuple[int, ...]) -> dict[Buffer, Argument]:
    """The tensors of the call; parameters in `made` start undefined."""
    bind_values(launch, kernel, args)
    written = {b for n in walk(kernel.body) for b in _written(n, kernel)}
    bound = {}
    for position, (param, arg) in enumerate(zip(kernel.params, args, strict=True)):
        if isinstance(param, Buffer):
            bound[param] = _tensor(launch, param, arg, position not in made, param in written)
    for buffer in kernel.buffers:  # workspaces of the kernel's own
        if buffer.space == "global" and buffer not in launch.tensors:
            size = prod(launch.evaluate(s) for s in buffer.shape)
            launch.tensors[buffer] = tensor_space(
                buffer, np.zeros(size, dtype=buffer.dtype.numpy), False, buffer in written
            )
    return bound


def check_memory(launch: Launch, warps: int) -> None:
    """Race records take up to 27 bytes a unit and 20 a unit and warp."""
    units = launch.kernel.shared_bytes + sum(x.defined.size for x in launch.tensors.values() if x.shadow is not None)
    need, limit = units * (27 + 20 * warps), int(options.simulate_memory_limit)
    if need > limit:
        raise ResourceError(
            f"the thread machine's race records of {launch.kernel.name} take up to {need} bytes",
            rule=f"a simulated kernel may take {limit} bytes (option simulate_memory_limit)",
            fix="use smaller tensors, the tile machine, or raise simulate_memory_limit",
        )


def _written(n: Any, kernel: Kernel) -> list[Buffer]:
    if isinstance(n, (StoreMem, AtomicMem, BulkStore)):
        return [root(n.dst.buffer)] if not isinstance(n, AtomicMem) or n.op != "load" else []
    if isinstance(n, TmaStore):
        return [m.tensor for m in kernel.maps if m.name == n.map]
    return []


def _bind_symbols(launch: Launch, buffer: Buffer, array: Any) -> None:
    if not isinstance(array, np.ndarray):
        raise LaunchError(
            f"{type(array).__name__} for tensor {buffer.name!r}",
            rule="tensors are NumPy arrays",
            fix="pass np.asarray(…)",
        )
    if array.dtype != buffer.dtype.numpy:
        raise LaunchError(
            f"{array.dtype} array for {buffer.name!r}",
            rule=f"its dtype is {buffer.dtype}",
            fix=f"pass .astype({buffer.dtype.numpy})",
        )
    if array.ndim != len(buffer.shape):
        raise LaunchError(
            f"rank {array.ndim} array for {buffer.name!r}", rule=f"its rank is {len(buffer.shape)}", fix="reshape it"
        )
    strides = tuple(s // array.itemsize for s in array.strides)
    for entries, found in ((buffer.shape, array.shape), (buffer.strides or (), strides)):
        for entry, size in zip(entries, found, strict=bool(entries)):
            if isinstance(entry, Var) and entry not in launch.values:
                launch.values[entry] = int(size)


def _tensor(launch: Launch, buffer: Buffer, array: np.ndarray, defined: bool, written: bool) -> Argument:
    """Checks the shape and puts the tensor into flat storage: its own when it is row-major, else a copy with gaps."""
    shape = tuple(launch.evaluate(s) for s in buffer.shape)
    if shape != array.shape:
        raise LaunchError(
            f"shape {array.shape} for {buffer.name!r}", rule=f"its shape is {shape}", fix="pass an array of that shape"
        )
    if written and not array.flags.writeable:
        raise LaunchError(
            f"a read-only array for {buffer.name!r}, which the kernel writes",
            rule="outputs are writeable",
            fix="pass a copy",
        )
    dense = buffer.strides is None
    if dense and array.flags.c_contiguous:
        flat = array.reshape(-1)
        space = launch.tensors[buffer] = tensor_space(buffer, flat, defined, written)
        space.skew = skew(buffer, array)
        return Argument(array, array, False)
    strides = (
        tuple(prod(shape[d + 1 :]) for d in range(len(shape)))
        if dense
        else tuple(launch.evaluate(s) for s in buffer.strides or ())
    )
    span = 1 + sum((e - 1) * s for e, s in zip(shape, strides, strict=True)) if array.size else 0
    flat = np.zeros(span, dtype=array.dtype)
    view = np.lib.stride_tricks.as_strided(flat, shape, tuple(s * array.itemsize for s in strides))
    view[...] = array
    space = launch.tensors[buffer] = tensor_space(buffer, flat, defined, written)
    space.skew = skew(buffer, array)
    valid = np.zeros(span, dtype=bool)
    np.lib.stride_tricks.as_strided(valid, shape, strides)[...] = True
    space.valid = None if valid.all() else valid
    return Argument(array, view, True)
