"""Reader of pressure stall information, ``/proc/pressure/*`` and ``*.pressure`` of control groups.

``some`` is the part of the time in which at least one task waited for the resource, ``full`` that
in which all did, in percent. Source: Linux kernel, Documentation/accounting/psi.rst.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Final

from engine.model import Finding, Severity
from engine.readers.base import Result
from engine.readers.listing import Listing, at, finding, node, result_of
from engine.units import number

_NAME: Final = re.compile(r"(?:/proc/pressure/|\b)(cpu|io|memory)(?:\.pressure)?\b(?=:| <==|\s*$)")
_LINE: Final = re.compile(
    r"^(?P<file>\s{0,4}\S{0,200}?:)?(?P<kind>some|full) avg10=(?P<ten>[0-9]{1,3}\.[0-9]{1,2}) "
    r"avg60=(?P<sixty>[0-9]{1,3}\.[0-9]{1,2}) avg300=(?P<long>[0-9]{1,3}\.[0-9]{1,2}) "
    r"total=[0-9]{1,20}\s*$"
)
# Percent of the time in which all tasks stood still; the readings of node_exporter are held
# against the same.
STALLED: Final = 10.0
_CAUSES: Final = {"memory": "host_memory_pressure", "io": "storage_slow"}
_WAITS: Final = {
    "memory": "memory (reclaim and swap)",
    "io": "disk or network storage",
    "cpu": "a CPU",
    "": "a resource whose name is not in the text",
}


@dataclass(frozen=True, slots=True)
class Pressure:
    """One line; averages in percent over 10, 60 and 300 s."""

    line: int
    host: str | None
    resource: str
    kind: str
    ten: float
    sixty: float
    long: float


class PressureReader(Listing[Pressure]):
    """Reads the lines; the resource is named by a file name in front or above."""

    triggers: ClassVar[tuple[bytes, ...]] = (b"pressure", b"some avg10=", b"full avg10=")
    PATIENCE = 1

    _resource = ""

    def take(self, number: int, text: str) -> bool:
        """Take a line of a pressure file, or remember which file comes next."""
        found = _LINE.match(text)
        if found is None:
            name = _NAME.search(text[:200]) if "pressure" in text else None
            if name:
                self._resource = name[1]
            return False
        own = _NAME.search(found["file"] or "")
        self.kept.add(
            Pressure(
                number,
                self.host,
                own[1] if own else self._resource,
                found["kind"],
                float(found["ten"]),
                float(found["sixty"]),
                float(found["long"]),
            )
        )
        self.inside = True
        return True

    def end(self) -> None:
        """Forget the file."""
        self._resource = ""

    def judge(self, records: Sequence[Pressure]) -> Result:
        """Say for what tasks stood still."""
        found: list[Finding] = []
        for host in dict.fromkeys(r.host for r in records):
            own = [r for r in records if r.host == host]
            bad = [r for r in own if r.kind == "full" and r.resource != "cpu" and _share(r)]
            found += [_stalled(r) for r in bad]
            if not bad:
                found.append(_rest(host, own))
        return result_of(["pressure"], found)


def _share(one: Pressure) -> float:
    """Return the stalled share in percent if it counts, else 0."""
    share = max(one.ten, one.sixty)
    return share if share >= STALLED else 0.0


def _stalled(one: Pressure) -> Finding:
    return finding(
        "pressure",
        f"{one.resource or 'resource'}_stalled",
        Severity.MEDIUM,
        f"{at(one.host)}For {number(one.ten)} % of the last 10 s and {number(one.sixty)} % of the "
        f"last minute all tasks stood still for {_WAITS[one.resource]} (PSI, full).",
        "Find the tasks in state D: ps -eo state,pid,comm | grep ^D; iostat -x 1, nfsiostat 1."
        if one.resource != "memory"
        else "free -h, vmstat 1 (si, so); ps aux --sort=-rss | head shows who holds it.",
        line=one.line,
        cause=_CAUSES.get(one.resource),
        data={
            "resource": one.resource or None,
            "full_avg10_percent": one.ten,
            "full_avg60_percent": one.sixty,
            "full_avg300_percent": one.long,
        },
        entity=node(one.host),
        sources=("Linux kernel, Documentation/accounting/psi.rst",),
    )


def _rest(host: str | None, own: Sequence[Pressure]) -> Finding:
    worst = max(own, key=lambda r: r.sixty)
    named = f"{worst.resource}, {worst.kind}" if worst.resource else worst.kind
    return finding(
        "pressure",
        "pressure",
        Severity.INFO,
        f"{at(host)}No stall worth a word: the highest average of a minute is "
        f"{number(worst.sixty)} % ({named})."
        + (
            " Some tasks wait for a CPU; on a busy host that is normal."
            if worst.resource == "cpu" and worst.sixty >= STALLED
            else ""
        ),
        "Nothing to do; not every remote wait shows here (Lustre waits may count as sleep).",
        line=worst.line,
        data={"highest_avg60_percent": worst.sixty, "resource": worst.resource or None},
        entity=node(host),
        sources=("Linux kernel, Documentation/accounting/psi.rst",),
    )
