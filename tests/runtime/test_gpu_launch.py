"""Launches on a real device: raw kernels, every array library, TMA, graphs, streams. `python -m pytest -m gpu`."""

from __future__ import annotations

import threading
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tileworkbench.codegen.source import Fact, KernelArg, ScalarParam, Source, TensorMap, TensorParam
from tileworkbench.errors import LaunchError, TileError
from tileworkbench.runtime import benchmark, build, driver
from tileworkbench.runtime.cache import DiskCache
from tileworkbench.runtime.launch import Launcher

try:
    _CAPABILITY = driver.cuda().capability(0) if driver.cuda().device_count() else None
    _WHY = "the driver sees no CUDA device"
except TileError as missing:
    _CAPABILITY, _WHY = None, missing.found
pytestmark = [pytest.mark.gpu, pytest.mark.skipif(_CAPABILITY is None, reason=f"needs a CUDA device: {_WHY}")]
ARCH = "sm_90a" if _CAPABILITY == (9, 0) else "sm_{}{}".format(*(_CAPABILITY or (9, 0)))
hopper = pytest.mark.skipif((_CAPABILITY or (0, 0)) < (9, 0), reason="TMA needs a device of capability 9.0 or later")
NO_CACHE = DiskCache(None)

ADD_TEXT = """\
extern "C" __global__ void __launch_bounds__(256)
add(const float* A, const float* B, float* C, float scale, int N) {
  int i = blockIdx.x * 256 + threadIdx.x;
  if (i < N) C[i] = A[i] + scale * B[i];
}
"""
ADD = Source(
    text=ADD_TEXT, entry="add", dialect="cuda", arch=ARCH,
    params=(
        TensorParam("A", "float32", ("N",)),
        TensorParam("B", "float32", ("N",)),
        TensorParam("C", "float32", ("N",), access="w"),
        ScalarParam("scale", "float32", 1.0),
    ),
    args=(KernelArg("pointer", "A"), KernelArg("pointer", "B"), KernelArg("pointer", "C"),
          KernelArg("scalar", "scale", "float32"), KernelArg("symbol", "N", "int32")),
    grid=(("ceildiv", "N", 256),), threads=256,
)  # fmt: skip

# A tile of 32 x 32 floats comes by TMA, is doubled, and leaves by TMA; the swizzled form undoes the swizzle by hand.
TMA_TEXT = """\
struct alignas(64) Map { unsigned char bytes[128]; };
extern "C" __global__ void __launch_bounds__(128)
twice(const __grid_constant__ Map from, const __grid_constant__ Map to) {
  extern __shared__ __align__(1024) float room[];
  __shared__ __align__(8) unsigned long long barrier;
  float* out = room + 1024;
  unsigned bar = (unsigned)__cvta_generic_to_shared(&barrier);
  unsigned tile = (unsigned)__cvta_generic_to_shared(room);
  unsigned back = (unsigned)__cvta_generic_to_shared(out);
  int x = blockIdx.x * 32, y = blockIdx.y * 32;
  if (threadIdx.x == 0) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" :: "r"(bar) : "memory");
    asm volatile("fence.mbarrier_init.release.cluster;\\n fence.proxy.async.shared::cta;" ::: "memory");
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], 4096;" :: "r"(bar) : "memory");
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes"
                 " [%0], [%1, {%2, %3}], [%4];" :: "r"(tile), "l"(&from), "r"(x), "r"(y), "r"(bar) : "memory");
  }
  for (unsigned done = 0; !done;)
    asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], 0; selp.u32 %0, 1, 0, p; }"
                 : "=r"(done) : "r"(bar) : "memory");
  for (int i = threadIdx.x; i < 1024; i += 128) {
    int row = i / 32, column = i % 32;
    int where = row * 32 + (SWIZZLED ? ((column / 4 ^ row % 8) * 4 + column % 4) : column);
    out[i] = 2.0f * room[where];
  }
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  __syncthreads();
  if (threadIdx.x == 0) {
    asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%0, {%1, %2}], [%3];"
                 :: "l"(&to), "r"(x), "r"(y), "r"(back) : "memory");
    asm volatile("cp.async.bulk.commit_group;\\n cp.async.bulk.wait_group 0;" ::: "memory");
  }
}
"""


def twice(swizzled: bool) -> Source:
    dims, pitch = ("N", "M"), (("mul", "N", 4),)
    return Source(
        text=f"#define SWIZZLED {int(swizzled)}\n" + TMA_TEXT, entry="twice", dialect="cuda", arch=ARCH,
        params=(TensorParam("X", "float32", ("M", "N")), TensorParam("Y", "float32", ("M", "N"), access="w")),
        args=(KernelArg("map", "from"), KernelArg("map", "to")),
        grid=(("ceildiv", "N", 32), ("ceildiv", "M", 32)), threads=128, shared_bytes=8192,
        maps=(TensorMap("from", "X", "float32", dims, pitch, (32, 32), 128 if swizzled else 0),
              TensorMap("to", "Y", "float32", dims, pitch, (32, 32))),
    )  # fmt: skip


def launcher(source: Source = ADD, **fields: Any) -> Launcher:
    return Launcher([(source, build.build(source, NO_CACHE))], **fields)


@pytest.fixture
def torch() -> Any:
    module = pytest.importorskip("torch")
    if not module.cuda.is_available():
        pytest.skip("this torch has no CUDA")
    return module


@pytest.fixture
def cupy() -> Any:
    return pytest.importorskip("cupy")


def test_torch_of_any_size(torch: Any) -> None:
    kernel = launcher()
    for n in (1, 255, 256, 257, 100_003, 1 << 20):
        a, b = torch.randn(n, device="cuda"), torch.randn(n, device="cuda")
        c = torch.full_like(a, float("nan"))
        for scale in (1.0, -2.0):
            assert kernel(a, b, c, scale) is None
            assert torch.equal(c, torch.addcmul(a, b, torch.tensor(scale, device="cuda")))
        kernel(a, b, c)
        assert torch.equal(c, a + b)
    with pytest.raises(LaunchError, match="0 blocks"):
        kernel(a[:0], b[:0], c[:0])
    kernel(a[1:], b[:-1], c[1:])
    assert torch.equal(c[1:], a[1:] + b[:-1])


def test_torch_outputs_and_streams(torch: Any) -> None:
    kernel = launcher(out_idx=[2])
    a, b = torch.randn(1 << 22, device="cuda"), torch.randn(1 << 22, device="cuda")
    wanted = a.clone()
    for _ in range(20):
        wanted = wanted + 0.5 * b
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(20):
            a = kernel(a, b, 0.5)
    torch.cuda.current_stream().wait_stream(side)
    assert torch.equal(a, wanted)
    fresh = torch.arange(1 << 10, device="cuda", dtype=torch.float32)
    assert torch.equal(kernel(fresh, fresh), 2 * fresh)


def test_cupy_numpy_and_dlpack(cupy: Any) -> None:
    kernel = launcher(out_idx=[2])
    host_a, host_b = (np.random.default_rng(i).normal(size=10_001).astype("f4") for i in (0, 1))
    a, b = cupy.asarray(host_a), cupy.asarray(host_b)
    np.testing.assert_array_equal(cupy.asnumpy(kernel(a, b)), host_a + host_b)
    with cupy.cuda.Stream(non_blocking=True) as stream:
        c = kernel(a, b, 2.0)
        stream.synchronize()
    np.testing.assert_array_equal(cupy.asnumpy(c), host_a + np.float32(2) * host_b)
    made = kernel(host_a, host_b)
    assert isinstance(made, np.ndarray)
    np.testing.assert_array_equal(made, host_a + host_b)

    class OnlyDLPack:
        def __init__(self, array: Any) -> None:
            self.__dlpack__, self.__dlpack_device__ = array.__dlpack__, array.__dlpack_device__

    c = cupy.zeros_like(a)
    kernel(OnlyDLPack(a), OnlyDLPack(b), c, 1.0)
    np.testing.assert_array_equal(cupy.asnumpy(c), host_a + host_b)


@hopper
@pytest.mark.parametrize("swizzled", [False, True])
@pytest.mark.parametrize("shape", [(32, 32), (100, 36), (1, 4), (257, 1000)])
def test_tma_copies_with_tails(torch: Any, swizzled: bool, shape: tuple[int, int]) -> None:
    kernel = launcher(twice(swizzled), out_idx=[1])
    torch.manual_seed(0)
    for _ in range(3):
        x = torch.randint(-1000, 1000, shape, device="cuda").float()
        assert torch.equal(kernel(x), 2 * x)


@hopper
def test_tma_refuses_what_the_hardware_cannot(torch: Any) -> None:
    kernel = launcher(twice(False), out_idx=[1])
    with pytest.raises(LaunchError, match="row pitch"):
        kernel(torch.zeros(8, 33, device="cuda"))
    with pytest.raises(LaunchError, match="starts at address"):
        kernel(torch.zeros(8 * 32 + 1, device="cuda")[1:].view(8, 32))


def test_a_captured_graph_replays(torch: Any) -> None:
    sources = [ADD] + ([twice(False)] if _CAPABILITY >= (9, 0) else [])
    for source in sources:
        kernel = launcher(source)
        kernel.load()  # no call before the capture
        shape = (512,) if source is ADD else (64, 64)
        x, y = torch.zeros(shape, device="cuda"), torch.zeros(shape, device="cuda")
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            kernel(*((x, x, y) if source is ADD else (x, y)))
        for value in (1.0, 3.0):
            x.fill_(value)
            graph.replay()
            assert torch.equal(y, 2 * x)
        graph.reset()  # before the kernel goes, whose code it holds


def test_a_module_loads_during_a_capture(torch: Any) -> None:
    kernel = launcher(replace(ADD, text=ADD_TEXT + "// another module\n"))
    x, y = torch.ones(512, device="cuda"), torch.zeros(512, device="cuda")
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        kernel(x, x, y)
    graph.replay()
    assert torch.equal(y, 2 * x)
    graph.reset()


def test_variants_by_size_and_address(torch: Any) -> None:
    fast_text = ADD_TEXT.replace("scale * B[i]", "scale * B[i] + 1000.0f")  # to tell which one ran
    facts = (Fact(("eq", ("mod", "N", 4), 0), "N % 4 == 0"), Fact(("eq", ("mod", "A.ptr", 16), 0), "A at 16 bytes"))
    fast = replace(ADD, text=fast_text, facts=facts)
    kernel = launcher(fast, general=lambda aligned: (ADD, build.build(ADD, NO_CACHE)))
    a, c = torch.zeros(1001, device="cuda"), torch.zeros(1001, device="cuda")

    def ran_fast(start: int, n: int) -> bool:
        part = slice(start, start + n)
        kernel(a[part], a[part], c[part])
        return bool((c[part] == 1000).all())

    assert [ran_fast(*x) for x in ((0, 400), (0, 401), (1, 400), (4, 400), (0, 400))] == [
        True,
        False,
        False,
        True,
        True,
    ]


def test_new_threads_have_no_context_of_their_own(torch: Any) -> None:
    kernel, failures = launcher(), []
    a = torch.ones(4096, device="cuda")

    def work() -> None:
        try:
            c = torch.empty_like(a)
            for _ in range(50):
                kernel(a, a, c)
            torch.cuda.synchronize()
            assert torch.equal(c, 2 * a)
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=work) for _ in range(6)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not failures


def test_wrong_arguments_leave_the_device_alone(torch: Any) -> None:
    kernel, a = launcher(), torch.ones(64, device="cuda")
    for wrong in (a.half(), a[:32], a.cpu(), torch.ones(128, device="cuda")[::2], a.view(8, 8), None):
        with pytest.raises(LaunchError):
            kernel(a, wrong, a)
    c = torch.empty_like(a)
    kernel(a, a, c)
    assert torch.equal(c, 2 * a)


def test_the_clock_agrees_with_the_work(torch: Any) -> None:
    kernel = launcher()
    small, large = (tuple(torch.ones(n, device="cuda") for _ in range(3)) for n in (1 << 20, 1 << 26))
    times = [benchmark.bench(lambda x=x: kernel(*x), warmup=5, rep=20) for x in (small, large)]
    assert times[1].median > 4 * times[0].median and times[0].runs >= benchmark.FEWEST
