"""T.alloc_*: tiles and variables of a kernel. A new tile takes the name of the variable that it is assigned to."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

from ..errors import ShapeError
from ..ir.expr import Buffer, Expr, Load, Var, as_expr, cast, const
from ..ir.node import walk
from ..ir.stmt import ZERO, Alloc, Store
from .builder import Builder, require
from .dtypes import VectorDtype, as_dtype, vector_type
from .extents import as_shape
from .faults import LateExtent, fault, shown
from .fitted import fitted
from .lanes import VectorVariable
from .tensor import scope_space


def _alloc(what: str, shape: Any, dtype: Any, space: str, attrs: tuple[tuple[str, Any], ...] = ()) -> Buffer:
    builder = require(f"T.{what}")
    extents = as_shape(shape, f"T.{what}")
    unknown = {v for e in extents if isinstance(e, Expr) for v in walk(e) if isinstance(v, Var)}
    if any(isinstance(e, Expr) for e in extents):
        raise constant_shapes(builder, f"T.{what}", unknown)
    if space in ("shared", "fragment", "barrier") and builder.within("parallel") is not None:
        raise fault(f"T.{what} inside T.Parallel", "tiles belong to the whole block", "allocate it before the loop")
    made = Buffer(builder.take_hint(space), extents, as_dtype(dtype), space, None, attrs, loc=builder.here)
    builder.emit(Alloc(made, loc=builder.here))
    builder.define(made)
    return made


def constant_shapes(builder: Builder, what: str, unknown: set[Var]) -> ShapeError:
    """The error for extents of these variables: a LateExtent where every call's tensors tell all of them."""
    params = [p for p in builder.params if isinstance(p, Buffer)]
    told = {e for p in params for e in p.shape if isinstance(e, Var)} - {
        p for p in builder.params if isinstance(p, Var)
    }
    found, rule = f"{what}: an extent is known only at run time", "tiles have constant shapes"
    fix = "use a constant tile size and loop, or T.const / a Python value for the dimension"
    if builder.style == "lazy" and unknown and unknown <= told:
        return LateExtent(found, rule=rule, fix=fix).of(unknown, builder.params)
    return ShapeError(found, rule=rule, fix=fix)


def alloc_shared(shape: Any, dtype: Any, scope: str = "shared.dyn") -> Buffer:
    """A tile in shared memory, seen by the whole block."""
    if scope_space(scope) != "shared":
        raise fault(f"T.alloc_shared in scope {shown(scope)}", 'its scope is "shared" or "shared.dyn"', "leave it out")
    attrs = (("scope", scope),) if scope != "shared.dyn" else ()
    return _alloc("alloc_shared", shape, dtype, "shared", attrs)


def alloc_fragment(shape: Any, dtype: Any, scope: str = "local.fragment") -> Buffer:
    """A tile spread over the registers of the block's threads; the compiler decides how."""
    return _alloc("alloc_fragment", shape, dtype, _on_chip("alloc_fragment", scope))


def alloc_local(shape: Any, dtype: Any, scope: str = "local") -> Buffer:
    """A private array of each thread."""
    return _alloc("alloc_local", shape, dtype, _on_chip("alloc_local", scope))


def _on_chip(what: str, scope: str) -> str:
    """The space of a tile that lives no longer than its block."""
    space = scope_space(scope)
    if space in ("global", "barrier"):
        rule = "a tile is in shared memory or in registers"
        raise fault(f"T.{what} in scope {shown(scope)}", rule, "leave the scope out, or use T.alloc_global")
    return space


def alloc_var(dtype: Any, *args: Any, scope: str = "local.var", init: Any = None) -> Any:
    """A mutable scalar of each thread, or a vector of a type such as "float16x2": assigning its name stores, reading
    its name loads. Without an initial value it is 0 when the kernel begins; one declared in a loop is not set to 0
    again."""
    if args and isinstance(args[-1], str):
        args = args[:-1]  # the scope may be given by position
    if len(args) > 1 or (args and init is not None):
        raise fault("T.alloc_var: too many arguments", "T.alloc_var(dtype, init)", "give one initial value")
    value = args[0] if args else init
    builder = require("T.alloc_var")
    if (vector := vector_type(dtype)) is not None:
        return _vector(vector, value)
    if value is None:
        with builder.before_loops():
            made = _alloc("alloc_var", (1,), dtype, "var")
            builder.emit(Store(made, (ZERO,), cast(const(0), made.dtype), loc=builder.here))
        builder.define(made)
        return made
    made = _alloc("alloc_var", (1,), dtype, "var")
    if isinstance(value, Buffer) and value.space == "var":
        value = Load(value, (ZERO,))
    builder.emit(Store(made, (ZERO,), fitted(value, made), loc=builder.here))
    return made


def _vector(of: VectorDtype, value: Any) -> VectorVariable:
    """A private array of as many elements as a vector has lanes."""
    builder = require("T.alloc_var")
    lanes = of(0 if value is None else value)
    with builder.before_loops() if value is None else nullcontext():
        made = _alloc("alloc_var", (of.lanes,), of.element, "local")
        for n, lane in enumerate(lanes):
            builder.emit(Store(made, (as_expr(n),), lane, loc=builder.here))
    builder.define(made)
    return VectorVariable(made)


def alloc_barrier(arrive_count: int | list[int] | tuple[int, ...]) -> Buffer:
    """One mbarrier, or an array of them, in shared memory; `arrive_count` arrivals complete a phase."""
    return _barriers("alloc_barrier", arrive_count, ())


def alloc_cluster_barrier(arrive_count: int | list[int] | tuple[int, ...]) -> Buffer:
    """T.alloc_barrier on which the other blocks of the cluster arrive too: T.mbarrier_arrive(bar, cta_id). Each block
    has its own and waits for that one."""
    return _barriers("alloc_cluster_barrier", arrive_count, (("cluster", True),))


def _barriers(what: str, arrive_count: Any, attrs: tuple[tuple[str, Any], ...]) -> Buffer:
    counts = tuple(arrive_count) if isinstance(arrive_count, list | tuple) else (arrive_count,)
    if not counts or not all(isinstance(c, int) and c > 0 for c in counts):
        raise fault(f"T.{what}({shown(arrive_count)})", "arrive counts are positive ints", "one int, or a list of ints")
    return _alloc(what, (len(counts),), "uint64", "barrier", (("count", counts), *attrs))


def alloc_buffer(shape: Any, dtype: Any = "float32", scope: str = "global") -> Buffer:
    """The older spelling of the T.alloc_* functions, by storage scope."""
    space = scope_space(scope)
    if space == "global":
        return alloc_global(shape, dtype)
    return _alloc("alloc_buffer", shape, dtype, space)


def alloc_global(shape: Any, dtype: Any) -> Buffer:
    """A workspace in global memory that the launcher allocates: the last parameters, listed in attrs["workspaces"]."""
    builder = require("T.alloc_global")
    made = Buffer(
        builder.take_hint("workspace"),
        as_shape(shape, "T.alloc_global"),
        as_dtype(dtype),
        attrs=(("workspace", True),),
        loc=builder.here,
    )
    builder.workspaces.append(made)
    return made
