"""Device source text that a kernel brings: the type names it is given and which of its functions are templates."""

from __future__ import annotations

from tileworkbench.codegen.foreign import included_class, is_template, type_names
from tileworkbench.ir.dtype import dtype

TEXT = """
template <typename T1, int N = (3 > 2)> __device__ void plain_comes_later();
template <typename T, typename P = pair<T, T>>
__device__ __forceinline__ void decode(T* from, T* to) { plain(from); }
__device__ void plain(float* x) { decode (x, x); }
template<class T> struct box { T x; };
"""


def test_templates() -> None:
    assert is_template(TEXT, "decode") and is_template(TEXT, "plain_comes_later")
    assert not is_template(TEXT, "plain") and not is_template(TEXT, "box") and not is_template("", "decode")
    assert not is_template("template <class T> void decode_more(T* x) { decode(x); }", "decode")


def test_type_names() -> None:
    assert type_names("uint x; uint8_t y;") == ("typedef unsigned int uint;", "typedef unsigned char uint8_t;")
    assert type_names("typedef unsigned uint; using uint8_t = unsigned char;\n#define int32_t int\nuint a;") == ()
    assert type_names("unsigned x; int my_uint; uint4 z;") == ()


def test_the_class_of_an_element_is_told_where_its_header_is_read() -> None:
    half = dtype("float16")
    assert included_class("#include <cuda_fp16.h>\n", half) == "__half"
    assert included_class("", half) == ""
    assert included_class("#include <cuda_fp16.h>\n", dtype("bfloat16")) == ""
