"""CUDA: loads and stores of 1 to 32 bytes, matrix loads and stores, prefetches."""

from __future__ import annotations

from typing import Any

from ..errors import InternalError
from ..ir.instr import LdMatrix, Prefetch, StMatrix
from .c_scalar import D
from .dialect import Row
from .functions import Function

CACHES = {"load": ("cg", "cs", "nc"), "store": ("cg", "cs")}
# Bytes → suffix of the PTX instruction, constraint, C type of one word, words
_WIDTH = {1: ("u8", "h", "unsigned short", 1), 2: ("u16", "h", "unsigned short", 1), 4: ("u32", "r", "unsigned", 1),
          8: ("v2.u32", "r", "unsigned", 2), 16: ("v4.u32", "r", "unsigned", 4),
          32: ("v8.u32", "r", "unsigned", 8)}  # fmt: skip


def _plain(size: int) -> dict[str, Function]:
    """Through C++ pointers: the compiler knows the memory space and may move and combine them."""
    if size <= 4:
        kind = {1: "unsigned char", 2: "unsigned short", 4: "unsigned"}[size]
        body = f"*({kind}*)d = *(const {kind}*)s;"
        return {f"tw_{way}{size}": Function(f"{D} void tw_{way}{size}(void* d, const void* s) {{ {body} }}")
                for way in ("load", "store")}  # fmt: skip
    vector, parts = ("uint2", "xy") if size == 8 else ("uint4", "xyzw")
    load = " ".join(f"r[{i}] = v.{c};" for i, c in enumerate(parts))
    store = ", ".join(f"r[{i}]" for i in range(len(parts)))
    return {
        f"tw_load{size}": Function(f"""\
{D} void tw_load{size}(void* d, const void* s) {{
  const {vector} v = *(const {vector}*)s;
  unsigned* r = (unsigned*)d;
  {load}
}}"""),
        f"tw_store{size}": Function(f"""\
{D} void tw_store{size}(void* d, const void* s) {{
  const unsigned* r = (const unsigned*)s;
  *({vector}*)d = make_{vector}({store});
}}"""),
    }


def _assembled(size: int, cache: str) -> dict[str, Function]:
    """As one PTX instruction on global memory: with a cache operator, or 32 bytes wide."""
    suffix, constraint, word, count = _WIDTH[size]
    dot, tail = (f".{cache}", f"_{cache}") if cache else ("", "")
    names = ", ".join(f"%{i}" for i in range(count))
    regs = f"{{{names}}}" if count > 1 else names
    temps = ", ".join(f'"={constraint}"(r[{i}])' for i in range(count))
    values = ", ".join(f'"{constraint}"(r[{i}])' for i in range(count))
    byte = size == 1
    load = f'asm volatile("ld.global{dot}.{suffix} {regs}, [%{count}];" : {temps} : "l"(s) : "memory");'
    shifted = f"{{{', '.join(f'%{i + 1}' for i in range(count))}}}" if count > 1 else "%1"
    store = f'asm volatile("st.global{dot}.{suffix} [%0], {shifted};" :: "l"(d), {values} : "memory");'
    found = {}
    if cache != "":
        into = "unsigned short r[1];" if byte else f"{word}* r = ({word}*)d;"
        done = " *(unsigned char*)d = (unsigned char)r[0];" if byte else ""
        found[f"tw_load{size}{tail}"] = Function(
            f"{D} void tw_load{size}{tail}(void* d, const void* s) {{ {into} {load}{done} }}"
        )
    else:
        found[f"tw_load{size}"] = Function(
            f"{D} void tw_load{size}(void* d, const void* s) {{ {word}* r = ({word}*)d; {load} }}"
        )
    if cache in ("", *CACHES["store"]):
        source = (
            "const unsigned short r[1] = {*(const unsigned char*)s};"
            if byte
            else f"const {word}* r = (const {word}*)s;"
        )
        found[f"tw_store{size}{tail}"] = Function(
            f"{D} void tw_store{size}{tail}(void* d, const void* s) {{ {source} {store} }}"
        )
    return found


def _elsewhere(size: int) -> Function:
    """To the same place in the shared memory of another block of the cluster."""
    suffix, constraint, word, count = _WIDTH[size]
    values = ", ".join(f'"{constraint}"(r[{i}])' for i in range(count))
    regs = f"{{{', '.join(f'%{i + 2}' for i in range(count))}}}" if count > 1 else "%2"
    byte = "const unsigned short r[1] = {*(const unsigned char*)s};"
    return Function(
        f"""\
{D} void tw_store{size}_cluster(unsigned at, int block, const void* s) {{
  {byte if size == 1 else f"const {word}* r = (const {word}*)s;"}
  asm volatile("{{ .reg .b32 to; mapa.shared::cluster.u32 to, %0, %1; st.shared::cluster.{suffix} [to], {regs}; }}"
               :: "r"(at), "r"(block), {values} : "memory");
}}""",
        needs_feature="cluster",
    )


def _matrix(num: int, transposed: bool) -> dict[str, Function]:
    tail, dot = ("_trans", ".trans") if transposed else ("", "")
    regs = ", ".join(f"%{i}" for i in range(num))
    outs = ", ".join(f'"=r"(r[{i}])' for i in range(num))
    shifted = ", ".join(f"%{i + 1}" for i in range(num))
    values = ", ".join(f'"r"(r[{i}])' for i in range(num))
    name = f"x{num}{tail}"
    return {
        f"tw_ldmatrix_{name}": Function(
            f"""\
{D} void tw_ldmatrix_{name}(void* d, unsigned at) {{
  unsigned* r = (unsigned*)d;
  asm volatile("ldmatrix.sync.aligned.m8n8.x{num}{dot}.shared.b16 {{{regs}}}, [%{num}];" : {outs} : "r"(at) : "memory");
}}""",
            needs_feature="ldmatrix",
        ),
        f"tw_stmatrix_{name}": Function(
            f"""\
{D} void tw_stmatrix_{name}(unsigned at, const void* s) {{
  const unsigned* r = (const unsigned*)s;
  asm volatile("stmatrix.sync.aligned.m8n8.x{num}{dot}.shared.b16 [%0], {{{shifted}}};"
               :: "r"(at), {values} : "memory");
}}""",
            needs_feature="stmatrix",
        ),
    }


FUNCTIONS: dict[str, Function] = {}
for _size in (1, 2, 4, 8, 16):
    FUNCTIONS |= _plain(_size)
    FUNCTIONS[f"tw_store{_size}_cluster"] = _elsewhere(_size)
    for _cache in CACHES["load"]:
        FUNCTIONS |= _assembled(_size, _cache)
FUNCTIONS |= _assembled(32, "")
for _num in (1, 2, 4):
    FUNCTIONS |= _matrix(_num, False) | _matrix(_num, True)
for _level in ("L1", "L2"):
    FUNCTIONS[f"tw_prefetch_{_level}"] = Function(
        f'{D} void tw_prefetch_{_level}(const void* p) {{ asm volatile("prefetch.global.{_level} [%0];" :: "l"(p)); }}'
    )
FUNCTIONS["tw_prefetch_map"] = Function(
    f'{D} void tw_prefetch_map(const void* map) {{ asm volatile("prefetch.tensormap [%0];" :: "l"(map) : "memory"); }}',
    needs_feature="tma",
)


def _load_matrix(p: Any, s: LdMatrix) -> None:
    name = p.use(f"tw_ldmatrix_x{_num_of(s)}{'_trans' if s.transposed else ''}")
    p.line(f"{name}({p.regs(s.dst)}, {p.shared(s.src)});")


def _store_matrix(p: Any, s: StMatrix) -> None:
    name = p.use(f"tw_stmatrix_x{_num_of(s)}{'_trans' if s.transposed else ''}")
    p.line(f"{name}({p.shared(s.dst)}, {p.regs(s.src)});")


def _num_of(s: LdMatrix | StMatrix) -> int:
    if s.num not in (1, 2, 4):
        raise InternalError(f"{s.num} matrices in one instruction", rule="1, 2 or 4", loc=s.loc)
    return s.num


def _prefetch(p: Any, s: Prefetch) -> None:
    if isinstance(s.what, str):
        p.line(f"{p.use('tw_prefetch_map')}(&{p.map_name(s.what)});")
        return
    if s.level not in ("L1", "L2"):
        raise InternalError(f"prefetch into {s.level!r}", rule="L1 or L2", loc=s.loc)
    p.line(f"{p.use(f'tw_prefetch_{s.level}')}({p.pointer(s.what)});")


ROWS: dict[Any, Row] = {LdMatrix: _load_matrix, StMatrix: _store_matrix, Prefetch: _prefetch}
