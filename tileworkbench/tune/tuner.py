"""AutoTuner: the search as an object with its settings by chained calls."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

from ..errors import OptionError
from ..jitkernel import JITFunction, JITKernel, compile
from ..jitkernel.supply import TensorSupplyType
from .decorator import PASS_CONFIGS, result
from .record import AutotuneResult
from .search import Settings, search


class AutoTuner:
    """`AutoTuner.from_kernel(fn, configs).set_compile_args(…).set_profile_args(…).run()`; `fn` is a function that gives
    a T.prim_func for a configuration's values."""

    # Programs clear it before they search again; here a tuner searches at every run, so there is nothing in it.
    _memory_cache: ClassVar[dict[Any, Any]] = {}

    def __init__(self, fn: Callable[..., Any], configs: Sequence[Mapping[str, Any]]) -> None:
        self.fn, self.configs = fn, configs
        self.compile_args: dict[str, Any] = {}
        self.settings = Settings()

    @classmethod
    def from_kernel(cls, kernel: Callable[..., Any], configs: Sequence[Mapping[str, Any]]) -> AutoTuner:
        """A tuner of a function that gives kernels, over a list of configurations or a function that gives one."""
        return cls(kernel, configs)

    def set_compile_args(
        self,
        out_idx: int | Sequence[int] | None = None,
        target: Any = None,
        execution_backend: str | None = None,
        target_host: Any = None,
        verbose: bool | None = None,
        pass_configs: Mapping[Any, Any] | None = None,
    ) -> AutoTuner:
        """Settings of every compilation, as for `compile`."""
        self.compile_args = {
            "out_idx": out_idx, "target": target, "execution_backend": execution_backend, "target_host": target_host,
            "verbose": verbose, "pass_configs": pass_configs,
        }  # fmt: skip
        return self

    def set_profile_args(
        self,
        warmup: int = 25,
        rep: int = 100,
        timeout: float = 30,
        supply_type: TensorSupplyType = TensorSupplyType.Auto,
        ref_prog: Callable[..., Any] | None = None,
        supply_prog: Callable[..., Any] | None = None,
        rtol: float = 1e-2,
        atol: float = 1e-2,
        max_mismatched_ratio: float = 0.01,
        skip_check: bool = False,
        manual_check_prog: Callable[..., Any] | None = None,
        cache_input_tensors: bool = False,
        backend: str = "event",
    ) -> AutoTuner:
        """How each kernel is checked and timed."""
        self.settings = Settings.among(locals())
        return self

    def run(
        self,
        warmup: int = 25,
        rep: int = 100,
        timeout: float = 180,
        early_stop: bool = False,
        early_stop_factor: float = 2.0,
        **_: Any,
    ) -> AutotuneResult:
        """Searches, and gives the best configuration with its kernel. The other parameters of TileLang's `run` (grouped
        compilation, several cards) are accepted: one card measures."""
        configs = [dict(c) for c in (self.configs() if callable(self.configs) else self.configs)]
        known = inspect.signature(getattr(self.fn, "fn", self.fn)).parameters
        unused = sorted({k for c in configs for k in c if k not in known and k != PASS_CONFIGS})
        if unused:
            raise OptionError(
                f"the kernel has no parameter {', '.join(unused)}",
                rule="a configuration's keys are parameters of the function",
                fix=f"parameters: {', '.join(known)}",
            )
        settings = replace(
            self.settings, warmup=warmup, rep=rep, timeout=timeout, early_stop=early_stop,
            early_stop_factor=early_stop_factor,
        )  # fmt: skip
        report = search(self._built, configs, settings)
        best = report.best
        found = result(best.kernel, best.config, best.latency, report.ref_latency)
        found.report = report
        return found

    def _built(self, config: Mapping[str, Any]) -> JITKernel:
        chosen = dict(config)
        extra = chosen.pop(PASS_CONFIGS, None) or {}
        settings = {**self.compile_args, "pass_configs": {**(self.compile_args.get("pass_configs") or {}), **extra}}
        if isinstance(self.fn, JITFunction):
            own = {k: v for k, v in settings.items() if k in self.fn.settings and v}
            return self.fn.under(**own).compile(**chosen)
        made = self.fn(**chosen)
        return made if isinstance(made, JITKernel) else compile(made, **settings)
