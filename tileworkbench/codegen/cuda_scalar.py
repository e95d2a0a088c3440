"""CUDA: conversions between scalar types, small integer functions and the table of mathematics."""

from __future__ import annotations

from ..target.target import Target
from .c_packed import FUNCTIONS as PACKED
from .c_scalar import SHARED_FUNCTIONS, D, fp8_functions, math_rows
from .functions import Function


def _asm(signature: str, kind: str, text: str, out: str, args: str) -> Function:
    return Function(f'{D} {signature} {{ {kind} r; asm("{text}" : "={out}"(r) : {args}); return r; }}')


_FUNCTIONS = {
    "tw_float_of_bits": Function(f"{D} float tw_float_of_bits(unsigned x) {{ return __uint_as_float(x); }}"),
    "tw_bits_of_float": Function(f"{D} unsigned tw_bits_of_float(float x) {{ return __float_as_uint(x); }}"),
    "tw_double_of_bits": Function(
        f"{D} double tw_double_of_bits(unsigned long long x) {{ return __longlong_as_double((long long)x); }}"
    ),
    "tw_half_to_float": _asm("float tw_half_to_float(unsigned short x)", "float", "cvt.f32.f16 %0, %1;", "f", '"h"(x)'),
    "tw_float_to_half": _asm(
        "unsigned short tw_float_to_half(float x)", "unsigned short", "cvt.rn.f16.f32 %0, %1;", "h", '"f"(x)'
    ),
    "tw_double_to_half": _asm(
        "unsigned short tw_double_to_half(double x)", "unsigned short", "cvt.rn.f16.f64 %0, %1;", "h", '"d"(x)'
    ),
    "tw_bf16_to_float": Function(
        f"{D} float tw_bf16_to_float(unsigned short x) {{ return __uint_as_float((unsigned)x << 16); }}"
    ),
    "tw_float_to_bf16": _asm(
        "unsigned short tw_float_to_bf16(float x)", "unsigned short", "cvt.rn.bf16.f32 %0, %1;", "h", '"f"(x)'
    ),
    "tw_atomic_flip": Function(f"{D} void tw_atomic_flip(unsigned* p, unsigned bits) {{ atomicXor(p, bits); }}"),
    "tw_double_to_odd_float": Function(f"""\
{D} float tw_double_to_odd_float(double x) {{
  const float y = __double2float_rz(x);
  return (double)y == x || x != x ? y : __uint_as_float(__float_as_uint(y) | 1u);
}}"""),
}
# One instruction where the detour over float takes four; both round the exact result once. Written `.rn`, they are
# never contracted into a fused multiply-add.
_NATIVE = {
    f"tw_half_{op}": _asm(f"unsigned short tw_half_{op}(unsigned short a, unsigned short b)", "unsigned short",
                          f"{op}.rn.f16 %0, %1, %2;", "h", '"h"(a), "h"(b)')
    for op in ("add", "sub", "mul")
}  # fmt: skip
# ptxas 13.0 forgets a constant mask on 16 bits that a conversion from float made, where it makes two of them at once.
# It leaves lop3 alone, so signs are cleared and bits looked at through it.
_NATIVE |= {
    f"tw_{name}16": Function(
        f"{D} unsigned short tw_{name}16(unsigned short x) {{ unsigned r; "
        f'asm("lop3.b32 %0, %1, {mask}, 0, 0xc0;" : "=r"(r) : "r"((unsigned)x)); return (unsigned short)r; }}'
    )
    for name, mask in (("abs", "0x7fff"), ("bits", "0xffff"))
}
NATIVE = {
    **{("float16", op): f"tw_half_{op}" for op in ("add", "sub", "mul")},
    **{(dtype, op): f"tw_{op}16" for dtype in ("float16", "bfloat16") for op in ("abs", "bits")},
}


def _fp8_in_hardware() -> dict[str, Function]:
    """The conversions of sm_89 and later; they only saturate, so overflow is looked for before them."""
    found: dict[str, Function] = {}
    for name, overflow, code in (("e4m3", "464.0f", "0x7f"), ("e5m2", "61439.996f", "0x7c")):
        found[f"tw_float_to_{name}_sat"] = Function(f"""\
{D} unsigned char tw_float_to_{name}_sat(float x) {{
  unsigned short r;
  asm("cvt.rn.satfinite.{name}x2.f32 %0, %1, %2;" : "=h"(r) : "f"(0.0f), "f"(x));
  return (unsigned char)r;
}}""")
        found[f"tw_float_to_{name}"] = Function(
            f"""\
{D} unsigned char tw_float_to_{name}(float x) {{
  const unsigned char sign = (unsigned char)(__float_as_uint(x) >> 24 & 0x80);
  return fabsf(x) > {overflow} ? (unsigned char)(sign | {code}) : tw_float_to_{name}_sat(x);
}}""",
            (f"tw_float_to_{name}_sat",),
        )
        found[f"tw_{name}_to_float"] = Function(
            f"""\
{D} float tw_{name}_to_float(unsigned char x) {{
  unsigned r;
  asm("cvt.rn.f16x2.{name}x2 %0, %1;" : "=r"(r) : "h"((unsigned short)x));
  return tw_half_to_float((unsigned short)r);
}}""",
            ("tw_half_to_float",),
        )
    return found


_BF16_IN_SOFTWARE = Function(f"""\
{D} unsigned short tw_float_to_bf16(float x) {{
  const unsigned u = __float_as_uint(x);
  return x != x ? 0x7fff : (unsigned short)((u + 0x7fff + (u >> 16 & 1)) >> 16);
}}""")


def functions(target: Target) -> dict[str, Function]:
    """Scalar functions for a target, in hardware where it has them."""
    found = {**SHARED_FUNCTIONS, **PACKED, **fp8_functions(), **_FUNCTIONS, **_NATIVE}
    if target.has("fp8_cvt"):
        found |= _fp8_in_hardware()
    if not target.has("bf16_mma"):  # the conversion came with the matrix instructions of sm_80
        found["tw_float_to_bf16"] = _BF16_IN_SOFTWARE
    return found


_MODES = ("rn", "rz", "ru", "rd")
_ROUND = {
    f"ieee_{name}_{mode}": (f"__f{fn}_{mode}({args})", f"__d{fn}_{mode}({args})")
    for name, fn, args in (("add", "add", "{0}, {1}"), ("sub", "sub", "{0}, {1}"), ("mul", "mul", "{0}, {1}"),
                           ("fdiv", "div", "{0}, {1}"), ("frcp", "rcp", "{0}"), ("fsqrt", "sqrt", "{0}"))
    for mode in _MODES
}  # fmt: skip
_FMA = {f"ieee_fmaf_{m}": (f"__fmaf_{m}({{0}}, {{1}}, {{2}})", f"__fma_{m}({{0}}, {{1}}, {{2}})") for m in _MODES}
_FAST = {
    f"__{name}": (f"__{name}f({{0}})", "") for name in ("exp", "exp10", "log", "log2", "log10", "sin", "cos", "tan")
}
_APPROX = {"__exp2": "ex2.approx.ftz.f32", "fast_rcp": "rcp.approx.ftz.f32", "fast_tanh": "tanh.approx.f32"}
_FUNCTIONS |= {
    f"tw_{name.strip('_')}_approx": _asm(
        f"float tw_{name.strip('_')}_approx(float x)", "float", f"{ptx} %0, %1;", "f", '"f"(x)'
    )
    for name, ptx in _APPROX.items()
}

MATH: dict[str, tuple[str, str]] = {
    **math_rows(), **_ROUND, **_FMA, **_FAST,
    **{name: (f"tw_{name.strip('_')}_approx({{0}})", "") for name in _APPROX},
    "ieee_frsqrt": ("__frsqrt_rn({0})", ""),
    "popcount": ("__popc({0})", "__popcll({0})"),
    "clz": ("__clz({0})", "__clzll({0})"),
    "ffs": ("__ffs({0})", "__ffsll({0})"),
    "rsqrt": ("rsqrtf({0})", "rsqrt({0})"),
    "exp10": ("exp10f({0})", "exp10({0})"),
    "lgamma": ("lgammaf({0})", "lgamma({0})"),
}  # fmt: skip
