"""The compiled kernel: call it, or read what the compiler made and why."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ..errors import MissingDependency, OptionError, TargetError
from ..ir.expr import Buffer, Var
from ..ir.kernel import Decision, Kernel
from ..ir.planned import Channel, Role
from ..ir.text import show
from ..passes.facts import general
from ..runtime.disassemble import SassLine, sass
from ..runtime.launch import Launcher
from ..target import Target
from ..target.occupancy import Occupancy, occupancy
from ..target.roofline import Roofline, roofline
from . import host
from .profile import Profiler
from .tilelangnames import TileLangNames
from .timing import Timing
from .trace import Trace
from .variant import Variant, build
from .work import work


@dataclass(frozen=True)
class Plan:
    """What the compiler decided: an implementation for every op (with those refused and why), roles, channels, the
    facts that this code is built under, and notes."""

    decisions: tuple[Decision, ...]
    roles: tuple[Role, ...]
    channels: tuple[Channel, ...]
    assumed: tuple[str, ...]
    notes: tuple[str, ...]


class JITKernel(TileLangNames):
    """A kernel compiled for one target. Calling it takes the inputs and gives the outputs (the tensor, a list, or None
    when all tensors are passed)."""

    def __init__(self, tile: Kernel, target: Target, timing: Timing, prim_func: Any = None) -> None:
        self.tile, self.target, self.timing = tile, target, timing
        self.name = tile.name
        self.prim_func = prim_func if prim_func is not None else tile
        self.out_idx: Sequence[int] | None = list(tile.outputs) or None
        self.variant: Variant | None = None
        if target.name == "cpu":
            self._call = self._on_host
        else:
            self.variant = build(tile, target, timing)
            self._call = self._first_launch

    def __call__(self, *args: Any, **named: Any) -> Any:
        """Runs the kernel on torch, CuPy or NumPy arrays; LaunchError names the parameter that does not fit."""
        return self._call(*args, **named)

    def _on_host(self, *args: Any, **named: Any) -> Any:
        return host.call(self.tile, args, named)

    def _first_launch(self, *args: Any, **named: Any) -> Any:
        """Afterwards calls go straight to the launcher."""
        launcher = self.launcher
        try:
            result = launcher(*args, **named)
        except MissingDependency as error:
            raise error.at(self.tile.loc) from None
        self._call = launcher
        return result

    @functools.cached_property
    def launcher(self) -> Launcher:
        """The launcher of a kernel for a card; building one that assumes less is its own decision."""
        variant = self._variant("a launcher")
        if self.target.dialect != "cuda":
            raise MissingDependency(
                f"there is no launcher for {self.target.name}",
                rule="AMD kernels are built, read and simulated here; launching them is not built yet",
                fix='run on the CPU with target="cpu", or tileworkbench.simulate(kernel, …, level="thread")',
                loc=self.tile.loc,
            )
        if variant.binary is None:
            raise self._missing("no launch")
        return Launcher([(variant.source, variant.binary)], out_idx=self.tile.outputs, general=self._general)

    def _general(self, aligned: bool) -> Any:
        made = build(general(self.tile, aligned=aligned), self.target, Timing())
        return made.source, made.binary

    def _variant(self, what: str) -> Variant:
        if self.variant is None:
            raise TargetError(
                f"`{self.name}` was compiled for the CPU target, which has no {what}",
                rule="the CPU target runs the tile program itself",
                fix='compile it with target="sm_90a" (no GPU is needed for that)',
                loc=self.tile.loc,
            )
        return self.variant

    def _missing(self, otherwise: str) -> MissingDependency:
        """A new error each time, so that none drags an earlier traceback along."""
        told = self.variant.missing if self.variant is not None else None
        if told is None:
            return MissingDependency(f"{otherwise} without the device compiler", loc=self.tile.loc)
        return MissingDependency(told.found, rule=told.rule, fix=told.fix, loc=told.loc)

    def _binary(self, what: str) -> Any:
        variant = self._variant(what)
        if variant.binary is None:
            raise self._missing(f"no {what}")
        return variant.binary

    # What was made.

    @property
    def parts(self) -> tuple[JITKernel, ...]:
        """The launches of a call, in order: this kernel alone, unless it is a sequence."""
        return (self,)

    @property
    def tiles(self) -> tuple[Kernel, ...]:
        """The tile-level kernels that were compiled, in launch order."""
        return (self.tile,)

    @property
    def kernel(self) -> Kernel:
        """The lowered kernel; for the CPU target the tile-level one, which is what runs there."""
        return self.variant.kernel if self.variant is not None else self.tile

    @property
    def source(self) -> str:
        """The text of the device code; for the CPU target the tile program."""
        return self.variant.source.text if self.variant is not None else show(self.tile)

    @property
    def ptx(self) -> str:
        """NVIDIA's portable assembly of the device code; TargetError on other targets."""
        text = self._binary("PTX").ptx
        if text is None:
            raise TargetError(
                f"{self.target.name} has no PTX", rule="PTX is NVIDIA's", fix="read .source", loc=self.tile.loc
            )
        return str(text)

    @functools.cached_property
    def sass_lines(self) -> tuple[SassLine, ...]:
        """Machine instructions with their places; MissingDependency without nvdisasm."""
        return tuple(sass(self._binary("SASS"), self._variant("SASS").source))

    @property
    def sass(self) -> str:
        """The machine code with addresses, an instruction a line; MissingDependency without nvdisasm."""
        return "\n".join(f"/*{line.address:04x}*/ {line.text}" for line in self.sass_lines)

    @property
    def registers(self) -> int | None:
        """Registers a thread."""
        return self._binary("registers").registers  # type: ignore[no-any-return]

    @property
    def spills(self) -> int | None:
        """Bytes of registers stored to and loaded from local memory."""
        return self._binary("spills").spills  # type: ignore[no-any-return]

    @property
    def warnings(self) -> tuple[str, ...]:
        """What the device compiler warned of; empty where it did not run."""
        binary = self.variant.binary if self.variant is not None else None
        return binary.warnings if binary is not None else ()

    @property
    def shared_bytes(self) -> int:
        """Shared memory of a block; 0 on the CPU target, whose tiles are arrays."""
        return self.variant.source.shared_bytes if self.variant is not None else 0

    @property
    def occupancy(self) -> Occupancy:
        """How many blocks and warps fit one multiprocessor, and what limits them: from registers, threads and shared
        memory as they were built."""
        variant = self._variant("occupancy")
        static = getattr(variant.binary, "shared", None) or 0
        return occupancy(
            self.target.arch,
            threads=variant.source.threads,
            registers=getattr(variant.binary, "registers", None) or 0,
            shared_bytes=variant.source.shared_bytes + static,
        )

    def roofline(self, **sizes: int) -> Roofline:
        """The least time on this target's card, for these run-time extents (by name)."""
        symbols = {s: sizes[s.name] for s in self.tile.symbols() if s.name in sizes}
        lacking = [s.name for s in self.tile.symbols() if s not in symbols]
        if lacking:
            raise OptionError(
                f"the size of {', '.join(lacking)} is not given", rule="an estimate is for one size",
                fix=f"{self.name}.roofline({lacking[0]}=4096)", loc=self.tile.loc,
            )  # fmt: skip
        done = work(self.tile, symbols)
        return roofline(self.target.device, flops=done.flops, nbytes=done.nbytes)

    @functools.cached_property
    def plan(self) -> Plan:
        """What the planner decided: implementations, roles, channels, assumptions and notes."""
        kernel = self.kernel
        roles = tuple(s for s in kernel.body if isinstance(s, Role))
        return Plan(kernel.decisions, roles, kernel.channels, tuple(a.text for a in kernel.assumed), kernel.notes)

    @functools.cached_property
    def trace(self) -> Trace:
        """The kernel before and after each pass, with times."""
        return Trace(self.tile, self.variant.steps if self.variant is not None else ())

    # TileLang's names.

    @property
    def params(self) -> tuple[Buffer | Var, ...]:
        """Tensors (`Buffer`) and scalars (`Var`) in the order of a call."""
        return self.tile.params

    def get_profiler(self, tensor_supply_type: Any = None, **sizes: int) -> Profiler:
        """A `Profiler` of this kernel, whose inputs are of the given TensorSupplyType; run-time extents by name."""
        return Profiler(self, sizes, tensor_supply_type)

    def __repr__(self) -> str:
        takes = ", ".join(p.name for p in self.params)
        return f"<{self.name}({takes}) for {self.target}: {self.timing}>"
