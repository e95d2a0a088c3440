"""Batched products: every way the block axes can enter, against NumPy's own matmul."""

import itertools

import numpy as np
import pytest

from tileworkbench.simulate.tile import blas
from tileworkbench.simulate.tile.matmul import Products

SIZES = [(a, b) for a in (1, 3) for b in (1, 3)]


def operands(left, right, dtype=np.float32, repeated=False):
    """Whole numbers; `repeated` makes the extents of 1 views with stride 0."""
    rng = np.random.default_rng(1)
    a = rng.integers(-9, 10, (*left, 5, 7)).astype(dtype)
    b = rng.integers(-9, 10, (*right, 7, 4)).astype(dtype)
    if repeated:
        lead = np.broadcast_shapes(left, right)
        a, b = np.broadcast_to(a, (*lead, 5, 7)), np.broadcast_to(b, (*lead, 7, 4))
    return a, b


@pytest.mark.parametrize("repeated", [False, True])
@pytest.mark.parametrize("y,x,z", list(itertools.product(SIZES, SIZES, [(1, 1), (2, 2)])))
def test_products(y, x, z, repeated):
    a, b = operands((y[0], x[0], z[0]), (y[1], x[1], z[1]), repeated=repeated)
    products = Products()
    want = a @ b
    got = products.product(a, b)
    assert np.array_equal(got, want)
    total = np.add(np.ones_like(got), got)  # keeps the order of memory that the product chose
    assert np.array_equal(products.product(a, b), want)
    if products.add_product(total, a, b):
        assert np.array_equal(total, 1 + 2 * want)
    elif blas.multiply_add is not None:
        pytest.fail("a sum in the order of its product must be extended in place")


def test_sums_in_another_order_are_declined_and_unchanged():
    a, b = operands((3, 1), (1, 3))
    total = np.zeros((3, 3, 5, 4), np.float32)
    assert not Products().add_product(total, a, b) and not total.any()
    doubles = [x.astype(np.float64) for x in (a, b)]
    assert not Products().add_product(np.zeros((3, 3, 5, 4)), *doubles)


@pytest.mark.skipif(blas.multiply_add is None, reason="NumPy's BLAS was not found beside NumPy")
def test_operands_that_blas_cannot_take_are_copied():
    base = np.arange(400, dtype=np.float32).reshape(20, 20) % 11
    for a in (base[:4:2, :6:2], base[::-1][:3, :5], base.T[1:3, 2:8]):
        b = base[3 : 3 + a.shape[1], 1:4]
        c = np.zeros((a.shape[0], 3), np.float32)
        blas.multiply_add(c, a, b)
        assert np.array_equal(c, a @ b)


def test_without_a_blas(monkeypatch):
    monkeypatch.setattr(blas, "multiply_add", None)
    a, b = operands((3, 1), (1, 3))
    assert not Products().add_product(np.zeros((3, 3, 5, 4), np.float32), a, b)
    assert np.array_equal(Products().product(a, b), a @ b)


def test_shared_between_cores(monkeypatch):
    """Split along rows and along the batch, with overflow in every part: no warnings, the same sums."""
    from tileworkbench.simulate.tile import matmul, pool

    monkeypatch.setattr(matmul, "_WORTH_A_THREAD", 1)
    monkeypatch.setattr(pool, "cores", lambda: 3)
    for left, right in (((1, 1), (1, 4)), ((5, 2), (5, 1)), ((1, 1), (1, 1))):
        a, b = operands(left, right)
        assert np.array_equal(Products().product(a, b), a @ b)
    huge = np.full((1, 1, 5, 7), 1e38, np.float32)
    assert np.isinf(Products().product(huge, huge.swapaxes(-1, -2))).all()


def test_the_first_error_of_shared_work_is_raised():
    from tileworkbench.simulate.tile import pool

    def fail():
        raise ValueError("here")

    done = []
    with pytest.raises(ValueError, match="here"):
        pool.run_all([lambda: done.append(1), fail, lambda: done.append(2)])
    assert sorted(done) == [1, 2]
