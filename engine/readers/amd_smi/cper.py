"""The table of ``amd-smi ras --cper``: error records that the GPU's firmware kept.

Rows: time, GPU, severity, and with ``--folder`` the file and its AMD Field IDs (AFID). Those are
AMD's own numbers and no XID. Source: ROCm/rocm-systems projects/amdsmi docs and amdsmi_cli.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from engine.model import Finding, Severity
from engine.readers.amd_smi.limits import KIND
from engine.readers.listing import at, finding
from engine.readers.quantities import listed, plural

_HEADING: Final = re.compile(r"^\s{0,12}timestamp\s{1,24}gpu_id\s{1,8}severity\b")
_ROW: Final = re.compile(
    r"^\s{0,12}(?P<when>\d{2,4}[/-]\d{2}[/-]\d{2,4} \d{2}:\d{2}:\d{2})\s{1,12}(?P<gpu>\d{1,4}|-)"
    r"\s{1,12}(?P<severity>[A-Za-z_-]{4,32})(?:\s{1,24}(?P<file>\S{1,80}))?"
    r"(?:\s{1,24}(?P<afids>[\d ,\[\]]{1,80}))?\s*$"
)
_NUMBER: Final = re.compile(r"\d{1,6}")
_SOURCE: Final = "ROCm/rocm-systems projects/amdsmi docs, amd-smi ras"


@dataclass(slots=True)
class Cper:
    """One error record."""

    line: int
    host: str | None
    gpu: int | None
    severity: str
    when: str
    afids: list[int] = field(default_factory=list)

    @property
    def corrected(self) -> bool:
        """Whether the hardware corrected the error."""
        return "uncorrected" not in self.severity and "corrected" in self.severity


class CperForm:
    """Takes the table."""

    def __init__(self, keep: Callable[[Cper], None], host: str | None) -> None:
        self._keep = keep
        self._host = host

    def starts(self, number: int, text: str) -> bool:
        """Return whether a line is the heading."""
        del number
        return _HEADING.match(text) is not None

    def take(self, number: int, text: str) -> bool:
        """Take a row."""
        row = _ROW.match(text)
        if row is None:
            return False
        afids = [int(n) for n in _NUMBER.findall(row["afids"] or "")[:16]]
        gpu = int(row["gpu"]) if row["gpu"] != "-" else None
        severity = row["severity"].lower().replace("_", "-")
        self._keep(Cper(number, self._host, gpu, severity, row["when"], afids))
        return True


def cper_findings(records: Sequence[Cper]) -> Iterator[Finding]:
    """Yield what the records show: those that nothing corrected, then the corrected ones."""
    for corrected in (False, True):
        some = [one for one in records if one.corrected is corrected]
        if some:
            yield _told(some, corrected=corrected)


def _told(some: Sequence[Cper], *, corrected: bool) -> Finding:
    gpus = sorted({one.gpu for one in some if one.gpu is not None})
    afids = sorted({n for one in some for n in one.afids})
    kinds = listed(dict.fromkeys(one.severity for one in some), 4)
    where = f" of {listed((f'GPU {g}' for g in gpus), 8)}" if gpus else ""
    numbers = f" AMD Field IDs (AFID): {listed(map(str, afids), 8)}." if afids else ""
    return finding(
        KIND,
        "cper_corrected" if corrected else "cper_uncorrected",
        Severity.INFO if corrected else Severity.CRITICAL,
        f"{at(some[0].host)}{plural(len(some), 'error record')} (CPER){where}, severity {kinds}, "
        f"first {some[0].when}.{numbers}"
        + (" They were corrected: no data is wrong." if corrected else " Work on it was lost."),
        "Compare with the node's other GPUs over time: amd-smi metric --ecc."
        if corrected
        else "Take the GPU out of service, decode the records (amd-smi ras --afid --cper-file "
        "FILE; AMD's AFID list says which part failed) and look at amd-smi metric --ecc-blocks and "
        "amd-smi bad-pages. Reset it with jobs stopped; have it replaced if errors come back.",
        line=some[0].line,
        cause=None if corrected else "ecc_uncorrectable",
        data={
            "gpus": gpus[:64],
            "afids": afids[:64],
            "count": len(some),
            "severity": some[0].severity,
        },
        sources=(_SOURCE,),
    )
