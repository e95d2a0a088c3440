"""Both dialects: printing, assertions, traps, clock records. Text of the user's enters as string literals only."""

from __future__ import annotations

from typing import Any

from ..errors import InternalError, Loc
from ..ir.dtype import FLOAT32
from ..ir.expr import Buffer, Expr
from ..ir.instr import Stamp, Trap
from ..ir.stmt import Assert, Print
from .convert import convert
from .dialect import Row
from .names import literal_format, quoted
from .scalar import is_soft

_FORMATS = {"int64": "%lld", "uint32": "%u", "uint64": "%llu", "handle": "0x%llx"}


def _print(p: Any, s: Print) -> None:
    pieces, args = [], []
    for part in s.parts:
        if isinstance(part, Expr):
            pieces.append(_FORMATS.get(part.dtype.name, "%g" if part.dtype.is_float else "%d"))
            args.append(_argument(p, part))
        else:
            pieces.append(literal_format(str(part)))
    p.line(f"{p.printf()}({', '.join([quoted(''.join(pieces)), *args])});")


def _argument(p: Any, e: Expr) -> str:
    text = p.expr(e, 4)
    if is_soft(e.dtype):
        text = convert(p, text, e.dtype, FLOAT32)
    return f"(double)({text})" if e.dtype.is_float else text


def _assert(p: Any, s: Assert) -> None:
    message = f"{_where(s.loc)}assertion failed{': ' if s.message else ''}{s.message}\n"
    with p.writer.block(f"if (!({p.expr(s.cond)}))"):
        _stop(p, message)


def _trap(p: Any, s: Trap) -> None:
    with p.writer.block(""):
        _stop(p, f"{_where(s.loc)}{s.message}\n" if s.message else "")


def _where(loc: Loc | None) -> str:
    return f"{loc.file}:{loc.line}: " if loc else ""


def _stop(p: Any, message: str) -> None:
    if message:
        p.line(f"{p.printf()}({quoted(literal_format(message))});")
    p.line(p.trap_text())


def _stamp(p: Any, s: Stamp) -> None:
    """One clock record: slot `lane` of this block's row in the buffer that the kernel's attribute "stamps" names."""
    buffer = p.kernel.attrs.get("stamps")
    if not isinstance(buffer, Buffer):
        raise InternalError(
            "a clock record without a buffer for it", rule='kernel.attrs["stamps"] is a parameter', loc=s.loc
        )
    width = buffer.shape[-1]
    if not isinstance(width, int) or not 0 <= s.lane < width:
        raise InternalError(f"clock record {s.lane} of {width}", rule="slots are numbered within the row", loc=s.loc)
    (x, y, z), (nx, ny) = (p.block_index(i) for i in range(3)), (p.grid_size("x"), p.grid_size("y"))
    block = f"({z} * {ny} + {y}) * {nx} + {x}"
    p.line(f"if ({p.elected('role')}) {p.name(buffer)}[({block}) * {width}ull + {s.lane}] = {p.clock()};",
           f"{s.role} {s.stage}")  # fmt: skip


ROWS: dict[Any, Row] = {Print: _print, Assert: _assert, Trap: _trap, Stamp: _stamp}
