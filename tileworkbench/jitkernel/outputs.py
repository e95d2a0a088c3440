"""Which parameters of a kernel are its outputs: from out_idx, or from the T.empty tensors that it returns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..errors import OptionError
from ..ir.expr import Buffer
from ..ir.kernel import Kernel


class OutIndexConflict(OptionError, ValueError):
    """Outputs named in two ways."""


def with_outputs(kernel: Kernel, out_idx: int | Sequence[int] | None) -> Kernel:
    """The kernel with its outputs as places ≥ 0; OptionError when out_idx names no tensor, or both ways are used."""
    if out_idx is None:
        return kernel
    if kernel.outputs:
        raise OutIndexConflict(
            f"Out index conflict: out_idx={out_idx!r} for `{kernel.name}`, which returns T.empty tensors",
            rule="outputs are named in one way",
            fix="leave out_idx out",
            loc=kernel.loc,
        )
    wanted = [out_idx] if isinstance(out_idx, int) and not isinstance(out_idx, bool) else out_idx
    if not isinstance(wanted, Sequence) or isinstance(wanted, str):
        raise OptionError(
            f"out_idx={out_idx!r}",
            rule="out_idx is a whole number or a list of them",
            fix="out_idx=-1 for the last parameter",
            loc=kernel.loc,
        )
    places = tuple(place(kernel, index) for index in wanted)
    if len(set(places)) != len(places):
        raise OptionError(
            f"out_idx={out_idx!r} names a parameter twice", rule="each output once", fix="name it once", loc=kernel.loc
        )
    return kernel.with_(outputs=places)


def workspaces(kernel: Kernel) -> frozenset[int]:
    """Places of tensors that every call gets anew and nobody sees (T.alloc_global)."""
    return frozenset(kernel.attrs.get("workspaces", ()))


def place(kernel: Kernel, index: Any) -> int:
    """An index of out_idx as a place ≥ 0."""
    count = len(kernel.params) - len(workspaces(kernel))
    if isinstance(index, bool) or not isinstance(index, int) or not -count <= index < count:
        raise OptionError(
            f"out_idx has {index!r}, and `{kernel.name}` has {count} parameters",
            rule=f"an index is a whole number from {-count} to {count - 1}",
            fix=f"parameters: {', '.join(p.name for p in kernel.params[:count])}",
            loc=kernel.loc,
        )
    param = kernel.params[index % count]
    if not isinstance(param, Buffer):
        raise OptionError(
            f"out_idx {index} is the scalar `{param.name}`", rule="outputs are tensors",
            fix=f"parameters: {', '.join(p.name for p in kernel.params)}", loc=kernel.loc,
        )  # fmt: skip
    return index % count
