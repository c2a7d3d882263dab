"""Reader of clocks and utilisation noted over time: ``13:52:29.443, 2223 MHz, 0 %``.

A sound GPU raises its clock when work begins. One whose clock falls at that moment meets a limit
that acts with the load and not with time, as heat does: power delivery. Source: reports on GB10
boards that a weak adapter or a latched power state caps (hasso5703/dgx-spark-qwen38#8).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import ClassVar, Final

from engine.model import Finding, Severity
from engine.readers.base import Result
from engine.readers.listing import Listing, at, finding, node, result_of
from engine.units import number

_ROW: Final = re.compile(
    r"^\s{0,8}(?:\d{4}[-/]\d\d[-/]\d\d[ T])?\d{1,2}:\d\d:\d\d(?:\.\d{1,9})?[,;|\s]\s{0,8}"
    r"(\d{2,5})(?:\.\d{1,3})? ?MHz[,;|\s]\s{0,8}(\d{1,3})(?:\.\d{1,3})? ?%\s*$"
)
_LEAST: Final = 3
# Percent of the time: below the first there is no work yet, from the second on there is.
_REST: Final = 10
_LOADED: Final = 50
# Under load the clock is at most this part of the one at rest.
_FALLEN: Final = 0.6
_HIGHEST_MHZ: Final = 10_000


@dataclass(frozen=True, slots=True)
class Sample:
    """One row: SM clock (MHz), utilisation (percent)."""

    line: int
    host: str | None
    mhz: int
    busy: int


class ClockReader(Listing[Sample]):
    """Reads the rows, and says whether the clock falls as load begins."""

    triggers: ClassVar[tuple[bytes, ...]] = (b"MHz",)

    def take(self, number: int, text: str) -> bool:
        """Take a row."""
        found = _ROW.match(text)
        if found is None or int(found[1]) > _HIGHEST_MHZ or int(found[2]) > 100:
            return False
        self.kept.add(Sample(number, self.host, int(found[1]), int(found[2])))
        self.inside = True
        return True

    def judge(self, records: Sequence[Sample]) -> Result:
        """Compare the clock at rest with the clock under load, for each host."""
        hosts = dict.fromkeys(r.host for r in records)
        told = [_told(host, [r for r in records if r.host == host]) for host in hosts]
        return result_of(["clocks over time"], [one for one in told if one is not None])


def _told(host: str | None, rows: Sequence[Sample]) -> Finding | None:
    loaded = [r for r in rows if r.busy >= _LOADED]
    rest = [r for r in rows if loaded and r.busy < _REST and r.line < loaded[0].line]
    if len(rows) < _LEAST or not loaded or not rest:
        return None
    before, under = max(r.mhz for r in rest), median(r.mhz for r in loaded)
    if under > _FALLEN * before:
        return None
    lowest = min(r.mhz for r in loaded)
    return finding(
        "clocks over time",
        "clock_falls_with_load",
        Severity.HIGH,
        f"{at(host)}The clock falls from {before} MHz at rest to {number(under)} MHz (lowest "
        f"{lowest} MHz) the moment load begins, where a sound GPU raises it. Heat takes longer: "
        "power delivery caps the platform (power adapter or cable, firmware, or the BMC).",
        "Check the power adapter and its cable; take AC power away for a minute (a reboot is not "
        "enough), then update the firmware. Read the throttle reasons under load: nvidia-smi -q "
        "-d PERFORMANCE,POWER; a mask of 0 does not mean that nothing caps it.",
        line=loaded[0].line,
        cause="platform_power_cap",
        data={"clock_at_rest_mhz": before, "clock_under_load_mhz": under},
        entity=node(host),
        sources=("hasso5703/dgx-spark-qwen38#8",),
    )
