"""What answers one import path of TileLang."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Page:
    """One module: `names` with their places; `rest` a module of this package that answers every other name; `star`
    what `import *` gives; `needs` names that cannot work here, with the reason; `foreign` the reason for all others."""

    names: Mapping[str, str] = field(default_factory=dict)
    rest: str = ""
    star: tuple[str, ...] | None = None
    needs: Mapping[str, str] = field(default_factory=dict)
    foreign: str = ""


COMPILER = "TileLang's own compiler, whose passes and intermediate form are not those of this one"
TVM = "TVM's intermediate form, which this compiler does not have"
EMITTERS = "matrix instructions that are not written by hand here (T.gemm chooses and lays out the instruction)"

BLACKWELL = "Blackwell tensor memory (sm_100), which no target here has yet"
OTHER_HARDWARE = {
    "TCGEN05TensorCoreIntrinEmitter": BLACKWELL,
    "TCGEN05DescriptorParams": BLACKWELL,
    "compute_umma_descriptor": BLACKWELL,
    "TensorCoreIntrinEmitterSM120": "block-scaled products (sm_120), which no target here has yet",
}  # names on pages of `foreign` ones, with a reason of their own


def at(module: str, *names: str, **renamed: str) -> dict[str, str]:
    """Names that live in one module of this package, some under another name there."""
    return {name: f"{module}:{name}" for name in names} | {new: f"{module}:{old}" for new, old in renamed.items()}
