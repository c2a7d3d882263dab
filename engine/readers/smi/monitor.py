"""Reader of ``nvidia-smi dmon``: columns by their header, rows over time.

Without a Time column rows are taken to be one second apart, the default.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import ClassVar, Final

from engine.model import Finding, Severity
from engine.readers.base import Context, Result
from engine.readers.listing import Kept, Listing, finding
from engine.readers.smi.concerns import CONCERNS
from engine.readers.smi.moments import Moment, monitor_time
from engine.readers.smi.report import report
from engine.readers.smi.state import GpuState
from engine.units import number

_NUMBER: Final = re.compile(r"^-?[0-9]{1,12}(?:\.[0-9]{1,6})?$")
_COLUMNS: Final = {
    "pwr": "power_w",
    "gtemp": "gpu_temp_c",
    "temp": "gpu_temp_c",
    "mtemp": "memory_temp_c",
    "sm": "gpu_util_percent",
    "mem": "mem_util_percent",
    "mclk": "mem_clock_mhz",
    "pclk": "sm_clock_mhz",
    "fb": "fb_used_mib",
    "sbecc": "ecc_correctable_aggregate_count",
    "dbecc": "ecc_uncorrectable_aggregate_count",
    "pci": "pcie_replay_count",
    "pviol": "power_violation_percent",
    "tviol": "thermal_violation_count",
    # --gpm-metrics, in percent.
    "gract": "gr_engine_active_percent",
    "smutil": "sm_active_percent",
    "smocc": "sm_occupancy_percent",
    "mmaact": "tensor_active_percent",
    "dram": "dram_active_percent",
}
_UNCORRECTED: Final = "ecc_uncorrectable_aggregate_count"
# GPUs with this much work (percent) are compared with each other.
_WORKING: Final = 50.0
# A clock below this share of the fastest sibling's is behind.
_BEHIND: Final = 0.75
MAX_GPUS: Final = 512
MAX_MOMENTS: Final = 300
# Of more GPUs than stand in one machine, only the newest rows are kept.
MAX_WATCHED: Final = 32
FEW_MOMENTS: Final = 16


@dataclass(slots=True)
class _Course:
    """Rows of one GPU: the newest kept, extremes of all."""

    state: GpuState
    moments: deque[Moment] = field(default_factory=lambda: deque(maxlen=MAX_MOMENTS))
    rows: int = 0
    hot_rows: int = 0
    first_errors: float | None = None
    first_hot: int | None = None


class SmiMonitorReader(Listing[_Course]):
    """Reads the device monitor."""

    triggers: ClassVar[tuple[bytes, ...]] = (
        b"# gpu ",
        b"#gpu",
        b"gpu    pwr",
        b"gpu   pwr",
        b"#Time  ",
        b"#Date  ",
    )
    PATIENCE: ClassVar[int] = 2

    def __init__(
        self, context: Context, host: str | None = None, kept: Kept[_Course] | None = None
    ) -> None:
        super().__init__(context, host, Kept(MAX_GPUS) if kept is None else kept)
        self._columns: list[str] = []
        self._gpus: dict[int, _Course] = {}

    def take(self, number: int, text: str) -> bool:
        """Take a header, its line of units, or a row."""
        line = text.replace(",", " ").strip()  # ``--format csv`` puts commas between the columns
        if line.startswith("#"):
            words = line.lstrip("# ").lower().split()
            if "gpu" in words and "pid" not in words and len(set(words) & set(_COLUMNS)) > 1:
                self._columns = words
                self.inside = True
                return True
            return self.inside and "idx" in words
        if not self.inside:
            return False
        cells = line.split()
        if len(cells) != len(self._columns):
            return False
        row = dict(zip(self._columns, cells, strict=True))
        if not re.fullmatch(r"[0-9]{1,3}", row["gpu"]):
            return False
        self._row(number, row)
        return True

    def judge(self, records: Sequence[_Course]) -> Result:
        """Say what the rows show, of each GPU and beside each other."""
        states = [one.state for one in records]
        moments = {id(one.state): list(one.moments) for one in records}
        extra = [*_heated(records), *_behind(records), *_errors_grown(records)]
        return report(states, self.context, kind="nvidia_smi_dmon", extra=extra, moments=moments)

    def _row(self, number: int, row: Mapping[str, str]) -> None:
        index = int(row["gpu"])
        course = self._gpus.get(index)
        if course is None:
            course = _Course(GpuState(index=index, host=self.host, line=number))
            if len(self.kept.items) >= MAX_WATCHED:
                course.moments = deque(maxlen=FEW_MOMENTS)
            if self.kept.add(course):
                self._gpus[index] = course
        state = course.state
        for column, cell in row.items():
            name = _COLUMNS.get(column)
            if name is not None and _NUMBER.match(cell):
                state.numbers[name] = float(cell)
        if course.first_errors is None:
            course.first_errors = state.numbers.get(_UNCORRECTED)
        at = monitor_time(row.get("date"), row["time"]) if "time" in row else float(course.rows)
        course.rows += 1
        if row.get("tviol") not in (None, "0", "-"):
            course.hot_rows += 1
            course.first_hot = course.first_hot or number
        if at is not None:
            course.moments.append(Moment(at, dict(state.numbers)))


def _heated(records: Sequence[_Course]) -> Iterator[Finding]:
    for one in records:
        if not one.hot_rows:
            continue
        temp = one.state.numbers.get("gpu_temp_c")
        at = f", die at {number(temp)} °C in the last row" if temp is not None else ""
        yield finding(
            "nvidia_smi_dmon",
            "thermal_violation",
            Severity.HIGH,
            f"{one.state.label}: thermal violation (tviol) in {one.hot_rows} of {one.rows} "
            f"row(s){at}. The driver or the hardware lowers the clocks because of heat.",
            "Check fans, airflow, coolant and inlet; nvidia-smi -q -d TEMPERATURE,PERFORMANCE "
            "tells which limit is reached.",
            line=one.first_hot,
            cause="thermal_slowdown_sw",
            data={"thermal_violation_rows": one.hot_rows, "rows": one.rows},
            entity=one.state.entity,
            sources=("nvidia-smi manual page, dmon",),
        )


def _errors_grown(records: Sequence[_Course]) -> Iterator[Finding]:
    """Uncorrectable errors counted while the monitor ran; the column counts all of the past."""
    for one in records:
        now, before = one.state.numbers.get(_UNCORRECTED), one.first_errors
        if now is None or before is None or now <= before:
            continue
        concern = CONCERNS["ecc_uncorrected"]
        yield finding(
            "nvidia_smi_dmon",
            concern.id,
            concern.severity,
            f"{one.state.label}: {number(now - before)} uncorrectable ECC error(s) while the "
            f"monitor ran ({number(now)} in all). The work that used that memory died or computed "
            "with lost data.",
            concern.action,
            line=one.state.line,
            cause=concern.cause,
            data={"ecc_uncorrectable_new": int(now - before)},
            entity=one.state.entity,
            sources=("nvidia-smi manual page, dmon",),
        )


def _behind(records: Sequence[_Course]) -> Iterator[Finding]:
    """GPUs under load whose clock is far below that of their siblings under load."""
    clocks = {}
    for one in records:
        busy = [
            m.numbers["sm_clock_mhz"]
            for m in one.moments
            if m.numbers.get("gpu_util_percent", 0) >= _WORKING and "sm_clock_mhz" in m.numbers
        ]
        if busy:
            clocks[id(one)] = median(busy)
    if len(clocks) < 2:
        return
    best = max(clocks.values())
    for one in records:
        clock = clocks.get(id(one))
        if clock is None or one.hot_rows or clock >= _BEHIND * best:
            continue
        yield finding(
            "nvidia_smi_dmon",
            "clock_behind",
            Severity.MEDIUM,
            f"{one.state.label} runs at {number(clock)} MHz under load while a sibling under load "
            f"reaches {number(best)} MHz. In synchronous training the others wait for it.",
            "Read why: nvidia-smi -q -d PERFORMANCE,CLOCK,POWER -i "
            f"{one.state.index if one.state.index is not None else 'INDEX'} (clock event "
            "reasons, power limit, a clock lock).",
            line=one.state.line,
            data={"sm_clock_mhz": clock, "sibling_sm_clock_mhz": best},
            entity=one.state.entity,
        )
