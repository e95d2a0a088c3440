"""T.rng_*: the words of Philox4x32-10 in cuRAND's order, against the generator in Python's integers."""

from __future__ import annotations

import numpy as np
import pytest

import tileworkbench.language as T
from tileworkbench.errors import LanguageError, SimulationError, TargetError
from tileworkbench.simulate import thread, tile
from tileworkbench.target import Target

from .harness import ALL, NVIDIA, built, everywhere, lowered

WORD = 2**32 - 1


def philox(seed: int, sequence: int, block: int) -> list[int]:
    c = [block & WORD, block >> 32, sequence & WORD, sequence >> 32]
    k = [seed & WORD, seed >> 32]
    for _ in range(10):
        p, q = c[0] * 0xD2511F53, c[2] * 0xCD9E8D57
        c = [(q >> 32) ^ c[1] ^ k[0], q & WORD, (p >> 32) ^ c[3] ^ k[1], p & WORD]
        k = [(k[0] + 0x9E3779B9) & WORD, (k[1] + 0xBB67AE85) & WORD]
    return c


def words(seed: int, sequence: int, first: int, count: int) -> np.ndarray:
    """`count` words of a sequence, from the word `first` on."""
    return np.array([philox(seed, sequence, n // 4)[n % 4] for n in range(first, first + count)], np.uint32)


def test_the_reference_gives_the_published_vectors():
    # The known answers of the Random123 distribution for Philox4x32-10.
    assert philox(0, 0, 0) == [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]
    every = 2**64 - 1
    assert philox(every, every, every) == [0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD]
    assert philox(0x299F31D0A4093822, 0x0370734413198A2E, 0x85A308D3243F6A88) == [
        0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1,
    ]  # fmt: skip


def on_threads(kernel, targets, *outputs):
    """What the thread machine writes, the same for every target."""
    found = []
    for target in targets:
        made = lowered(kernel, target)
        given = [o.copy() for o in outputs]
        thread.run(made, given, target=Target.of(target))
        built(made, target)
        found.append(given)
    for other in found[1:]:
        for a, b in zip(found[0], other, strict=True):
            np.testing.assert_array_equal(a, b)
    return found[0]


@pytest.mark.parametrize(("threads", "each"), [(1, 128), (32, 4)])
def test_words_of_a_parallel_loop_follow_each_threads_order(threads, each):
    size = 2 * threads * each

    @T.prim_func
    def kernel(A: T.Tensor((size,), "uint32")):
        with T.Kernel(2, threads=threads) as bx:
            tx = T.get_thread_binding()
            T.rng_init(42, 3, (bx * threads + tx) * each)
            for i, j in T.Parallel(threads, each):
                if (bx * threads + i) * each + j < size - 5:
                    A[(bx * threads + i) * each + j] = T.rng_rand()

    want = words(42, 3, 0, size)
    want[-5:] = 0
    (found,) = on_threads(kernel, NVIDIA, np.zeros(size, np.uint32))
    np.testing.assert_array_equal(found, want)
    with pytest.raises(SimulationError, match="thread"):
        tile.run(kernel.kernel, [np.zeros(size, np.uint32)])


def test_each_thread_has_a_sequence_and_wide_seeds_and_offsets_count():
    @T.prim_func
    def kernel(A: T.Tensor((2, 32, 3), "uint32"), B: T.Tensor((2, 32), "uint32")):
        with T.Kernel(2, threads=32) as bx:
            tx = T.get_thread_binding()
            T.rng_init(T.int64(0x123456789ABCDEF))
            for n in T.serial(3):
                A[bx, tx, n] = T.rng_rand()
            T.rng_init(-1, T.uint64(1 << 40), T.uint64((1 << 35) + 2))
            B[bx, tx] = T.rng_rand()

    a = np.stack([words(0x123456789ABCDEF, n, 0, 3) for n in range(64)]).reshape(2, 32, 3)
    b = np.broadcast_to(words(2**64 - 1, 1 << 40, (1 << 35) + 2, 1), (2, 32))
    everywhere(kernel, [], [a, b], ALL)


def test_a_generator_started_in_a_branch():
    @T.prim_func
    def kernel(A: T.Tensor((8,), "uint32")):
        with T.Kernel(8, threads=32) as bx:
            tx = T.get_thread_binding()
            s = T.alloc_shared((32,), "int32")
            if bx < 5:
                T.rng_init(7, 0, bx)
                s[tx] = 1
                T.cumsum(s, dim=0)
                if tx == 0:
                    A[bx] = T.rng_rand() + T.cast(s[31], "uint32")

    want = words(7, 0, 0, 8) + np.uint32(32)
    want[5:] = 0
    everywhere(kernel, [], [want], NVIDIA, initial=[np.zeros(8, np.uint32)])


def test_uniform_and_normal_numbers():
    @T.prim_func
    def kernel(
        U: T.Tensor((32, 5), "float32"), D: T.Tensor((32, 3), "float64"),
        N: T.Tensor((32, 5), "float32"), M: T.Tensor((32, 4), "float64"),
    ):  # fmt: skip
        with T.Kernel(1, threads=32):
            tx = T.get_thread_binding()
            T.rng_init(5)
            for n in T.serial(5):
                U[tx, n] = T.rng_rand_float()
            for n in T.serial(3):
                D[tx, n] = T.rng_rand_float(bit=64)
            for n in T.serial(5):
                N[tx, n] = T.rng_rand_float(dist="normal")
            for n in T.serial(4):
                M[tx, n] = T.rng_rand_float(64, "normal")

    outs = (np.zeros((32, 5), "f4"), np.zeros((32, 3)), np.zeros((32, 5), "f4"), np.zeros((32, 4)))
    u, d, n, m = on_threads(kernel, NVIDIA, *outs)
    w = np.stack([words(5, t, 0, 25) for t in range(32)])
    x = w.astype(np.float64)

    def fine(first, second):
        bits = first.astype(np.uint64) ^ (second.astype(np.uint64) << np.uint64(21))
        return bits.astype(np.float64) * 2.0**-53 + 2.0**-54

    def pairs(unit, turn):
        radius = np.sqrt(-2 * np.log(unit))
        return np.stack([radius * np.sin(2 * np.pi * turn), radius * np.cos(2 * np.pi * turn)], -1).reshape(32, -1)

    np.testing.assert_array_equal(u, w[:, :5].astype("f4") * np.float32(2.0**-32) + np.float32(2.0**-33))
    np.testing.assert_array_equal(d, fine(w[:, 5:11:2], w[:, 6:11:2]))
    half = (x[:, 11:17] + 0.5) * 2.0**-32
    np.testing.assert_allclose(n, pairs(half[:, ::2], half[:, 1::2])[:, :5], rtol=3e-5, atol=3e-6)
    deep = fine(w[:, 17:25:2], w[:, 18:25:2])
    np.testing.assert_allclose(m, pairs(deep[:, ::2], deep[:, 1::2]), rtol=1e-12, atol=1e-13)


def misuse(case):
    generator = "mine" if case == "generator=" else "curandStatePhilox4_32_10_t"
    bit, dist = 16 if case == "bit=" else 32, "" if case == "dist=" else "normal"

    def kernel(A: T.Tensor((32,), "float32")):
        with T.Kernel(1, threads=32):
            if case != "before T.rng_init":
                T.rng_init(1, generator=generator)
            A[T.get_thread_binding()] = T.rng_rand_float(bit, dist)

    return kernel


@pytest.mark.parametrize("case", ["before T.rng_init", "generator=", "bit=", "dist="])
def test_misuse_is_refused(case):
    with pytest.raises((LanguageError, TargetError), match=case):
        T.prim_func(misuse(case))
