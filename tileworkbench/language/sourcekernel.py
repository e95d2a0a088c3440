"""T.CUDASourceCodeKernel: a launch whose device code is the user's own CUDA C++."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from ..errors import LanguageError, Loc
from ..ir.expr import Buffer, Expr, Var
from ..ir.kernel import Kernel
from ..ir.node import walk
from ..ops.source_kernel import SourceKernel
from .builder import require
from .ctext import Entry, Parameter, entries
from .faults import fault, shown
from .launch import ClusterKernel, Launch
from .launch import Kernel as launched
from .texts import text_or_file, text_place

WHAT = "T.CUDASourceCodeKernel"
PLAIN = {"int8": "signed char", "int16": "short", "int32": "int", "int64": "long long", "uint8": "unsigned char",
         "uint16": "unsigned short", "uint32": "unsigned int", "uint64": "unsigned long long", "bool": "bool",
         "float16": "__half", "bfloat16": "__nv_bfloat16", "float32": "float", "float64": "double"}  # fmt: skip


@dataclass(frozen=True)
class Given:
    """The text of a launch: the function that is launched, all of the text, and where its first line stands."""

    entry: Entry
    text: str
    place: Loc | None
    loc: Loc | None


def CUDASourceCodeKernel(
    *blocks: Any,
    threads: Any = None,
    source_code_or_path: str | os.PathLike[str],
    entry_name: str = "main_kernel",
    cluster_dims: Any = None,
    prelude: str | None = None,
) -> None:
    """Launches the function `entry_name` of CUDA C++ that is given as text or as a file. It gets the kernel's tensors
    by address, sorted by name, then its symbols by value, sorted by name; scalar parameters stand among the symbols
    where the function has a place for them. The other arguments are T.Kernel's and T.ClusterKernel's."""
    builder = require(WHAT)
    launch: Launch
    if cluster_dims is None:
        launch = launched(*blocks, threads=threads)
    else:
        dims = cluster_dims if isinstance(cluster_dims, Iterable) else (cluster_dims,)
        launch = ClusterKernel(*blocks, cluster_dims=dims, threads=threads)
    text, place = text_or_file(source_code_or_path, "source_code_or_path", builder.here)
    if prelude is not None:
        if not isinstance(prelude, str):
            raise fault(
                f"{WHAT}: prelude={shown(prelude)}", "it is text that stands before the source", "give a string"
            )
        before = text_place(prelude + "\n" + text, builder.here)
        text, place = f"{prelude}\n{text}", before
    entry = _entry(text, entry_name)
    here = builder.here
    for _ in launch.run(builder, (), here, lambda *_: None):  # type: ignore[arg-type]
        pass
    launch.source = Given(entry, text, place, here)


def _entry(text: str, name: Any) -> Entry:
    if not isinstance(name, str) or not name.strip():
        raise fault(
            f"{WHAT}: entry_name={shown(name)}",
            "it names a __global__ function of the text",
            'entry_name="main_kernel"',
        )
    found = {e.name: e for e in entries(text)}
    if name not in found:
        known = f"Available entries: {', '.join(found)}" if found else "it has no __global__ function"
        raise fault(
            f"{WHAT}: the text has no kernel `{name}`. {known}",
            "entry_name is a __global__ function of the text",
            f'entry_name="{next(iter(found))}"' if found else 'write `extern "C" __global__ void …`',
        )
    if not found[name].plain_name:
        raise fault(
            f'{WHAT}: `{name}` is not declared extern "C"',
            "a kernel is launched by its name, which C++ would change",
            f'write `extern "C" __global__ void {name}(…)`',
        )
    return found[name]


def body(given: Given, kernel: Kernel) -> tuple[SourceKernel, ...]:
    """The statement that such a launch is, now that all parameters are known."""
    args = _arguments(given, kernel)
    return (SourceKernel(given.entry.name, given.text, args, given.place, loc=given.loc),)


def _arguments(given: Given, kernel: Kernel) -> tuple[Buffer | Var, ...]:
    """TileLang's order; it passes no scalar parameter, so a function without a place for them gets none."""
    hidden = set(kernel.attrs.get("workspaces", ()))
    tensors = sorted((t for i, t in enumerate(kernel.params) if isinstance(t, Buffer) and i not in hidden), key=_name)
    told = [v for t in tensors for e in (*t.shape, *(t.strides or ())) if isinstance(e, Expr) for v in walk(e)]
    symbols = {v for v in told if isinstance(v, Var)}
    count = len(given.entry.parameters)
    bare = count == len(tensors) + len(symbols)
    numbers = sorted(symbols if bare else {*symbols, *kernel.scalars}, key=_name)
    args: tuple[Buffer | Var, ...] = (*tensors, *numbers)
    if count != len(args):
        raise _unfit(given, args, f"takes {count} parameter{'s' * (count != 1)}, the launch passes {len(args)}")
    for n, (parameter, arg) in enumerate(zip(given.entry.parameters, args, strict=True), 1):
        _check(given, parameter, arg, n, args)
    return args


def _check(given: Given, parameter: Parameter, arg: Buffer | Var, n: int, args: Sequence[Buffer | Var]) -> None:
    """Refuses what would be read as something else than it is."""
    which = f"parameter {n}, `{parameter.text}`,"
    if isinstance(arg, Buffer) != parameter.pointer:
        is_ = "a pointer" if parameter.pointer else "no pointer"
        what = "the tensor" if isinstance(arg, Buffer) else "the number"
        raise _unfit(given, args, f"has {is_} as {which} the launch passes {what} `{arg.name}`")
    if parameter.name != arg.name and any(parameter.name == other.name for other in args):
        raise _unfit(given, args, f"has {which} where the launch passes `{arg.name}`")
    number = parameter.number
    if isinstance(arg, Var) and number is not None:
        kind = "float" if arg.dtype.is_float else "int"
        if number != (kind, arg.dtype.bytes):
            raise _unfit(given, args, f"has {which} the launch passes `{arg.name}` of {arg.dtype}")


def _unfit(given: Given, args: Sequence[Buffer | Var], found: str) -> LanguageError:
    return fault(
        f"{WHAT}: `{given.entry.name}` {found}",
        "the function takes the kernel's tensors sorted by name, then its numbers sorted by name",
        f"declare `{given.entry.name}({', '.join(map(_declared, args))})`",
        given.loc,
    )


def _declared(a: Buffer | Var) -> str:
    kind = PLAIN.get(a.dtype.name, "void" if isinstance(a, Buffer) else a.dtype.name)
    return f"{kind}* {a.name}" if isinstance(a, Buffer) else f"{kind} {a.name}"


def _name(a: Buffer | Var) -> str:
    return a.name
