"""Elements of four bits: packed in pairs in global memory, the first in the low half of a byte; one a byte in registers
and shared memory, where the machine can address them."""

from __future__ import annotations

from typing import Any

from ..errors import InternalError
from ..ir.dtype import DType
from ..ir.expr import Const, Expr
from ..ir.instr import Addr, LoadMem, StoreMem
from .c_scalar import D
from .functions import Function

WIDTHS = (2, 4, 8, 16, 32)  # elements of one access

FUNCTIONS: dict[str, Function] = {
    "tw_spread": Function(f"""\
{D} unsigned tw_spread(unsigned x) {{
  x = (x | x << 8) & 0x00ff00ffu;
  return (x | x << 4) & 0x0f0f0f0fu;
}}"""),
    "tw_gather": Function(f"""\
{D} unsigned tw_gather(unsigned x) {{
  x &= 0x0f0f0f0fu;
  x = (x | x >> 4) & 0x00ff00ffu;
  return (x | x >> 8) & 0xffffu;
}}"""),
    "tw_extend": Function(f"{D} unsigned tw_extend(unsigned x) {{ return x | (x & 0x08080808u) * 0x1eu; }}"),
    "tw_load_nibble": Function(f"""\
{D} unsigned char tw_load_nibble(const void* s, long long i) {{
  return (unsigned char)(((const unsigned char*)s)[i >> 1] >> (i & 1) * 4 & 15);
}}"""),
    # The byte is another thread's too: the half's change is applied to its word in one atomic.
    "tw_store_nibble": Function(
        f"""\
{D} void tw_store_nibble(void* d, long long i, unsigned v) {{
  unsigned char* const p = (unsigned char*)d + (i >> 1);
  const unsigned change = (*p >> (i & 1) * 4 ^ v) & 15u, at = (unsigned)(unsigned long long)p & 3u;
  tw_atomic_flip((unsigned*)(p - at), change << (at * 8 + (i & 1) * 4));
}}""",
        ("tw_atomic_flip",),
    ),
}


def _wide(count: int) -> dict[str, Function]:
    size, words = count // 2, max(count // 4, 1)
    found = {}
    for kind, value in (("s4", "tw_extend(tw_spread(h[i]))"), ("u4", "tw_spread(h[i])")):
        body = (
            f"  unsigned char h[2] = {{0, 0}};\n  tw_load1(h, s);\n  const unsigned w = "
            f"{value.replace('h[i]', 'h[0]')};\n"
            "  ((unsigned char*)d)[0] = (unsigned char)w;\n  ((unsigned char*)d)[1] = (unsigned char)(w >> 8);"
            if count == 2
            else f"  alignas(16) unsigned short h[{words}];\n  tw_load{size}(h, s);\n#pragma unroll\n"
            f"  for (int i = 0; i < {words}; ++i) ((unsigned*)d)[i] = {value};"
        )
        found[f"tw_load_{kind}x{count}"] = Function(
            f"{D} void tw_load_{kind}x{count}(void* d, const void* s) {{\n{body}\n}}",
            ("tw_spread", *(("tw_extend",) if kind == "s4" else ()), f"tw_load{size}"),
        )
    body = (
        "  const unsigned char* const b = (const unsigned char*)s;\n"
        "  const unsigned char h = (unsigned char)((b[0] & 15) | b[1] << 4);\n  tw_store1(d, &h);"
        if count == 2
        else f"  alignas(16) unsigned short h[{words}];\n#pragma unroll\n"
        f"  for (int i = 0; i < {words}; ++i) h[i] = (unsigned short)tw_gather(((const unsigned*)s)[i]);\n"
        f"  tw_store{size}(d, h);"
    )
    found[f"tw_store_4x{count}"] = Function(
        f"{D} void tw_store_4x{count}(void* d, const void* s) {{\n{body}\n}}", ("tw_gather", f"tw_store{size}")
    )
    return found


for _count in WIDTHS:
    FUNCTIONS |= _wide(_count)


def is_packed(a: Addr) -> bool:
    return a.buffer.space == "global" and a.buffer.dtype.is_packed


def place(p: Any, a: Addr) -> str:
    """C pointer to the byte where a run of packed elements starts, at an even element."""
    offset = _half(a.offset)
    name = p.name(a.buffer)
    return name if isinstance(offset, Const) and offset.value == 0 else f"{name} + {p.expr(offset, 12)}"


def _half(offset: Expr) -> Expr:
    return offset >> 1


def load(p: Any, s: LoadMem) -> str:
    """The statement that loads packed elements into registers of one byte each."""
    dtype, count = s.dst.buffer.dtype, s.dst.count
    if count == 1:
        one = f"{p.use('tw_load_nibble')}({p.name(s.src.buffer)}, {p.expr(s.src.offset)})"
        return f"{p.reg(s.dst)} = {p.use('tw_to_int4') + f'({one})' if dtype.kind == 'int' else one};"
    kind = "s4" if dtype.kind == "int" else "u4"
    return f"{p.use(f'tw_load_{kind}x{_known(count, dtype)}')}({p.regs(s.dst)}, {place(p, s.src)});"


def store(p: Any, s: StoreMem) -> str:
    """The statement that packs registers of one byte each into memory."""
    count = s.src.count
    if count == 1:
        return f"{p.use('tw_store_nibble')}({p.name(s.dst.buffer)}, {p.expr(s.dst.offset)}, {p.reg(s.src)});"
    return f"{p.use(f'tw_store_4x{_known(count, s.src.buffer.dtype)}')}({place(p, s.dst)}, {p.regs(s.src)});"


def _known(count: int, dtype: DType) -> int:
    if count not in WIDTHS:
        raise InternalError(f"one access of {count} elements of {dtype}", rule=f"1 or one of {WIDTHS}")
    return count
