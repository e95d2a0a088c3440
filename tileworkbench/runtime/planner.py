"""From the arrays of a first call to a plan: symbols solved, a variant chosen and loaded, arguments laid out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..codegen.source import Source
from . import arrays, bind, hostexpr
from . import plan as plans
from .absent import ABSENT
from .arguments import Call
from .arrays import Array
from .driver import Driver
from .plan import Output, Plan
from .tensormap import TensorMaps
from .variants import Variant, Variants


class Planner:
    """Makes the plans of one kernel; its descriptors are shared by all of them."""

    def __init__(self, variants: Variants) -> None:
        self._variants = variants
        self._maps: dict[int, TensorMaps] = {}

    def make(self, call: Call, there: Mapping[str, Array], device: int, driver: Driver) -> Plan:
        """The plan for arrays `there`, all on `device`; LaunchError for every check that does not hold."""
        tried: dict[int, _Solved] = {}

        def values(source: Source) -> Mapping[str, int]:
            solved = tried[id(source)] = _Solved(source, call, there, device)
            return bind.fact_values(solved.binding, solved.arrays)

        variant, _ = self._variants.choose(values)
        solved = tried[id(variant.source)]
        bind.bind_strides(variant.source, solved.arrays, solved.binding)
        numbers = solved.binding.values
        made = Plan(variant.source, numbers, self._maps_of(variant, driver), device)
        made.outputs, made.library = solved.outputs, solved.library
        grid = plans.grid_of(variant.source, numbers)
        made.prepare(driver, variant.source, variant.function(driver, device), grid)
        return made

    def _maps_of(self, variant: Variant, driver: Driver) -> TensorMaps:
        return self._maps.setdefault(id(variant), TensorMaps(driver))


class _Solved:
    """Symbols of one variant, with stand-ins for the outputs that will be allocated."""

    def __init__(self, source: Source, call: Call, there: Mapping[str, Array], device: int) -> None:
        self.library = next((a.library for a in there.values() if a.library != ABSENT), None) or arrays.library_in_use()
        self.binding = bind.bind_shapes(source, there, call.scalars)
        self.outputs: tuple[Output, ...] = plans.output_specs(source, call.missing, self.binding)
        made = {o.place: self._stand_in(o, device) for o in self.outputs}
        names = [param.name for param in bind.tensor_params(source.params)]
        self.arrays = {name: there.get(name) or made[place] for place, name in enumerate(names)}

    def _stand_in(self, output: Output, device: int) -> Array:
        strides = arrays.contiguous_strides(output.shape)
        return Array(self.library, 0, output.shape, strides, output.dtype, device, None)


def host_symbols(source: Source) -> set[str]:
    """Every name that the host needs a number for."""
    exprs: list[Any] = [*source.grid, *(fact.condition for fact in source.facts)]
    for param in bind.tensor_params(source.params):
        exprs += [*param.shape, *(param.strides or ())]
    for recipe in source.maps:
        exprs += [*recipe.dims, *recipe.strides, recipe.offset]
    named = {name for expr in exprs for name in hostexpr.symbols(expr)}
    return named | {arg.name for arg in source.args if arg.kind == "symbol"}
