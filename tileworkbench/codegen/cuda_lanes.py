"""CUDA: shuffles and votes. A value of any width travels in 32-bit words."""

from __future__ import annotations

from typing import Any

from ..errors import InternalError
from ..ir.instr import Match, Shuffle, Vote
from .c_scalar import D
from .dialect import Row
from .functions import Function

_KINDS = {"idx": "idx", "xor": "bfly", "up": "up", "down": "down"}
FUNCTIONS: dict[str, Function] = {
    f"tw_shuffle_{kind}": Function(f"""\
{D} unsigned tw_shuffle_{kind}(unsigned x, int lane, int clamp) {{
  unsigned r;
  asm volatile("shfl.sync.{ptx}.b32 %0, %1, %2, %3, 0xffffffff;" : "=r"(r) : "r"(x), "r"(lane), "r"(clamp));
  return r;
}}""")
    for kind, ptx in _KINDS.items()
}
for _kind in _KINDS:
    FUNCTIONS[f"tw_shuffle_{_kind}_words"] = Function(
        f"""\
template <int count> {D} void tw_shuffle_{_kind}_words(void* d, const void* s, int lane, int clamp) {{
#pragma unroll
  for (int i = 0; i < count; ++i) ((unsigned*)d)[i] = tw_shuffle_{_kind}(((const unsigned*)s)[i], lane, clamp);
}}""",
        (f"tw_shuffle_{_kind}",),
    )
FUNCTIONS["tw_ballot"] = Function(f"""\
{D} unsigned tw_ballot(bool x) {{
  unsigned r;
  asm volatile("{{ .reg .pred p; setp.ne.u32 p, %1, 0; vote.sync.ballot.b32 %0, p, 0xffffffff; }}"
               : "=r"(r) : "r"((unsigned)x));
  return r;
}}""")
for _kind in ("any", "all"):
    FUNCTIONS[f"tw_{_kind}"] = Function(f"""\
{D} bool tw_{_kind}(bool x) {{
  unsigned r;
  asm volatile("{{ .reg .pred p, q; setp.ne.u32 p, %1, 0; "
               "vote.sync.{_kind}.pred q, p, 0xffffffff; selp.u32 %0, 1, 0, q; }}"
               : "=r"(r) : "r"((unsigned)x));
  return r != 0;
}}""")


for _bits, _code in ((32, "r"), (64, "l")):
    _type = "unsigned" if _bits == 32 else "unsigned long long"
    for _kind, _into in (("any", "%0"), ("all", "%0|p")):
        _pred = ".reg .pred p; " if _kind == "all" else ""
        FUNCTIONS[f"tw_match_{_kind}{_bits}"] = Function(f"""\
{D} unsigned tw_match_{_kind}{_bits}({_type} x) {{
  unsigned r;
  asm volatile("{{ {_pred}match.{_kind}.sync.b{_bits} {_into}, %1, 0xffffffff; }}" : "=r"(r) : "{_code}"(x));
  return r;
}}""")


def _match(p: Any, s: Match) -> None:
    bits = s.src.buffer.dtype.bits
    if s.kind not in ("any", "all") or bits not in (32, 64):
        raise InternalError(f"match {s.kind!r} of {bits} bits", rule="any or all, of 32 or 64 bits", loc=s.loc)
    kind = "unsigned" if bits == 32 else "unsigned long long"
    p.line(f"{p.reg(s.dst)} = {p.use(f'tw_match_{s.kind}{bits}')}(*({kind}*)({p.regs(s.src)}));")


def _shuffle(p: Any, s: Shuffle) -> None:
    if s.kind not in _KINDS or s.width not in (1, 2, 4, 8, 16, 32):
        raise InternalError(
            f"shuffle {s.kind!r} of width {s.width}", rule="idx, xor, up, down; width 1 … 32", loc=s.loc
        )
    clamp = f"{(32 - s.width) << 8 | (0 if s.kind == 'up' else 31):#x}"
    lane, size = p.expr(s.lane), s.src.buffer.dtype.bytes
    if size < 4 and (size * s.src.count) % 4:
        name = p.use(f"tw_shuffle_{s.kind}")
        for i in range(s.src.count):
            p.line(f"{p.reg(s.dst, i)} = {name}({p.reg(s.src, i)}, {lane}, {clamp});")
        return
    words = size * s.src.count // 4
    p.line(f"{p.use(f'tw_shuffle_{s.kind}_words')}<{words}>({p.regs(s.dst)}, {p.regs(s.src)}, {lane}, {clamp});")


def _vote(p: Any, s: Vote) -> None:
    if s.kind not in ("ballot", "any", "all"):
        raise InternalError(f"vote {s.kind!r}", rule="ballot, any or all", loc=s.loc)
    p.line(f"{p.reg(s.dst)} = {p.use(f'tw_{s.kind}')}({p.expr(s.pred)});")


ROWS: dict[Any, Row] = {Match: _match, Shuffle: _shuffle, Vote: _vote}
