"""The rows of one GPU in a monitor's output, and which readings stand for all of them."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Final

from engine.readers.smi.moments import Moment
from engine.readers.smi.state import GpuState

UNCORRECTED: Final = "ecc_uncorrectable_aggregate_count"
MAX_MOMENTS: Final = 300
_UTIL: Final = "gpu_util_percent"
# Of these the usual value while work runs counts, of temperatures the highest.
_USUAL: Final = (
    _UTIL,
    "mem_util_percent",
    "power_w",
    "sm_clock_mhz",
    "mem_clock_mhz",
    "fb_used_mib",
)
_HIGHEST: Final = ("gpu_temp_c", "memory_temp_c")
# Share of the rows with work from which a GPU counts as one at work.
_AT_WORK: Final = 1 / 3


@dataclass(slots=True)
class Course:
    """Rows of one GPU: the newest kept, extremes of all."""

    state: GpuState
    moments: deque[Moment] = field(default_factory=lambda: deque(maxlen=MAX_MOMENTS))
    rows: int = 0
    hot_rows: int = 0
    first_errors: float | None = None
    first_hot: int | None = None


def settle(state: GpuState, rows: Sequence[Moment]) -> None:
    """Let the state of a GPU stand for all its rows, not for the last one alone."""
    if len(rows) < 2:
        return
    work = [m for m in rows if m.numbers.get(_UTIL, 0.0) > 0]
    some = work if len(work) >= _AT_WORK * len(rows) else rows
    for names, of, choose in ((_USUAL, some, median), (_HIGHEST, rows, max)):
        for name in names:
            values = [m.numbers[name] for m in of if name in m.numbers]
            if values:
                state.numbers[name] = choose(values)
