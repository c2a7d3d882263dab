"""Reader of ``dcgmi stats`` (job or process statistics): events, slowdowns and clocks of a run.

Source: NVIDIA/DCGM dcgmi/ProcessStats.cpp 2.1 to 4.6.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Final

from engine.model import Finding, Severity
from engine.readers.base import Context, Result
from engine.readers.dcgmi.diag_result import entity_of
from engine.readers.listing import Kept, Listing, finding, result_of
from engine.readers.quantities import decimal

_CELLS: Final = re.compile(r"^\s{0,8}\|(?P<left>[^|]{1,48})\|(?P<right>.{0,256}?)\|?\s*$")
_GPU: Final = re.compile(r"^\s{0,8}\|\s?GPU ID: ?(?P<id>\d{1,5})\s*\|")
_SECTION: Final = re.compile(r"^\s{0,8}[+|]-{2,8} {1,4}[A-Z][A-Za-z ]{2,30} {1,4}-{2,}")
_RULE: Final = re.compile(r"^\s{0,8}[+|][-=+]{3,}")
_NUMBER: Final = re.compile(r"(?:Avg: ?)?(-?[0-9]{1,15}(?:\.[0-9]{1,6})?)")
# Row: key. Slowdowns are shares of the time of the run, in percent.
_ROWS: Final = {
    "Double Bit ECC Errors": "dbe",
    "Single Bit ECC Errors": "sbe",
    "Critical XID Errors": "xids",
    "PCIe Replay Warnings": "replays",
    "Due to - Power (%)": "power_percent",
    "- Thermal (%)": "thermal_percent",
    "- Reliability (%)": "reliability_percent",
    "- Board Limit (%)": "board_limit_percent",
    "- Sync Boost (%)": "sync_boost_percent",
    "- Low Utilization (%)": "low_utilization_percent",
    "SM Utilization (%)": "sm_utilization_percent",
    "SM Clock (MHz)": "sm_clock_mhz",
    "Power Usage (Watts)": "power_w",
}
# A run that lost less than this share of its time (percent) to heat is not worth a word.
_LOST: Final = 1.0


@dataclass(slots=True)
class GpuStats:
    """Figures of one GPU over one run."""

    line: int
    host: str | None
    gpu: int | None
    values: dict[str, float] = field(default_factory=dict)


class StatsReader(Listing[GpuStats]):
    """Reads the statistics tables."""

    triggers: ClassVar[tuple[bytes, ...]] = (b"|-----  Execution Stats", b"| GPU ID: ")
    PATIENCE: ClassVar[int] = 2

    def __init__(
        self, context: Context, host: str | None = None, kept: Kept[GpuStats] | None = None
    ) -> None:
        super().__init__(context, host, Kept(1_024) if kept is None else kept)
        self._gpu: int | None = None
        self._one: GpuStats | None = None

    def take(self, number: int, text: str) -> bool:
        """Take a line of the tables."""
        gpu = _GPU.match(text)
        if gpu is not None:
            self._gpu, self._one = int(gpu["id"]), None
            self.inside = True
            return True
        if "Execution Stats" in text and _SECTION.match(text):
            self._one = GpuStats(number, self.host, self._gpu)
            if not self.kept.add(self._one):
                self._one = None
            self.inside = True
            return True
        if not self.inside:
            return False
        if _RULE.match(text) or _SECTION.match(text):
            return True
        cells = _CELLS.match(text)
        if cells is None:
            return False
        key = _ROWS.get(cells["left"].strip())
        found = _NUMBER.match(cells["right"].strip())
        if key and found and self._one is not None:
            value = decimal(found[1])
            if value is not None:
                self._one.values.setdefault(key, value)
        return True

    def judge(self, records: Sequence[GpuStats]) -> Result:
        """Say what went wrong in the run."""
        found = [f for one in records for f in _findings(one)]
        if not found:
            found = [
                finding(
                    "dcgmi_stats",
                    "summary",
                    Severity.INFO,
                    f"Statistics of {len(records)} GPU(s): no uncorrectable ECC error, no critical "
                    "Xid and no time lost to heat is recorded.",
                    "Nothing. They do not tell why a run was slow without such events.",
                    line=records[0].line,
                    data={"gpus": len(records)} | dict(records[0].values),
                )
            ]
        return result_of(["dcgmi_stats"], found)


def _findings(one: GpuStats) -> Iterator[Finding]:
    who = "the GPU" if one.gpu is None else f"GPU {one.gpu}"
    values = one.values

    def make(id_: str, severity: Severity, says: str, action: str, cause: str | None) -> Finding:
        return finding(
            "dcgmi_stats",
            id_,
            severity,
            says,
            action,
            line=one.line,
            cause=cause,
            data=dict(values),
            entity=entity_of(one.gpu, one.host),
        )

    if values.get("dbe", 0) > 0:
        yield make(
            "dbe",
            Severity.CRITICAL,
            f"{values['dbe']:.0f} uncorrectable (double-bit) ECC error(s) on {who} in this run.",
            "Drain and reset the GPU, then nvidia-smi -q -d ROW_REMAPPER,PAGE_RETIREMENT; replace "
            "it if a remap failed.",
            "ecc_uncorrectable",
        )
    if values.get("xids", 0) > 0:
        yield make(
            "xids",
            Severity.HIGH,
            f"{values['xids']:.0f} critical Xid(s) on {who} in this run; the table does not say "
            "which.",
            "dmesg -T | grep -i xid names them.",
            None,
        )
    if values.get("thermal_percent", 0) >= _LOST:
        yield make(
            "thermal",
            Severity.HIGH,
            f"{who} lost {values['thermal_percent']:g} % of this run to heat.",
            "Check cooling; nvidia-smi -q -d TEMPERATURE,PERFORMANCE under load.",
            "thermal_slowdown_sw",
        )
