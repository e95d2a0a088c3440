"""Reading the kernels that a text of CUDA C++ declares."""

from __future__ import annotations

from tileworkbench.language.ctext import entries

TEXT = r"""
// __global__ void comment(int a);
/* extern "C" __global__ void block(int a) */
const char* words = "__global__ void literal(int a)"; char quote = '"';
const char* raw = R"(extern "C" __global__ void raw(int a) {})";
__device__ void helper(int a) {}
__global__ void plain(float* a) {}
extern "C" __global__ void declared(int);
extern "C" {
static __device__ int f() { return 1; }
__global__ __launch_bounds__(128, (2)) void inside(
    const float* __restrict__ a, int n /* , b */, unsigned long long big, half h, __grid_constant__ const Map m) {}
}
namespace x { __global__ void outside(void) {} }
template <typename T, int N> __global__ void made(T (*f)(int, int), std::pair<int, int> p, int v[3], int d = 3) {}
extern "C" __global__ void declared(int n) { if (n) { return; } }
extern "C" void __global__ late(double x) {}
"""


def test_the_kernels_of_a_text() -> None:
    found = {e.name: e for e in entries(TEXT)}
    assert list(found) == ["plain", "declared", "inside", "outside", "made", "late"]
    assert [n for n, e in found.items() if e.plain_name] == ["declared", "inside", "late"]
    assert [len(e.parameters) for e in found.values()] == [1, 1, 5, 0, 4, 1]
    assert TEXT.splitlines()[found["late"].line - 1].startswith('extern "C" void __global__ late')


def test_their_parameters() -> None:
    found = {e.name: e.parameters for e in entries(TEXT)}
    assert [(p.name, p.pointer, p.number) for p in found["inside"]][1:] == [
        ("n", False, ("int", 4)), ("big", False, ("int", 8)), ("h", False, ("float", 2)), ("m", False, None)
    ]  # fmt: skip
    assert (found["inside"][0].name, found["inside"][0].pointer) == ("a", True)
    assert [p.name for p in found["made"]][1:] == ["p", "v", "d"] and found["made"][2].pointer
    assert found["declared"][0].name == "" and found["declared"][0].number == ("int", 4)
    assert found["late"][0].number == ("float", 8)


def test_what_is_no_kernel() -> None:
    for text in (
        "",
        "__global__",
        "__global__ void",
        "__global__ void k",
        "__global__ (int)",
        'extern "C" int k(int);',
    ):
        assert entries(text) == ()
