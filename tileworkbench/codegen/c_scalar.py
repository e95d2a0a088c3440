"""Scalar functions that every C dialect defines with the same text."""

from __future__ import annotations

from .functions import Function

D = "static __device__ __forceinline__"

SHARED_FUNCTIONS: dict[str, Function] = {
    "tw_any_pointer": Function("""\
struct tw_any_pointer {
  void* p;
  template <typename T> __device__ __forceinline__ operator T*() const { return (T*)p; }
};"""),
    "tw_bitcast": Function(f"""\
template <class T, class S> {D} T tw_bitcast(S x) {{
  static_assert(sizeof(T) == sizeof(S), "a bit cast keeps the size");
  return *reinterpret_cast<T*>(&x);
}}"""),
    "tw_floordiv": Function(f"""\
template <class T> {D} T tw_floordiv(T a, T b) {{
  const T q = a / b, r = a % b;
  return q - (r != 0 && (r < 0) != (b < 0));
}}"""),
    "tw_floormod": Function(f"""\
template <class T> {D} T tw_floormod(T a, T b) {{
  const T r = a % b;
  return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}}"""),
    "tw_min": Function(f"template <class T> {D} T tw_min(T a, T b) {{ return b < a ? b : a; }}"),
    "tw_max": Function(f"template <class T> {D} T tw_max(T a, T b) {{ return a < b ? b : a; }}"),
    "tw_abs": Function(f"template <class T> {D} T tw_abs(T a) {{ return a < 0 ? -a : a; }}"),
    "tw_pow": Function(f"""\
template <class T> {D} T tw_pow(T a, T n) {{
  T r = 1;
  for (; n > 0; n >>= 1, a *= a) r = n & 1 ? r * a : r;
  return r;
}}"""),
    "tw_saturate": Function(f"""\
template <class T, class S> {D} T tw_saturate(S x, T low, T high) {{
  return x != x ? T(0) : x <= (S)low ? low : x >= (S)high ? high : (T)x;
}}"""),
    "tw_sigmoid": Function(f"{D} float tw_sigmoid(float x) {{ return 1.0f / (1.0f + expf(-x)); }}"),
    "tw_e8m0_to_float": Function(
        f"""\
{D} float tw_e8m0_to_float(unsigned char x) {{
  return tw_float_of_bits(x == 255 ? 0x7fc00000u : x == 0 ? 0x00400000u : (unsigned)x << 23);
}}""",
        ("tw_float_of_bits",),
    ),
    "tw_float_to_e8m0": Function(
        f"""\
{D} unsigned char tw_float_to_e8m0(float x) {{
  const unsigned u = tw_bits_of_float(x);
  if (!(x > 0.0f) || u >= 0x7f800000u) return 255;
  if (u < 0x00800000u) return (unsigned char)(u > 0x00400000u);
  return (unsigned char)((u + 0x00400000u) >> 23);
}}""",
        ("tw_bits_of_float",),
    ),
    "tw_to_int4": Function(f"{D} signed char tw_to_int4(int x) {{ return (signed char)(((x & 15) ^ 8) - 8); }}"),
    "tw_to_uint4": Function(f"{D} unsigned char tw_to_uint4(int x) {{ return (unsigned char)(x & 15); }}"),
    "tw_e2m1_to_float": Function(
        f"""\
{D} float tw_e2m1_to_float(unsigned char x) {{
  const unsigned code = x & 7u, a = code < 2u ? code * 0x3f000000u : (code << 22) + 0x3f000000u;
  return tw_float_of_bits((unsigned)(x & 8) << 28 | a);
}}""",
        ("tw_float_of_bits",),
    ),
    # Nearest even, saturating: the code has no infinity and no NaN (a NaN gives a zero, as in ml_dtypes).
    "tw_float_to_e2m1": Function(
        f"""\
{D} unsigned char tw_float_to_e2m1(float x) {{
  const unsigned u = tw_bits_of_float(x), a = u & 0x7fffffffu, sign = u >> 28 & 8u;
  if (a > 0x7f800000u) return (unsigned char)(sign ^ 8u);
  if (a < 0x3f800000u) return (unsigned char)(sign | ((a > 0x3e800000u) + (a >= 0x3f400000u)));
  return (unsigned char)(sign | (a >= 0x40c00000u ? 7u : ((a + 0x1fffffu + (a >> 22 & 1u)) >> 22) - 0xfcu));
}}""",
        ("tw_bits_of_float",),
    ),
    "tw_fp8_of_float": Function(
        f"""\
template <int mantissa, int bias, int top, int over, bool fnuz>
{D} unsigned char tw_fp8_of_float(float x, bool saturate) {{
  const unsigned u = tw_bits_of_float(x), a = u & 0x7fffffffu;
  const unsigned char sign = (unsigned char)(u >> 24 & 0x80u), nan = fnuz ? 0x80 : (unsigned char)(sign | 0x7f);
  if (a > 0x7f800000u) return nan;
  const int e = (int)(a >> 23) - 127 + bias;
  int shift = 23 - mantissa + (e < 1 ? 1 - e : 0);
  if (shift > 25) shift = 25;
  const unsigned m = (a & 0x7fffffu) | 0x800000u, low = m & ((1u << shift) - 1u), half = 1u << (shift - 1);
  unsigned code = m >> shift;
  code += low > half || (low == half && (code & 1u));
  if (e > 1) code += (unsigned)(e - 1) << mantissa;
  if (code > (unsigned)top) {{
    if (!saturate) return fnuz ? 0x80 : (unsigned char)(sign | over);
    code = top;
  }}
  return fnuz && code == 0u ? 0 : (unsigned char)(sign | code);
}}""",
        ("tw_bits_of_float",),
    ),
    "tw_float_of_fp8": Function(
        f"""\
template <int mantissa, int bias, bool fnuz, bool infinite>
{D} float tw_float_of_fp8(unsigned char x) {{
  const unsigned sign = (unsigned)(x & 0x80) << 24, code = x & 0x7fu;
  const unsigned e = code >> mantissa, m = code & ((1u << mantissa) - 1u);
  if (fnuz ? x == 0x80 : infinite ? e == 31u : code == 0x7fu)
    return tw_float_of_bits(infinite && !fnuz ? sign | 0x7f800000u | m << 21 : 0x7fc00000u);
  if (e == 0u) {{
    const float small = (float)m * tw_float_of_bits((unsigned)(128 - bias - mantissa) << 23);
    return sign ? -small : small;
  }}
  return tw_float_of_bits(sign | (e + 127u - bias) << 23 | m << (23 - mantissa));
}}""",
        ("tw_float_of_bits",),
    ),
}

# name, mantissa bits, bias, largest finite code, code of overflow, FNUZ, has infinities
_FP8 = (("e4m3", 3, 7, 0x7E, 0x7F, False, False), ("e5m2", 2, 15, 0x7B, 0x7C, False, True),
        ("e4m3fnuz", 3, 8, 0x7F, 0x80, True, False), ("e5m2fnuz", 2, 16, 0x7F, 0x80, True, False))  # fmt: skip


def fp8_functions() -> dict[str, Function]:
    """Conversions of 8-bit floats by integer arithmetic, for targets without such instructions."""
    found = {}
    for name, mantissa, bias, top, over, fnuz, infinite in _FP8:
        row = f"<{mantissa}, {bias}, {top:#x}, {over:#x}, {str(fnuz).lower()}>"
        for tail, saturate in (("", "false"), ("_sat", "true")):
            found[f"tw_float_to_{name}{tail}"] = Function(
                f"{D} unsigned char tw_float_to_{name}{tail}(float x) {{\n"
                f"  return tw_fp8_of_float{row}(x, {saturate});\n}}",
                ("tw_fp8_of_float",),
            )
        back = f"<{mantissa}, {bias}, {str(fnuz).lower()}, {str(infinite).lower()}>"
        found[f"tw_{name}_to_float"] = Function(
            f"{D} float tw_{name}_to_float(unsigned char x) {{ return tw_float_of_fp8{back}(x); }}",
            ("tw_float_of_fp8",),
        )
    return found


_ONE = ("exp", "exp2", "log", "log2", "log10", "log1p", "expm1", "sqrt", "sin", "cos", "tan", "sinh", "cosh", "tanh",
        "asin", "acos", "atan", "asinh", "acosh", "atanh", "erf", "erfc", "cbrt", "floor", "ceil", "trunc", "round",
        "nearbyint", "rint")  # fmt: skip
_TWO = ("atan2", "pow", "fmod", "copysign", "hypot", "nextafter")


def math_rows() -> dict[str, tuple[str, str]]:
    """Functions of C's own library: name → text on float, text on double. `round` is to even, as Python's is; min and
    max are fmin and fmax, which ignore a NaN on one side."""
    rows = {name: (f"{name}f({{0}})", f"{name}({{0}})") for name in _ONE}
    rows |= {name: (f"{name}f({{0}}, {{1}})", f"{name}({{0}}, {{1}})") for name in _TWO}
    rows |= {
        "round": rows["nearbyint"],
        "round_away": rows["round"],
        "abs": ("fabsf({0})", "fabs({0})"),
        "min": ("fminf({0}, {1})", "fmin({0}, {1})"),
        "max": ("fmaxf({0}, {1})", "fmax({0}, {1})"),
        "fma": ("fmaf({0}, {1}, {2})", "fma({0}, {1}, {2})"),
        "ldexp": ("ldexpf({0}, {1})", "ldexp({0}, {1})"),
        "sigmoid": ("tw_sigmoid({0})", "(1.0 / (1.0 + exp(-({0}))))"),
        "isnan": ("(({0}) != ({0}))", "(({0}) != ({0}))"),
        "isinf": ("(fabsf({0}) == tw_float_of_bits(0x7f800000u))", "(fabs({0}) == tw_double_of_bits(0x7ffull << 52))"),
        "isfinite": ("(fabsf({0}) < tw_float_of_bits(0x7f800000u))", "(fabs({0}) < tw_double_of_bits(0x7ffull << 52))"),
    }
    return rows
