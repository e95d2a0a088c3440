"""Reading a function: find its text, rewrite it once, compile it under its own file name, run it against a builder."""

from __future__ import annotations
import __future__

import ast
import builtins
import sys
from collections.abc import Callable, Mapping
from types import CellType, CodeType, FunctionType
from typing import Any

from .faults import MARK, fault
from .rewrite import Rewriter
from .source import Source, find
from .stage import Stage

_COMPILED: dict[tuple[Any, ...], tuple[Source, CodeType, Stage]] = {}
_LIMIT = 512


def stage(fn: Callable[..., Any], outer: Mapping[str, Any] | None = None) -> FunctionType:
    """The staged form of `fn`: the same parameters, globals and closure, its text rewritten.

    `outer` holds the locals of the scope that defined `fn`: names that only its annotations mention are taken there."""
    if not isinstance(fn, FunctionType):
        raise fault(f"{type(fn).__name__} is not a Python function", "a kernel is a `def`", "decorate a plain function")
    code, made = _compiled(fn, outer or {})
    cells = dict(zip(fn.__code__.co_freevars, fn.__closure__ or (), strict=True))
    cells[MARK] = CellType(made)
    closure = tuple(cells[name] if name in cells else CellType(outer[name]) for name in code.co_freevars)  # type: ignore[index]
    staged = FunctionType(code, fn.__globals__, fn.__name__, fn.__defaults__, closure)
    staged.__kwdefaults__ = fn.__kwdefaults__
    staged.__qualname__, staged.__module__ = fn.__qualname__, fn.__module__
    return staged


def _compiled(fn: FunctionType, outer: Mapping[str, Any]) -> tuple[CodeType, Stage]:
    source = find(fn)
    missing = _missing(source, fn, outer)
    key = (fn.__code__.co_filename, fn.__code__.co_firstlineno, fn.__code__, missing)
    known = _COMPILED.get(key)
    if known is not None and known[0].lines is source.lines:
        return known[1], known[2]
    if len(_COMPILED) >= _LIMIT:
        _COMPILED.pop(next(iter(_COMPILED)))
    code, made = _compile(source, fn.__code__, missing)
    _COMPILED[key] = (source, code, made)
    return code, made


def _missing(source: Source, fn: FunctionType, outer: Mapping[str, Any]) -> tuple[str, ...]:
    """Names of the defining scope that the body needs and that Python did not capture (annotations in the body)."""
    if not outer:
        return ()
    held = {*fn.__code__.co_varnames, *fn.__code__.co_cellvars, *fn.__code__.co_freevars}
    names = {n.id for s in source.node.body for n in ast.walk(s) if isinstance(n, ast.Name)}
    wanted = (names & set(outer)) - held
    return tuple(sorted(n for n in wanted if n not in fn.__globals__ and not hasattr(builtins, n)))


def _compile(source: Source, code: CodeType, missing: tuple[str, ...]) -> tuple[CodeType, Stage]:
    own = Source(source.file, source.lines, _copied(source.node))
    free = (*code.co_freevars, *missing)
    names = frozenset((*code.co_varnames, *code.co_cellvars, *free))
    rewriter = Rewriter(own, names)
    function = rewriter.function()
    function.name = f"{MARK}_function"  # its own name would hide the global that a recursive macro calls
    outer = ast.FunctionDef(
        name="outer",
        args=ast.arguments(
            posonlyargs=[], args=[ast.arg(n) for n in (MARK, *free)], kwonlyargs=[], kw_defaults=[], defaults=[]
        ),
        body=[function, ast.Expr(ast.Name(MARK, ast.Load()))],
        decorator_list=[],
    )
    if "type_params" in ast.FunctionDef._fields:
        outer.type_params = []  # type: ignore[attr-defined]
    module = ast.Module([ast.copy_location(outer, function)], [])
    ast.fix_missing_locations(module)
    flags = code.co_flags & __future__.annotations.compiler_flag
    compiled = compile(module, source.file, "exec", flags=flags, dont_inherit=True)
    inner = _inner(compiled, "outer", function.name)
    return inner.replace(co_name=code.co_name, co_qualname=code.co_qualname), Stage(rewriter.spans, stage)


def _copied(node: Any) -> Any:
    """A syntax tree of its own; several times faster than copy.deepcopy, which was a third of reading a kernel."""
    kind: Any = type(node)
    made = kind.__new__(kind)
    held = vars(node)  # other tools leave more there, such as links to the parent
    for name in (*node._fields, *node._attributes):
        value = held.get(name)
        if isinstance(value, ast.AST):
            value = _copied(value)
        elif type(value) is list:
            value = [_copied(item) if isinstance(item, ast.AST) else item for item in value]
        if name in held:
            setattr(made, name, value)
    return made


def _inner(code: CodeType, *path: str) -> CodeType:
    for name in path:
        code = next(c for c in code.co_consts if isinstance(c, CodeType) and c.co_name == name)
    return code


def defining_scope(depth: int) -> dict[str, Any]:
    """The locals of the function that is decorating, `depth` frames up; empty at module level."""
    frame = sys._getframe(depth + 1)
    return dict(frame.f_locals) if frame.f_locals is not frame.f_globals else {}
