"""T.gemm, T.wgmma_gemm and T.gemm_sp: products of tiles."""

from __future__ import annotations

from enum import IntEnum
from typing import Any

from ..errors import ShapeError
from ..ir.expr import Expr, Load, truth
from ..ir.stmt import Region
from ..ops.gemm import Gemm, GemmSparse
from .builder import require
from .faults import fault, shown
from .regions import to_region
from .tileops import hints


class GemmWarpPolicy(IntEnum):
    """How warps share the M × N tile of a product."""

    Square = 0
    FullRow = 1
    FullCol = 2

    def compute_warp_partition(self, M: int, N: int, num_warps: int) -> tuple[int, int]:
        """(warps along M, warps along N) for a tile of M × N."""
        if self is GemmWarpPolicy.FullRow:
            return num_warps, 1
        if self is GemmWarpPolicy.FullCol:
            return 1, num_warps
        splits = [(m, num_warps // m) for m in range(1, num_warps + 1) if num_warps % m == 0]
        return min(splits, key=lambda s: abs(M / s[0] - N / s[1]))


_POLICIES = {GemmWarpPolicy.Square: "square", GemmWarpPolicy.FullRow: "full_row", GemmWarpPolicy.FullCol: "full_col"}


def gemm(
    A: Any,
    B: Any,
    C: Any,
    transpose_A: bool = False,
    transpose_B: bool = False,
    policy: GemmWarpPolicy = GemmWarpPolicy.Square,
    clear_accum: Any = False,
    k_pack: int = 1,
    mbar: Any = None,
    annotations: Any = None,
) -> None:
    """C += op(A) · op(B) on tiles; with `clear_accum` C = op(A) · op(B). Done when it returns."""
    given = hints(annotations, k_pack=None if k_pack == 1 else k_pack, mbar=mbar)
    product("T.gemm", A, B, C, transpose_A, transpose_B, policy, clear_accum, given)


def wgmma_gemm(
    A: Any,
    B: Any,
    C: Any,
    transpose_A: bool = False,
    transpose_B: bool = False,
    policy: GemmWarpPolicy = GemmWarpPolicy.Square,
    clear_accum: Any = False,
    annotations: Any = None,
) -> None:
    """T.gemm by warpgroup MMA, started and not waited for (T.wait_wgmma)."""
    given = hints(annotations, force="wgmma")
    product("T.wgmma_gemm", A, B, C, transpose_A, transpose_B, policy, clear_accum, given)


wgmma_mma = wgmma_gemm


def gemm_sp(
    A_sparse: Any,
    E: Any,
    B: Any,
    C: Any,
    transpose_A: bool = False,
    transpose_E: bool = False,
    transpose_B: bool = False,
    policy: GemmWarpPolicy = GemmWarpPolicy.Square,
    clear_accum: Any = False,
    k_pack: int = 1,
    wg_wait: int = 0,
    annotations: Any = None,
) -> None:
    """C += op(A) · op(B) where A_sparse (M, K / 2) holds two of each four elements along K (one of two with 32-bit
    elements) and E (M, K / f) places them by 4-bit fields. Done when it returns."""
    given = hints(annotations, k_pack=None if k_pack == 1 else k_pack, wg_wait=wg_wait or None)
    flags = {"transpose_A": transpose_A, "transpose_E": transpose_E, "transpose_B": transpose_B}
    sparse("T.gemm_sp", (A_sparse, E, B, C), flags, policy, clear_accum, given)


def wgmma_gemm_sp(
    A_sparse: Any,
    E: Any,
    B: Any,
    C: Any,
    transpose_A: bool = False,
    transpose_E: bool = False,
    transpose_B: bool = False,
    policy: GemmWarpPolicy = GemmWarpPolicy.Square,
    clear_accum: Any = False,
    annotations: Any = None,
) -> None:
    """T.gemm_sp by warpgroup MMA, started and not waited for (T.wait_wgmma)."""
    given = hints(annotations, force="wgmma")
    flags = {"transpose_A": transpose_A, "transpose_E": transpose_E, "transpose_B": transpose_B}
    sparse("T.wgmma_gemm_sp", (A_sparse, E, B, C), flags, policy, clear_accum, given)


def sparse(what: str, given: tuple[Any, ...], flags: dict[str, Any], policy: Any, clear: Any, told: Any) -> None:
    """Emits a GemmSparse of checked operands A, E, B, C."""
    builder = require(what)
    a, e, b, c = _operands(what, tuple(zip("AEBC", given, strict=True)))
    ta, te, tb = _flags(what, **flags)
    made = GemmSparse(a, e, b, c, ta, te, tb, truth(clear), _split(what, policy), told, loc=builder.here)
    builder.emit(made)


def product(what: str, A: Any, B: Any, C: Any, ta: Any, tb: Any, policy: Any, clear: Any, given: Any) -> None:
    """Emits a Gemm of checked operands."""
    builder = require(what)
    a, b, c = _operands(what, (("A", A), ("B", B), ("C", C)))
    flag_a, flag_b = _flags(what, transpose_A=ta, transpose_B=tb)
    builder.emit(Gemm(a, b, c, flag_a, flag_b, truth(clear), _split(what, policy), given, loc=builder.here))


def _operands(what: str, given: tuple[tuple[str, Any], ...]) -> tuple[Region, ...]:
    regions = []
    for letter, value in given:
        if isinstance(value, Load):
            raise fault(
                f"{what}: {letter} is one element of `{value.buffer.name}`",
                "operands are tiles of two dimensions",
                f"write `{value.buffer.name}[i, :, :]` for a slice, or the tile's name",
            )
        regions.append(_matrix(what, letter, to_region(value, f"{what}: {letter}")))
    return tuple(regions)


def _flags(what: str, **given: Any) -> tuple[bool, ...]:
    for flag, value in given.items():
        if isinstance(value, Expr) or not isinstance(value, bool | int):
            raise fault(f"{what}: {flag}={shown(value)}", "it is a bool known while compiling", "use True or False")
    return tuple(bool(value) for value in given.values())


def _split(what: str, policy: Any) -> str:
    if policy not in _POLICIES:
        raise fault(f"{what}: policy={shown(policy)}", "it is a GemmWarpPolicy", "T.GemmWarpPolicy.Square")
    return _POLICIES[GemmWarpPolicy(policy)]


def _matrix(what: str, letter: str, region: Region) -> Region:
    """An operand of two dimensions; leading ones are 1."""
    shape = region.extents
    if len(shape) < 2 or any(not (isinstance(e, int) and e == 1) for e in shape[:-2]):
        raise ShapeError(
            f"{what}: {letter} `{region.buffer.name}` has extents {shape}",
            rule="an operand has two dimensions, before them only extents 1",
            fix="slice the tile",
        )
    if any(not isinstance(e, int) for e in shape[-2:]):
        raise ShapeError(
            f"{what}: {letter} `{region.buffer.name}` has an extent known only at run time",
            rule="tiles of a product have constant shapes",
            fix="slice with constant sizes: `A[i * 64 : i * 64 + 64, :]`",
        )
    return region
