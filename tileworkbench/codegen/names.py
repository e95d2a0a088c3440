"""Names and strings of generated text. Nothing a user wrote reaches the device compiler as anything but a plain
identifier, a quoted string or a comment of printable characters."""

from __future__ import annotations

import re

PREFIX = "tw_"  # of every function and type that we define
MAX_LENGTH = 64
_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")

_WORDS = """
alignas alignof and and_eq asm atomic_cancel atomic_commit atomic_noexcept auto bitand bitor bool break case catch char
char8_t char16_t char32_t class compl concept const consteval constexpr constinit const_cast continue co_await co_return
co_yield decltype default delete do double dynamic_cast else enum explicit export extern false float for friend goto if
inline int long mutable namespace new noexcept not not_eq nullptr operator or or_eq private protected public reflexpr
register reinterpret_cast requires restrict return short signed sizeof static static_assert static_cast struct switch
synchronized template this thread_local throw true try typedef typeid typename union unsigned using virtual void
volatile wchar_t while xor xor_eq typeof half nullptr_t final override import module

threadIdx blockIdx blockDim gridDim warpSize printf assert trap smem smem_at tid lane warp main linux unix i386 std cuda
min max abs dim3 size_t ptrdiff_t clock clock64 uint2 uint4 make_uint2 make_uint4 memcpy memset malloc free NULL
INFINITY NAN
"""
_MATH = """
exp exp2 exp10 log log2 log10 log1p expm1 sqrt rsqrt sin cos tan sinh cosh tanh asin acos atan asinh acosh atanh atan2
pow fmod erf erfc floor ceil trunc round rint nearbyint fabs fmin fmax fma copysign hypot ldexp nextafter isnan isinf
isfinite
"""
# C++ keywords; names of the CUDA and HIP dialects, of our locals, and macros that compilers define unasked.
RESERVED = frozenset((*_WORDS.split(), *_MATH.split(), *(f"{name}f" for name in _MATH.split())))


def is_plain(name: str) -> bool:
    """Whether `name` can stand as a C identifier of ours as it is."""
    safe = _PLAIN.fullmatch(name) is not None and len(name) <= MAX_LENGTH
    return safe and name not in RESERVED and "__" not in name and not name.startswith((PREFIX, "_"))


def mangle(name: str) -> str:
    """A C identifier for any string: other characters become `_` or their code point; keywords, names of the dialects
    and names that compilers reserve get a tail."""
    if is_plain(name):
        return name
    word = "".join(c if c.isascii() and (c.isalnum() or c == "_") else _spelled(c) for c in name)
    word = re.sub(r"_+", "_", word).strip("_")[: MAX_LENGTH - 8] or "v"
    if word[0].isdigit() or word.startswith(PREFIX):
        word = "v_" + word
    return word if is_plain(word) else word + "_v"


def _spelled(c: str) -> str:
    return f"u{ord(c):x}" if c.isalnum() else "_"


class Names:
    """Hands out identifiers that differ from one another."""

    def __init__(self) -> None:
        self._used: set[str] = set()

    def fresh(self, name: str) -> str:
        base = mangle(name)
        found, n = base, 1
        while found in self._used:
            found, n = f"{base}_{n}", n + 1
        self._used.add(found)
        return found


def quoted(text: str) -> str:
    """A C string literal of the UTF-8 bytes of `text`. Octal escapes end by themselves: no byte joins the next."""
    out = []
    for byte in text.encode("utf-8", errors="replace"):
        plain = 32 <= byte < 127 and chr(byte) not in '"\\?'
        out.append(chr(byte) if plain else f"\\{byte:03o}")
    return '"' + "".join(out) + '"'


def literal_format(text: str) -> str:
    """`text` as a piece of a printf format that prints itself."""
    return text.replace("\0", "").replace("%", "%%")


def comment(text: str) -> str:
    """`text` as the rest of a `//` comment: one line of printable ASCII that no backslash can continue."""
    plain = "".join(c if " " <= c <= "~" and c not in "\\?" else " " for c in text)
    return " ".join(plain.split())[:160]
