"""Calling a kernel on the CPU target: arrays of any library are seen through NumPy, and outputs come back as the
library of the inputs has them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..errors import LaunchError
from ..ir.expr import Buffer, Var
from ..ir.kernel import Kernel
from ..runtime import arrays, packing
from ..runtime.dtypes import CONTAINERS
from ..simulate.tile import run
from .outputs import workspaces

FLOATS_OF_INTS: dict[int, Any] = {1: np.dtype(np.uint8), 2: np.dtype(np.uint16)}


def call(kernel: Kernel, args: Sequence[Any], named: Mapping[str, Any]) -> Any:
    """Runs the kernel by the tile machine; None, the one output, or a list. LaunchError as the launcher's."""
    values = by_name(kernel, args, named)
    library = "numpy"
    packed: list[tuple[np.ndarray, np.ndarray]] = []  # (the caller's bytes, their elements)
    ready: list[Any] = []
    missing = []
    for place, param in enumerate(kernel.params):
        if param.name not in values:
            ready.append(None)
            missing.append(place)
        elif isinstance(param, Var) or (values[param.name] is None and place not in kernel.outputs):
            ready.append(values[param.name])
        else:
            view, owner = as_numpy(param, values[param.name])
            library = "torch" if owner == "torch" else library
            if param.dtype.is_packed and view.dtype != param.dtype.numpy:
                elements = packing.unpack(view, param.dtype.name)
                if param.strides is not None:
                    steps = packing.logical(arrays.read(values[param.name]), param.dtype.name).strides
                    elements = packing.with_strides(elements, steps)
                packed.append((view, elements))
                view = packed[-1][1]
            ready.append(view)
    try:
        result = run(kernel, ready)
    except LaunchError as error:
        raise error.at(kernel.loc) from None
    for pairs, elements in packed:
        if pairs.flags.writeable:
            pairs[...] = packing.pack(elements).view(pairs.dtype)
    made = dict(zip(kernel.outputs, result.outputs, strict=True)) if kernel.outputs else {}
    returned = [from_numpy(made[place], library) for place in kernel.outputs if place in missing]
    return None if not returned else returned[0] if len(returned) == 1 else returned


def by_name(kernel: Kernel, args: Sequence[Any], named: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments by parameter name; outputs may be left out, all of them or none by place."""
    hidden = workspaces(kernel)
    names = [p.name for i, p in enumerate(kernel.params) if i not in hidden]
    outputs = {kernel.params[i].name for i in kernel.outputs}
    inputs = [n for n in names if n not in outputs]
    order = names if len(args) > len(inputs) or outputs & named.keys() else inputs
    rule = f"`{kernel.name}` takes {len(inputs)} argument{'s' * (len(inputs) != 1)} ({', '.join(inputs)})"
    rule += f"; {', '.join(n for n in names if n in outputs)} may be left out" if outputs else ""
    if len(args) > len(order):
        raise LaunchError(f"{len(args)} arguments were given", rule=rule, fix="pass these", loc=kernel.loc)
    values = dict(zip(order, args, strict=False))
    for name, value in named.items():
        if name not in names or name in values:
            found = f"`{name}` was given twice" if name in values else f"there is no parameter `{name}`"
            raise LaunchError(found, rule=rule, fix="pass each parameter once", loc=kernel.loc)
        values[name] = value
    for var, default in kernel.defaults.items():
        values.setdefault(var.name, getattr(default, "value", default))
    lacking = [n for n in inputs if n not in values]
    if lacking:
        raise LaunchError(
            f"{', '.join(lacking)} {'is' if len(lacking) == 1 else 'are'} missing: {len(args) + len(named)} arguments "
            "were given", rule=rule, fix=f"pass {lacking[0]} as well", loc=kernel.loc,
        )  # fmt: skip
    return values


def as_numpy(param: Buffer, value: Any) -> tuple[np.ndarray, str]:
    """A NumPy view of an array's memory and the library that owns it. What a card would refuse is refused here too."""
    array = read(param, value)
    if array.device != arrays.CPU:
        raise LaunchError(
            f"{param.name} is on CUDA device {array.device}",
            rule="the CPU target reads memory of the host",
            fix=f'{param.name}.cpu(), or compile for target="cuda"',
            loc=param.loc,
        )
    if array.library != "torch":
        return np.asarray(array.owner), "numpy"
    if param.strides is None and not value.is_contiguous():
        raise LaunchError(
            f"{param.name} is not contiguous: shape {array.shape}, strides {array.strides}",
            rule=f"{param.name} is row-major",
            fix=f"{param.name}.contiguous(), or declare it as T.StridedTensor",
            loc=param.loc,
        )
    return torch_view(value), "torch"


def read(param: Buffer, value: Any) -> arrays.Array:
    """What a launch needs of an argument; LaunchError names the parameter of something that is no array."""
    try:
        return arrays.read(value)
    except LaunchError as error:
        raise LaunchError(
            f"{param.name}: {error.found}", rule=error.rule, fix=error.fix or "pass an array", loc=param.loc
        ) from None


def torch_view(tensor: Any) -> np.ndarray:
    """A torch tensor's memory as NumPy, also in the types that torch does not hand over itself."""
    import torch

    tensor = tensor.detach()
    name = str(tensor.dtype).removeprefix("torch.")
    if name == "bfloat16":
        return np.asarray(tensor.view(torch.uint16).numpy()).view(arrays.numpy_dtype(name))
    if name == "float4_e2m1fn_x2":
        return np.asarray(tensor.view(torch.uint8).numpy())
    if name.startswith("float8"):
        return np.asarray(tensor.view(torch.uint8).numpy()).view(arrays.numpy_dtype(name))
    return np.asarray(tensor.numpy())


def from_numpy(array: np.ndarray, library: str) -> Any:
    """An output as the inputs' library has it."""
    if library != "torch":
        return array
    import torch

    name = array.dtype.name
    if name in CONTAINERS:
        return torch.from_numpy(packing.pack(array)).view(getattr(torch, CONTAINERS[name][0]))
    if name == "bfloat16" or name.startswith("float8"):
        return torch.from_numpy(array.view(FLOATS_OF_INTS[array.itemsize])).view(getattr(torch, name))
    return torch.from_numpy(array)
