"""Reader of ``nvidia-smi dmon``: columns by their header, rows over time.

Without a Time column rows are taken to be one second apart, the default.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Mapping, Sequence
from typing import ClassVar, Final

from engine.readers.base import Context, Result
from engine.readers.listing import Kept, Listing
from engine.readers.smi.course import UNCORRECTED, Course, settle
from engine.readers.smi.moments import Moment, monitor_time
from engine.readers.smi.monitor_findings import behind, breaks, errors_grown, heated
from engine.readers.smi.report import report
from engine.readers.smi.state import GpuState

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
MAX_GPUS: Final = 512
# Of more GPUs than stand in one machine, only the newest rows are kept.
MAX_WATCHED: Final = 32
FEW_MOMENTS: Final = 16


class SmiMonitorReader(Listing[Course]):
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
        self, context: Context, host: str | None = None, kept: Kept[Course] | None = None
    ) -> None:
        super().__init__(context, host, Kept(MAX_GPUS) if kept is None else kept)
        self._columns: list[str] = []
        self._gpus: dict[int, Course] = {}

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

    def judge(self, records: Sequence[Course]) -> Result:
        """Say what the rows show, of each GPU and beside each other."""
        states = [one.state for one in records]
        moments = {id(one.state): list(one.moments) for one in records}
        extra = [*heated(records), *errors_grown(records)]
        for one in records:
            settle(one.state, list(one.moments))
        extra += [*behind(records), *breaks(records)]
        return report(states, self.context, kind="nvidia_smi_dmon", extra=extra, moments=moments)

    def _row(self, number: int, row: Mapping[str, str]) -> None:
        index = int(row["gpu"])
        course = self._gpus.get(index)
        if course is None:
            course = Course(GpuState(index=index, host=self.host, line=number))
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
            course.first_errors = state.numbers.get(UNCORRECTED)
        at = monitor_time(row.get("date"), row["time"]) if "time" in row else float(course.rows)
        course.rows += 1
        if row.get("tviol") not in (None, "0", "-"):
            course.hot_rows += 1
            course.first_hot = course.first_hot or number
        if at is not None:
            course.moments.append(Moment(at, dict(state.numbers)))
