"""CUDA: mma.sync, mma.sp and wgmma, one generated function per shape and types that a kernel uses."""

from __future__ import annotations

from typing import Any

from ..errors import InternalError
from ..ir.expr import Const, Expr, const
from ..ir.instr import Desc, Mma, MmaSparse, Reg, WaitGroup, Wgmma, WgmmaFence
from .atoms import Parts, mma_parts, wgmma_parts
from .c_scalar import D
from .dialect import Row
from .functions import Function

# PTX type → (constraint, C type of one register)
_REGISTER = {"f32": ("f", "float"), "f64": ("d", "double")}
_SWIZZLE = {0: 0, 128: 1, 64: 2, 32: 3}
FUNCTIONS = {
    "tw_wgmma_fence": Function(
        f'{D} void tw_wgmma_fence() {{ asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }}', (), "wgmma"
    ),
    # Tells the compiler that registers change here, so that it moves no access to them across a wait.
    "tw_touch": Function(f"""\
template <int count> {D} void tw_touch(void* regs) {{
#pragma unroll
  for (int i = 0; i < count; ++i) asm volatile("" : "+r"(((unsigned*)regs)[i]) :: "memory");
}}"""),
    "tw_touch_float": Function(f"""\
template <int count> {D} void tw_touch_float(float* regs) {{
#pragma unroll
  for (int i = 0; i < count; ++i) asm volatile("" : "+f"(regs[i]) :: "memory");
}}"""),
    # The high word (stride, swizzle) and the leading offset are constants: one shift and one OR make the rest.
    "tw_desc": Function(f"""\
{D} unsigned long long tw_desc(unsigned smem, unsigned bytes, unsigned low, unsigned high) {{
  return (unsigned long long)high << 32 | ((smem >> 4) + low + (bytes >> 4));
}}"""),
}


def _register(kind: str) -> tuple[str, str]:
    return _REGISTER.get(kind, ("r", "unsigned"))


def _mma(p: Any, s: Mma) -> None:
    p.need("mma_sync", "mma.sync")
    atom = mma_parts(s.atom)
    name = f"tw_mma_{atom.word}"
    p.define(name, _mma_text(atom, name))
    p.line(f"{name}({p.regs(s.d)}, {p.regs(s.a)}, {p.regs(s.b)}, {p.regs(s.c)});")


def _mma_sparse(p: Any, s: MmaSparse) -> None:
    atom = mma_parts(s.atom)
    name = f"tw_mma_{atom.word}{f'_from{s.selector}' if s.selector else ''}"
    p.define(name, _mma_text(atom, name, s.selector))
    p.line(f"{name}({p.regs(s.d)}, {p.regs(s.a)}, {p.regs(s.b)}, {p.regs(s.c)}, {p.regs(s.e)});")


def _mma_text(atom: Parts, name: str, selector: int = 0) -> str:
    n, lists, operands, casts = 0, [], [], []
    for which, kind in (("d", atom.d), ("a", atom.a), ("b", atom.b), ("c", atom.d)):
        count = atom.registers("d" if which == "c" else which)
        constraint, c_type = _register(kind)
        out, const_ = ("=", "") if which == "d" else ("", "const ")
        lists.append("{" + ", ".join(f"%{n + i}" for i in range(count)) + "}")
        operands.append(", ".join(f'"{out}{constraint}"({which}[{i}])' for i in range(count)))
        casts.append(f"  {const_}{c_type}* {which} = ({const_}{c_type}*){which}_;")
        n += count
    last = ""
    if atom.sparse:
        last = ", const void* e_"
        lists += [f"%{n}", f"{selector:#x}"]
        operands.append('"r"(*(const unsigned*)e_)')
    return f"""\
{D} void {name}(void* d_, const void* a_, const void* b_, const void* c_{last}) {{
{chr(10).join(casts)}
  asm volatile("{atom.mnemonic} {", ".join(lists)};"
               : {operands[0]} : {", ".join(operands[1:])});
}}"""


def _wgmma(p: Any, s: Wgmma) -> None:
    atom = wgmma_parts(s.atom)
    from_regs = isinstance(s.a, Reg)
    majors = "".join("t" if isinstance(x, Desc) and x.major == "mn" else "n" for x in (s.a, s.b))
    name = f"tw_wgmma_{atom.word}_{'rs' if from_regs else 'ss'}_{majors}{f'_from{s.selector}' if s.selector else ''}"
    p.define(name, _wgmma_text(name, atom, from_regs, majors, s))
    a = p.regs(s.a) if isinstance(s.a, Reg) else desc(p, s.a)
    meta = f", {p.regs(s.e)}" if s.e is not None else ""
    keep = "0" if _is_true(s.zero) else "1" if isinstance(s.zero, Const) else f"!({p.expr(s.zero)})"
    p.line(f"{name}({p.regs(s.d)}, {a}, {desc(p, s.b)}, {keep}{meta});")


def _is_true(e: Expr) -> bool:
    return isinstance(e, Const) and bool(e.value)


def _wgmma_text(name: str, atom: Parts, from_regs: bool, majors: str, s: Wgmma) -> str:
    if "t" in majors and atom.a not in ("f16", "bf16"):
        raise InternalError(
            f"wgmma of {atom.a} with a transposed operand", rule="only 16-bit operands may be", loc=s.loc
        )
    constraint, kind = _register(atom.d)
    n = atom.registers("d")
    d = "{" + ", ".join(f"%{i}" for i in range(n)) + "}"
    outs = ", ".join(f'"+{constraint}"(d[{i}])' for i in range(n))
    a_words = atom.registers("a") if from_regs else 1
    a = "{" + ", ".join(f"%{n + i}" for i in range(a_words)) + "}" if from_regs else f"%{n}"
    ins = ", ".join(f'"r"(a[{i}])' for i in range(a_words)) if from_regs else '"l"(a)'
    at = n + a_words
    meta = (
        (f", %{at + 2}, {s.selector}", ', "r"(*(const unsigned*)e)', ", const void* e") if atom.sparse else ("", "", "")
    )
    negate = "" if atom.d == "s32" else ", 1, 1"
    turn = (
        "".join(f", {int(m == 't')}" for m in (majors[1:] if from_regs else majors))
        if atom.a in ("f16", "bf16")
        else ""
    )
    arg = "const void* a_" if from_regs else "unsigned long long a"
    cast = "  const unsigned* a = (const unsigned*)a_;\n" if from_regs else ""
    return f"""\
{D} void {name}(void* d_, {arg}, unsigned long long b, int keep{meta[2]}) {{
  {kind}* d = ({kind}*)d_;
{cast}  asm volatile("{{ .reg .pred p; setp.ne.b32 p, %{at + 1}, 0; "
               "{atom.mnemonic} "
               "{d}, {a}, %{at}{meta[0]}, p{negate}{turn}; }}"
               : {outs} : {ins}, "l"(b), "r"(keep){meta[1]});
}}"""


def desc(p: Any, x: Desc) -> str:
    """A shared-memory descriptor: address, leading and stride offsets in 16-byte units, swizzle in bits 62 and 63."""
    if x.swizzle not in _SWIZZLE or x.leading % 16 or x.stride % 16:
        raise InternalError(
            f"descriptor swizzle {x.swizzle}, offsets {x.leading}, {x.stride}", rule="multiples of 16", loc=x.loc
        )
    low, high = (x.leading >> 4 & 0x3FFF) << 16, (x.stride >> 4 & 0x3FFF) | _SWIZZLE[x.swizzle] << 30
    # Shared memory starts at a multiple of 16 bytes, so that its part of the sum is worked out once.
    where = p.bytes_in_shared(x.addr.buffer, x.addr.offset * x.addr.buffer.dtype.bytes)
    return f"{p.use('tw_desc')}({p.want('smem_at')}, {p.expr(where)}, {low:#x}u, {high:#x}u)"


def _fence(p: Any, s: WgmmaFence) -> None:
    touch(p, s.regs)
    p.line(f"{p.use('tw_wgmma_fence')}();")


def touch(p: Any, regs: tuple[Reg, ...]) -> None:
    """Registers that change here as far as the compiler knows."""
    for r in regs:
        kind, bytes_ = r.buffer.dtype.name, r.count * r.buffer.dtype.bytes
        if kind in ("float32", "tfloat32"):
            p.line(f"{p.use('tw_touch_float')}<{r.count}>({p.regs(r)});")
        else:
            p.line(f"{p.use('tw_touch')}<{max(1, bytes_ // 4)}>({p.regs(r)});")


def settle(p: Any, s: WaitGroup) -> None:
    """After a wait for wgmmas: the compiler must read their accumulators here, not before."""
    everything = tuple(Reg(b, const(0), b.static_size() or 1) for b in p.accumulators) if s.pending == 0 else ()
    touch(p, s.regs or everything)


ROWS: dict[Any, Row] = {Mma: _mma, MmaSparse: _mma_sparse, Wgmma: _wgmma, WgmmaFence: _fence}
