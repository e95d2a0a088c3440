"""Search over a kernel's configurations: compiled at a time, checked, timed, and the best one remembered."""

from .decorator import Tuned, autotune
from .inputs import get_autotune_inputs, set_autotune_inputs
from .record import AutotuneResult
from .search import Report, Trial
from .tuner import AutoTuner

__all__ = [
    "AutoTuner",
    "AutotuneResult",
    "Report",
    "Trial",
    "Tuned",
    "autotune",
    "get_autotune_inputs",
    "set_autotune_inputs",
]
