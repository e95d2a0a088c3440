"""Which matrix instructions each architecture has. Shapes and dtypes only: where the elements live is the layout
room's. NVIDIA rows: PTX manual, mma, mma.sp and wgmma; AMD rows: CDNA 2, 3 and 4 instruction-set manuals.
"""

from __future__ import annotations

from dataclasses import dataclass

from .arch import Arch

_SM75_UP = ("sm_75", "sm_80", "sm_86", "sm_89", "sm_90", "sm_90a", "sm_100a", "sm_120a")
_SM80_UP = _SM75_UP[1:]
_SM89_UP = _SM75_UP[3:]
_SM90A = ("sm_90a",)
_CDNA = ("gfx90a", "gfx942", "gfx950")
_CDNA3_UP = ("gfx942", "gfx950")


@dataclass(frozen=True)
class MatrixAtom:
    """One instruction: `m` x `n` x `k`, operand and accumulator dtypes, the lanes that issue it together. `n` is the
    largest where the instruction has a choice (wgmma: any multiple of 8, of 16 for int8)."""

    name: str
    engine: str  # "mma", "wgmma" or "mfma"
    m: int
    n: int
    k: int
    a: str
    b: str
    acc: str
    lanes: int
    archs: tuple[str, ...]

    @property
    def flops(self) -> int:
        """Floating-point operations of one instruction, 2 m n k."""
        return 2 * self.m * self.n * self.k


def _mma(m: int, n: int, k: int, dtype: str, acc: str, archs: tuple[str, ...], b: str | None = None) -> MatrixAtom:
    operands = dtype if b in (None, dtype) else f"{dtype}_{b}"
    return MatrixAtom(f"mma.m{m}n{n}k{k}.{operands}.{acc}", "mma", m, n, k, dtype, b or dtype, acc, 32, archs)


def _wgmma(k: int, dtype: str, acc: str, b: str | None = None) -> MatrixAtom:
    operands = dtype if b in (None, dtype) else f"{dtype}_{b}"
    return MatrixAtom(f"wgmma.m64k{k}.{operands}.{acc}", "wgmma", 64, 256, k, dtype, b or dtype, acc, 128, _SM90A)


def _mfma(mn: int, k: int, dtype: str, acc: str, archs: tuple[str, ...], b: str | None = None) -> MatrixAtom:
    operands = dtype if b in (None, dtype) else f"{dtype}_{b}"
    return MatrixAtom(f"mfma.{mn}x{mn}x{k}.{operands}.{acc}", "mfma", mn, mn, k, dtype, b or dtype, acc, 64, archs)


_FP8 = ("e4m3", "e5m2")
_FP8_PAIRS = tuple((a, b) for a in _FP8 for b in _FP8)

ATOMS: tuple[MatrixAtom, ...] = (
    _mma(16, 8, 8, "f16", "f32", _SM75_UP),
    _mma(16, 8, 8, "f16", "f16", _SM75_UP),
    _mma(16, 8, 16, "f16", "f32", _SM80_UP),
    _mma(16, 8, 16, "f16", "f16", _SM80_UP),
    _mma(16, 8, 8, "bf16", "f32", _SM80_UP),
    _mma(16, 8, 16, "bf16", "f32", _SM80_UP),
    _mma(16, 8, 4, "tf32", "f32", _SM80_UP),
    _mma(16, 8, 8, "tf32", "f32", _SM80_UP),
    _mma(8, 8, 16, "s8", "s32", _SM75_UP),
    _mma(8, 8, 16, "u8", "s32", _SM75_UP),
    *(_mma(16, 8, k, a, "s32", _SM80_UP, b) for k in (16, 32) for a in ("s8", "u8") for b in ("s8", "u8")),
    _mma(8, 8, 4, "f64", "f64", _SM80_UP),
    *(_mma(16, 8, 32, a, "f32", _SM89_UP, b) for a, b in _FP8_PAIRS),
    _wgmma(16, "f16", "f32"),
    _wgmma(16, "f16", "f16"),
    _wgmma(16, "bf16", "f32"),
    _wgmma(8, "tf32", "f32"),
    *(_wgmma(32, a, acc, b) for a, b in _FP8_PAIRS for acc in ("f32", "f16")),
    *(_wgmma(32, a, "s32", b) for a in ("s8", "u8") for b in ("s8", "u8")),
    _mfma(16, 16, "f16", "f32", _CDNA),
    _mfma(32, 8, "f16", "f32", _CDNA),
    _mfma(16, 16, "bf16", "f32", _CDNA),
    _mfma(32, 8, "bf16", "f32", _CDNA),
    _mfma(16, 4, "f32", "f32", _CDNA),
    _mfma(32, 2, "f32", "f32", _CDNA),
    _mfma(16, 4, "f64", "f64", _CDNA),
    _mfma(16, 16, "s8", "s32", ("gfx90a",)),
    _mfma(32, 8, "s8", "s32", ("gfx90a",)),
    _mfma(16, 32, "s8", "s32", _CDNA3_UP),
    _mfma(32, 16, "s8", "s32", _CDNA3_UP),
    _mfma(16, 8, "xf32", "f32", ("gfx942",)),
    _mfma(32, 4, "xf32", "f32", ("gfx942",)),
    *(_mfma(mn, k, a, "f32", _CDNA3_UP, b) for mn, k in ((16, 32), (32, 16)) for a, b in _FP8_PAIRS),
    _mfma(16, 32, "f16", "f32", ("gfx950",)),
    _mfma(32, 16, "f16", "f32", ("gfx950",)),
    _mfma(16, 32, "bf16", "f32", ("gfx950",)),
    _mfma(32, 16, "bf16", "f32", ("gfx950",)),
    _mfma(16, 64, "s8", "s32", ("gfx950",)),
    _mfma(32, 32, "s8", "s32", ("gfx950",)),
)


def matrix_atoms(arch: Arch, engine: str | None = None) -> tuple[MatrixAtom, ...]:
    """The matrix instructions of an architecture, in the table's order; of one engine if given."""
    return tuple(atom for atom in ATOMS if arch.name in atom.archs and engine in (None, atom.engine))
