"""T.use_swizzle, T.annotate_*, T.assume: facts and wishes about a kernel, kept in its attributes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..errors import LayoutError
from ..ir.expr import Buffer, Const, truth
from ..ir.kernel import Assumed
from ..ir.node import replace
from ..ir.text import show_expr
from ..layout import SharedLayout
from .builder import RUN_TIME, Builder, require
from .faults import fault, shown
from .fitted import fitted
from .layouts import as_layout
from .texts import text_place

ORDERS = ("row", "column", "mlx")
REGISTERS = range(24, 257, 8)  # what setmaxnreg takes


def use_swizzle(panel_size: int, order: str = "row", enable: bool = True) -> None:
    """Rasterises the grid in panels of `panel_size` rows or columns, so that neighbouring blocks share L2 contents."""
    builder = require("T.use_swizzle")
    if order not in ORDERS:
        raise fault(f"T.use_swizzle: order={shown(order)}", f"orders are {', '.join(ORDERS)}", 'order="row"')
    if not isinstance(panel_size, int) or panel_size < 1:
        raise fault(f"T.use_swizzle: panel_size={shown(panel_size)}", "it is an int ≥ 1", "for example 8")
    if enable:
        builder.attrs["swizzle"] = (panel_size, order)


def _buffers(what: str, given: Any) -> tuple[Builder, dict[Buffer, Any]]:
    builder = require(what)
    if not isinstance(given, Mapping) or not all(isinstance(b, Buffer) for b in given):
        raise fault(f"{what} without a dict of tiles", "it takes {buffer: value}", "name the buffers as keys")
    return builder, dict(given)


def annotate_layout(layout_map: Mapping[Any, Any]) -> None:
    """Fixes the layouts of tiles: {buffer: layout}. A tensor in global memory stays row-major, and a note says so."""
    builder, given = _buffers("T.annotate_layout", layout_map)
    made = {b: as_layout(builder, b, value) for b, value in given.items() if b.space != "global"}
    for buffer, layout in made.items():
        check_places(buffer, layout)
    builder.attrs["layouts"] = {**builder.attrs.get("layouts", {}), **made}
    for tensor in given.keys() - made.keys():
        text = f"T.annotate_layout: `{tensor.name}` is a tensor in global memory and stays row-major"
        builder.attrs["notes"] = (*builder.attrs.get("notes", ()), text)


def check_places(buffer: Buffer, layout: Any) -> None:
    """LayoutError for a shared tile's layout that puts two elements into one place."""
    clash = layout.clash() if buffer.space == "shared" and isinstance(layout, SharedLayout) else None
    if clash is not None:
        first, second, place = clash
        raise LayoutError(
            f"the layout of shared buffer `{buffer.name}` must be injective: elements {first} and {second} both map to "
            f"physical coordinates ({place},)",
            rule="every element of a tile has a place of its own",
            fix="make the function one-to-one; it may leave places empty",
        )


def annotate_safe_value(safe_value_map: Mapping[Any, Any]) -> None:
    """What reads outside a tensor give: {buffer: value}; otherwise 0."""
    builder, given = _buffers("T.annotate_safe_value", safe_value_map)
    made = {b: fitted(v, b) for b, v in given.items()}
    varying = next((b for b, v in made.items() if not isinstance(v, Const)), None)
    if varying is not None:
        raise fault(
            f"T.annotate_safe_value: the value of `{varying.name}` is known only at run time",
            "it is a number",
            "guard the reads with T.if_then_else",
        )
    builder.attrs["safe_values"] = {**builder.attrs.get("safe_values", {}), **made}


def annotate_l2_hit_ratio(l2_hit_ratio_map: Mapping[Any, float]) -> None:
    """The share of accesses that a persisting L2 window should serve: {buffer: ratio}."""
    builder, given = _buffers("T.annotate_l2_hit_ratio", l2_hit_ratio_map)
    for buffer, ratio in given.items():
        if not isinstance(ratio, int | float) or not 0 <= ratio <= 1:
            raise fault(
                f"T.annotate_l2_hit_ratio: {shown(ratio)} for `{buffer.name}`", "a ratio is a number from 0 to 1", "0.8"
            )
    builder.attrs["l2_hit_ratio"] = {**builder.attrs.get("l2_hit_ratio", {}), **given}


def annotate_restrict_buffers(*buffers: Any) -> None:
    """Tensors that do not overlap any other."""
    builder = require("T.annotate_restrict_buffers")
    builder.attrs["restrict"] = (*builder.attrs.get("restrict", ()), *buffers)


def _count(what: str, value: Any, allowed: range) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value not in allowed:
        steps = f" in steps of {allowed.step}" if allowed.step > 1 else ""
        raise fault(f"{what}({shown(value)})", f"it is an int, {allowed[0]} … {allowed[-1]}{steps}", f"{allowed[0]}")
    return value


def annotate_min_blocks_per_sm(n: int) -> None:
    """How many blocks should fit on one multiprocessor."""
    builder = require("T.annotate_min_blocks_per_sm")
    builder.attrs["min_blocks_per_sm"] = _count("T.annotate_min_blocks_per_sm", n, range(1, 33))


def annotate_pass_configs(configs: Mapping[str, Any]) -> None:
    """Compiler settings of this kernel."""
    builder = require("T.annotate_pass_configs")
    if not isinstance(configs, Mapping):
        raise fault(f"T.annotate_pass_configs({shown(configs)})", "settings are a dict by name", "{name: value}")
    builder.attrs["pass_configs"] = {**builder.attrs.get("pass_configs", {}), **configs}


def annotate_compile_flags(flags: Any) -> None:
    """Flags for the device compiler."""
    builder = require("T.annotate_compile_flags")
    given = (flags,) if isinstance(flags, str) else tuple(flags) if isinstance(flags, list | tuple) else (flags,)
    if not all(isinstance(flag, str) for flag in given):
        raise fault(f"T.annotate_compile_flags({shown(flags)})", "flags are strings", '["--use_fast_math"]')
    builder.attrs["compile_flags"] = (*builder.attrs.get("compile_flags", ()), *given)


def annotate_producer_reg_dealloc(reg_count: int = 24) -> None:
    """Registers that the load role keeps, when roles are made."""
    builder = require("T.annotate_producer_reg_dealloc")
    builder.attrs["producer_registers"] = _count("T.annotate_producer_reg_dealloc", reg_count, REGISTERS)


def annotate_consumer_reg_alloc(reg_count: int = 240) -> None:
    """Registers that the compute roles get, when roles are made."""
    builder = require("T.annotate_consumer_reg_alloc")
    builder.attrs["consumer_registers"] = _count("T.annotate_consumer_reg_alloc", reg_count, REGISTERS)


def no_set_max_nreg() -> None:
    """Leaves the registers of roles as the launch made them."""
    require("T.no_set_max_nreg").attrs["set_max_nreg"] = False


def disable_warp_group_reg_alloc() -> None:
    """The same as T.no_set_max_nreg."""
    no_set_max_nreg()


def assume(cond: Any) -> None:
    """A fact about run-time values that the compiler may use. Outside branches and loops, one of sizes and scalar
    arguments is checked at every launch."""
    builder = require("T.assume")
    made = truth(cond)
    if isinstance(made, Const):
        if not made.value:
            raise fault("T.assume of a false condition", "what is assumed holds", "remove it, or correct it")
        return
    if not any(frame.kind in RUN_TIME for frame in builder.frames):
        stated = Assumed(replace(made, loc=builder.here), f"Assume: {show_expr(made)}", required=True)
        builder.attrs["assume"] = (*builder.attrs.get("assume", ()), stated)


def import_source(source: str | None = None) -> None:
    """Device source text put before the kernel."""
    if source is not None:
        builder = require("T.import_source")
        if not isinstance(source, str):
            raise fault(f"T.import_source({shown(source)})", "it takes the text of device functions", "give a string")
        builder.attrs["sources"] = (*builder.attrs.get("sources", ()), source)
        places = builder.attrs.get("source_places", ())
        builder.attrs["source_places"] = (*places, text_place(source, builder.here))
