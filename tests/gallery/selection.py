"""The largest values of a row: one after the other over a fragment, and by counting the digits of their bits."""

from __future__ import annotations

from typing import Any

import numpy as np

import tileworkbench as tw
import tileworkbench.language as T
from tests.gallery.entry import Data, Entry, Expected

FLOAT, INT = "float32", "int32"


@tw.jit(target="cpu")
def largest(X, k: int, rows: int, threads: int = 128):
    """A maximum, where it stands, and out with it; `k` times."""
    M, N = T.const("M, N")
    X: T.Tensor([M, N], FLOAT)
    Values = T.empty([M, k], FLOAT)
    Places = T.empty([M, k], INT)
    with T.Kernel(T.ceildiv(M, rows), threads=threads) as bx:
        x = T.alloc_fragment([rows, N], FLOAT)
        where = T.alloc_fragment([rows, N], INT)
        top = T.alloc_fragment([rows], FLOAT)
        place = T.alloc_fragment([rows], INT)
        T.copy(X[bx * rows, 0], x)
        for n in T.serial(k):
            T.fill(where, -1)
            T.reduce_max(x, top, dim=1, clear=True)
            for i, j in T.Parallel(rows, N):
                where[i, j] = T.if_then_else(x[i, j] == top[i], j, where[i, j])
            T.reduce_max(where, place, dim=1, clear=True)
            for i, j in T.Parallel(rows, N):
                x[i, j] = T.if_then_else(x[i, j] == top[i], -1.0e30, x[i, j])
            for i in T.Parallel(rows):
                Values[bx * rows + i, n] = top[i]
                Places[bx * rows + i, n] = place[i]
    return Values, Places


def ordered(x):
    """The bits of a float32 as an unsigned integer of the same order."""
    bits = T.reinterpret(x, "uint32")
    return T.if_then_else(x < 0, ~bits, bits | T.cast(0x80000000, "uint32"))


def coarse(x):
    """The first digit: eight bits of the same order, from the value in half precision."""
    bits = T.reinterpret(T.cast(x, "float16"), "uint16")
    return T.cast(T.if_then_else(x < 0, ~bits & 0xFFFF, bits | 0x8000) >> 8, INT)


@tw.jit(target="cpu")
def by_digits(X, Places, Begin, End, threads: int = 1024, room: int = 4096):
    """Counts by the first digit, keeps all above the digit at which `k` is passed, and repeats with those on it."""
    k = T.const("k")
    batch, length = T.dynamic("batch"), T.dynamic("length")
    X: T.Tensor[(batch, length), FLOAT]
    Places: T.Tensor[(batch, k), INT]
    Begin: T.Tensor[(batch,), INT]
    End: T.Tensor[(batch,), INT]
    digits, each = 256, 4

    @T.macro
    def threshold(counts, digit, wanted, thread):
        """Suffix sums of the counts by doubling; the digit at which the wanted number is reached."""
        held = T.alloc_var(INT)
        if thread < digits:
            for power in T.serial(8):
                T.sync_threads(3, digits)
                if thread < digits - (1 << power):
                    held = counts[thread] + counts[thread + (1 << power)]
                T.sync_threads(3, digits)
                if thread < digits - (1 << power):
                    counts[thread] = held
            T.sync_threads(3, digits)
            if counts[thread] >= wanted and counts[thread + 1] < wanted:
                digit[0] = thread
        T.sync_threads()

    with T.Kernel(batch, threads=threads) as b:
        thread = T.get_thread_binding()
        counts = T.alloc_shared([digits + 1], INT)
        digit = T.alloc_shared([1], INT)
        number = T.alloc_shared([2], INT)
        kept = T.alloc_shared([2, room], INT)
        wanted = T.alloc_var(INT)
        border = T.alloc_var(INT)
        mine = T.alloc_var(INT)
        place = T.alloc_var(INT)
        start = T.alloc_var(INT)
        candidates = T.alloc_var(INT)
        begin, end = Begin[b], End[b]
        wanted = k
        T.fill(counts, 0)
        T.fill(number, 0)
        T.fill(digit, 0)
        T.sync_threads()
        for s in T.serial(T.ceildiv(length, threads * each)):
            for j in T.serial(each):
                at = (s * threads + thread) * each + j
                if at >= begin and at < end and at < length:
                    T.atomic_add(counts[coarse(X[b, at])], 1)
        T.sync_threads()
        threshold(counts, digit, wanted, thread)
        border = digit[0]
        wanted = wanted - counts[border + 1]
        T.sync_threads()
        for s in T.serial(T.ceildiv(length, threads * each)):
            for j in T.serial(each):
                at = (s * threads + thread) * each + j
                if at >= begin and at < end and at < length:
                    mine = coarse(X[b, at])
                    if mine > border:
                        place = T.atomic_add(counts[mine + 1], 1, return_prev=True)
                        Places[b, place] = at
                    elif mine == border and wanted > 0:
                        place = T.atomic_add(number[0], 1, return_prev=True)
                        kept[0, place] = at
        for turn in T.serial(4):
            if wanted <= 0:
                break
            here = turn % 2
            start = k - wanted
            T.sync_threads()
            T.fill(counts, 0)
            if thread == 0:
                number[1 - here] = 0
            T.sync_threads()
            candidates = number[here]
            for s in T.serial(T.ceildiv(candidates, threads)):
                if s * threads + thread < candidates:
                    bits = ordered(X[b, kept[here, s * threads + thread]])
                    T.atomic_add(counts[T.cast((bits >> (24 - turn * 8)) & 0xFF, INT)], 1)
            T.sync_threads()
            threshold(counts, digit, wanted, thread)
            border = digit[0]
            wanted = wanted - counts[border + 1]
            T.sync_threads()
            for s in T.serial(T.ceildiv(candidates, threads)):
                if s * threads + thread < candidates:
                    at = kept[here, s * threads + thread]
                    mine = T.cast((ordered(X[b, at]) >> (24 - turn * 8)) & 0xFF, INT)
                    if mine > border:
                        place = T.atomic_add(counts[mine + 1], 1, return_prev=True) + start
                        Places[b, place] = at
                    elif mine == border and wanted > 0:
                        if turn == 3:
                            place = T.atomic_add(counts[mine + 1], 1, return_prev=True) + start
                            if place < k:
                                Places[b, place] = at
                        else:
                            place = T.atomic_add(number[1 - here], 1, return_prev=True)
                            kept[1 - here, place] = at
        # What was selected has no order; a sort by one thread would cost more than the selection.


def largest_data(M: int, N: int, k: int, **_: Any) -> Data:
    x = np.random.default_rng(1).permutation(M * N).reshape(M, N).astype(np.float32) - M * N / 2
    places = np.argsort(-x, axis=1)[:, :k]
    return Data({"X": x}, {"Values": Expected(np.take_along_axis(x, places, 1)), "Places": Expected(places)})


def by_digits_data(batch: int, length: int, k: int, **_: Any) -> Data:
    x = np.random.default_rng(1).permutation(batch * length).reshape(batch, length).astype(np.float32)
    x = (x - batch * length / 2) / 64
    begin, end = np.arange(batch, dtype=np.int32), np.int32([length - 2 * b for b in range(batch)])
    at = np.arange(length)
    seen = np.where((at >= begin[:, None]) & (at < end[:, None]), x, -np.inf)
    chosen = np.sort(np.argsort(-seen, axis=1)[:, :k], axis=1)
    return Data({"X": x, "Begin": begin, "End": end}, {"Places": Expected(chosen, any_order=True)})


def compiled(batch: int, length: int, k: int, **options: Any) -> Any:
    return by_digits.compile(k=k, **options)


ENTRIES = [
    Entry("largest of a row", ("topk/example_topk.py",), largest.compile, largest_data,
          {"M": 10, "N": 64, "k": 5, "rows": 8}, {"M": 320, "N": 128, "k": 6, "rows": 64}),
    Entry("largest by digits", ("deepseek_v32/topk_selector.py",), compiled, by_digits_data,
          {"batch": 2, "length": 700, "k": 50, "threads": 256, "room": 512},
          {"batch": 64, "length": 32768, "k": 2048}),
]  # fmt: skip
