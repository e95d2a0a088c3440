"""What TileLang's tuner keeps of a search, by its names: how every candidate is compiled, and several at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from ..jitkernel import JITKernel, compile
from ..jitkernel.fanout import fan_out

Result = tuple[int, Mapping[str, Any], JITKernel | None, Exception | None]


@dataclass(frozen=True)
class CompileArgs:
    """How every candidate of a search is compiled; the fields are `tileworkbench.compile`'s keywords."""

    out_idx: Any = None
    execution_backend: str = "auto"
    target: Any = "auto"
    target_host: Any = None
    verbose: bool = False
    pass_configs: Mapping[Any, Any] | None = None

    def compile_program(self, program: Any) -> JITKernel:
        """One candidate's kernel."""
        target = None if self.target == "auto" else self.target
        return compile(program, self.out_idx, self.execution_backend, target, pass_configs=self.pass_configs)

    def __hash__(self) -> int:
        return hash((str(self.out_idx), self.execution_backend, str(self.target), repr(self.pass_configs)))


def compile_grouped_unit_tvm_ffi(
    unit_items: Iterable[tuple[int, Mapping[str, Any]]], compile_args: CompileArgs, elaborate_func: Callable[..., Any]
) -> list[Result]:
    """(number, configuration, kernel or None, what failed or None) of every candidate, compiled at a time."""
    items = list(unit_items)

    def build(item: tuple[int, Mapping[str, Any]]) -> JITKernel:
        return compile_args.compile_program(elaborate_func(**item[1]))

    results: list[Result] = []
    for (number, config), made in fan_out(build, items):
        results.append((number, config, None, made) if isinstance(made, Exception) else (number, config, made, None))
    return results
