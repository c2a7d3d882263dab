"""Reader of ``vmstat 1`` (procps-ng): swapping, stolen time, waiting tasks."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import ClassVar, Final

from engine.model import Finding, Severity
from engine.readers.base import Result
from engine.readers.listing import Listing, at, finding, node, result_of
from engine.readers.quantities import median, plural
from engine.units import number

_HEADER: Final = re.compile(
    r"^\s{0,4}r\s{1,6}b\s{1,10}swpd\s{1,12}free\s.{4,60}?\bsi\s{1,8}so\s.{4,60}?\bus\s{1,4}sy\s"
)
_ROW: Final = re.compile(r"^\s{0,8}[0-9]{1,6}(?:\s{1,16}[0-9]{1,16}){15,17}\s*$")
_DASHES: Final = re.compile(r"^\s{0,4}procs -{3,20}memory-")
# KiB/s moved to or from swap, percent of CPU time stolen, tasks in state D: ours.
SWAPPING: Final = 1_024.0
STOLEN: Final = 10.0
BLOCKED: Final = 8
_SOURCES: Final = ("procps-ng vmstat(8)",)


@dataclass(frozen=True, slots=True)
class Second:
    """One line; ``swap_kib`` is in and out together, in KiB/s, the shares in percent."""

    line: int
    host: str | None
    running: int
    blocked: int
    swap_kib: int
    idle: int
    wait: int
    stolen: int


class VmstatReader(Listing[Second]):
    """Reads the lines; the first is since boot, and is left out where more follow."""

    triggers: ClassVar[tuple[bytes, ...]] = (b"procs ---", b"swpd ")
    PATIENCE = 1

    _columns: tuple[str, ...] = ()

    def take(self, number: int, text: str) -> bool:
        """Take a line of ``vmstat``."""
        if _DASHES.match(text):
            self.inside = True
            return True
        if _HEADER.match(text):
            self._columns, self.inside = tuple(text.split()), True
            return True
        if not self.inside or not _ROW.match(text):
            return False
        cells = dict(zip(self._columns, map(int, text.split()), strict=False))
        if {"r", "b", "si", "so", "id", "wa"} <= cells.keys():
            self.kept.add(
                Second(
                    number,
                    self.host,
                    cells["r"],
                    cells["b"],
                    cells["si"] + cells["so"],
                    cells["id"],
                    cells["wa"],
                    cells.get("st", 0),
                )
            )
        return True

    def judge(self, records: Sequence[Second]) -> Result:
        """Say what holds the host up."""
        found: list[Finding] = []
        for host in dict.fromkeys(r.host for r in records):
            own = [r for r in records if r.host == host]
            found += _judged(host, own[1:] if len(own) > 1 else own, since_boot=len(own) == 1)
        return result_of(["vmstat"], found)


def _judged(host: str | None, seconds: Sequence[Second], *, since_boot: bool) -> Iterable[Finding]:
    swap = median([float(s.swap_kib) for s in seconds])
    stolen = median([float(s.stolen) for s in seconds])
    blocked = int(median([float(s.blocked) for s in seconds]))
    idle = median([float(s.idle) for s in seconds])
    data = {
        "swap_mib_per_s": round(swap / 1024, 2),
        "steal_percent": stolen,
        "blocked": blocked,
        "running": int(median([float(s.running) for s in seconds])),
        "idle_percent": idle,
        "since_boot": since_boot or None,
    }
    line = seconds[0].line
    swapping = swap >= SWAPPING and not since_boot
    waiting = blocked >= BLOCKED and not since_boot
    if swapping:
        yield finding(
            "vmstat",
            "swapping",
            Severity.HIGH,
            f"{at(host)}The host swaps {number(round(swap / 1024, 1))} MiB/s: memory is short, and "
            "whatever is touched waits for the disk.",
            "ps aux --sort=-rss | head; fewer data loader workers or smaller prefetch; free -h.",
            line=line,
            cause="host_memory_pressure",
            data=data,
            entity=node(host),
            sources=_SOURCES,
        )
    if stolen >= STOLEN:
        yield finding(
            "vmstat",
            "cpu_steal",
            Severity.MEDIUM,
            f"{at(host)}The hypervisor takes {number(stolen)} % of this machine's CPU time for "
            "others (steal).",
            "Ask for dedicated cores, or move the job to another host.",
            line=line,
            cause="cpu_starved",
            data=data,
            entity=node(host),
            sources=_SOURCES,
        )
    if waiting:
        yield finding(
            "vmstat",
            "blocked_tasks",
            Severity.LOW,
            f"{at(host)}{plural(blocked, 'task')} wait in state D at a time: for a disk, a network "
            "file system, or a driver.",
            "ps -eo state,pid,wchan:32,comm | grep ^D names them and where they wait; dmesg.",
            line=line,
            data=data,
            entity=node(host),
            sources=_SOURCES,
        )
    if not swapping and not waiting and stolen < STOLEN:
        yield finding(
            "vmstat",
            "host",
            Severity.INFO,
            f"{at(host)}{plural(len(seconds), 'line')} of vmstat"
            + (", the mean since boot" if since_boot else "")
            + f": {number(round(swap / 1024, 2))} MiB/s of swapping, {number(idle)} % of the CPU "
            f"idle, {plural(blocked, 'task')} blocked.",
            "Nothing to do here; one busy core does not show in these means (mpstat -P ALL 1).",
            line=line,
            data=data,
            entity=node(host),
            sources=_SOURCES,
        )
