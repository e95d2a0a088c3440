"""Compiler settings as TileLang spells them (pass_configs, compile_flags), turned into the kernel's own attributes."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from ..errors import OptionError
from ..ir.kernel import Kernel
from ..ir.node import Node, map_children, map_items, replace
from ..ops.copy import Copy
from ..options import options
from .passconfig import NO_TMA, attributes, ignored, key_name

BACKENDS = ("auto", "tvm_ffi", "cython", "nvrtc", "torch", "cutedsl")
# What cannot change the meaning of our text: optimisation is on, there are no headers, warnings are read by us.
WITHOUT_EFFECT = ("-O", "-W", "-DNDEBUG", "-U__CUDA_NO_", "--expt-", "--ptxas-options", "-Xptxas", "-lineinfo")
MACRO = re.compile(
    r"(?:-D|--define-macro=)(?P<name>[A-Za-z_]\w*(?:\([\w,]*\))?)(?:=(?P<value>[^\\\n]*))?"
    r"|(?:-U|--undefine-macro=)(?P<undefined>[A-Za-z_]\w*)"
)
FLAGS = {"--use_fast_math": ("fast_math", True), "-use_fast_math": ("fast_math", True), "-G": ("debug", True)}


def with_settings(
    kernel: Kernel, pass_configs: Mapping[Any, Any] | None, compile_flags: str | Sequence[str] | None
) -> Kernel:
    """The kernel with its settings: those given here win over its own annotations; flags are appended. Keys that this
    compiler has no use for are kept and change nothing, so that TileLang's kernels run unchanged."""
    check_kinds(pass_configs, compile_flags)
    own = kernel.attrs.get("pass_configs", {})
    configs = {key_name(k): v for k, v in {**own, **(pass_configs or {})}.items()}
    given = (compile_flags,) if isinstance(compile_flags, str) else tuple(compile_flags or ())
    flags = (*kernel.attrs.get("compile_flags", ()), *given)
    build: dict[str, Any] = {"fast_math": options.fast_math, "line_info": options.line_info}
    build |= kernel.attrs.get("build", {})
    if configs.get("tl.enable_fast_math") or configs.get("tl.disable_fast_math") is False:
        build["fast_math"] = True
    own_flags = configs.get("tl.device_compile_flags") or ()
    every = (*flags, *((own_flags,) if isinstance(own_flags, str) else own_flags))
    parts, macros = split([part for flag in every for part in flag.split() if not part.startswith(WITHOUT_EFFECT)])
    build |= dict(map(flag_option, parts))
    attrs = {**kernel.attrs, **attributes(configs), "pass_configs": configs, "compile_flags": flags, "build": build}
    if macros:
        attrs["macros"] = macros
    notes = (*kernel.notes, *(f"pass_configs: {name} has no meaning here and is ignored" for name in ignored(configs)))
    made = kernel.with_(attrs=attrs, notes=notes)
    return made.with_(body=map_items(made.body, without_tma)) if configs.get(NO_TMA) else made


def check_kinds(pass_configs: Any, compile_flags: Any) -> None:
    """Settings of the wrong kind altogether."""
    if pass_configs is not None and not isinstance(pass_configs, Mapping):
        raise OptionError(
            f"pass_configs={pass_configs!r:.60}", rule="pass_configs is a dict of settings by name", fix="{name: value}"
        )
    flags = (compile_flags,) if isinstance(compile_flags, str) else compile_flags
    if flags is not None and not (isinstance(flags, list | tuple) and all(isinstance(flag, str) for flag in flags)):
        raise OptionError(
            f"compile_flags={compile_flags!r:.60}",
            rule="compile_flags is a string, or a list of strings",
            fix='["--use_fast_math"]',
        )


def without_tma(n: Node) -> Node:
    """The statement with its copies told not to use the copy engine."""
    if isinstance(n, Copy):
        return replace(n, hints=(*(h for h in n.hints if h[0] != "disable_tma"), ("disable_tma", True)))
    return map_children(n, without_tma)


def split(parts: Sequence[str]) -> tuple[list[str], tuple[str, ...]]:
    """The flags that are no macros, and the lines that define and undefine macros in a text of the user's own."""
    rest: list[str] = []
    lines: list[str] = []
    left = iter(parts)
    for part in left:
        found = MACRO.fullmatch(part if part not in ("-D", "-U") else part + next(left, ""))
        if found is None:
            rest.append(part)
        elif found["undefined"] is not None:
            lines.append(f"#undef {found['undefined']}")
        else:
            value = found["value"]
            lines.append(f"#define {found['name']} {'1' if value is None else value}".rstrip())
    return rest, tuple(lines)


def flag_option(flag: str) -> tuple[str, Any]:
    """A device compiler's flag as one of the typed options; anything else is refused, not passed on."""
    if flag in FLAGS:
        return FLAGS[flag]
    for spelled in ("--maxrregcount=", "-maxrregcount="):
        if flag.startswith(spelled) and flag.removeprefix(spelled).isdigit():
            return "max_registers", int(flag.removeprefix(spelled))
    for spelled in ("--std=c++", "-std=c++"):
        if flag.startswith(spelled) and flag.removeprefix(spelled).isdigit():
            return "std", int(flag.removeprefix(spelled))
    raise OptionError(
        f"the compile flag {flag!r}",
        rule="flags are --use_fast_math, --maxrregcount=N, --std=c++NN, -G, -DNAME=VALUE and -UNAME",
        fix="use T.import_source for code of your own",
    )


def check_backend(backend: str | None) -> None:
    """Refuses a backend that TileLang does not know either."""
    if backend is not None and backend not in BACKENDS:
        raise OptionError(
            f"execution_backend={backend!r}",
            rule=f"one of {', '.join(BACKENDS)}; all of them mean the one launcher",
            fix="leave it out",
        )
