"""Operand fragments of whole block tiles: one atom repeated over registers, then over warps.

Warps (or warpgroups) are numbered with M fastest: unit = unit_m + units_m * unit_n. Each owns a contiguous block of the
tile. Registers of one instruction are consecutive; instructions follow row-major over (M, N), (M, K) or (N, K), K and N
fastest. Operands are replicated over the units that need the same rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cache

from tileworkbench.errors import LayoutError
from tileworkbench.layout.atoms import Atom, Family
from tileworkbench.layout.fragment import Fragment
from tileworkbench.layout.mfma import mfma_atoms
from tileworkbench.layout.mma import mma_atoms
from tileworkbench.layout.mma_sp import metadata_rows, mma_sp_atoms
from tileworkbench.layout.transform import repeat, replicate, tile
from tileworkbench.layout.wgmma import (
    wgmma_a_fragment,
    wgmma_accumulator_fragment,
    wgmma_atoms,
    wgmma_metadata_fragment,
)


@cache
def find_atoms(arch: str, a_dtype: str, b_dtype: str, c_dtype: str, family: Family | None = None) -> tuple[Atom, ...]:
    """The instructions of `arch` for these dtypes, greatest K first, then greatest M and N; of all dense families when
    none is named."""
    wanted = (a_dtype, b_dtype, c_dtype)
    rows = [
        atom
        for atom in _rows(wanted, family)
        if (atom.a_dtype, atom.b_dtype, atom.c_dtype) == wanted and atom.supports(arch)
    ]
    return tuple(sorted(rows, key=lambda atom: (-atom.k, -atom.m, -atom.n)))


def _rows(dtypes: tuple[str, str, str], family: Family | None) -> tuple[Atom, ...]:
    """The rows of one family (of all dense ones: None). Only what is asked for is built: fragments take time."""
    makers: dict[str, Callable[[], Iterable[Atom]]] = {
        "wgmma": lambda: wgmma_atoms(*dtypes),
        "mma": mma_atoms,
        "mfma": mfma_atoms,
    }
    if family == "mma.sp":
        return mma_sp_atoms()
    return tuple(atom for name, make in makers.items() if family in (None, name) for atom in make())


def _spread(fragment: Fragment, shape: Sequence[int], units_m: int, units_n: int, along: tuple[bool, bool]) -> Fragment:
    """`fragment` tiled to `shape`; dimension 0 is cut over the M units and 1 (or 0, for B) over the N units."""
    splits = [units_m if along[0] else units_n, units_n if all(along) else 1]
    for dim in range(2):
        if shape[dim] % (fragment.shape[dim] * splits[dim]):
            raise LayoutError(
                f"a tile of {tuple(shape)} over {units_m} × {units_n} warps or warpgroups",
                rule=f"extent {dim} is a multiple of {fragment.shape[dim]} × {splits[dim]}",
            )
    times = [shape[dim] // (fragment.shape[dim] * splits[dim]) for dim in range(2)]
    own = tile(fragment, times)
    own = repeat(own, 0, units_m, "thread") if along[0] else replicate(own, units_m)
    if not along[1]:
        return replicate(own, units_n)
    return repeat(own, 1 if along[0] else 0, units_n, "thread")


@cache
def accumulator(atom: Atom, shape: tuple[int, int], units_m: int, units_n: int) -> Fragment:
    """C (M, N) of a block; units are warps, for wgmma warpgroups."""
    return _spread(atom.c, shape, units_m, units_n, (True, True))


@cache
def operand_a(atom: Atom, shape: tuple[int, int], units_m: int, units_n: int) -> Fragment:
    """A (M, K) of a block, replicated over the N units."""
    if atom.a is None:
        raise LayoutError(f"{atom.instruction} takes A from shared memory only")
    return _spread(atom.a, shape, units_m, units_n, (True, False))


@cache
def metadata(bits: int, width: int, shape: tuple[int, int], units_m: int, units_n: int) -> Fragment:
    """Sparse metadata (M, elements of `width` bits) of a block for operands of `bits` bits, replicated over the N
    units. Elements that speak of a whole row of the instruction are held whole."""
    return _spread(metadata_rows(bits, width), shape, units_m, units_n, (True, False))


@cache
def wgmma_metadata(bits: int, width: int, shape: tuple[int, int], groups_m: int, groups_n: int) -> Fragment:
    """The same for warpgroups, each in instructions of 64 rows."""
    return _spread(wgmma_metadata_fragment(bits, width), shape, groups_m, groups_n, (True, False))


@cache
def operand_b(atom: Atom, shape: tuple[int, int], units_m: int, units_n: int) -> Fragment:
    """B (N, K) of a block, replicated over the M units."""
    if atom.b is None:
        raise LayoutError(f"{atom.instruction} takes B from shared memory only")
    return _spread(atom.b, shape, units_m, units_n, (False, True))


@cache
def wgmma_accumulator(
    shape: tuple[int, int], warpgroups_m: int, warpgroups_n: int = 1, n_inst: int | None = None
) -> Fragment:
    """D (M, N) of a block in instructions of N = n_inst, by default the whole width of one warpgroup."""
    n = n_inst or shape[1] // warpgroups_n
    return _spread(wgmma_accumulator_fragment(n), shape, warpgroups_m, warpgroups_n, (True, True))


@cache
def wgmma_operand_a(dtype: str, shape: tuple[int, int], warpgroups_m: int, warpgroups_n: int = 1) -> Fragment:
    """A (M, K) of a block from registers."""
    return _spread(wgmma_a_fragment(dtype), shape, warpgroups_m, warpgroups_n, (True, False))
