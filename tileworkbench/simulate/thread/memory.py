"""Memory of a block: shared memory as plain bytes, so that aliasing, swizzles and descriptors are what they are on the
device, and global tensors as flat typed arrays. Each unit (byte or element) has a shadow bit: written or not.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import InternalError
from ...ir.expr import Buffer
from ...ir.instr import Addr
from .faults import fault
from .shadow import Shadow

if TYPE_CHECKING:
    from .program import Program
    from .warp import Warp

Array = Any
ALIGNMENT = 16  # bytes, the most that an access asks of an address


class Space:
    """`raw` are its bytes; `unit` the bytes a shadow entry covers; `defined` one bool a unit; `valid` marks the units
    that belong to the tensor (None: all), the others are gaps between its rows; `skew` is where a tensor starts, in
    bytes from a multiple of ALIGNMENT."""

    def __init__(self, name: str, raw: Array, unit: int, defined: Array, shadow: Any) -> None:
        self.name, self.raw, self.unit, self.defined, self.shadow = name, raw, unit, defined, shadow
        self.shared = unit == 1 and name == "shared memory"
        self.valid: Any = None
        self.typed: Any = None
        self.skew = 0

    def units(self, base: Array, size: int) -> Array:
        """Units touched by `size` bytes at each of `base`: (accesses, units)."""
        if self.unit == 1:
            return base[:, None] + np.arange(size)
        first = base // self.unit
        return first[:, None] + np.arange(max(1, -(-size // self.unit)))

    def read(self, base: Array, size: int) -> Array:
        """The bytes at each of `base`: (accesses, size)."""
        return self.raw[base[:, None] + np.arange(size)]

    def element_defined(self, units: Array, count: int, width: int) -> Array:
        """Whether each of `count` elements of `width` bytes is defined, from their units: (accesses, count)."""
        known = self.defined[units]
        if self.unit == width:
            return known
        known = np.repeat(known, self.unit, axis=1) if self.unit > 1 else known
        return known[:, : count * width].reshape(len(units), count, width).all(axis=2)


class Layout:
    """Where each buffer lies: bytes from the start of shared memory, and its extent in bytes."""

    def __init__(self, offsets: Mapping[Buffer, int], sizes: Mapping[Buffer, int]) -> None:
        self.offsets, self.sizes = dict(offsets), dict(sizes)
        self._order = sorted(self.offsets, key=lambda b: self.offsets[b])

    def label(self, byte: int) -> str:
        """`A_shared byte 128 (shared 1152)` of a byte of shared memory."""
        for buffer in reversed(self._order):
            start = self.offsets[buffer]
            if start <= byte < start + self.sizes[buffer]:
                inside = byte - start
                return f"{buffer.name}[{inside // buffer.dtype.bytes}] (shared byte {byte})"
        return f"shared byte {byte}"


def shared_layout(kernel: Any) -> Layout:
    """Offsets and sizes of the kernel's shared and barrier buffers; a buffer without an offset is an internal error."""
    offsets, sizes = {}, {}
    for buffer in kernel.buffers:
        if buffer.space in ("shared", "barrier"):
            if buffer not in kernel.offsets:
                raise InternalError(f"shared buffer {buffer.name} has no offset")
            extent = buffer.static_size()
            if extent is None:
                raise InternalError(f"shared buffer {buffer.name} has a symbolic extent")
            offsets[buffer] = kernel.offsets[buffer]
            sizes[buffer] = extent * buffer.dtype.bytes * kernel.versions.get(buffer, 1)
            if offsets[buffer] + sizes[buffer] > kernel.shared_bytes:
                raise InternalError(
                    f"{buffer.name} ends at byte {offsets[buffer] + sizes[buffer]} of {kernel.shared_bytes}"
                )
    return Layout(offsets, sizes)


def tensor_space(buffer: Buffer, storage: Array, defined: bool, written: bool) -> Space:
    """A global tensor's space over its flat storage."""
    units = storage.size
    shape = tuple(s for s in buffer.shape if isinstance(s, int))

    def label(unit: int) -> str:
        if buffer.strides is None and len(shape) == len(buffer.shape) and prod(shape) == units and shape:
            return f"{buffer.name}[{', '.join(str(int(i)) for i in np.unravel_index(unit, shape))}]"
        return f"{buffer.name} element {unit}"

    shadow = Shadow(units, label, across=True) if written else None
    space = Space(buffer.name, storage.view(np.uint8), buffer.dtype.bytes, np.full(units, defined), shadow)
    space.typed = storage
    return space


Resolve = Callable[["Warp", Array], tuple[Space, Array]]


def resolver(program: Program, addr: Addr, size: int, align: bool = True) -> Resolve:
    """Compiled address: (warp, lanes) → (space, first byte of each lane), checked for undefined offsets, bounds of the
    buffer and alignment to the access."""
    buffer, width = addr.buffer, addr.buffer.dtype.bytes
    offset = program.scope.value(addr.offset)
    number = offset.read
    shared = buffer.space != "global"
    start = program.layout.offsets.get(buffer, 0) if shared else 0
    if shared and buffer not in program.layout.offsets:
        raise InternalError(f"{buffer.name} ({buffer.space}) is not memory that has an address")
    extent = program.layout.sizes[buffer] if shared else None
    aligned = size if align and size in (2, 4, 8, 16) else 1

    def resolve(w: Warp, lanes: Array) -> tuple[Space, Array]:
        space = w.block.shared if shared else w.block.tensor(buffer)
        if offset.undefined is not None and (bad := offset.undefined(w)) is not None and bad[lanes].any():
            raise fault(
                w,
                "undefined",
                f"the offset into {buffer.name} was never written",
                lanes=lanes[bad[lanes]],
                rule="addresses come from defined values",
            )
        value = number(w)
        at = (
            value[lanes].astype(np.int64)
            if isinstance(value, np.ndarray)
            else np.full(len(lanes), value, dtype=np.int64)
        )
        at *= width
        limit = extent if extent is not None else space.raw.size
        if at.size and (int(at.min()) < 0 or int(at.max()) + size > limit):
            bad = (at < 0) | (at + size > limit)
            raise fault(
                w,
                "bounds",
                f"element {int(at[bad][0]) // width} of {buffer.name!r}, which has {limit // width} "
                f"elements ({size} bytes wanted)",
                lanes=lanes[bad],
                rule="an access stays inside its buffer",
                fix="guard the access by a predicate",
            )
        at += start
        if aligned > 1 and ((at + space.skew) % aligned).any():
            bad = (at + space.skew) % aligned != 0
            raise fault(
                w,
                "alignment",
                f"address {int(at[bad][0])} of {buffer.name!r} is not a multiple of {aligned} bytes",
                lanes=lanes[bad],
                rule="an access of n bytes needs an address that is a multiple of n",
            )
        if space.valid is not None and not space.valid[space.units(at, size)].all():
            bad = ~space.valid[space.units(at, size)].all(axis=1)
            raise fault(
                w,
                "bounds",
                f"element {int(at[bad][0]) // width} of {buffer.name!r} lies in the gap between two rows",
                lanes=lanes[bad],
                rule="an access stays inside its tensor",
            )
        return space, at

    return resolve


def predicate(program: Program, pred: Any) -> Callable[[Warp], Any]:
    """Compiled predicate: True, False or a mask; an undefined one in an executing lane is a fault."""
    if pred is None:
        return lambda w: True
    value = program.scope.value(pred)
    read, undefined = value.read, value.undefined

    def holds(w: Warp) -> Any:
        check_defined(w, undefined, "a predicate")
        return truth(read(w))

    return holds


def truth(value: Any) -> Any:
    """A value as True, False or a bool mask: nonzero is true."""
    if not isinstance(value, np.ndarray):
        return bool(value)
    return value if value.dtype == bool else value != 0


def check_defined(w: Warp, undefined: Any, what: str) -> None:
    if undefined is not None and (bad := undefined(w)) is not None and (bad & w.mask).any():
        raise fault(w, "undefined", f"{what} was never written", lanes=bad & w.mask, rule="it must be a defined value")


def uniform(w: Warp, value: Any, what: str) -> int:
    """An integer that must be the same in all executing lanes."""
    if not isinstance(value, np.ndarray):
        return int(value)
    here = value[w.mask]
    if here.size and (here != here[0]).any():
        raise fault(w, "divergent", f"{what} differs between lanes", rule="it must be the same in all lanes of a warp")
    return int(here[0]) if here.size else 0
