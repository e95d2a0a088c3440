"""tileworkbench.compile: from a kernel's text to something that can be called."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..errors import LanguageError, TargetError, TileError
from ..ir.kernel import Kernel
from ..ir.node import walk
from ..language.faults import LateExtent, Misnested
from ..language.finish import single
from ..language.macro import Macro
from ..language.prim import PrimFunc, read_all, read_host
from ..ops.atomic import AtomicTile
from ..options import options
from ..passes.select import check_ops
from ..target import Target
from .fanout import fan_out
from .hostloops import spread
from .kernel import JITKernel
from .late import LateKernel
from .outputs import with_outputs, workspaces
from .sequence import LaunchSequence
from .settings import check_backend, with_settings
from .timing import Timing


def compile(
    func: Any,
    out_idx: int | Sequence[int] | None = None,
    execution_backend: str | None = None,
    target: Any = None,
    target_host: Any = None,
    verbose: bool | None = None,
    pass_configs: Mapping[Any, Any] | None = None,
    compile_flags: str | Sequence[str] | None = None,
) -> JITKernel:
    """Compiles a T.prim_func (or a plain function with annotated tensors). `out_idx` names the parameters that a call
    leaves out and gets back; `target` is anything `Target.of` takes, by default the option `target`. No GPU is needed
    to compile for one. `target_host`, `execution_backend` and `verbose` are accepted for TileLang's sake."""
    check_backend(execution_backend)
    key = memory_key(out_idx, target, pass_configs, compile_flags)
    # Kept on the text itself, so that both go together.
    made: dict[str, JITKernel] = vars(func).setdefault("_compiled", {}) if isinstance(func, PrimFunc) else {}
    if key in made:
        return made[key]
    if isinstance(func, PrimFunc) and isinstance(func.refused, LateExtent):
        settings = {"target": target, "pass_configs": pass_configs, "compile_flags": compile_flags}
        goal = Target.of(options.target if target is None else target)
        made[key] = LateKernel(func, func.refused, out_idx, goal, lambda f: compile(f, out_idx, **settings))
        return made[key]
    timing = Timing({"read": getattr(func, "seconds", 0.0)} if isinstance(func, PrimFunc) else {})
    with timing.stage("read"):
        kernels = as_kernels(func, options.target if target is None else target)
        tiles = [with_settings(with_outputs(t, out_idx), pass_configs, compile_flags) for t in kernels]
    made[key] = finish(tiles, target, timing, func)
    return made[key]


def memory_key(out_idx: Any, target: Any, pass_configs: Any, compile_flags: Any) -> str:
    """All that a kernel of one and the same text hangs on."""
    asked = options.target if target is None else target
    return repr((out_idx, str(asked), pass_configs, compile_flags, options.digest()))


def finish(tiles: Sequence[Kernel], target: Any, timing: Timing, func: Any = None) -> JITKernel:
    """The compiled kernel of tile-level kernels whose settings are in place; several are launched in order."""
    asked = options.target if target is None else target
    found = Target.of(asked)
    if found.name == "cpu":
        host = host_kind(asked)
        with timing.stage("passes"):
            for tile in tiles:
                check_ops(tile, found)
                if host:
                    check_host(tile)
            tiles = [spread(one_thread(tile)) for tile in tiles] if host else tiles
    text = func if isinstance(func, PrimFunc) else None
    if len(tiles) == 1 and not workspaces(tiles[0]):
        return JITKernel(tiles[0], found, timing, text)
    return LaunchSequence(tiles, found, timing, text)


def host_kind(target: Any) -> bool:
    """Whether TileLang's C or LLVM target was asked for: there a block is one thread."""
    kind = target.get("kind", "") if isinstance(target, Mapping) else getattr(target, "kind", target)
    return str(getattr(kind, "name", kind)).split(" ")[0].lower() in ("c", "llvm")


def check_host(tile: Kernel) -> None:
    """Refuses what asks for an engine that only a card has."""
    for node in walk(tile.body):
        if isinstance(node, AtomicTile) and node.use_tma:
            raise TargetError(
                f"T.atomic_{node.kind} with use_tma on a host",
                rule="the tensor memory engine is part of a card",
                fix="leave use_tma out",
                loc=node.loc,
            )


def one_thread(tile: Kernel) -> Kernel:
    """The kernel with blocks of one thread, whose index is 0."""
    return tile.with_(threads=1, thread_shape=(1,) * len(tile.thread_shape))


def as_kernels(func: Any, target: Any = None) -> tuple[Kernel, ...]:
    """The tile-level kernels behind anything that can be compiled, in launch order. A host takes a function without
    launches too: all of it runs once."""
    if isinstance(func, PrimFunc) and isinstance(func.refused, Misnested) and host_kind(target):
        return (read_host(func),)
    if isinstance(func, Kernel | PrimFunc | Macro) or (callable(func) and hasattr(func, "__code__")):
        return read_all(func)
    if isinstance(func, JITKernel):
        return func.tiles
    raise LanguageError(
        f"{type(func).__name__} {func!r:.60} cannot be compiled",
        rule="a kernel is a T.prim_func, or a function whose parameters are annotated with T.Tensor",
        fix="pass the kernel itself, not its result",
    )


def as_kernel(func: Any) -> Kernel:
    """The only tile-level kernel behind something; LanguageError for a sequence."""
    return single(as_kernels(func))


def par_compile(
    funcs: Sequence[Any],
    out_idx: int | Sequence[int] | None = None,
    *,
    num_workers: int | None = None,
    ignore_error: bool = False,
    **settings: Any,
) -> list[JITKernel | None]:
    """`compile` for many kernels at a time, in processes of the compiler's own; with `ignore_error` one that cannot be
    compiled gives None."""
    return all_of(lambda func: compile(func, out_idx, **settings), funcs, num_workers, ignore_error)


def all_of(
    build: Callable[[Any], JITKernel], items: Sequence[Any], workers: int | None, ignore_error: bool
) -> list[JITKernel | None]:
    """`build` of every item, in order, under the options of the caller."""
    made: list[JITKernel | None] = []
    with contextlib.closing(fan_out(build, items, count=workers)) as built:
        for _, kernel in built:
            if isinstance(kernel, Exception) and not (ignore_error and isinstance(kernel, TileError)):
                raise kernel
            made.append(None if isinstance(kernel, Exception) else kernel)
    return made
