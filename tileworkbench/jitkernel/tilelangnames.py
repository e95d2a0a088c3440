"""TileLang's members of a compiled kernel that are only other names for what `JITKernel` has."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from ..errors import OptionError, TargetError
from ..language.prim import PrimFunc, with_outputs_shown

if TYPE_CHECKING:
    from ..ir.kernel import Kernel
    from ..target import Target
    from .profile import Profiler

SOURCES = ("kernel", "host", "both")


class Adapter:
    """A compiled kernel as TileLang's adapter of a back end. `prim_func` knows the outputs that `compile` was given;
    no size is kept by name, since the launcher solves them from each call's arguments."""

    dynamic_symbolic_map = None
    _ffi_callee_allocated_output_abi = True  # outputs that a call leaves out are made by the launcher

    def __init__(self, kernel: Any) -> None:
        self.kernel = kernel

    def __getattr__(self, name: str) -> Any:
        return getattr(self.kernel, name)

    def __call__(self, *args: Any, **named: Any) -> Any:
        return self.kernel(*args, **named)

    @property
    def kernels(self) -> dict[str, Any]:
        """The launches of a call by their kernels' names."""
        return {part.name: part for part in self.kernel.parts}

    def get_exportable_executable(self) -> Adapter:
        """What could be exported elsewhere: here the adapter itself."""
        return self

    def jit(self) -> Any:
        """The executable ready to be called: the compiled kernel."""
        return self.kernel

    @property
    def prim_func(self) -> Any:
        """The kernel's function with its outputs marked."""
        found = self.kernel.prim_func
        return with_outputs_shown(found, self.kernel.out_idx) if isinstance(found, PrimFunc) else found


class TileLangNames:
    """Mixed into JITKernel."""

    tile: Kernel
    target: Target
    name: str

    if TYPE_CHECKING:  # of the class that this is mixed into

        @property
        def source(self) -> str: ...
        @property
        def ptx(self) -> str: ...
        @property
        def sass(self) -> str: ...
        @property
        def registers(self) -> int | None: ...
        @property
        def spills(self) -> int | None: ...

    # What a search found about this kernel: milliseconds, the values of its tunable arguments.
    latency: float | None = None
    config: dict[str, Any] | None = None
    ref_latency: float | None = None
    # There is one launcher, whatever backend was named; it goes by the name of the default one.
    execution_backend = "tvm_ffi"
    target_host = None
    verbose = False

    def update_tuner_result(self, latency: float, config: dict[str, Any], ref_latency: float | None) -> Any:
        """Keeps a search's result with the kernel, and gives the kernel."""
        self.latency, self.config, self.ref_latency = latency, config, ref_latency
        return self

    def get_tuner_result(self) -> dict[str, Any]:
        """The search's result: config, latency and ref_latency."""
        if self.latency is None:
            raise OptionError(f"`{self.name}` comes from no search", rule="@autotune finds one", fix="kernel.config")
        return {"latency": self.latency, "config": self.config, "ref_latency": self.ref_latency}

    @property
    def kernel_source(self) -> str:
        """The generated device text."""
        return self.source

    @property
    def host_source(self) -> str:
        """What the host does at a call, as text."""
        return self.get_host_source()

    @property
    def adapter(self) -> Any:
        """What launches, under TileLang's names: everything else of it is the kernel's own."""
        return Adapter(self)

    @property
    def torch_function(self) -> Any:
        """What is called: the kernel itself."""
        return self

    @property
    def artifact(self) -> Any:
        """The kernel itself, which holds the text and the parameters."""
        return self

    @property
    def pass_configs(self) -> Mapping[str, Any]:
        """The settings that the kernel was compiled under, by name."""
        return dict(self.tile.attrs.get("pass_configs", {}))

    @property
    def compile_flags(self) -> list[str]:
        """Flags that were handed to the device compiler."""
        return list(self.tile.attrs.get("compile_flags", ()))

    @property
    def n_regs(self) -> int | None:
        """Registers of a thread; None where nothing was built."""
        return self.registers

    @property
    def n_spills(self) -> int | None:
        """Bytes spilled to local memory; None where nothing was built."""
        return self.spills

    @property
    def n_max_threads(self) -> int:
        """Threads of a block."""
        return self.tile.threads

    @property
    def resource_usage(self) -> dict[str, int | None]:
        """Registers, spilled bytes and threads."""
        return {"n_regs": self.registers, "n_spills": self.spills, "n_max_threads": self.n_max_threads}

    def get_kernel_source(self, kernel_only: bool = True) -> str:
        """The device text; with the launch described as well unless `kernel_only`."""
        return self.source if kernel_only else f"{self.source}\n{self.get_host_source()}"

    def get_host_source(self) -> str:
        """The launch in words: it is not generated text here, but one launcher that reads this."""
        grid = ", ".join(str(getattr(e, "value", e)) for e in self.tile.grid)
        takes = ", ".join(p.name for p in self.tile.params)
        return f"// {self.name}({takes}) on a grid of ({grid}) blocks of {self.tile.threads} threads, by the launcher\n"

    def show_source(self, which: str = "kernel") -> None:
        """Writes the device text, the launch ("host"), or both to standard output."""
        self._say(self._sources(which))

    def print_source_code(self, which: str = "kernel", file: str | Path | None = None) -> None:
        """The older name of `show_source` and, with `file`, of `export_sources`."""
        if file is None:
            self.show_source(which)
        else:
            Path(file).write_text(self._sources(which), encoding="utf-8")

    def export_sources(self, kernel_path: str | Path | None = None, host_path: str | Path | None = None) -> None:
        """Writes the device text, and the description of the launch, to files."""
        for path, text in ((kernel_path, self.source), (host_path, self.get_host_source())):
            if path is not None:
                Path(path).write_text(text, encoding="utf-8")

    def show_ptx(self) -> None:
        """Prints the PTX."""
        self._say(self.ptx)

    def show_sass(self) -> None:
        """Prints the disassembly."""
        self._say(self.sass)

    def export_ptx(self, path: str | Path) -> None:
        """Writes the PTX to a file."""
        Path(path).write_text(self.ptx, encoding="utf-8")

    def export_sass(self, path: str | Path) -> None:
        """Writes the disassembly to a file."""
        Path(path).write_text(self.sass, encoding="utf-8")

    def export_library(self, kernel_file: str | Path) -> NoReturn:
        """Refused: kernels are cubins that the launcher loads."""
        raise TargetError(
            f"`{self.name}` as a shared library",
            rule="a kernel here is a cubin and a launcher in Python",
            fix="export_sources and export_ptx write what was made; the disk cache keeps the cubin",
        )

    def run_once(self, func: Any = None) -> Any:
        """One call on made inputs."""
        return self.get_profiler().run_once(func)

    def get_profiler(self, tensor_supply_type: Any = None, **sizes: int) -> Profiler:
        """A `Profiler` of this kernel; `sizes` gives run-time extents by name."""
        raise NotImplementedError

    def _sources(self, which: str) -> str:
        if which not in SOURCES:
            raise OptionError(f"which={which!r}", rule=f"one of {', '.join(SOURCES)}", fix='"kernel"')
        host = self.get_host_source() if which != "kernel" else ""
        return (self.source if which != "host" else "") + host

    def _say(self, text: str) -> None:
        sys.stdout.write(text.rstrip("\n") + "\n")
