"""A kernel whose tiles have the extents of a call's tensors: it is compiled for the sizes of each call, and kept."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..errors import LaunchError, OptionError, TargetError
from ..ir.expr import Buffer, Var
from ..ir.kernel import Kernel
from ..language.faults import LateExtent
from ..language.prim import PrimFunc, read_sized
from ..target import Target
from . import host
from .kernel import JITKernel
from .outputs import with_outputs
from .profile import Profiler
from .timing import Timing

KEPT = 64  # sizes remembered; the oldest goes first
Compile = Callable[[PrimFunc], JITKernel]


class LateKernel(JITKernel):
    """Calling it compiles for the sizes that its tiles hang on. `for_sizes(n=64)` is the kernel of one size, which has
    all that other kernels have; this one has no text."""

    def __init__(self, func: PrimFunc, late: LateExtent, out_idx: Any, target: Target, compile: Compile) -> None:
        self.prim_func, self.target, self.timing, self.compile = func, target, Timing(), compile
        self.text = func
        self.name = func.name
        signature = Kernel(func.name, late.params, (1,), (), 1, (), loc=late.loc)
        self.signature = with_outputs(signature, out_idx)
        self.out_idx: Sequence[int] | None = list(self.signature.outputs) or None
        self.waits = set(late.symbols)
        self._made: dict[tuple[int, ...], JITKernel] = {}
        self._call = self._for_call

    @property
    def sizes(self) -> tuple[Var, ...]:
        """The symbols that a kernel is compiled for, in the order of the parameters."""
        return tuple(s for s in self.signature.symbols() if s in self.waits)

    def _for_call(self, *args: Any, **named: Any) -> Any:
        values = host.by_name(self.signature, args, named)
        return self._for({s: self._size(s, values) for s in self.sizes})(*args, **named)

    def for_sizes(self, **sizes: int) -> JITKernel:
        """The kernel for sizes by name."""
        unknown = [s.name for s in self.sizes if s.name not in sizes]
        if unknown:
            raise OptionError(
                f"the size of {', '.join(unknown)} is not given",
                rule=f"tiles of `{self.name}` have it as an extent",
                fix=f"for_sizes({unknown[0]}=64)",
                loc=self.signature.loc,
            )
        return self._for({s: int(sizes[s.name]) for s in self.sizes})

    def _for(self, sizes: Mapping[Var, int]) -> JITKernel:
        key = tuple(sizes.values())
        if key not in self._made:
            self._made[key] = self.compile(read_sized(self.text, sizes))
            while len(self._made) > KEPT:
                self._made.pop(next(iter(self._made)), None)
        return self._made[key]

    def _size(self, symbol: Var, values: Mapping[str, Any]) -> int:
        for param in self.signature.tensors:
            given = values.get(param.name)
            if given is None or param.dtype.is_packed:
                continue
            for extent, found in zip(param.shape, getattr(given, "shape", ()), strict=False):
                if extent is symbol:
                    return int(found)
        raise LaunchError(
            f"`{symbol.name}` cannot be read from the arguments",
            rule="a tensor that is passed has it as an extent",
            fix="pass all tensors, or call kernel.for_sizes(…)",
            loc=self.signature.loc,
        )

    def get_profiler(self, tensor_supply_type: Any = None, **sizes: int) -> Profiler:
        """That of the kernel for these sizes."""
        return self.for_sizes(**sizes).get_profiler(tensor_supply_type, **sizes)

    @property
    def params(self) -> tuple[Buffer | Var, ...]:
        return self.signature.params

    def __getattr__(self, name: str) -> Any:
        """What every other kernel is given when it is made."""
        if name not in ("tile", "variant"):
            raise AttributeError(name)
        raise TargetError(
            f"`{self.name}` by itself has no text",
            rule="its tiles have the extents of a call's tensors, so there is one for each size",
            fix=f"kernel.for_sizes({', '.join(f'{s.name}=…' for s in self.sizes)})",
            loc=self.signature.loc,
        )

    def __repr__(self) -> str:
        return f"<{self.name}({', '.join(p.name for p in self.params)}) for {self.target}, compiled for each size>"
