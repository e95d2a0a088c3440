"""What the compiler knows of the machine: architectures, cards, latencies, occupancy and the roofline."""

from .arch import FEATURES, Arch
from .detect import Detection, FoundDevice, detect, survey
from .device import Device
from .devices import DEVICES
from .rows import ARCHS
from .target import Target, target_names, target_of_found

__all__ = [
    "ARCHS",
    "DEVICES",
    "FEATURES",
    "Arch",
    "Detection",
    "Device",
    "FoundDevice",
    "Target",
    "detect",
    "survey",
    "target_names",
    "target_of_found",
]
