"""Reader of ``iostat -x`` (sysstat), old and new columns, with its CPU lines."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import ClassVar, Final

from engine.model import Finding, Severity
from engine.readers.base import Result
from engine.readers.listing import Listing, at, finding, node, result_of
from engine.readers.quantities import decimal, median, plural, short
from engine.units import number

_CPU: Final = re.compile(r"^\s{0,4}avg-cpu:\s{1,12}%user\s")
_HEADER: Final = re.compile(r"^\s{0,4}Device:?\s{1,24}((?:\S{2,12}\s{1,12}){3,24}%util)\s*$")
_ROW: Final = re.compile(
    r"^\s{0,4}([a-z][\w!/.-]{1,40})\s{1,24}([0-9.,]{1,16}(?:\s{1,16}[0-9.,]{1,16}){3,30})\s*$"
)
# Means in ms over the reports: ours. A disk that answers later than that keeps everything waiting.
SLOW_MS: Final = 100.0
BUSY: Final = 90.0


@dataclass(frozen=True, slots=True)
class Sample:
    """A device in one report; await in ms, the larger of read and write."""

    line: int
    host: str | None
    report: int
    device: str
    wait_ms: float
    util: float
    mb_per_s: float
    queue: float


@dataclass(frozen=True, slots=True)
class Cpu:
    """CPU shares of one report, in percent."""

    line: int
    host: str | None
    report: int
    iowait: float
    steal: float


class IostatReader(Listing[Sample | Cpu]):
    """Reads the reports; the first is since boot, and is left out where more follow."""

    triggers: ClassVar[tuple[bytes, ...]] = (b"avg-cpu:", b"%util")
    PATIENCE = 3

    _columns: tuple[str, ...] = ()
    _cpu = False
    _report = 0
    _seen: frozenset[str] = frozenset()

    def take(self, number: int, text: str) -> bool:
        """Take a line of ``iostat``."""
        if _CPU.match(text):
            self._cpu, self.inside = True, True
            return True
        header = _HEADER.match(text)
        if header:
            self._columns = tuple(header[1].split())
            self._report, self.inside, self._seen = self._report + 1, True, frozenset()
            return True
        if not self.inside:
            return False
        if self._cpu:
            return self._shares(number, text)
        row = _ROW.match(text)
        if row is None or not self._columns:
            return text.startswith("Linux ")
        cells = row[2].split()
        if len(cells) != len(self._columns):
            return False
        values = dict(zip(self._columns, (decimal(c) or 0.0 for c in cells), strict=True))
        self._keep(number, short(row[1]), values)
        return True

    def judge(self, records: Sequence[Sample | Cpu]) -> Result:
        """Say which devices are slow or full of work, and what the CPU waits for."""
        found = [*_devices(_recent([r for r in records if isinstance(r, Sample)]))]
        found += _cpu(_recent([r for r in records if isinstance(r, Cpu)]))
        return result_of(["iostat"], found)

    def _shares(self, number: int, text: str) -> bool:
        cells = [decimal(c) for c in text.split()]
        if len(cells) != 6 or any(c is None for c in cells):
            return False
        self._cpu = False
        iowait, steal = cells[3] or 0.0, cells[4] or 0.0
        # The CPU line stands before its report's devices.
        self.kept.add(Cpu(number, self.host, self._report + 1, iowait, steal))
        return True

    def _keep(self, number: int, device: str, values: dict[str, float]) -> None:
        waits = [values[c] for c in ("r_await", "w_await", "await") if c in values]
        rates = [
            values.get(kb, values.get(mb, 0.0) * 1024)
            for kb, mb in (("rkB/s", "rMB/s"), ("wkB/s", "wMB/s"))
        ]
        self.kept.add(
            Sample(
                number,
                self.host,
                self._report,
                device,
                max(waits, default=0.0),
                values.get("%util", 0.0),
                sum(rates) / 1000,
                values.get("aqu-sz", values.get("avgqu-sz", 0.0)),
            )
        )


def _recent(records: Sequence[Sample] | Sequence[Cpu]) -> list[Sample | Cpu]:
    """Leave out the first report of each host where there are more."""
    hosts: dict[str | None, set[int]] = {}
    for one in records:
        hosts.setdefault(one.host, set()).add(one.report)
    return [
        one for one in records if len(hosts[one.host]) == 1 or one.report != min(hosts[one.host])
    ]


def _devices(records: Sequence[Sample | Cpu]) -> Iterable[Finding]:
    devices: dict[tuple[str | None, str], list[Sample]] = {}
    for one in records:
        if isinstance(one, Sample) and not one.device.startswith(("loop", "ram", "sr", "zram")):
            devices.setdefault((one.host, one.device), []).append(one)
    bad = False
    for (host, device), samples in devices.items():
        wait = median([s.wait_ms for s in samples])
        util = sum(s.util for s in samples) / len(samples)
        if wait < SLOW_MS or util < 20:
            continue
        bad = True
        yield finding(
            "iostat",
            "device_slow",
            Severity.MEDIUM,
            f"{at(host)}{device}: a request takes {number(round(wait, 1))} ms (busy "
            f"{number(round(util))} %, {number(round(median([s.queue for s in samples]), 1))} in "
            "the queue): it cannot keep up.",
            f"smartctl -a on {device}, the RAID's state (a rebuild?), and which process does the "
            "I/O (pidstat -d 1, iotop).",
            line=samples[0].line,
            cause="storage_slow",
            data={
                "device": device,
                "await_ms": wait,
                "util_percent": round(util, 1),
                "mbs": round(median([s.mb_per_s for s in samples]), 2),
            },
            entity=node(host),
            sources=("sysstat iostat(1)",),
        )
    if devices and not bad:
        worst = max((s for held in devices.values() for s in held), key=lambda s: s.util)
        yield finding(
            "iostat",
            "devices",
            Severity.INFO,
            f"{at(worst.host)}{plural(len(devices), 'device')}, none slow: busiest {worst.device} "
            f"with {number(round(worst.util))} % and {number(round(worst.wait_ms, 2))} ms a "
            "request.",
            "Busy is not full on an NVMe drive or a RAID: the time of a request counts. Network "
            "file systems are not in iostat (nfsiostat, lctl).",
            line=worst.line,
            data={
                "device": worst.device,
                "await_ms": worst.wait_ms,
                "util_percent": worst.util,
                "mbs": round(worst.mb_per_s, 2),
            },
            entity=node(worst.host),
            sources=("sysstat iostat(1)",),
        )


def _cpu(records: Sequence[Sample | Cpu]) -> Iterable[Finding]:
    shares = [one for one in records if isinstance(one, Cpu)]
    if not shares:
        return
    iowait, steal = median([c.iowait for c in shares]), median([c.steal for c in shares])
    if steal >= 10:
        yield finding(
            "iostat",
            "cpu_steal",
            Severity.MEDIUM,
            f"{at(shares[0].host)}The hypervisor takes {number(round(steal, 1))} % of this "
            "machine's CPU time for others (steal).",
            "Ask for dedicated cores, or move the job to another host.",
            line=shares[0].line,
            cause="cpu_starved",
            data={"steal_percent": steal},
            entity=node(shares[0].host),
            sources=("sysstat iostat(1)",),
        )
    if iowait >= 10:
        yield finding(
            "iostat",
            "cpu_iowait",
            Severity.LOW,
            f"{at(shares[0].host)}{number(round(iowait, 1))} % of CPU time is idle while an I/O is "
            "under way: tasks wait for local disks.",
            "The devices above show which; pidstat -d 1 which process.",
            line=shares[0].line,
            data={"iowait_percent": iowait},
            entity=node(shares[0].host),
            sources=("sysstat iostat(1)",),
        )
