"""Every polymorphic answer on symbolic arguments: built from operators alone, equal to the answer on integers."""

import operator

import numpy as np
import pytest

from tileworkbench.layout import (
    Fragment,
    SharedLayout,
    Swizzle,
    accumulator,
    find_atoms,
    loop_layout,
    matrix_move,
    mfma_atoms,
    offset_threads,
    operand_a,
    reduce_dim,
    replicate,
    wgmma_accumulator,
    wgmma_descriptor,
)


class Symbol:
    """An expression over named values that only knows operators; it is neither true nor an index."""

    def __init__(self, run, size=1):
        self.run, self.size = run, size

    def _join(self, other, function, swap=False):
        a, b = (other, self) if swap else (self, other)
        size = self.size + (other.size if isinstance(other, Symbol) else 0) + 1
        return Symbol(lambda env: function(value(a, env), value(b, env)), size)

    def __bool__(self):
        raise AssertionError("a symbolic value decided Python control flow")

    __index__ = None
    __hash__ = None


for name in ["add", "sub", "mul", "floordiv", "mod", "xor", "and", "or", "lshift", "rshift", "lt", "eq"]:
    function = getattr(operator, f"{name}_" if name in ("and", "or") else name)
    setattr(Symbol, f"__{name}__", lambda self, other, f=function: self._join(other, f))
    if name not in ("lt", "eq"):
        setattr(Symbol, f"__r{name}__", lambda self, other, f=function: self._join(other, f, True))


def value(expression, env):
    return expression.run(env) if isinstance(expression, Symbol) else expression


def symbol(name):
    return Symbol(lambda env: env[name])


F16 = find_atoms("sm_80", "float16", "float16", "float32")[0]
MAPS = [
    loop_layout((128, 64), 128, 8),
    loop_layout((7, 33), 128, 3),
    loop_layout((300,), 128),
    loop_layout((1,), 32),
    accumulator(F16, (64, 64), 2, 2),
    operand_a(F16, (64, 32), 2, 2),
    wgmma_accumulator((128, 48), 2),
    reduce_dim(wgmma_accumulator((128, 48), 2), 1),
    offset_threads(replicate(accumulator(mfma_atoms()[1], (64, 32), 2, 1), 2), 64),
    Fragment((13, 7), F16.c.modes),
]


@pytest.mark.parametrize("fragment", MAPS, ids=lambda f: f.describe())
def test_maps_onto_threads(fragment):
    thread, loops = symbol("t"), [symbol(f"r{i}") for i in range(len(fragment.reg_extents))]
    coords = fragment.coordinate(thread, loops)
    register = fragment.register(loops)
    guards = fragment.guards(thread, loops)
    names = [symbol(f"c{d}") for d in range(fragment.rank)]
    owner, held_in = fragment.owner(*names)
    located, held = fragment.locate(thread, *names)
    table, valid = fragment.table(), fragment.valid()
    random = np.random.default_rng(0)
    for _ in range(40):
        t = int(random.integers(fragment.threads)) + fragment.base
        indices = [int(random.integers(extent)) for extent in fragment.reg_extents]
        env = {"t": t, **{f"r{i}": index for i, index in enumerate(indices)}}
        r = value(register, env)
        row = table[t - fragment.base, r]
        assert [value(c, env) for c in coords] == row.tolist()
        assert all(value(g, env) for g in guards) == valid[t - fragment.base, r]
        if valid[t - fragment.base, r]:
            env |= {f"c{d}": int(c) for d, c in enumerate(row)}
            assert value(held_in, env) == value(located, env) == r
            assert value(held, env)
            assert fragment.locate(value(owner, env), *row.tolist())[1]


@pytest.mark.parametrize(
    "layout",
    [
        SharedLayout.row_major((4, 8)),
        SharedLayout.padded((4, 8), 3),
        SharedLayout.swizzled((2, 16, 128), 2, 128),
        SharedLayout.swizzled((16, 64), 4, 32),
        SharedLayout.from_function((8, 16), lambda i, j: (j // 4, i ^ (j % 4))),
    ],
    ids=repr,
)
def test_shared_offsets(layout):
    expression = layout.offset(*[symbol(f"c{d}") for d in range(len(layout.shape))])
    for coords in np.ndindex(*layout.shape):
        assert value(expression, {f"c{d}": c for d, c in enumerate(coords)}) == layout.table()[coords]


def test_constants_leave_no_trace():
    layout = SharedLayout.row_major((4, 8))
    assert layout.offset(symbol("i"), 0).size == 3 - 1
    assert isinstance(layout.offset(0, 3), int)
    assert loop_layout((128,), 128).coordinate(symbol("t"))[0].size == 1
    assert loop_layout((1,), 1).coordinate(symbol("t")) == (0,)


def test_addresses_of_instructions():
    move = matrix_move(operand_a(F16, (64, 32), 2, 2), 1, 2)
    rows = move.row_start(symbol("t"), symbol("i"))
    for t in range(128):
        for i in range(move.instructions):
            expected = move.row_start(t, i)
            assert tuple(value(c, {"t": t, "i": i}) for c in rows) == tuple(expected)
    descriptor = wgmma_descriptor(SharedLayout.swizzled((64, 64), 2, 128), 2, False, 0, 16, 64)
    bits = descriptor.encode(symbol("a"))
    assert value(bits, {"a": 0x2400}) == descriptor.encode(0x2400)
    assert value(Swizzle(3, 4, 3)(symbol("a")), {"a": 0x3F0}) == Swizzle(3, 4, 3)(0x3F0)
