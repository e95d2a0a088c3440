"""Random kernels over two dimensions against plain Python loops: tails, shifts past every edge, guards, gathers, serial
rows, and chunks of every size."""

import random

import numpy as np
import pytest

from tileworkbench.ir.expr import logical
from tileworkbench.ir.stmt import If
from tileworkbench.ops.copy import Copy
from tileworkbench.simulate.tile import machine, run
from tileworkbench.simulate.tile.chunk import chunks

from .build import kernel, load, loop, parallel, region, store, tensor, tile, var, whole

MODES = ("copy", "parallel", "guard", "serial", "gather")


class Case:
    """The description that both the kernel and the reference are made from."""

    def __init__(self, seed):
        r = random.Random(seed)
        self.shape, self.tile = [tuple(r.randint(1, n) for _ in range(2)) for n in (9, 5)]
        self.grid = (r.randint(1, 4), r.randint(1, 4))
        self.load_at, self.store_at = [tuple(r.choice((0, 0, 1, -1, 2)) for _ in range(2)) for _ in range(2)]
        self.mode, self.chunk = r.choice(MODES), r.choice((1, 200, 2**20))
        rng = np.random.default_rng(seed)
        self.a, self.b = rng.integers(-99, 99, (2, *self.shape)).astype(np.int32)


def built(c):
    a, b, s = tensor("A", c.shape, "int32"), tensor("B", c.shape, "int32"), tile("S", c.tile, "int32")
    bx, by, i, j, k = (var(n) for n in ("bx", "by", "i", "j", "k"))
    (h, w), (rows, columns) = c.tile, c.shape
    source = (by * h + c.load_at[0], bx * w + c.load_at[1])
    y, x = by * h + c.store_at[0], bx * w + c.store_at[1]
    keep = logical("land", y + i < rows, (i + j) % 2 == 0)
    body = {
        "copy": Copy(whole(s), region(b, (y, x), c.tile)),
        "parallel": parallel([i, j], c.tile, store(b, (y + i, x + j), load(s, i, j) * 2 + i)),
        "guard": parallel([i, j], c.tile, If(keep, (store(b, (y + i, x + j), load(s, h - 1 - i, j)),))),
        "serial": loop(k, h, parallel([j], [w], store(b, (y + k, x + j), load(s, k, j) + k))),
        "gather": parallel(
            [i, j],
            c.tile,
            store(b, (y + i, x + j), load(a, (y + i * 3) % rows, (j * j) % columns) + load(s, i, j)),
        ),
    }[c.mode]
    return kernel([a, b], c.grid[::-1], [bx, by], Copy(region(a, source, c.tile), whole(s)), body)


def expected(c):
    """B after all blocks, and which elements nobody stored to."""
    out, untouched = c.b.copy(), np.ones(c.shape, bool)
    (h, w), (rows, columns) = c.tile, c.shape
    for top in range(0, c.grid[0] * h, h):
        for left in range(0, c.grid[1] * w, w):

            def s(i, j, top=top, left=left):
                p, q = top + c.load_at[0] + i, left + c.load_at[1] + j
                return int(c.a[p, q]) if 0 <= p < rows and 0 <= q < columns else 0

            for i in range(h):
                for j in range(w):
                    p, q = top + c.store_at[0] + i, left + c.store_at[1] + j
                    inside = 0 <= p < rows and 0 <= q < columns
                    if not inside or (c.mode == "guard" and (i + j) % 2):
                        continue
                    value = {
                        "copy": lambda i=i, j=j: s(i, j),
                        "parallel": lambda i=i, j=j: s(i, j) * 2 + i,
                        "guard": lambda i=i, j=j: s(h - 1 - i, j),
                        "serial": lambda i=i, j=j: s(i, j) + i,
                        "gather": lambda i=i, j=j, p=p: int(c.a[(p + 2 * i) % rows, j * j % columns]) + s(i, j),
                    }[c.mode]
                    out[p, q], untouched[p, q] = value(), False
    return out, untouched


@pytest.mark.parametrize("start", range(0, 200, 20))
def test_random_kernels(start, monkeypatch):
    for seed in range(start, start + 20):
        c = Case(seed)
        monkeypatch.setattr(machine, "chunks", lambda grid, size, single, c=c: chunks(grid, size, single, c.chunk))
        b = c.b.copy()
        result = run(built(c), [c.a, b])
        want, untouched = expected(c)
        assert np.array_equal(b, want), seed
        assert np.array_equal(result.unwritten.get("B", np.zeros(c.shape, bool)), untouched), seed
