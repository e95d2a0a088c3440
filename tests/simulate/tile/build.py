"""Kernels built by hand as IR, and the places their errors must name."""

from __future__ import annotations

from tileworkbench.errors import Loc
from tileworkbench.ir.dtype import DTYPES
from tileworkbench.ir.expr import Buffer, Load, Var, as_expr, const
from tileworkbench.ir.kernel import Kernel
from tileworkbench.ir.stmt import For, Region, Store, whole
from tileworkbench.ops.parallel import Parallel


def at(line):
    return Loc("kernel.py", line)


def tensor(name, shape, dtype="float32"):
    return Buffer(name, tuple(shape), DTYPES[dtype])


def tile(name, shape, dtype="float32", space="shared"):
    return Buffer(name, tuple(shape), DTYPES[dtype], space)


def var(name, dtype="int32"):
    return Var(name, dtype=DTYPES[dtype])


def load(buffer, *indices, line=0):
    return Load(buffer, tuple(as_expr(i) for i in indices), loc=at(line))


def store(buffer, indices, value, line=0):
    indices = indices if isinstance(indices, tuple) else (indices,)
    return Store(buffer, tuple(as_expr(i) for i in indices), as_expr(value, buffer.dtype), loc=at(line))


def region(buffer, starts, extents, line=0):
    return Region(buffer, tuple(as_expr(s) for s in starts), tuple(extents), loc=at(line))


def parallel(vars, extents, *body, line=0):
    return Parallel(tuple(vars), tuple(extents), tuple(body), loc=at(line))


def loop(v, stop, *body, start=0, step=1, kind="serial", line=0):
    return For(v, as_expr(start), as_expr(stop), as_expr(step), tuple(body), kind=kind, loc=at(line))


def kernel(params, grid, blocks, *body, threads=128, **more):
    return Kernel("kernel", tuple(params), tuple(grid), tuple(blocks), threads, tuple(body), **more)


TRUE, FALSE = const(True), const(False)
__all__ = [
    "FALSE",
    "TRUE",
    "at",
    "kernel",
    "load",
    "loop",
    "parallel",
    "region",
    "store",
    "tensor",
    "tile",
    "var",
    "whole",
]
