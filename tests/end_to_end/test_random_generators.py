"""T.rng_init with cuRAND's XORWOW and MRG32k3a, against both in Python's integers and against cuRAND's own words."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pytest

import tileworkbench.language as T
from tileworkbench.errors import LanguageError
from tileworkbench.language.generators.mrg32k3a import RECURRENCES, power_of_two
from tileworkbench.language.generators.xorwow import POLYNOMIAL
from tileworkbench.simulate import thread, tile
from tileworkbench.target import Target

from .harness import ALL, NVIDIA, built, lowered
from .test_random import on_threads

WORD = 2**32 - 1
XORWOW, MRG = "curandStateXORWOW_t", "curandStateMRG32k3a_t"
MODULI = (4294967087, 4294944443)
STEPS = (((0, 1, 0), (0, 0, 1), (-810728, 1403580, 0)), ((0, 1, 0), (0, 0, 1), (-1370589, 0, 527612)))


def shifted(v: list[int]) -> list[int]:
    t = v[0] ^ v[0] >> 2
    return [*v[1:], v[4] ^ (v[4] << 4 & WORD) ^ t ^ (t << 1 & WORD)]


def packed(v: Iterable[int]) -> int:
    return sum(x << 32 * i for i, x in enumerate(v))


def unpacked(n: int) -> list[int]:
    return [n >> 32 * i & WORD for i in range(5)]


def columns(m: list[int], x: int) -> int:
    """The sum of the matrix's columns that the bits of x select."""
    found = 0
    for i, column in enumerate(m):
        found ^= column if x >> i & 1 else 0
    return found


def powers() -> list[list[int]]:
    """The register's step as a matrix of bits, and its powers of 2, 4, 8 …"""
    made = [[packed(shifted(unpacked(1 << i))) for i in range(160)]]
    for _ in range(130):
        made.append([columns(made[-1], c) for c in made[-1]])
    return made


POWERS = powers()


def xorwow(seed: int, sequence: int, offset: int, count: int) -> list[int]:
    a, b = 1099087573 * (seed & WORD ^ 0xAAD26B49) & WORD, 2591861531 * (seed >> 32 ^ 0xF7DCEFDD) & WORD
    skipped = (sequence << 67) + offset
    d = 6615241 + a + b + 362437 * skipped
    first = [123456789 + a, 362436069 ^ a, 521288629 + b, 88675123 ^ b, 5783321 + a]
    state = packed(x & WORD for x in first)
    for i, power in enumerate(POWERS):
        state = columns(power, state) if skipped >> i & 1 else state
    v, out = unpacked(state), []
    for n in range(1, count + 1):
        v = shifted(v)
        out.append(v[4] + d + 362437 * n & WORD)
    return out


def numbers(seed: int, sequence: int, offset: int, count: int) -> list[int]:
    """MRG32k3a's, each 1 … 2^32 - 209."""
    one, two = (seed & WORD ^ 0x55555555, seed >> 32 ^ 0xAAAAAAAA) if seed else (1, 1)
    start = ([12345 * x for x in (one, two, one)], [12345 * x for x in (two, one, two)])
    states = []
    for vector, step, m in zip(start, STEPS, MODULI, strict=True):
        matrix, skip = np.array(step, object), (sequence % 2**51 << 76) + offset
        now = np.array(vector, object) % m
        while skip:
            now = matrix.dot(now) % m if skip & 1 else now
            matrix, skip = matrix.dot(matrix) % m, skip >> 1
        states.append(now)
    out = []
    for _ in range(count):
        states = [np.array(s, object).dot(v) % m for s, v, m in zip(STEPS, states, MODULI, strict=True)]
        out.append(int(states[0][2] - states[1][2] - 1) % MODULI[0] + 1)
    return out


def mrg(seed: int, sequence: int, offset: int, count: int) -> list[int]:
    return [min(int(z * 1.000000048662), WORD) for z in numbers(seed, sequence, offset, count)]


REFERENCES = {XORWOW: xorwow, MRG: mrg}
# What cuRAND's curand() returns after curand_init(seed, sequence, offset): curand_kernel.h 10.3.10 run on a CPU.
KNOWN = {
    (XORWOW, 0, 0, 0): (0xBD7F03B6, 0x703E556D, 0x845AF0C5, 0x283067FD),
    (XORWOW, 42, 0, 5): (0xD7E062FF, 0xB4AD5C88, 0xE7D88BF9, 0xC76A661E),
    (XORWOW, 0x123456789ABCDEF, 7, 1000): (0x515B5B13, 0x647FBB83, 0x985380BA, 0x94114D51),
    (XORWOW, 2**64 - 1, 1 << 40, (1 << 35) + 2): (0xD821DE41, 0xED365BAD, 0x1F8C159F, 0xC9E49651),
    (XORWOW, 5, 2**64 - 1, 2**64 - 1): (0x632AE804, 0x6A1B881B, 0x94230DE9, 0x0C08E0FB),
    (MRG, 0, 0, 0): (0x2083CD07, 0x518B05C4, 0x4F26D091, 0xD36AB334),
    (MRG, 42, 0, 5): (0xD94920AA, 0x5D11CFF7, 0xEF3B6BC4, 0xD84E64F1),
    (MRG, 0x123456789ABCDEF, 7, 1000): (0x620EFB08, 0xEE49F0A4, 0xAFB7D7B0, 0x659F7D8B),
    (MRG, 2**64 - 1, 1 << 40, (1 << 35) + 2): (0xCF782453, 0xB7E4EA53, 0x5A431964, 0x50482FD5),
    (MRG, 5, (1 << 50) + 77, 3): (0xB64F75C0, 0x5B613067, 0x1DE1C9A7, 0xB292C7C9),
}


@pytest.mark.parametrize("case", KNOWN, ids=lambda c: f"{c[0][12:-2]}-{c[1]:x}-{c[2]:x}-{c[3]:x}")
def test_the_references_give_curands_words(case):
    generator, *given = case
    assert tuple(REFERENCES[generator](*given, 4)) == KNOWN[case]


def test_the_polynomials_are_the_recurrences():
    state, total = [1, 2, 3, 4, 5], 0
    for e in range(161):
        total ^= packed(state) if POLYNOMIAL >> e & 1 else 0
        state = shifted(state)
    assert total == 0
    for r, step, m in zip(RECURRENCES, STEPS, MODULI, strict=True):
        matrix = np.array(step, object)
        for _ in range(5):
            matrix = matrix.dot(matrix) % m
        a = np.array(step, object)
        c = power_of_two(5, r)
        combined = (c[0] * np.eye(3, dtype=int).astype(object) + c[1] * a + c[2] * a.dot(a)) % m
        assert (combined == matrix % m).all()


@pytest.mark.parametrize("generator", REFERENCES)
def test_words_of_sequences_and_offsets(generator):
    @T.prim_func
    def kernel(A: T.Tensor((2, 32, 3), "uint32")):
        with T.Kernel(2, threads=32) as bx:
            tx = T.get_thread_binding()
            T.rng_init(42, bx * 5 + 1, tx % 4 * 3, generator=generator)
            for n in T.serial(3):
                A[bx, tx, n] = T.rng_rand()

    of = REFERENCES[generator]
    want = [[of(42, b * 5 + 1, t % 4 * 3, 3) for t in range(32)] for b in range(2)]
    found = np.zeros((2, 32, 3), np.uint32)
    tile.run(kernel.kernel, [found])
    np.testing.assert_array_equal(found, want)
    np.testing.assert_array_equal(on_threads(kernel, ALL, np.zeros_like(found))[0], want)


def test_wide_seeds_sequences_and_offsets_count():
    seed, sequence, offset = 0xFEDCBA9876543210, (3 << 60) + 1, (1 << 63) + 7

    @T.prim_func
    def kernel(A: T.Tensor((2, 4), "uint32"), start: T.uint64):
        with T.Kernel(1, threads=32):
            T.rng_init(T.uint64(seed), T.uint64(sequence), start, generator=XORWOW)
            for n in T.serial(4):
                if T.get_thread_binding() == 0:
                    A[0, n] = T.rng_rand()
            T.rng_init(T.uint64(seed), T.uint64(sequence), start, generator=MRG)
            for n in T.serial(4):
                if T.get_thread_binding() == 0:
                    A[1, n] = T.rng_rand()

    want = np.array([of(seed, sequence, offset, 4) for of in REFERENCES.values()], np.uint32)
    found = np.zeros((2, 4), np.uint32)
    tile.run(kernel.kernel, [found, np.uint64(offset)])
    np.testing.assert_array_equal(found, want)
    made = lowered(kernel, "sm_90a")
    found[:] = 0
    thread.run(made, [found, np.uint64(offset)], target=Target.of("sm_90a"))
    np.testing.assert_array_equal(found, want)
    built(made, "sm_90a")


def test_mrg_numbers_are_fractions_of_its_modulus():
    @T.prim_func
    def kernel(
        U: T.Tensor((32, 3), "float32"), D: T.Tensor((32, 3), "float64"),
        N: T.Tensor((32, 3), "float32"), M: T.Tensor((32, 2), "float64"),
    ):  # fmt: skip
        with T.Kernel(1, threads=32):
            tx = T.get_thread_binding()
            T.rng_init(5, generator=MRG)
            for n in T.serial(3):
                U[tx, n] = T.rng_rand_float()
            for n in T.serial(3):
                D[tx, n] = T.rng_rand_float(bit=64)
            for n in T.serial(3):
                N[tx, n] = T.rng_rand_float(dist="normal")
            for n in T.serial(2):
                M[tx, n] = T.rng_rand_float(64, "normal")

    outs = (np.zeros((32, 3), "f4"), np.zeros((32, 3)), np.zeros((32, 3), "f4"), np.zeros((32, 2)))
    u, d, n, m = on_threads(kernel, NVIDIA, *outs)
    z = np.array([numbers(5, t, 0, 12) for t in range(32)], np.float64) * 2.3283065498378288e-10
    np.testing.assert_array_equal(u, z[:, :3].astype("f4"))
    np.testing.assert_array_equal(d, z[:, 3:6])

    def pairs(unit, turn):
        radius = np.sqrt(-2 * np.log(unit))
        return np.stack([radius * np.sin(2 * np.pi * turn), radius * np.cos(2 * np.pi * turn)], -1).reshape(32, -1)

    np.testing.assert_allclose(n, pairs(z[:, 6:10:2], z[:, 7:10:2])[:, :3], rtol=3e-5, atol=3e-6)
    np.testing.assert_allclose(m, pairs(z[:, 10:11], z[:, 11:12]), rtol=1e-12, atol=1e-13)
    # cuRAND's own first numbers of seed 42, from its header.
    first = np.array(numbers(42, 0, 0, 7), np.float64) * 2.3283065498378288e-10
    np.testing.assert_allclose(first[4:7], [0.154826134, 0.848772109, 0.363553047], rtol=1e-7)


def test_another_generator_starts_outside_branches():
    def kernel(A: T.Tensor((32,), "uint32")):
        with T.Kernel(2, threads=32) as bx:
            T.rng_init(1)
            if bx == 1:
                T.rng_init(1, generator=XORWOW)
            A[T.get_thread_binding()] = T.rng_rand()

    with pytest.raises(LanguageError, match="in a loop or branch"):
        T.prim_func(kernel)
