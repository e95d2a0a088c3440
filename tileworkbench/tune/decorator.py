"""The autotune decorator: a jit function whose call first finds the best values of its tunable arguments."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ..errors import LanguageError, OptionError, TileError
from ..jitkernel import JITFunction, JITKernel
from ..jitkernel.keys import key_of
from ..jitkernel.supply import TensorSupplyType
from ..target import Target
from . import record
from .search import Settings, search

PASS_CONFIGS = "pass_configs"  # of a configuration: not an argument, but settings of its compilation


def autotune(
    func: Any = None,
    *,
    configs: Any = None,
    warmup: int = 25,
    rep: int = 100,
    timeout: float = 100,
    supply_type: TensorSupplyType = TensorSupplyType.Auto,
    ref_prog: Callable[..., Any] | None = None,
    supply_prog: Callable[..., Any] | None = None,
    rtol: float = 1e-2,
    atol: float = 1e-2,
    max_mismatched_ratio: float = 0.01,
    skip_check: bool = False,
    manual_check_prog: Callable[..., Any] | None = None,
    cache_input_tensors: bool = False,
    do_not_specialize: Sequence[str] | None = None,
    early_stop: bool = False,
    early_stop_factor: float = 2.0,
) -> Callable[[Any], Tuned]:
    """Stands above `@jit`. `configs` is a list of dicts from parameter names to values (and "pass_configs"), or a
    function of the call's arguments that gives one. A call that leaves these parameters out searches once for its other
    arguments (`do_not_specialize` names those that do not matter): every configuration is compiled, compared with
    `ref_prog`, and timed over `rep` runs after `warmup`. A factory's call gives the best kernel, with .config, .latency
    and .ref_latency; an eager function's call runs it."""
    settings = Settings.among(locals())
    if func is not None or configs is None:
        raise OptionError(
            "@autotune without configurations", rule="it needs the values to try",
            fix='@autotune(configs=[{"block_M": 64}, {"block_M": 128}])',
        )  # fmt: skip

    def decorate(fn: Any) -> Tuned:
        if not isinstance(fn, JITFunction):
            raise LanguageError(
                f"@autotune above {type(fn).__name__}", rule="it stands above @jit", fix="@autotune(…), then @jit below"
            )
        return Tuned(fn, configs, settings, tuple(do_not_specialize or ()))

    return decorate


class Tuned:
    """A jit function with a search before it. `results` are what was found so far, by call."""

    def __init__(self, fn: JITFunction, configs: Any, settings: Settings, unspecific: tuple[str, ...]) -> None:
        functools.update_wrapper(self, fn.fn)
        self.fn, self.configs, self.settings, self.unspecific = fn, configs, settings, unspecific
        self.signature = inspect.signature(fn.fn)
        self.results: dict[Any, record.AutotuneResult] = {}
        self._others: dict[str, JITFunction] = {}  # the function under the pass_configs of configurations

    @property
    def _tuner_cache(self) -> dict[Any, record.AutotuneResult]:
        """TileLang's name of `results`."""
        return self.results

    @property
    def jit_impl(self) -> JITFunction:
        """TileLang's name of `fn`."""
        return self.fn

    def __call__(self, *args: Any, **named: Any) -> Any:
        wanted = named.pop("__return_kernel", False)  # TileLang's spelling of `compile`
        if wanted or self.fn.style == "lazy":
            return self.compile(*args, **named)
        found = self.tuned(args, named)
        if found is None:
            return self.fn(*args, **named)
        chosen = dict(found.config or {})
        return self._with(chosen.pop(PASS_CONFIGS, None))(*args, **{**named, **chosen})

    def compile(self, *args: Any, **named: Any) -> JITKernel:
        """The best kernel for a call with these arguments."""
        found = self.tuned(args, named)
        if found is None or found.kernel is None:
            return self.fn.compile(*args, **named)
        if not self.unspecific:
            return found.kernel
        # What was found for other values of the arguments that do not matter to the search matters to the kernel.
        made = self._built(found.config or {}, args, named)
        made.latency, made.config, made.ref_latency = found.latency, found.config, found.ref_latency
        return made

    def tuned(self, args: Sequence[Any], named: Mapping[str, Any]) -> record.AutotuneResult | None:
        """The search's result for these arguments; None when the caller gives the tunable ones himself (then an empty
        one is kept)."""
        configs = [dict(c) for c in (self.configs(*args, **named) if callable(self.configs) else self.configs)]
        self._checked(configs)
        given = {*list(self.signature.parameters)[: len(args)], *named}
        key = self._key(args, named, configs)
        now = (key, self.fn._surroundings.state())  # a kernel is given again only while its globals are as they were
        if any(name in given for name in configs[0] if name != PASS_CONFIGS):
            self.results.setdefault(now, record.AutotuneResult())
            return None
        if now not in self.results:
            self.results[now] = self._from_disk(key, args, named) or self._searched(key, configs, args, named)
        return self.results[now]

    def _checked(self, configs: list[dict[str, Any]]) -> None:
        if not configs:
            raise OptionError(
                f"no configurations for `{self.fn.fn.__name__}`", rule="at least one is needed", fix="configs=[{...}]"
            )
        known = self.signature.parameters
        unused = sorted({name for c in configs for name in c if name not in known and name != PASS_CONFIGS})
        if unused:
            raise OptionError(
                f"`{self.fn.fn.__name__}` has no parameter {', '.join(unused)}",
                rule="a configuration's keys are parameters of the function",
                fix=f"parameters: {', '.join(known)}",
            )

    def _key(self, args: Sequence[Any], named: Mapping[str, Any], configs: list[dict[str, Any]]) -> Any:
        bound = self.signature.bind_partial(*args, **{k: v for k, v in named.items() if k in self.signature.parameters})
        values = {k: v for k, v in bound.arguments.items() if k not in self.unspecific}
        rest = {k: v for k, v in named.items() if k not in self.signature.parameters}
        parts = [(k, key_of(v)) for k, v in {**values, **rest}.items()]
        return (tuple(parts), repr([record.plain(c) if _plain(c) else c for c in configs]), str(self._target()))

    def _target(self) -> Target:
        return Target.of(self.fn._target())

    def _with(self, pass_configs: Mapping[Any, Any] | None) -> JITFunction:
        """The function under a configuration's own pass_configs."""
        if not pass_configs:
            return self.fn
        merged = {**(self.fn.settings["pass_configs"] or {}), **pass_configs}
        return self._others.setdefault(repr(merged), self.fn.under(pass_configs=merged))

    def _built(self, config: Mapping[str, Any], args: Sequence[Any], named: Mapping[str, Any]) -> JITKernel:
        chosen = dict(config)
        return self._with(chosen.pop(PASS_CONFIGS, None)).compile(*args, **{**named, **chosen})

    def _searched(self, key: Any, configs: list[dict[str, Any]], args: Any, named: Any) -> record.AutotuneResult:
        settings = self.settings
        if self.fn.style == "eager" and settings.supply_prog is None:
            tensors = [v for v in [*args, *named.values()] if _is_tensor(v)]
            settings = _supplied(settings, tensors) if tensors else settings  # the tensors of the call are the inputs
        report = search(lambda config: self._built(config, args, named), configs, settings)
        best = report.best
        found = result(best.kernel, best.config, best.latency, report.ref_latency)
        found.report = report
        path = self._place(key)
        if path is not None and _plain(best.config):
            try:
                path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
                kept = {"config": record.plain(best.config), "latency": best.latency, "ref": report.ref_latency}
                record.write(path, kept)
            except OSError:
                pass  # a search that cannot be remembered is still a search
        return found

    def _from_disk(self, key: Any, args: Any, named: Any) -> record.AutotuneResult | None:
        path = self._place(key)
        found = record.load(path) if path is not None else None
        if found is None:
            return None
        try:
            kernel = self._built(found["config"], args, named)
        except TileError:
            return None
        return result(kernel, found["config"], found["latency"], found["ref"])

    def _place(self, key: Any) -> Any:
        """Where the result lies on disk; None when it hangs on something that a file's name cannot tell."""
        if not self.settings.repeatable:
            return None
        try:
            source = inspect.getsource(self.fn.fn)
        except (OSError, TypeError):
            return None
        cells = [c.cell_contents for c in self.fn.fn.__closure__ or ()]
        if not all(record.representable(c) for c in cells):
            return None
        device, outside = self._target().device.name, self.fn.fn.__globals__
        named = {n: outside[n] for n in self.fn._surroundings.names if record.representable(outside.get(n, self))}
        return record.place(record.digest(source, cells, named, key, self.fn.settings, device, self.settings))


def result(
    kernel: JITKernel | None, config: dict[str, Any], latency: float, ref_latency: float | None
) -> record.AutotuneResult:
    """A result whose kernel knows it."""
    if kernel is not None:
        kernel.update_tuner_result(latency, config, ref_latency)
    source = kernel.source if kernel is not None else None
    return record.AutotuneResult(latency, config, ref_latency, source, getattr(kernel, "prim_func", None), kernel)


def _plain(config: Mapping[str, Any]) -> bool:
    return all(record.representable(v) for k, v in config.items() if k != PASS_CONFIGS)


def _supplied(settings: Settings, tensors: list[Any]) -> Settings:
    return replace(settings, supply_prog=lambda params: tensors)


def _is_tensor(value: Any) -> bool:
    return hasattr(value, "shape") and hasattr(value, "dtype")
