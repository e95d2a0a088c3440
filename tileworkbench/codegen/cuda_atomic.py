"""CUDA: atomic operations. What the memory unit lacks (minima of floats …) is a loop of compare and swap."""

from __future__ import annotations

from typing import Any

from ..errors import InternalError
from ..ir.dtype import DType
from ..ir.expr import Binary, Var
from ..ir.instr import AtomicMem
from .c_scalar import D
from .dialect import Row
from .scalar import ctype

# (op, dtype, elements) → type suffix of the instruction and what the target must have
_INTEGERS = {"int32": ("s32", "b32"), "uint32": ("u32", "b32"), "int64": ("s64", "b64"), "uint64": ("u64", "b64")}
_UNSIGNED = {"int32": "u32", "uint32": "u32", "int64": "u64", "uint64": "u64"}
_FLOAT_ADD = {
    ("float32", 1): ("f32", None), ("float64", 1): ("f64", None), ("float16", 1): ("noftz.f16", None),
    ("float16", 2): ("noftz.f16x2", None), ("bfloat16", 1): ("noftz.bf16", "atomic_bf16"),
    ("bfloat16", 2): ("noftz.bf16x2", "atomic_bf16"), ("float32", 2): ("v2.f32", "atomic_vec"),
    ("float32", 4): ("v4.f32", "atomic_vec"),
}  # fmt: skip
_WORD = {2: ("b16", "h", "unsigned short"), 4: ("b32", "r", "unsigned"), 8: ("b64", "l", "unsigned long long")}
_ORDERS, _SCOPES = ("relaxed", "acquire", "release", "acq_rel"), ("cta", "gpu", "sys", "cluster")
_OPS = ("add", "max", "min", "and", "or", "xor", "exch", "cas")


def _one_way(p: Any, s: AtomicMem) -> None:
    """An atomic load or store: one access with an order of its own."""
    word, reads, shared = _WORD.get(s.value.buffer.dtype.bytes), s.op == "load", s.dst.buffer.space == "shared"
    orders = ("relaxed", "acquire", "seq_cst") if reads else ("relaxed", "release", "seq_cst")
    if word is None or s.order not in orders or s.scope_of not in _SCOPES:
        raise InternalError(f"atomic {s.op} {s.order} of {s.value.buffer.dtype}", loc=s.loc)
    ptx, constraint, c_type = word
    weaker = s.order if s.order != "seq_cst" else "acquire" if reads else "release"
    fence = f"fence.sc.{s.scope_of}; " if s.order == "seq_cst" else ""
    at, at_arg = ('"r"(at)', "unsigned at") if shared else ('"l"(at)', "void* at")
    where = f"{weaker}.{s.scope_of}.{'shared' if shared else 'global'}.{ptx}"
    name = f"tw_atomic_{s.op}_{ptx}_{s.order}_{s.scope_of}_{s.dst.buffer.space}"
    if reads:
        act = f'asm volatile("{fence}ld.{where} %0, [%1];" : "={constraint}"(*({c_type}*)v) : {at} : "memory");'
    else:
        act = f'asm volatile("{fence}st.{where} [%0], %1;" :: {at}, "{constraint}"(*(const {c_type}*)v) : "memory");'
    given = at_arg if shared or not reads else f"const {at_arg}"
    p.define(name, f"{D} void {name}({given}, {'' if reads else 'const '}void* v) {{ {act} }}")
    place = p.shared(s.dst) if shared else p.pointer(s.dst)
    p.guarded(s.pred, f"{name}({place}, {p.regs(s.old if reads else s.value)});")


def _atomic(p: Any, s: AtomicMem) -> None:
    if s.op in ("load", "store"):
        _one_way(p, s)
        return
    if (
        s.op not in _OPS
        or s.order not in _ORDERS
        or s.scope_of not in _SCOPES
        or s.dst.buffer.space not in ("global", "shared")
    ):
        raise InternalError(f"atomic {s.op!r} {s.order} {s.scope_of} on {s.dst.buffer.space} memory", loc=s.loc)
    dtype, count = s.value.buffer.dtype, 1 if s.op == "cas" else s.value.count
    kind = native(p, s, dtype, count)
    if kind is None and count > 1:
        for i in range(count):  # one after another; the whole was never promised to be one access
            _emit(p, s, native(p, s, dtype, 1), dtype, 1, i)
    else:
        _emit(p, s, kind, dtype, count, 0)


def native(p: Any, s: AtomicMem, dtype: DType, count: int) -> str | None:
    """Type suffix of the one instruction that does it, or None."""
    if s.op in ("exch", "cas"):
        word = _WORD.get(dtype.bytes)
        return word[0] if word and count == 1 and not (s.op == "exch" and dtype.bytes == 2) else None
    if s.op == "add" and dtype.is_float:
        kind, feature = _FLOAT_ADD.get((dtype.name, count), ("", None))
        if not kind or (feature and not p.target.has(feature)):
            return None
        return kind if not kind.startswith("v") or (s.dst.buffer.space == "global" and s.old is None) else None
    if count != 1 or dtype.name not in _INTEGERS:
        return None
    signed, bits = _INTEGERS[dtype.name]
    return _UNSIGNED[dtype.name] if s.op == "add" else signed if s.op in ("max", "min") else bits


def _emit(p: Any, s: AtomicMem, kind: str | None, dtype: DType, count: int, i: int) -> None:
    space = s.dst.buffer.space
    where = f".{s.order}.{s.scope_of}.{space}"
    name = f"tw_atomic_{s.op}_{dtype.name}x{count}_{s.order}_{s.scope_of}_{space}"
    returns = s.old is not None
    if kind is not None:
        name += "_old" if returns else ""
        p.define(name, _native_text(name, s.op, kind, where, dtype, count, returns, space))
    else:
        p.define(name, _loop_text(p, name, s, where, dtype))
    d = s.dst if i == 0 else type(s.dst)(s.dst.buffer, s.dst.offset + i)
    at = p.shared(d) if space == "shared" else p.pointer(d)
    value = f"&{p.reg(s.value, i)}" if i else p.regs(s.value)
    old = (
        ("nullptr" if s.old is None else f"&{p.reg(s.old, i)}" if i else p.regs(s.old))
        if returns or kind is None
        else ""
    )
    p.guarded(s.pred, f"{name}({at}, {value}{', ' + old if old else ''});")


def _native_text(name: str, op: str, kind: str, where: str, dtype: DType, count: int, returns: bool, space: str) -> str:
    constraint, c_type, lanes = _operand(kind, dtype, count)
    at = '"r"(at)' if space == "shared" else '"l"(at)'
    at_arg = "unsigned at" if space == "shared" else "void* at"
    word = "atom" if returns or op in ("exch", "cas") or "acq" in where or op == "cas" else "red"
    inputs = lanes + (1 if op == "cas" else 0)
    shift = lanes if word == "atom" else 0
    names = [f"%{shift + 1 + i}" for i in range(inputs)]
    value = f"{{{', '.join(names)}}}" if lanes > 1 else ", ".join(names)
    values = ", ".join(f'"{constraint}"(v[{i}])' for i in range(inputs))
    target = "%0, " if word == "atom" else ""
    outs = f'"={constraint}"(r[0])' if word == "atom" else ""
    vec = kind.partition(".")[0] if kind.startswith("v") else ""
    spelled = f"{vec}.{kind.partition('.')[2]}" if vec else kind
    old = ", void* old" if returns else ""
    keep = "" if not returns else f" *({c_type}*)old = r[0];"
    room = f"  {c_type} r[1];\n" if word == "atom" else ""
    return f"""\
{D} void {name}({at_arg}, const void* value{old}) {{
  const {c_type}* v = (const {c_type}*)value;
{room}  asm volatile("{word}{where}.{op}.{spelled} {target}[%{shift}], {value};"
               : {outs} : {at}, {values} : "memory");{keep}
}}"""


def _operand(kind: str, dtype: DType, count: int) -> tuple[str, str, int]:
    """Constraint, C type of one operand register, registers."""
    if kind.startswith("v"):
        return "f", "float", count
    if kind in ("f32", "f64"):
        return ("f", "float", 1) if kind == "f32" else ("d", "double", 1)
    size = dtype.bytes * count
    return _WORD[size][1], _WORD[size][2], 1


def _loop_text(p: Any, name: str, s: AtomicMem, where: str, dtype: DType) -> str:
    word = _WORD.get(dtype.bytes)
    if word is None:
        raise InternalError(f"atomic {s.op} of {dtype}", rule="atomics are 16, 32 or 64 bits wide", loc=s.loc)
    ptx, constraint, c_type = word
    a, b = Var("seen", dtype=dtype), Var("given", dtype=dtype)
    p.names[a], p.names[b] = "seen", "given"
    result = "given" if s.op == "exch" else p.expr(Binary(s.op, a, b, dtype=dtype))
    kind, shared = ctype(dtype), s.dst.buffer.space == "shared"
    at, at_arg = ('"r"(at)', "unsigned at") if shared else ('"l"(at)', "void* at")
    space = "shared" if shared else "global"
    return f"""\
{D} void {name}({at_arg}, const void* value, void* old) {{
  const {kind} given = *(const {kind}*)value;
  {c_type} now, before;
  asm volatile("ld.relaxed.{s.scope_of}.{space}.{ptx} %0, [%1];" : "={constraint}"(before) : {at} : "memory");
  do {{
    now = before;
    const {kind} seen = *({kind}*)&now, next_ = {result};
    asm volatile("atom{where}.cas.{ptx} %0, [%1], %2, %3;"
                 : "={constraint}"(before) : {at}, "{constraint}"(now), "{constraint}"(*(const {c_type}*)&next_)
                 : "memory");
  }} while (before != now);
  if (old) *({c_type}*)old = before;
}}"""


ROWS: dict[Any, Row] = {AtomicMem: _atomic}
