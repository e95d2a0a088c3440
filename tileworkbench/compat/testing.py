"""TileLang's test decorators: each skips, with the reason, where the machine lacks what it asks for."""

from __future__ import annotations

import importlib.util
import inspect
import random
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..errors import OptionError
from ..target.detect import detect
from . import device

MODES: dict[str, Callable[[Any, Any], bool]] = {
    "ge": lambda a, b: a >= b,
    "gt": lambda a, b: a > b,
    "le": lambda a, b: a <= b,
    "lt": lambda a, b: a < b,
    "eq": lambda a, b: a == b,
}


def _skip_unless(holds: bool, reason: str) -> Any:
    """A mark that pytest reads, and that leaves a function usable without pytest."""
    import pytest

    return pytest.mark.skipif(not holds, reason=reason)


def _marked(fn: Any, *marks: Any) -> Any:
    for mark in marks:
        fn = mark(fn)
    return fn


def requires_cuda(fn: Any) -> Any:
    """Skips without an NVIDIA card."""
    return _marked(fn, _skip_unless(device.nvidia() is not None, "no CUDA device"))


def requires_rocm(fn: Any) -> Any:
    """Skips without an AMD card."""
    return _marked(fn, _skip_unless(device.check_hip_availability(), "no ROCm device"))


def requires_metal(fn: Any) -> Any:
    """Skips: there is no Metal target."""
    return _marked(fn, _skip_unless(False, "tileworkbench has no Metal target"))


def requires_llvm(fn: Any) -> Any:
    """Runs: the CPU target stands for TileLang's C and LLVM ones."""
    return fn


def requires_cdna(fn: Any) -> Any:
    """Skips without an AMD CDNA card."""
    return requires_rocm(fn)


def requires_cuda_or_cdna(fn: Any) -> Any:
    """Skips without a card of either vendor."""
    return _marked(fn, _skip_unless(bool(detect()), "no CUDA or ROCm device"))


def check_is_gfx950() -> bool:
    """Whether the card here is a gfx950."""
    return any(found.arch == "gfx950" for found in detect())


def requires_gfx950(fn: Any) -> Any:
    """Skips without an AMD gfx950 card."""
    return _marked(fn, _skip_unless(check_is_gfx950(), "no gfx950 device"))


def requires_package(*packages: str) -> Callable[[Any], Any]:
    """Skips when a package cannot be imported."""
    lacking = [name for name in packages if importlib.util.find_spec(name) is None]
    return lambda fn: _marked(fn, _skip_unless(not lacking, f"needs the package {', '.join(lacking)}"))


def requires_cuda_compute_version(major_version: int, minor_version: int = 0, mode: str = "ge") -> Callable[[Any], Any]:
    """Skips unless the card's compute capability compares with (major, minor) as `mode` (ge, gt, le, lt, eq) says."""
    if mode not in MODES:
        raise OptionError(f"mode={mode!r}", rule=f"one of {', '.join(MODES)}", fix='"ge"')
    wanted = (major_version, minor_version)
    has = device.parse_compute_version(device.get_target_compute_version()) if device.nvidia() else None
    reason = "no CUDA device" if has is None else f"compute capability {has} is not {mode} {wanted}"
    return lambda fn: _marked(fn, _skip_unless(has is not None and MODES[mode](has, wanted), reason))


def requires_cuda_compute_version_ge(major_version: int, minor_version: int = 0) -> Callable[[Any], Any]:
    return requires_cuda_compute_version(major_version, minor_version, "ge")


def requires_cuda_compute_version_gt(major_version: int, minor_version: int = 0) -> Callable[[Any], Any]:
    return requires_cuda_compute_version(major_version, minor_version, "gt")


def requires_cuda_compute_version_le(major_version: int, minor_version: int = 0) -> Callable[[Any], Any]:
    return requires_cuda_compute_version(major_version, minor_version, "le")


def requires_cuda_compute_version_lt(major_version: int, minor_version: int = 0) -> Callable[[Any], Any]:
    return requires_cuda_compute_version(major_version, minor_version, "lt")


def requires_cuda_compute_version_eq(major_version: int, minor_version: int = 0) -> Callable[[Any], Any]:
    return requires_cuda_compute_version(major_version, minor_version, "eq")


def main() -> None:
    """Runs the tests of the file that calls it, and exits with pytest's status."""
    import pytest

    file = inspect.getsourcefile(sys._getframe(1)) or ""
    sys.exit(pytest.main([file, *sys.argv[1:]]))


def set_random_seed(seed: int = 42) -> None:
    """Seeds Python, NumPy and, where it is loaded, torch."""
    random.seed(seed)
    np.random.seed(seed)
    torch = sys.modules.get("torch")
    if torch is not None:
        torch.manual_seed(seed)


_latencies: list[tuple[str, float]] = []


def process_func(func: Callable[..., float], name: str | None = None, /, **kwargs: Any) -> None:
    """Calls `func(**kwargs)`, which gives a latency, and remembers it under a name for `regression`."""
    shown = str(name or getattr(func, "__module__", "unknown"))
    _latencies.append((shown.removeprefix("regression_"), float(func(**kwargs))))


def regression(prefixes: Sequence[str] = ("regression_",), verbose: bool = True) -> list[tuple[str, float]]:
    """Calls every function of the caller's module whose name starts with a prefix, writes a table of the latencies that
    they handed to `process_func`, and gives it."""
    frame = sys._getframe(1)
    _latencies.clear()
    for name, found in list(frame.f_globals.items()):
        if callable(found) and name.startswith(tuple(prefixes)):
            start = time.perf_counter()
            found()
            if verbose:
                sys.stderr.write(f"{name}: {time.perf_counter() - start:.1f} s\n")
    rows = [f"| {name} | {latency:.6g} |" for name, latency in _latencies]
    sys.stdout.write("\n".join(["| name | latency |", "|---|---|", *rows]) + "\n")
    return list(_latencies)
