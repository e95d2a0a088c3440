"""HIP: loads and stores of 1 to 16 bytes, atomics, direct copies to LDS. Types of memory words may alias anything."""

from __future__ import annotations

from typing import Any

from ..errors import InternalError
from ..ir.expr import Binary, Var
from ..ir.instr import AtomicMem, CommitGroup, LdsDirect, Prefetch, WaitGroup
from .c_scalar import D
from .dialect import Row
from .functions import Function
from .scalar import ctype

_WORDS = {1: "unsigned char", 2: "unsigned short", 4: "unsigned", 8: "unsigned long long", 16: ""}
FUNCTIONS: dict[str, Function] = {
    "tw_word16": Function("typedef unsigned tw_word16 __attribute__((ext_vector_type(4), may_alias));"),
    **{
        f"tw_word{n}": Function(f"typedef {kind} __attribute__((may_alias)) tw_word{n};")
        for n, kind in _WORDS.items()
        if kind
    },
}
for _size in _WORDS:
    _word = f"tw_word{_size}"
    for _tail, _get, _put in (("", "*(const {0}*)s", "*({0}*)d = v"),
                              ("_cs", "__builtin_nontemporal_load((const {0}*)s)",
                               "__builtin_nontemporal_store(v, ({0}*)d)")):  # fmt: skip
        FUNCTIONS[f"tw_load{_size}{_tail}"] = Function(
            f"""\
{D} void tw_load{_size}{_tail}(void* d, const void* s) {{
  const {_word} v = {_get.format(_word)};
  __builtin_memcpy(d, &v, {_size});
}}""",
            (_word,),
        )
        FUNCTIONS[f"tw_store{_size}{_tail}"] = Function(
            f"""\
{D} void tw_store{_size}{_tail}(void* d, const void* s) {{
  {_word} v;
  __builtin_memcpy(&v, s, {_size});
  {_put.format(_word)};
}}""",
            (_word,),
        )
FUNCTIONS["tw_wait_loads"] = Function(
    f'{D} void tw_wait_loads() {{ __builtin_amdgcn_s_waitcnt(0x0f70); asm volatile("" ::: "memory"); }}'
)

_ORDERS = {"relaxed": "RELAXED", "acquire": "ACQUIRE", "release": "RELEASE", "acq_rel": "ACQ_REL"}
_SCOPES = {"cta": "WORKGROUP", "gpu": "AGENT", "sys": "SYSTEM"}
_FETCH = {"add": "fetch_add", "max": "fetch_max", "min": "fetch_min", "and": "fetch_and", "or": "fetch_or",
          "xor": "fetch_xor", "exch": "exchange"}  # fmt: skip


def _one_way(p: Any, s: AtomicMem) -> None:
    """An atomic load or store."""
    dtype, reads = s.value.buffer.dtype, s.op == "load"
    order, scope = {**_ORDERS, "seq_cst": "SEQ_CST"}[s.order], f"__HIP_MEMORY_SCOPE_{_SCOPES[s.scope_of]}"
    word = {2: "unsigned short", 4: "unsigned", 8: "unsigned long long"}[dtype.bytes]
    call = f"__hip_atomic_{s.op}(at, {'' if reads else '*v, '}__ATOMIC_{order}, {scope})"
    name = f"tw_atomic_{s.op}{dtype.bits}_{s.order}_{s.scope_of}"
    text = f"{D} void {name}(const void* place, void* value) {{\n  {word} *at = ({word}*)place, *v = ({word}*)value;\n"
    p.define(name, f"{text}  {'*v = ' if reads else ''}{call};\n}}")
    p.guarded(s.pred, f"{name}({p.pointer(s.dst)}, {p.regs(s.old if reads else s.value)});")


def _atomic(p: Any, s: AtomicMem) -> None:
    if s.op in ("load", "store"):
        _one_way(p, s)
        return
    dtype = s.value.buffer.dtype
    known = s.op in (*_FETCH, "cas") and s.order in _ORDERS and s.scope_of in _SCOPES
    if not known or s.dst.buffer.space not in ("global", "shared"):
        raise InternalError(f"atomic {s.op!r} {s.order} {s.scope_of} on {s.dst.buffer.space} memory", loc=s.loc)
    for i in range(1 if s.op == "cas" else s.value.count):
        d = type(s.dst)(s.dst.buffer, s.dst.offset + i)
        name = f"tw_atomic_{s.op}_{dtype.name}_{s.order}_{s.scope_of}"
        whole = dtype.bits >= 32
        p.define(name, (_whole_text if whole else _narrow_text)(p, name, s), () if whole else ("tw_word4",))
        old = "nullptr" if s.old is None else f"&{p.reg(s.old, i)}"
        p.guarded(s.pred, f"{name}({p.pointer(d)}, &{p.reg(s.value, i)}, {old});")


def _whole_text(p: Any, name: str, s: AtomicMem) -> str:
    kind = ctype(s.value.buffer.dtype)
    order, scope = f"__ATOMIC_{_ORDERS[s.order]}", f"__HIP_MEMORY_SCOPE_{_SCOPES[s.scope_of]}"
    if s.op == "cas":
        failed = "__ATOMIC_ACQUIRE" if s.order in ("acquire", "acq_rel") else "__ATOMIC_RELAXED"
        swap = f"__hip_atomic_compare_exchange_strong(at, &before, v[1], {order}, {failed}, {scope});"
        act = f"{kind} before = v[0];\n  {swap}"
    else:
        act = f"const {kind} before = __hip_atomic_{_FETCH[s.op]}(at, v[0], {order}, {scope});"
    return f"""\
{D} void {name}({kind}* at, const {kind}* v, {kind}* old) {{
  {act}
  if (old) *old = before;
}}"""


def _narrow_text(p: Any, name: str, s: AtomicMem) -> str:
    """16 bits, by compare and swap of the 32-bit word around them."""
    dtype = s.value.buffer.dtype
    if dtype.bits != 16:
        raise InternalError(f"atomic {s.op} of {dtype}", rule="atomics are 16, 32 or 64 bits wide", loc=s.loc)
    kind, seen, given = ctype(dtype), Var("seen", dtype=dtype), Var("given", dtype=dtype)
    p.names[seen], p.names[given] = "seen", "given"
    if s.op == "cas":
        result = "seen == given ? v[1] : seen"
    else:
        result = "given" if s.op == "exch" else p.expr(Binary(s.op, seen, given, dtype=dtype))
    order, scope = f"__ATOMIC_{_ORDERS[s.order]}", f"__HIP_MEMORY_SCOPE_{_SCOPES[s.scope_of]}"
    return f"""\
{D} void {name}({kind}* at, const {kind}* v, {kind}* old) {{
  tw_word4* word = (tw_word4*)((unsigned long long)at & ~3ull);
  const unsigned shift = ((unsigned long long)at & 2ull) * 8u;
  const {kind} given = v[0];
  unsigned before = __hip_atomic_load(word, __ATOMIC_RELAXED, {scope}), next;
  {kind} seen;
  do {{
    seen = ({kind})(before >> shift);
    const {kind} made = {result};
    next = (before & ~(0xffffu << shift)) | (unsigned)(unsigned short)made << shift;
  }} while (!__hip_atomic_compare_exchange_weak(word, &before, next, {order}, __ATOMIC_RELAXED, {scope}));
  if (old) *old = seen;
}}"""


def _lds_direct(p: Any, s: LdsDirect) -> None:
    if s.bytes not in (4, 16) or (s.bytes == 16 and not p.target.has("lds_direct_x4")):
        raise InternalError(f"a direct copy of {s.bytes} bytes a lane on {p.target.name}", loc=s.loc)
    name = p.define(
        f"tw_lds_direct{s.bytes}",
        f"""\
{D} void tw_lds_direct{s.bytes}(void* d, const void* s) {{
  __builtin_amdgcn_global_load_lds((__attribute__((address_space(1))) void*)s,
                                   (__attribute__((address_space(3))) void*)d, {s.bytes}, 0, 0);
}}""",
    )
    p.line(f"{name}({p.pointer(s.dst)}, {p.pointer(s.src)});")


def _commit(p: Any, s: CommitGroup) -> None:
    if s.engine_of != "copy":
        raise InternalError(
            f"groups of {s.engine_of!r} on {p.target.name}", rule="only copies have groups here", loc=s.loc
        )


def _wait(p: Any, s: WaitGroup) -> None:
    """Memory operations are counted one by one here and groups are not known: all of them are waited for."""
    if s.engine_of != "copy":
        raise InternalError(
            f"groups of {s.engine_of!r} on {p.target.name}", rule="only copies have groups here", loc=s.loc
        )
    p.line(f"{p.use('tw_wait_loads')}();")


def _prefetch(p: Any, s: Prefetch) -> None:
    """These caches take no prefetch; a tensor map does not exist."""
    if isinstance(s.what, str):
        raise InternalError(f"tensor map {s.what!r} on {p.target.name}", rule="lowering is complete", loc=s.loc)


ROWS: dict[Any, Row] = {
    AtomicMem: _atomic,
    LdsDirect: _lds_direct,
    CommitGroup: _commit,
    WaitGroup: _wait,
    Prefetch: _prefetch,
}
