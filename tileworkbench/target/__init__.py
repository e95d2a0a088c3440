"""What the compiler knows of the machine: architectures, cards, latencies, occupancy and the roofline."""

from .arch import FEATURES, LARGEST_GRID, Arch
from .atoms import ATOMS, MatrixAtom, matrix_atoms
from .detect import Detection, FoundDevice, detect, survey
from .device import Device
from .devices import DEVICES
from .latency import LatencyTable
from .occupancy import Occupancy, occupancy
from .roofline import Roofline, roofline
from .rows import ARCHS
from .target import Target, target_names, target_of_found

__all__ = [
    "ARCHS",
    "ATOMS",
    "DEVICES",
    "FEATURES",
    "LARGEST_GRID",
    "Arch",
    "Detection",
    "Device",
    "FoundDevice",
    "LatencyTable",
    "MatrixAtom",
    "Occupancy",
    "Roofline",
    "Target",
    "detect",
    "matrix_atoms",
    "occupancy",
    "roofline",
    "survey",
    "target_names",
    "target_of_found",
]
