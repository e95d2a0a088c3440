"""HIP: what lanes of a wave and waves of a block do together: shuffles, votes, mfma, barriers, fences, hints."""

from __future__ import annotations

from functools import cache
from typing import Any

from ..errors import InternalError
from ..ir.instr import Fence, Mma, SchedHint, Shuffle, Sync, Vote
from ..layout.atoms import Atom
from ..layout.mfma import mfma_atoms
from .c_scalar import D
from .dialect import Row
from .functions import Function
from .source import GRID_WORDS

_SOURCES = {
    "idx": "(lane & ~(width - 1)) | (by & (width - 1))",
    "xor": "((lane ^ by) & ~(width - 1)) == (lane & ~(width - 1)) ? lane ^ by : lane",
    "up": "(lane & (width - 1)) < by ? lane : lane - by",
    "down": "(lane & (width - 1)) + by >= width ? lane : lane + by",
}
FUNCTIONS: dict[str, Function] = {
    "tw_lane": Function(
        f"{D} int tw_lane() {{ return __builtin_amdgcn_mbcnt_hi(~0u, __builtin_amdgcn_mbcnt_lo(~0u, 0u)); }}"
    ),
    "tw_sync_block": Function(f"""\
{D} void tw_sync_block() {{
  __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
  __builtin_amdgcn_s_barrier();
  __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
}}"""),
    "tw_sync_warp": Function(f"""\
{D} void tw_sync_warp() {{
  __builtin_amdgcn_fence(__ATOMIC_RELEASE, "wavefront");
  __builtin_amdgcn_wave_barrier();
  __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "wavefront");
}}"""),
    # One word counts arrivals; its top bit turns over when all blocks have come, and so it is ready for the next use.
    "tw_sync_grid": Function(f"""\
static __device__ unsigned tw_grid_words[{GRID_WORDS}];
{D} void tw_sync_grid(int tid, unsigned stream, unsigned blocks, bool first) {{
  unsigned* const word = tw_grid_words + stream % {GRID_WORDS}u;
  tw_sync_block();
  if (tid == 0) {{
    const unsigned step = first ? 0x80000000u - (blocks - 1u) : 1u;
    const unsigned old = __hip_atomic_fetch_add(word, step, __ATOMIC_ACQ_REL, __HIP_MEMORY_SCOPE_AGENT);
    while (((old ^ __hip_atomic_load(word, __ATOMIC_ACQUIRE, __HIP_MEMORY_SCOPE_AGENT)) & 0x80000000u) == 0u)
      __builtin_amdgcn_s_sleep(1);
  }}
  tw_sync_block();
}}""", ("tw_sync_block",)),
    **{f"tw_fence_{kind}": Function(
        f'{D} void tw_fence_{kind}() {{ __builtin_amdgcn_fence(__ATOMIC_ACQ_REL, "{scope}"); }}')
       for kind, scope in (("cta", "workgroup"), ("gpu", "agent"), ("sys", ""))},
}  # fmt: skip
for _kind, _source in _SOURCES.items():
    FUNCTIONS[f"tw_shuffle_{_kind}"] = Function(
        f"""\
template <int bytes> {D} void tw_shuffle_{_kind}(void* d, const void* s, int by, int width) {{
  const int lane = tw_lane(), from = {_source};
  unsigned words[(bytes + 3) / 4] = {{}};
  __builtin_memcpy(words, s, bytes);
#pragma unroll
  for (int i = 0; i < (bytes + 3) / 4; ++i) words[i] = __builtin_amdgcn_ds_bpermute(from * 4, words[i]);
  __builtin_memcpy(d, words, bytes);
}}""",
        ("tw_lane",),
    )


def _shuffle(p: Any, s: Shuffle) -> None:
    if s.kind not in _SOURCES or s.width not in (1, 2, 4, 8, 16, 32, 64):
        raise InternalError(
            f"shuffle {s.kind!r} of width {s.width}", rule="idx, xor, up, down; width 1 … 64", loc=s.loc
        )
    size = s.src.buffer.dtype.bytes * s.src.count
    p.line(f"{p.use(f'tw_shuffle_{s.kind}')}<{size}>({p.regs(s.dst)}, {p.regs(s.src)}, {p.expr(s.lane)}, {s.width});")


def _vote(p: Any, s: Vote) -> None:
    texts = {"ballot": "__builtin_amdgcn_ballot_w64({})", "any": "__builtin_amdgcn_ballot_w64({}) != 0ull",
             "all": "__builtin_amdgcn_ballot_w64(!({})) == 0ull"}  # fmt: skip
    if s.kind not in texts:
        raise InternalError(f"vote {s.kind!r}", rule="ballot, any or all", loc=s.loc)
    p.line(f"{p.reg(s.dst)} = {texts[s.kind].format(p.expr(s.pred))};")


@cache
def _atom(instruction: str, arch: str) -> Atom | None:
    """The row; the fp8 builtins mean other encodings on another architecture."""
    return next((a for a in mfma_atoms() if a.instruction == instruction and a.supports(arch)), None)


def _mfma(p: Any, s: Mma) -> None:
    atom = _atom(s.atom, p.target.name)
    if atom is None:
        raise InternalError(f"{s.atom!r} names no mfma row of {p.target.name}", rule="lowering is complete", loc=s.loc)
    name = p.define(f"tw_{atom.instruction.removeprefix('__builtin_amdgcn_')}", _mfma_text(atom))
    p.line(f"{name}({p.regs(s.d)}, {p.regs(s.a)}, {p.regs(s.b)}, {p.regs(s.c)});")


def _operand(dtype: str, count: int) -> str:
    """C type of one operand as the builtin takes it."""
    if dtype in ("int8", "float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz"):
        return "int" if count == 4 else "long"
    narrow = "__bf16" if count == 8 else "short"  # the older builtins take bf16 as integers
    kind = {"float16": "_Float16", "bfloat16": narrow, "float32": "float", "int32": "int"}[dtype]
    return kind if count == 1 else f"{kind} __attribute__((ext_vector_type({count})))"


def _mfma_text(atom: Atom) -> str:
    if atom.a is None or atom.b is None:
        raise InternalError(f"{atom.instruction} has no operands in registers")
    name = atom.instruction.removeprefix("__builtin_amdgcn_")
    kinds = {"a": _operand(atom.a_dtype, atom.a.registers), "b": _operand(atom.b_dtype, atom.b.registers),
             "c": _operand(atom.c_dtype, atom.c.registers)}  # fmt: skip
    types = "\n".join(f"  typedef {_declared(kind, f'tw_{o}')};" for o, kind in kinds.items())
    loads = "\n".join(f"  tw_{o} {o};\n  __builtin_memcpy(&{o}, {o}_, sizeof({o}));" for o in kinds)
    return f"""\
{D} void tw_{name}(void* d_, const void* a_, const void* b_, const void* c_) {{
{types}
{loads}
  c = {atom.instruction}(a, b, c, 0, 0, 0);
  __builtin_memcpy(d_, &c, sizeof(c));
}}"""


def _declared(kind: str, name: str) -> str:
    base, _, vector = kind.partition(" ")
    return f"{base} {name} {vector}".rstrip()


def _sync(p: Any, s: Sync) -> None:
    alone = s.who == "warp" or (s.who == "role" and (p.role_warps == 1 or s.threads == p.warp_size))
    everyone = s.who == "block" or (s.who == "role" and p.role_warps is None)
    if alone:
        p.line(f"{p.use('tw_sync_warp')}();", s.reason)
    elif everyone and s.mode == "both" and s.threads in (None, p.launch_threads):
        p.line(f"{p.use('tw_sync_block')}();", s.reason)
    elif s.who == "grid" and s.mode == "both":
        blocks = " * ".join(p.grid_size(axis) for axis in "xyz")
        first = " | ".join(p.block_index(i) for i in range(3))
        p.line(f"{p.use('tw_sync_grid')}({p.want('tid')}, {p.stream_parameter}, {blocks}, ({first}) == 0);", s.reason)
    else:
        raise InternalError(f"a sync of {s.who}, mode {s.mode}, on {p.target.name}", loc=s.loc,
                            rule="here a wave, the whole block or the grid can meet, and never in halves")  # fmt: skip


def _fence(p: Any, s: Fence) -> None:
    p.line(f"{p.use(f'tw_fence_{s.kind}')}();", s.reason)


def _hint(p: Any, s: SchedHint) -> None:
    texts = {"priority": "__builtin_amdgcn_s_setprio({});", "group": "__builtin_amdgcn_sched_group_barrier({}, 1, 0);",
             "iglp": "__builtin_amdgcn_iglp_opt({});"}  # fmt: skip
    if s.kind not in texts:
        raise InternalError(f"scheduling hint {s.kind!r}", rule=", ".join(texts), loc=s.loc)
    p.line(texts[s.kind].format(int(s.value)))


ROWS: dict[Any, Row] = {Shuffle: _shuffle, Vote: _vote, Mma: _mfma, Sync: _sync, Fence: _fence, SchedHint: _hint}
