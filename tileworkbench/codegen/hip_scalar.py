"""HIP: conversions between scalar types and the table of mathematics, in compiler builtins and calls of ROCm's own
mathematics library (its bitcode is linked by hiprtc; a check by clang alone leaves those calls open)."""

from __future__ import annotations

from .c_packed import FUNCTIONS as PACKED
from .c_scalar import SHARED_FUNCTIONS, D, fp8_functions
from .functions import Function


def _bits(to: str, back: str, kind: str, word: str) -> dict[str, Function]:
    return {
        f"tw_{kind}_of_bits": Function(
            f"{D} {to} tw_{kind}_of_bits({word} x) {{ return __builtin_bit_cast({to}, x); }}"
        ),
        f"tw_bits_of_{kind}": Function(
            f"{D} {back} tw_bits_of_{kind}({to} x) {{ return __builtin_bit_cast({back}, x); }}"
        ),
    }


FUNCTIONS: dict[str, Function] = {
    **SHARED_FUNCTIONS,
    **PACKED,
    "tw_atomic_flip": Function(
        f"{D} void tw_atomic_flip(unsigned* p, unsigned bits) {{ __atomic_fetch_xor(p, bits, __ATOMIC_RELAXED); }}"
    ),
    **fp8_functions(),
    **_bits("float", "unsigned", "float", "unsigned"),
    **_bits("double", "unsigned long long", "double", "unsigned long long"),
    "tw_bitcast": Function(f"template <class T, class S> {D} T tw_bitcast(S x) {{ return __builtin_bit_cast(T, x); }}"),
    "tw_half_to_float": Function(
        f"{D} float tw_half_to_float(unsigned short x) {{ return (float)__builtin_bit_cast(_Float16, x); }}"
    ),
    "tw_float_to_half": Function(
        f"{D} unsigned short tw_float_to_half(float x) {{ return __builtin_bit_cast(unsigned short, (_Float16)x); }}"
    ),
    "tw_double_to_half": Function(
        f"{D} unsigned short tw_double_to_half(double x) {{ return __builtin_bit_cast(unsigned short, (_Float16)x); }}"
    ),
    "tw_bf16_to_float": Function(
        f"{D} float tw_bf16_to_float(unsigned short x) {{ return __builtin_bit_cast(float, (unsigned)x << 16); }}"
    ),
    "tw_float_to_bf16": Function(f"""\
{D} unsigned short tw_float_to_bf16(float x) {{
  const unsigned u = __builtin_bit_cast(unsigned, x);
  return x != x ? 0x7fff : (unsigned short)((u + 0x7fff + (u >> 16 & 1)) >> 16);
}}"""),
    # Round to odd: the neighbour towards zero, with its last bit set when anything was lost.
    "tw_double_to_odd_float": Function(f"""\
{D} float tw_double_to_odd_float(double x) {{
  const float y = (float)x;
  if ((double)y == x || x != x) return y;
  const unsigned u = __builtin_bit_cast(unsigned, y);
  return __builtin_bit_cast(float, (__builtin_fabs((double)y) > __builtin_fabs(x) ? u - 1u : u) | 1u);
}}"""),
    "tw_sigmoid": Function(f"{D} float tw_sigmoid(float x) {{ return 1.0f / (1.0f + __builtin_expf(-x)); }}"),
    # The instruction takes no subnormals.
    "tw_rsqrt": Function(f"""\
{D} float tw_rsqrt(float x) {{
  const bool small = x < 0x1p-100f;
  const float r = __builtin_amdgcn_rsqf(small ? x * 0x1p+24f : x);
  return small ? r * 0x1p+12f : r;
}}"""),
    "tw_tanh_approx": Function(f"""\
{D} float tw_tanh_approx(float x) {{
  return 1.0f - 2.0f * __builtin_amdgcn_rcpf(1.0f + __builtin_amdgcn_exp2f(x * 2.88539008f));
}}"""),
}

# Builtins that the compiler expands in place, on float alone and on both widths.
_PLACE_FLOAT = ("exp", "exp2", "exp10", "log", "log2", "log10")
_PLACE_BOTH = {
    "sqrt": 1,
    "floor": 1,
    "ceil": 1,
    "trunc": 1,
    "rint": 1,
    "fabs": 1,
    "fmin": 2,
    "fmax": 2,
    "fma": 3,
    "copysign": 2,
}
# Functions of the library: name → operands
_LIBRARY = {
    **dict.fromkeys(("expm1", "log1p", "cbrt", "sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh",
                     "asinh", "acosh", "atanh", "erf", "erfc", "lgamma"), 1),
    **dict.fromkeys(("atan2", "pow", "hypot", "fmod", "nextafter"), 2),
}  # fmt: skip
_MODES = {"rn": "rte", "rz": "rtz", "ru": "rtp", "rd": "rtn"}


def _holes(count: int) -> str:
    return ", ".join(f"{{{i}}}" for i in range(count))


def _library(name: str, count: int, bits: int) -> str:
    """Declares a function of the library under a name of ours; returns the call."""
    kind = "float" if bits == 32 else "double"
    ours, theirs = f"tw_{name}_f{bits}", f"__ocml_{name}_f{bits}"
    kinds = ", ".join([kind] * count)
    args = ", ".join(f"{kind} x{i}" for i in range(count))
    names = ", ".join(f"x{i}" for i in range(count))
    FUNCTIONS[ours] = Function(
        f'extern "C" __device__ {kind} {theirs}({kinds});\n{D} {kind} {ours}({args}) {{ return {theirs}({names}); }}'
    )
    return f"{ours}({_holes(count)})"


def _pair(name: str, count: int) -> tuple[str, str]:
    return _library(name, count, 32), _library(name, count, 64)


def _place(name: str, count: int) -> tuple[str, str]:
    args = _holes(count)
    return f"__builtin_{name}f({args})", f"__builtin_{name}({args})"


def _ieee() -> dict[str, tuple[str, str]]:
    rows: dict[str, tuple[str, str]] = {}
    for ours, theirs, count in (("add", "add", 2), ("sub", "sub", 2), ("mul", "mul", 2), ("fdiv", "div", 2),
                                ("fsqrt", "sqrt", 1), ("fmaf", "fma", 3)):  # fmt: skip
        for mode, word in _MODES.items():
            rows[f"ieee_{ours}_{mode}"] = _pair(f"{theirs}_{word}", count)
    for mode in _MODES:
        single, double = rows[f"ieee_fdiv_{mode}"]
        rows[f"ieee_frcp_{mode}"] = (single.format("1.0f", "{0}"), double.format("1.0", "{0}"))
    return rows


def _table() -> dict[str, tuple[str, str]]:
    rows = {name: (_place(name, 1)[0], _library(name, 1, 64)) for name in _PLACE_FLOAT}
    rows |= {name: _place(name, count) for name, count in _PLACE_BOTH.items()}
    rows |= {name: _pair(name, count) for name, count in _LIBRARY.items()}
    rows |= {
        "abs": rows["fabs"],
        "min": rows["fmin"],
        "max": rows["fmax"],
        "round": rows["rint"],
        "nearbyint": rows["rint"],
        "round_away": _place("round", 1),
    }
    infinity = ("tw_float_of_bits(0x7f800000u)", "tw_double_of_bits(0x7ffull << 52)")
    rows["isnan"] = ("(({0}) != ({0}))", "(({0}) != ({0}))")
    for name, sign in (("isinf", "=="), ("isfinite", "<")):
        rows[name] = (f"(__builtin_fabsf({{0}}) {sign} {infinity[0]})", f"(__builtin_fabs({{0}}) {sign} {infinity[1]})")
    e, log2, log10_2 = "1.44269504f", "0.693147181f", "0.301029996f"
    # These instructions take turns, not radians.
    sin, cos = (f"__builtin_amdgcn_{name}f(({{0}}) * 0.159154943f)" for name in ("sin", "cos"))
    return {
        **rows, **_ieee(),
        "ldexp": ("__builtin_ldexpf({0}, {1})", "__builtin_ldexp({0}, {1})"),
        "rsqrt": ("tw_rsqrt({0})", "(1.0 / __builtin_sqrt({0}))"),
        "ieee_frsqrt": ("(float)(1.0 / __builtin_sqrt((double)({0})))", ""),
        "sigmoid": ("tw_sigmoid({0})", "(1.0 / (1.0 + tw_exp_f64(-({0}))))"),
        "__exp2": ("__builtin_amdgcn_exp2f({0})", ""),
        "__exp": (f"__builtin_amdgcn_exp2f(({{0}}) * {e})", ""),
        "__exp10": ("__builtin_amdgcn_exp2f(({0}) * 3.32192809f)", ""),
        "__log2": ("__builtin_amdgcn_logf({0})", ""),
        "__log": (f"(__builtin_amdgcn_logf({{0}}) * {log2})", ""),
        "__log10": (f"(__builtin_amdgcn_logf({{0}}) * {log10_2})", ""),
        "__sin": (sin, ""),
        "__cos": (cos, ""),
        "__tan": (f"({sin} * __builtin_amdgcn_rcpf({cos}))", ""),
        "fast_rcp": ("__builtin_amdgcn_rcpf({0})", ""),
        "fast_tanh": ("tw_tanh_approx({0})", ""),
        "popcount": ("__builtin_popcount({0})", "__builtin_popcountll({0})"),
        "clz": ("tw_clz({0})", "tw_clzll({0})"),
        "ffs": ("__builtin_ffs((int)({0}))", "__builtin_ffsll((long long)({0}))"),
    }  # fmt: skip


FUNCTIONS["tw_clz"] = Function(f"{D} int tw_clz(unsigned x) {{ return x ? __builtin_clz(x) : 32; }}")
FUNCTIONS["tw_clzll"] = Function(f"{D} int tw_clzll(unsigned long long x) {{ return x ? __builtin_clzll(x) : 64; }}")
MATH = _table()
