"""T.ptx_wgmma_ss, T.ptx_wgmma_rs and their sparse forms: the matrix instructions of a warpgroup, started and not waited
for."""

from __future__ import annotations

from typing import Any, TypeVar

from ..errors import LanguageError, ShapeError
from ..ir.expr import Buffer, as_expr, logical_not, truth
from ..ir.kernel import Kernel
from ..ir.node import walk
from ..layout import SharedLayout
from ..layout.atoms import Atom
from ..layout.wgmma import wgmma_a_fragment, wgmma_atoms, wgmma_sp_atom
from ..ops.descriptor_product import Described, DescriptorProduct, Held
from ..ops.gemm.sparse import METADATA
from ..ops.matrix_element import REGISTER_BITS
from .builder import require
from .faults import fault, shown
from .matrixdescriptors import MatrixDescriptor
from .matrixinstr import TYPES, known, selector_of

Operand = TypeVar("Operand", Held, Described)


def ptx_wgmma_ss(
    dtype: Any, wgmma_prefix: str, a_is_k_major: Any, b_is_k_major: Any, a_dtype_abbrv: str, b_dtype_abbrv: str,
    accum_dtype_abbrv: str, A_desc: Any, A_offset: Any, B_desc: Any, B_offset: Any, C_data: Any, C_offset: Any,
    scale_out: Any, scale_in_a: Any = 1, scale_in_b: Any = 1,
) -> None:  # fmt: skip
    """`C_data[C_offset:] (+)= A · B` by 128 threads, with the instruction `wgmma_prefix` ("m64n128k16") for the types.
    A is 64 × K, B is N × K, each `offset` × 16 bytes after its descriptor; without `scale_out` old sums are left out.
    T.warpgroup_arrive stands before, T.warpgroup_commit_batch and T.warpgroup_wait after the products."""
    _product("T.ptx_wgmma_ss", (wgmma_prefix, a_dtype_abbrv, b_dtype_abbrv, accum_dtype_abbrv), (A_desc, A_offset),
             (B_desc, B_offset), (C_data, C_offset), (a_is_k_major, b_is_k_major), scale_out,
             (scale_in_a, scale_in_b))  # fmt: skip


def ptx_wgmma_rs(
    dtype: Any, wgmma_prefix: str, b_is_k_major: Any, a_dtype_abbrv: str, b_dtype_abbrv: str, accum_dtype_abbrv: str,
    A_buf: Any, A_offset: Any, B_desc: Any, B_offset: Any, C_data: Any, C_offset: Any, scale_out: Any,
    scale_in_a: Any = 1, scale_in_b: Any = 1,
) -> None:  # fmt: skip
    """T.ptx_wgmma_ss with A in registers: `A_buf[A_offset:]` of each thread, which stay as they are until the product
    has been waited for."""
    _product("T.ptx_wgmma_rs", (wgmma_prefix, a_dtype_abbrv, b_dtype_abbrv, accum_dtype_abbrv), (A_buf, A_offset),
             (B_desc, B_offset), (C_data, C_offset), (True, b_is_k_major), scale_out,
             (scale_in_a, scale_in_b))  # fmt: skip


def ptx_wgmma_sp_ss(
    dtype: Any, wgmma_prefix: str, a_is_k_major: Any, b_is_k_major: Any, a_dtype_abbrv: str, b_dtype_abbrv: str,
    accum_dtype_abbrv: str, A_desc: Any, A_offset: Any, E_data: Any, E_offset: Any, sparse_selector: Any, B_desc: Any,
    B_offset: Any, C_data: Any, C_offset: Any, scale_out: Any, scale_in_a: Any = 1, scale_in_b: Any = 1,
) -> None:  # fmt: skip
    """T.ptx_wgmma_ss where A holds half of the elements of each row ("m64n128k32" has 16): the 32 bits of each lane at
    `E_data[E_offset:]` say which. `sparse_selector` says in which two lanes of each four they count (0 or 1); it is 0
    where all lanes give them (8-bit types)."""
    _product("T.ptx_wgmma_sp_ss", (wgmma_prefix, a_dtype_abbrv, b_dtype_abbrv, accum_dtype_abbrv), (A_desc, A_offset),
             (B_desc, B_offset), (C_data, C_offset), (a_is_k_major, b_is_k_major), scale_out, (scale_in_a, scale_in_b),
             (E_data, E_offset, sparse_selector))  # fmt: skip


def ptx_wgmma_sp_rs(
    dtype: Any, wgmma_prefix: str, b_is_k_major: Any, a_dtype_abbrv: str, b_dtype_abbrv: str, accum_dtype_abbrv: str,
    A_buf: Any, A_offset: Any, E_buf: Any, E_offset: Any, sparse_selector: Any, B_desc: Any, B_offset: Any, C_data: Any,
    C_offset: Any, scale_out: Any, scale_in_a: Any = 1, scale_in_b: Any = 1,
) -> None:  # fmt: skip
    """T.ptx_wgmma_sp_ss with A in registers."""
    _product("T.ptx_wgmma_sp_rs", (wgmma_prefix, a_dtype_abbrv, b_dtype_abbrv, accum_dtype_abbrv), (A_buf, A_offset),
             (B_desc, B_offset), (C_data, C_offset), (True, b_is_k_major), scale_out, (scale_in_a, scale_in_b),
             (E_buf, E_offset, sparse_selector))  # fmt: skip


def _product(
    what: str, named: tuple[str, str, str, str], a: tuple[Any, Any], b: tuple[Any, Any], c: tuple[Any, Any],
    k_major: tuple[Any, Any], scale_out: Any, scale_in: tuple[Any, Any], sparse: tuple[Any, Any, Any] | None = None,
) -> None:  # fmt: skip
    builder = require(what)
    atom = instruction(what, *named, sparse is not None)
    for value, name in zip(scale_in, ("scale_in_a", "scale_in_b"), strict=True):
        if known(value, name, what) != 1:
            raise fault(f"{what}: {name}={shown(value)}", "operands are taken as they are", "1, or negate the values")
    majors = [bool(known(m, f"{x}_is_k_major", what)) for m, x in zip(k_major, "ab", strict=True)]
    left: Held | Described
    if what.endswith("ss"):
        left = _described(*a, majors[0], atom.a_dtype, what)
    else:
        left = held(*a, wgmma_a_fragment(atom.a_dtype).registers, atom.a_dtype, what)
    right = _described(*b, majors[1], atom.b_dtype, what)
    acc = held(*c, atom.c.registers, atom.c_dtype, what)
    zero = logical_not(truth(as_expr(scale_out)))
    meta, selector = (None, 0) if sparse is None else _metadata(*sparse, atom, what)
    builder.emit(DescriptorProduct(atom, acc, left, right, zero, meta, selector, loc=builder.here))


def _described(descriptor: Any, offset: Any, k_major: bool, dtype: str, what: str) -> Described:
    if not isinstance(descriptor, MatrixDescriptor):
        raise fault(
            f"{what}: {shown(descriptor)} in the place of a descriptor", "it is what T.alloc_wgmma_desc made",
            "allocate and initialise one",
        )  # fmt: skip
    made = descriptor.operand(require(what), offset, k_major, what)
    if not k_major and made.tile.dtype.bytes != 2:
        raise fault(
            f"{what}: `{made.tile.name}` of {made.tile.dtype} is not K-major", "only 16-bit types may be",
            "store it K-major",
        )  # fmt: skip
    return _typed(made, made.tile, dtype, what)


def _metadata(buffer: Any, start: Any, selector: Any, atom: Atom, what: str) -> tuple[Held, int]:
    array = held(buffer, start, 1, "", what).buffer
    if array.dtype.name not in METADATA:
        raise ShapeError(
            f"{what}: the metadata `{array.name}` is {array.dtype}", rule=f"it is {', '.join(METADATA)}",
            fix='T.alloc_local((n,), "int32")',
        )  # fmt: skip
    made = Held(array, as_expr(start), REGISTER_BITS // array.dtype.bits, loc=require(what).here)
    return made, selector_of(selector, atom, what)


def instruction(what: str, prefix: str, a: str, b: str, c: str, sparse: bool = False) -> Atom:
    """The row of a warpgroup's instruction; ShapeError when there is none."""
    types = [TYPES.get(str(x), str(x)) for x in (a, b, c)]
    rows = wgmma_atoms(*types)
    if sparse:
        rows = tuple(wgmma_sp_atom(row.n, *types) for row in rows)
    for row in rows:
        if str(prefix) == f"m64n{row.n}k{row.k}":
            return row
    known_rows = f"m64n{rows[0].n}k{rows[0].k} … m64n{rows[-1].n}k{rows[-1].k}" if rows else "none"
    found = f"{what}: {prefix} of {a} and {b} into {c}"
    raise ShapeError(found, rule=f"instructions for these types: {known_rows}", fix="use one of them")


def held(buffer: Any, start: Any, count: int, dtype: str, what: str) -> Held:
    """A run of `count` registers of each thread."""
    if not isinstance(buffer, Buffer) or buffer.space not in ("local", "fragment"):
        raise fault(
            f"{what}: {shown(buffer)} in the place of registers", "it is an array of each thread or a fragment",
            "T.alloc_local((n,), dtype)",
        )  # fmt: skip
    if buffer.space == "local" and buffer.rank != 1:
        raise fault(f"{what}: `{buffer.name}` has {buffer.rank} dimensions", "an array of registers has one",
                    f"T.alloc_local(({count},), {buffer.dtype})")  # fmt: skip
    return _typed(Held(buffer, as_expr(start), count, loc=require(what).here), buffer, dtype, what)


def _typed(operand: Operand, buffer: Buffer, dtype: str, what: str) -> Operand:
    wanted = "float32" if dtype == "tfloat32" else dtype
    if dtype and buffer.dtype.name not in (wanted, dtype):
        raise ShapeError(
            f"{what}: `{buffer.name}` is {buffer.dtype}", rule=f"the instruction takes {dtype} there",
            fix=f"allocate it as {wanted}, or name the instruction of its type",
        )  # fmt: skip
    return operand


def described_layouts(kernel: Kernel) -> Kernel:
    """The kernel, its tiles that descriptors name and no annotation lays out row-major: a descriptor counts in bytes.
    LanguageError for fragments whose registers no annotation numbers."""
    products = [n for n in walk(kernel.body) if isinstance(n, DescriptorProduct)]
    if not products:
        return kernel
    layouts = dict(kernel.attrs.get("layouts", {}))
    for s in products:
        for x in (s.acc, s.a, s.b, s.meta):
            if isinstance(x, Described):
                layouts.setdefault(x.tile, SharedLayout.row_major(tuple(int(e) for e in x.tile.shape)))
            elif x is not None and x.buffer.space == "fragment" and x.buffer not in layouts:
                raise LanguageError(
                    f"a warpgroup product on the fragment `{x.buffer.name}`, which has no layout",
                    rule="the instruction says which thread holds which element",
                    fix="T.annotate_layout({…}), or T.alloc_local",
                    loc=s.loc,
                )
    return kernel.with_(attrs={**kernel.attrs, "layouts": layouts})
