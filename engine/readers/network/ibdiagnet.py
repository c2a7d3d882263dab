"""Reader of ``ibdiagnet``: the table of stages at its end, and ports named in warnings.

Source: Mellanox OFED / UFM ibdiagnet2 output; the counters that it reports are totals unless it
sampled twice (``--pm_pause_time``).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import ClassVar, Final

from engine.model import Finding, Severity
from engine.readers.base import Result
from engine.readers.listing import Listing, finding, result_of
from engine.readers.quantities import listed, plural, short

_HEADER: Final = re.compile(r"^-I- Stage\s{2,60}Warnings\s{1,20}Errors(?:\s{1,20}Comment)?\s*$")
_ROW: Final = re.compile(
    r"^-I- (\S.{0,60}?)\s{2,60}([0-9]{1,9})\s{1,20}([0-9]{1,9})(?:\s.{0,120})?$"
)
_PORT: Final = re.compile(
    r"^-([EW])- (?:lid=\S{1,10} dev=[0-9]{1,6} )?(\S{1,80}"
    r"(?: \S{1,40})?) - (Unexpected actual link (?:speed|width).{0,60})"
)
_CAUSES: Final = {
    "speed / width checks": "ib_link_degraded",
    "ber check": "ib_link_degraded",
    "links check": "ib_link_down",
    "routing": "rdma_unreachable",
    "subnet manager": "rdma_unreachable",
    "lids check": "rdma_unreachable",
}
_NEXT: Final = {
    "speed / width checks": (
        "These links run below what was set or is supported: reseat or swap the cables."
    ),
    "ber check": "Bit error rates are over the limit: clean or swap cables and transceivers.",
    "port counters": (
        "Totals since the last reset: run ibdiagnet -r --pm_pause_time 60 under load, which "
        "reports growth."
    ),
    "links check": "Links are missing or not active: check cables and switch ports.",
    "nodes information": "Mostly firmware versions that differ, or nodes that did not answer.",
}


@dataclass(frozen=True, slots=True)
class Row:
    """A stage with its counts, or (``port`` set) a port that a warning names."""

    line: int
    stage: str
    warnings: int = 0
    errors: int = 0
    port: str | None = None


class IbdiagnetReader(Listing[Row]):
    """Reads the rows of the summary and the warnings on speed and width."""

    triggers: ClassVar[tuple[bytes, ...]] = (b"-I- Stage", b" - Unexpected actual link ")

    def take(self, number: int, text: str) -> bool:
        """Take a line of ``ibdiagnet``."""
        port = _PORT.match(text)
        if port:
            self.kept.add(Row(number, short(port[3], 80), port=short(port[2])))
            return True
        if _HEADER.match(text):
            self.inside = True
            return True
        row = _ROW.match(text) if self.inside else None
        if row is None:
            return False
        self.kept.add(Row(number, short(row[1]), int(row[2]), int(row[3])))
        return True

    def judge(self, records: Sequence[Row]) -> Result:
        """Say which stages found something."""
        return result_of(["ibdiagnet"], _judged(records))


def _judged(rows: Sequence[Row]) -> Iterable[Finding]:
    stages = [row for row in rows if row.port is None]
    named = list(dict.fromkeys(row.port for row in rows if row.port))
    bad = [row for row in stages if row.errors or (_CAUSES.get(row.stage.lower()) and row.warnings)]
    if named and not any("speed" in row.stage.lower() for row in bad):
        bad.append(Row(rows[0].line, "Speed / Width checks", len(named)))
    for row in bad:
        key = row.stage.lower()
        ports = named if "speed" in key else []
        yield finding(
            "ibdiagnet",
            re.sub(r"[^a-z0-9]+", "_", key).strip("_")[:40],
            Severity.HIGH if key in _CAUSES and row.errors else Severity.MEDIUM,
            f"ibdiagnet, stage {row.stage}: {plural(row.errors, 'error')}, "
            f"{plural(row.warnings, 'warning')}" + (f" ({listed(ports)})." if ports else "."),
            f"{_NEXT.get(key, 'Read the lines of this stage.')} Details: "
            "/var/tmp/ibdiagnet2/ibdiagnet2.log.",  # noqa: S108 - where the tool writes
            line=row.line,
            cause=_CAUSES.get(key),
            data={
                "stage": row.stage,
                "errors": row.errors,
                "warnings": row.warnings,
                "ports": ports[:64] or None,
            },
            sources=("NVIDIA UFM and OFED documentation, ibdiagnet",),
        )
    if stages and not bad:
        warned = [row for row in stages if row.warnings]
        yield finding(
            "ibdiagnet",
            "no_errors",
            Severity.INFO,
            f"ibdiagnet found no error in {plural(len(stages), 'stage')}"
            + (f"; warnings in {listed(row.stage for row in warned)}." if warned else "."),
            "Stages that were skipped are not in the table; counters need --pm_pause_time to show "
            "growth.",
            line=stages[0].line,
            data={"stages": len(stages), "warnings": sum(row.warnings for row in stages)},
            sources=("NVIDIA UFM and OFED documentation, ibdiagnet",),
        )
