"""Launches a built kernel on arrays of any library, on the caller's current stream.

Every check is made at the first call of a signature (shapes, strides, dtypes, devices, alignment of addresses) and is a
function of it, so a call of a known signature only writes addresses and scalars into arguments that stand ready.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..codegen.source import ScalarParam, Source, TensorParam
from ..errors import LaunchError
from . import absent, arguments, arrays, bind, quick, staging
from . import driver as cuda_driver
from . import plan as plans
from .arguments import Call
from .arrays import CPU, Array
from .binary import Binary
from .driver import INVALID_CONTEXT, Driver
from .outputs import as_result, places, with_outputs
from .plan import Plan
from .planner import Planner, host_symbols
from .variants import LOW_BITS, General, Variants

KEPT = 512  # plans per thread; the oldest goes first


class Launcher:
    """A callable kernel. `built` are its variants in order of preference, `general` builds one that assumes less
    (see `Variants`) when none of them fits; `out_idx` are the parameters that a call may leave out and gets back
    instead.

    Calls are safe from many threads and inside a CUDA-graph capture (call once before, or `load()`, so that outputs are
    the only allocation). A captured graph needs the launcher alive: its code is unloaded with it."""

    def __init__(
        self,
        built: Sequence[tuple[Source, Binary]],
        *,
        out_idx: Sequence[int] = (),
        general: General | None = None,
        driver: Driver | None = None,
    ) -> None:
        self._variants = Variants(built, general)
        self.source = self._variants.list[0].source
        self._params = self.source.params
        self._tensors = {p.name: p for p in bind.tensor_params(self._params)}
        self._outputs = places(self._params, out_idx)
        self._driver = driver
        self._several_devices = driver is not None and driver.device_count() > 1
        self._packers = plans.packers(self.source)
        self._planner = Planner(self._variants)
        self._thread = threading.local()
        self._torch_stream: Callable[[int], int] = _no_stream
        given = [i for i in range(len(self._params)) if i not in self._outputs]
        self._arity = len(given)
        self._tensor_places = [n for n, i in enumerate(given) if isinstance(self._params[i], TensorParam)]
        self._scalar_places = [
            (n, self._params[i].name) for n, i in enumerate(given) if isinstance(self._params[i], ScalarParam)
        ]
        self._only_tensors = not self._scalar_places
        self._read_variants()

    def __call__(self, *args: Any, **named: Any) -> Any:
        """Launches, and returns the allocated outputs: None, the one, or a list. LaunchError names the parameter, what
        was expected and what was found."""
        if named or len(args) != self._arity:
            return self._call_checked(args, named)
        try:
            tensors = args if self._only_tensors else [args[i] for i in self._tensor_places]
            if self._reads_strides:
                key: Any = tuple([(a.shape, a.dtype, a.get_device(), a.stride()) for a in tensors])
            else:
                key = tuple([(a.shape, a.dtype, a.get_device(), a.is_contiguous()) for a in tensors])
            if self._scalars_in_key:
                key = (key, *[args[i] for i in self._scalars_in_key])
            plan: Plan = self._thread.plans[key]
            pointers = tuple([a.data_ptr() for a in tensors])
        except (AttributeError, KeyError, TypeError):  # not seen before, or not torch's
            return self._call_cupy(args)
        return self._call_known(plan, pointers, args, self._torch_stream(plan.device))

    def _call_cupy(self, args: Sequence[Any]) -> Any:
        try:
            tensors = args if self._only_tensors else [args[i] for i in self._tensor_places]
            key: Any = quick.cupy_key(tensors)
            if self._scalars_in_key:
                key = (key, *[args[i] for i in self._scalars_in_key])
            plan: Plan = self._thread.plans[key]
            pointers = quick.cupy_pointers(tensors)
        except (AttributeError, KeyError, TypeError, ValueError):  # not seen before, or another library's
            return self._call_checked(args, {})
        return self._call_known(plan, pointers, args, quick.cupy_stream())

    def _call_known(self, plan: Plan, pointers: tuple[int, ...], args: Sequence[Any], stream: int) -> Any:
        """A call whose signature was checked before."""
        made = None
        if self._reads_pointers and pointers != plan.pointers and not quick.aligned(pointers):
            return self._call_checked(args, {})
        if plan.outputs:
            made, pointers = with_outputs(plan, pointers)
        if pointers != plan.pointers:
            plan.set_pointers(pointers)
        if self._packers:
            plan.set_scalars(self._bits({name: args[i] for i, name in self._scalar_places}))
        plan.set_stream(stream)
        status = self._launch_there(plan) if self._several_devices else plan.launch.call()
        if status:
            self._launch_again(plan, status)
        return made

    def load(self, device: int = 0) -> None:
        """Loads the preferred variant, so that the first call does not."""
        self._variants.list[0].function(self._the_driver(), device)

    @property
    def variants(self) -> list[Source]:
        """What is built so far, in order of preference."""
        return [variant.source for variant in self._variants.list]

    # The path of a signature's first call, and of arrays that are not torch's.

    def _call_checked(self, args: Sequence[Any], named: Mapping[str, Any]) -> Any:
        call = absent.filled(self.source, arguments.match(self._params, self._outputs, args, named))
        for name, array in call.arrays.items():
            if array.library != absent.ABSENT:
                bind.check_array(self._tensors[name], array)
        driver = self._the_driver()
        device = self._device(call)
        stream = quick.stream(call.arrays.values(), device)
        for array in call.arrays.values():
            if array.stream:
                driver.synchronize(array.stream)
        if not any(array.library == "numpy" for array in call.arrays.values()):
            return self._run(call, call.arrays, device, stream, None if named else args)
        return self._run_staged(call, device, stream)

    def _run_staged(self, call: Call, device: int, stream: int) -> Any:
        every = dict(call.arrays)
        made = []
        if call.missing:
            values = bind.bind_shapes(self.source, every, call.scalars)
            for output in plans.output_specs(self.source, call.missing, values):
                made.append(arrays.empty("numpy", CPU, output.shape, output.dtype))
                every[[*self._tensors][output.place]] = arrays.read(made[-1])
        full = Call({name: every[name] for name in self._tensors}, call.scalars, ())
        driver = self._the_driver()
        driver.make_current(device)
        with staging.on_device(driver, self._tensors, full.arrays, device, stream) as there:
            self._run(full, there, device, stream, None)
        return as_result(made)

    def _run(self, call: Call, there: Mapping[str, Array], device: int, stream: int, args: Sequence[Any] | None) -> Any:
        plan, keys = self._plan(call, there, device)
        pointers = tuple(array.pointer for array in there.values())
        made = None
        if plan.outputs:
            made, pointers = with_outputs(plan, pointers)
        plan.set_pointers(pointers)
        plan.set_scalars(self._bits(call.scalars))
        plan.set_stream(stream)
        status = self._launch_there(plan)
        if status:
            self._launch_again(plan, status)
        self._keep(plan, keys, args, pointers, there)
        return made

    def _plan(self, call: Call, there: Mapping[str, Array], device: int) -> tuple[Plan, tuple[Any, ...]]:
        key = (
            "checked",
            tuple(array.signature for array in there.values()),
            call.missing,
            tuple(call.scalars[name] for name in self._symbol_scalars),
            tuple(array.pointer & LOW_BITS for array in there.values()) if self._reads_pointers else (),
        )
        known = None if self._uncacheable else self._own_plans().get(key)
        if known is not None:
            return known, ()
        made = self._planner.make(call, there, device, self._the_driver())
        self._read_variants()  # a general one may have been built
        return made, (key,)

    def _keep(
        self,
        plan: Plan,
        keys: tuple[Any, ...],
        args: Sequence[Any] | None,
        pointers: tuple[int, ...],
        there: Mapping[str, Array],
    ) -> None:
        if self._uncacheable:
            return
        kept = self._own_plans()
        libraries = {a.library for a in there.values()}
        if args is not None and len(libraries) == 1 and libraries <= {"torch", "cupy"} and len(args) == self._arity:
            if libraries == {"torch"}:
                self._torch_stream = quick.torch_stream()
            if not self._reads_pointers or quick.aligned(pointers):
                keys = (*keys, self._quick_key(args, *libraries))
        for key in keys:
            kept[key] = plan
        while len(kept) > KEPT:
            del kept[next(iter(kept))]

    def _quick_key(self, args: Sequence[Any], library: str) -> Any:
        tensors = [args[i] for i in self._tensor_places]
        key = quick.torch_key(tensors, self._reads_strides) if library == "torch" else quick.cupy_key(tensors)
        return (key, *[args[i] for i in self._scalars_in_key]) if self._scalars_in_key else key

    # Pieces.

    def _read_variants(self) -> None:
        """What of the arguments decides a launch; asked again when a variant was added."""
        variants = self._variants
        self._reads_strides, self._reads_pointers = variants.reads_strides, variants.reads_pointers
        self._uncacheable = variants.reads_all_of_pointers
        named = {name for variant in variants.list for name in host_symbols(variant.source)}
        self._symbol_scalars = [name for _, name in self._scalar_places if name in named]
        self._scalars_in_key = [i for i, name in self._scalar_places if name in named]

    def _own_plans(self) -> dict[Any, Plan]:
        try:
            return self._thread.plans  # type: ignore[no-any-return]
        except AttributeError:
            self._thread.plans = {}
            return self._thread.plans  # type: ignore[no-any-return]

    def _the_driver(self) -> Driver:
        if self._driver is None:
            self._driver = cuda_driver.cuda()
            self._several_devices = self._driver.device_count() > 1
        return self._driver

    def _device(self, call: Call) -> int:
        places: dict[str, int] = {name: a.device for name, a in call.arrays.items() if a.device != CPU}
        if not places:
            return max(int(self._the_driver().current_device()), 0)
        first, device = next(iter(places.items()))
        for name, other in places.items():
            if other != device:
                raise LaunchError(
                    f"{name} is on device {other}, and {first} on device {device}",
                    rule="all arrays of a call are on one device",
                    fix=f"move {name} to device {device}",
                    loc=self._tensors[name].loc,
                )
        return int(device)

    def _bits(self, values: Mapping[str, Any]) -> dict[str, int]:
        bits = {}
        for name, pack in self._packers.items():
            try:
                bits[name] = pack(values[name])
            except LaunchError as error:
                loc = next(p.loc for p in self._params if p.name == name)
                raise LaunchError(f"{name}: {error.found}", rule=error.rule, fix=error.fix, loc=loc) from None
        return bits

    def _launch_there(self, plan: Plan) -> int:
        driver = self._the_driver()
        if driver.current_device() == plan.device:
            return plan.launch.call()
        with driver.on(plan.device):
            return plan.launch.call()

    def _launch_again(self, plan: Plan, status: int) -> None:
        """A thread that has not used its device yet has no context; anything else is the caller's to know."""
        driver = self._the_driver()
        if status == INVALID_CONTEXT:
            driver.make_current(plan.device)
            status = plan.launch.call()
        if status:
            raise LaunchError(
                f"launching {self.source.entry} failed: {driver.error_name(status)}",
                rule="the driver accepts the launch; an earlier kernel's fault is also told here",
            )


def _no_stream(device: int) -> int:
    return 0
