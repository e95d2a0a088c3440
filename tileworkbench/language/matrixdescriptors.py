"""T.alloc_wgmma_desc, T.initialize_wgmma_descriptor, T.increase_descriptor_offset: where the operands of T.ptx_wgmma_ss
and its kin lie in shared memory."""

from __future__ import annotations

from typing import Any

from ..errors import TargetError
from ..ir.dtype import INT32
from ..ir.expr import Buffer, Const, Load, as_expr, binary
from ..ir.stmt import ZERO, Alloc, Store
from ..ops.descriptor_product import UNIT, Described
from .builder import Builder, Frame, require
from .dtypes import as_dtype
from .faults import fault, shown
from .matrixinstr import known
from .pointers import Pointer, read_once

SPANS = {0: 0, 1: 128, 2: 64, 3: 32}  # bytes of the swizzle by the descriptor's layout type


class MatrixDescriptor:
    """A descriptor of one operand. What it says is fixed where it is initialised; how far it has moved since is a
    variable of each thread."""

    def __init__(self, builder: Builder) -> None:
        self.moved = Buffer(builder.unique(f"{builder.hint or 'descriptor'}_moved"), (1,), INT32, "local",
                            loc=builder.here)  # fmt: skip
        builder.emit(Alloc(self.moved, loc=builder.here))
        builder.define(self.moved)
        self.frame: Frame | None = None
        self.start: Pointer | None = None
        self.fields = (0, 0, 0)

    def __repr__(self) -> str:
        return "a descriptor"

    @property
    def data(self) -> MatrixDescriptor:
        """Itself: instructions take descriptors by this name too."""
        return self

    def __getitem__(self, index: Any) -> MatrixDescriptor:
        return self

    def operand(self, builder: Builder, offset: Any, k_major: bool, what: str) -> Described:
        """The operand `offset` × 16 bytes after where the descriptor stands."""
        if self.start is None or self.frame not in builder.frames:
            raise fault(
                f"{what}: a descriptor that is not initialised here",
                "T.initialize_wgmma_descriptor stands before it, in the same body or around it",
                "initialise it where it is used",
            )
        span, leading, stride = self.fields
        units = binary("add", Load(self.moved, (ZERO,), loc=builder.here), as_expr(offset))
        major = "k" if k_major else "mn"
        return Described(self.start.buffer, self.start.indices, units, span, leading, stride, major, loc=builder.here)


def alloc_descriptor(kind: str = "wgmma", dtype: Any = "uint64") -> MatrixDescriptor:
    """A descriptor of an operand of matrix instructions."""
    builder = require("T.alloc_descriptor")
    if kind != "wgmma":
        raise TargetError(
            f"T.alloc_descriptor({shown(kind)})",
            rule="it needs Blackwell tensor memory (sm_100), which no target here has yet",
            fix='T.alloc_descriptor("wgmma")',
        )
    if as_dtype(dtype).name != "uint64":
        raise fault(f"T.alloc_descriptor of {shown(dtype)}", "a descriptor has 64 bits", "leave dtype out")
    return MatrixDescriptor(builder)


def alloc_wgmma_desc(dtype: Any = "uint64") -> MatrixDescriptor:
    """A descriptor of an operand of wgmma."""
    return alloc_descriptor("wgmma", dtype)


def initialize_wgmma_descriptor(
    descriptor: Any, start_address: Any, layout_type_: Any = 0, leading_byte_offset: Any = 0,
    stride_byte_offset: Any = 0,
) -> None:  # fmt: skip
    """Sets what the descriptor says: the operand begins at `start_address` (T.access_ptr of a shared tile), lies under
    the swizzle `layout_type_` (0 none, 1 of 128 bytes, 2 of 64, 3 of 32), with these offsets in units of 16 bytes."""
    what = "T.initialize_wgmma_descriptor"
    builder = require(what)
    made = _descriptor(descriptor, what)
    if not isinstance(start_address, Pointer) or start_address.buffer.space != "shared":
        buffer = getattr(start_address, "buffer", start_address)
        given = f"into `{buffer.name}`" if isinstance(buffer, Buffer) else shown(buffer)
        rule = "it points to an element of a shared tile"
        raise fault(f"{what}: start_address={given}", rule, 'T.access_ptr(A_shared[0, 0], "r")')
    mode, leading, stride = (
        known(value, name, what)
        for value, name in (
            (layout_type_, "layout_type_"),
            (leading_byte_offset, "leading_byte_offset"),
            (stride_byte_offset, "stride_byte_offset"),
        )
    )
    if mode not in SPANS:
        raise fault(f"{what}: layout_type_={mode}", "0: no swizzle, 1: 128 bytes, 2: 64, 3: 32", "give one of these")
    for name, value in (("leading_byte_offset", leading), ("stride_byte_offset", stride)):
        if not 0 <= value < 1 << 14:
            raise fault(f"{what}: {name}={value}", "it is a number of 16-byte units below 2 ** 14", "offset >> 4")
    if made.frame in builder.frames and made.frame is not builder.frames[-1]:
        raise fault(
            f"{what}: the descriptor was initialised outside of this body",
            "on the way out of it, it could say either",
            "T.alloc_wgmma_desc another one inside",
        )
    indices = tuple(read_once(builder, i) for i in start_address.indices)
    made.start = Pointer(start_address.buffer, indices, "r")
    made.frame, made.fields = builder.frames[-1], (SPANS[mode], leading * UNIT, stride * UNIT)
    builder.emit(Store(made.moved, (ZERO,), ZERO, loc=builder.here))


def increase_descriptor_offset(descriptor: Any, offset: Any) -> None:
    """Moves the start of what the descriptor says by `offset` bytes, a multiple of 16."""
    what = "T.increase_descriptor_offset"
    builder = require(what)
    made = _descriptor(descriptor, what)
    by = as_expr(offset)
    if isinstance(by, Const) and int(by.value) % UNIT:
        raise fault(f"{what} by {int(by.value)} bytes", "descriptors count in 16 bytes", "a multiple of 16")
    moved = binary("add", Load(made.moved, (ZERO,), loc=builder.here), binary("floordiv", by, as_expr(UNIT)))
    builder.emit(Store(made.moved, (ZERO,), moved, loc=builder.here))


def _descriptor(given: Any, what: str) -> MatrixDescriptor:
    if not isinstance(given, MatrixDescriptor):
        raise fault(f"{what}: {shown(given)} is no descriptor", "it is what T.alloc_wgmma_desc made", "allocate one")
    return given
